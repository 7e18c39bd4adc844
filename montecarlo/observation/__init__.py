"""A user's own queries and keys: which assumption of the texts fails, head by head.

Files or arrays in; quantities, diagnoses and verdicts out; nothing is drawn but keys of
other sequences.
"""

from montecarlo.observation.observing import observe

__all__ = ["observe"]
