"""How large scores must be for rows of n keys to stay as they are, exactly and drawn.

In: what is held (the entropy, or E Σp²), its level, the number of keys.  Out: the
standard deviation of independent normal scores at which a row has it.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq, root_scalar

from montecarlo.estimation.estimates import Estimate
from montecarlo.literature.score_rows import concentration_of, entropy_of
from montecarlo.sampling.streams import ModelRows
from montecarlo.theory.row_integrals import (
    ROW_NAMES,
    Array,
    gaussian_profile,
    integrate_row,
)

#: What may be held, by the name of its expectation, and how a row has it.
HELD = {
    "entropy": ("entropy", entropy_of),
    "concentration": ("inverse_participation", concentration_of),
}
#: Standard deviations between which s(n) is looked for.
LEAST, MOST = 1e-3, 200.0
#: Half of the step in ln s that slopes are taken over.
STEP = 1e-3


@lru_cache(maxsize=1024)
def std_that_holds(holds: str, level: float, n_keys: float) -> float:
    """Return the s at which the expectation over a row of n keys is at its level.

    Notes
    -----
    The exact expectations of `montecarlo.theory`; both are monotone in s.
    """
    place = ROW_NAMES.index(HELD[holds][0])

    def off(log_std: float) -> float:
        profile = gaussian_profile(np.array([math.exp(log_std)]))
        return float(integrate_row(profile, n_keys).values[0, place]) - level

    return math.exp(brentq(off, math.log(LEAST), math.log(MOST), xtol=1e-12))


def local_exponent(holds: str, level: float, n_keys: float) -> float:
    """Return d ln s / d ln ln n at a number of keys: 1 where s grows like ln n."""
    ends = [n_keys ** math.exp(sign * STEP) for sign in (-1.0, 1.0)]
    low, high = (std_that_holds(holds, level, one) for one in ends)
    return math.log(high / low) / (2.0 * STEP)


def mean_exponent(holds: str, level: float, low: int, high: int) -> float:
    """Return the mean of that between two numbers of keys."""
    first, last = (std_that_holds(holds, level, n) for n in (low, high))
    return math.log(last / first) / math.log(math.log(high) / math.log(low))


def drawn_exponent(
    source: ModelRows, holds: str, level: float, low: int, high: int
) -> Estimate:
    """Estimate the mean exponent from rows that are drawn, without any integral.

    Notes
    -----
    With z drawn, the mean over the rows of s z is a function of s, and where it is at
    the level an estimate of s; its error is that of the mean over its slope.
    """
    reach = math.log(math.log(high) / math.log(low))
    (first, first_error, n_first), (last, last_error, n_last) = (
        _drawn_std(source, holds, level, n) for n in (low, high)
    )
    error = math.hypot(first_error / first, last_error / last) / reach
    return Estimate(math.log(last / first) / reach, error, min(n_first, n_last))


def _drawn_std(
    source: ModelRows, holds: str, level: float, n_keys: int
) -> tuple[float, float, int]:
    """Return s, its standard error and the number of rows behind it."""
    value_of = HELD[holds][1]

    def values(std: float) -> Array:
        # drawn again each time: so many rows do not fit into memory
        again = ModelRows(source.seed, f"{source.name} {n_keys}")
        return np.concatenate([value_of(std * z) for z in again.normal(n_keys)])

    def off(log_std: float) -> float:
        return float(values(math.exp(log_std)).mean()) - level

    # both sides of where rows of this length begin to concentrate
    usual = 0.5 * math.log(math.log(n_keys))
    root = root_scalar(off, x0=usual, x1=usual + 0.3, xtol=1e-5).root
    found = values(math.exp(root))
    slope = (off(root + STEP) - off(root - STEP)) / (2.0 * STEP)
    error = float(found.std(ddof=1)) / math.sqrt(found.size) / abs(slope)
    std = math.exp(root)
    return std, error * std, found.size
