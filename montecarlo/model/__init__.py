"""The scale that a model applies to its scores, from its queries, keys and weights.

Arrays, files or a running model in; per head, the divisor with its interval, and which
assumption of the texts fails.  Input that cannot be used is refused by an `InputError`.
"""

from montecarlo.model.captured import Captured, capture
from montecarlo.model.observing import observe

__all__ = ["Captured", "capture", "observe"]
