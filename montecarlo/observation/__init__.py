"""A user's own queries and keys: which assumption of the texts fails, head by head.

Files or arrays in; quantities, diagnoses and verdicts out; nothing is drawn but keys of
other sequences.  What is not usable, or does not fit, is refused by an `InputError`.
"""

from montecarlo.observation.observing import observe

__all__ = ["observe"]
