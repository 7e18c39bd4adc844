"""How many digits a record keeps: as many as say something, and decide as all do."""

import math

from montecarlo.estimation.intervals import Interval


def finite(value: float) -> float | None:
    """JSON has no infinity: an open end is null."""
    return value if math.isfinite(value) else None


def shorten(value: float) -> float | None:
    """Keep six digits of what is itself an estimate of an error."""
    return finite(float(f"{value:.6g}"))


def ends(
    interval: Interval | None, region: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Keep six digits of an interval's ends, or as many as compare as they do."""
    if interval is None:
        return None, None
    return _end(interval.low, region), _end(interval.high, region)


def _end(value: float, region: tuple[float, float]) -> float | None:
    kept = (float(f"{value:.{digits}g}") for digits in range(6, 17))
    sides = [(value > end) - (value < end) for end in region]
    for short in kept:
        if [(short > end) - (short < end) for end in region] == sides:
            return finite(short)
    return finite(value)
