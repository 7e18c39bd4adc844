"""The scale that a model applies to its scores, from its queries, keys and weights.

In: arrays, files or a running model.  Out: for each head its divisor with an interval,
and the parts of the variance of its scores.  Input that cannot be used is an
`InputError`.
"""

from montecarlo.model.captured import Captured, capture
from montecarlo.model.observing import observe

__all__ = ["Captured", "capture", "observe"]
