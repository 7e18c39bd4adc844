"""Ranges that the values of a quantity lie in, whatever is sampled."""

import math

Range = tuple[float, float]
ANY: Range = (-math.inf, math.inf)
NOT_NEGATIVE: Range = (0.0, math.inf)
#: Of weights, and of shares of rows or keys.
SHARE: Range = (0.0, 1.0)


def clip(value: float, within: Range) -> float:
    """Return the value of a range that is nearest to a number; NaN as it is."""
    low, high = within
    return min(max(value, low), high)  # in this order: NaN stays where it comes first
