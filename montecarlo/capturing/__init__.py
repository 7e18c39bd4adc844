"""Queries, keys and what softmax makes of them, recorded from a model that runs.

Only what records from torch or transformers imports them, where it is used.
"""

from montecarlo.capturing.capture import capture
from montecarlo.capturing.captured import Captured

__all__ = ["Captured", "capture"]
