"""Intervals for means and for smooth functions of means, one or a million at once.

In: values by replicate along the last axis.  Out: value, standard error and skewness;
from these the ends of an interval at any error rate.
"""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from montecarlo.attention.softmax import Array

#: One-sided error of a pointwise 95 % interval, and standard errors on either side.
POINTWISE = 0.025
NORMAL = 1.959963984540054
#: Skewness over the root of the number of replicates that makes no difference.
SYMMETRIC = 1e-7
#: The same, beyond which a mean has no bounds: k equal outliers among n have a skewness
#: of about the root of n/k, so its variance comes from fewer replicates than this.
RARE = 0.3
FEWEST_BEHIND_A_MEAN = math.floor(1.0 / RARE**2)


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float

    def mapped(self, function: Callable[[float], float]) -> "Interval":
        """Return what an increasing function makes of it."""
        return Interval(function(self.low), function(self.high))


def round_end(value: float, digits: int, *, up: bool) -> float:
    """Round an end of an interval to some digits, never into the interval.

    Examples
    --------
    >>> round_end(0.12345, 3, up=False), round_end(0.12345, 3, up=True)
    (0.123, 0.124)
    """
    if not math.isfinite(value):
        return value
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    shortest = repr(float(value))  # 0.1 is not above 0.1
    return float(Context(digits, rounding).create_decimal(shortest))


#: From how many times its lower end on the upper end of an interval is shown by a
#: factor: half the width says nothing of either side then.
WIDE = 2.0


def factor_of(low: float, high: float) -> float | None:
    """Return the standard error of a positive number as a factor, if its ends are wide.

    None where they are no farther apart than `WIDE`, or one of them is 0 or infinite.
    """
    if not 0.0 < low < high < math.inf or high < WIDE * low:
        return None
    return math.exp(math.log(high / low) / (2.0 * NORMAL))


class Moments(NamedTuple):
    """What an interval is made of.

    Attributes
    ----------
    value, std_error, skewness : ndarray
        NaN for a standard error of fewer than two replicates, and 0 for the skewness
        of replicates that agree.
    """

    value: Array
    std_error: Array
    skewness: Array


@lru_cache(maxsize=4096)
def t_quantile(error_rate: float, n_replicates: float) -> float:
    """Return the upper quantile of Student's t with n - 1 degrees of freedom."""
    return -float(scipy.special.stdtrit(n_replicates - 1, error_rate))


def mean_moments(values: Array) -> Moments:
    """Return the mean over the last axis, with its standard error and skewness."""
    n = values.shape[-1]
    centre = values.mean(axis=-1)
    deviations = values - centre[..., np.newaxis]
    deviation, skewness = _measure_deviations(deviations)
    error = deviation / math.sqrt(n - 1) if n > 1 else np.full_like(centre, np.nan)
    return Moments(centre, error, skewness)


def jackknife_moments(values: Array, function: Callable[[Array], Array]) -> Moments:
    """Return a smooth function of several means, with standard error and skewness.

    Parameters
    ----------
    values : ndarray, shape (n_means, ..., n_replicates)
    function : callable
        (n_means, ...) -> (...), evaluated at the means over all replicates but one.

    Returns
    -------
    Moments
        With the jackknife's first-order correction of bias and its standard error.

    References
    ----------
    Efron and Stein (1981), The jackknife estimate of variance, Ann. Statist. 9.
    """
    n = values.shape[-1]
    total = values.sum(axis=-1, keepdims=True)
    whole = function(total / n)[..., 0]
    if n < 2:
        return Moments(whole, np.full_like(whole, np.nan), np.zeros_like(whole))
    return leave_one_out_moments(whole, function((total - values) / (n - 1)))


def leave_one_out_moments(whole: Array, left_out: Array) -> Moments:
    """Return `jackknife_moments` of a value from those without each replicate."""
    n = left_out.shape[-1]
    centre = left_out.mean(axis=-1)
    # what a replicate adds is what the value loses without it
    deviation, skewness = _measure_deviations(centre[..., np.newaxis] - left_out)
    bias = (n - 1) * (centre - whole)
    # the correction is not known better than itself: where a function is flat at the
    # means, it is all that there is to go by
    error = np.hypot(math.sqrt(n - 1) * deviation, bias)
    return Moments(whole - bias, error, skewness)


def _measure_deviations(deviations: Array) -> tuple[Array, Array]:
    """Return the root mean square and the skewness of deviations from their mean."""
    largest = np.abs(deviations).max(axis=-1)
    scale = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)
    units = deviations / scale[..., np.newaxis]  # powers neither underflow nor overflow
    squares = np.square(units)
    second = squares.mean(axis=-1)
    third = np.multiply(squares, units, out=squares).mean(axis=-1)
    skewness = third / np.where(second > 0.0, second * np.sqrt(second), 1.0)
    return np.sqrt(second) * scale, skewness


def interval_ends(
    moments: Moments, n_replicates: int, error_rate: float
) -> tuple[Array, Array]:
    """Return the ends of intervals that miss on each side with this probability.

    Parameters
    ----------
    moments : Moments
    n_replicates : int
    error_rate : float
        One-sided, between 0 and 0.5.

    Notes
    -----
    On each side the wider of Student's interval and Hall's: Student's misses too often
    on one side where replicates are skewed, Hall's on both where they have heavy tails.
    """
    t = t_quantile(error_rate, n_replicates)
    per_root = moments.skewness / math.sqrt(n_replicates)
    above = np.maximum(t, undo_skewness(t, per_root))
    below = np.minimum(-t, undo_skewness(-t, per_root))
    low = moments.value - above * moments.std_error
    return low, moments.value - below * moments.std_error


def one_interval(
    value: float,
    std_error: float,
    skewness: float,
    n_replicates: int,
    error_rate: float,
) -> Interval:
    """Return `interval_ends`, without bounds where a mean hangs on rare replicates.

    For one estimate, since arrays of one are slow.

    Notes
    -----
    Where fewer than `FEWEST_BEHIND_A_MEAN` replicates make nearly all of the variance,
    rarer ones are still to come, and what they add is not known.
    """
    t = t_quantile(error_rate, n_replicates)
    a = skewness / math.sqrt(n_replicates)
    if abs(a) > RARE:
        return Interval(-math.inf, math.inf)
    above, below = t, -t
    if abs(a) > SYMMETRIC and not math.isnan(t):
        roots = (math.cbrt(1.0 + a * (side * t - a / 6.0)) for side in (1.0, -1.0))
        undone = [3.0 / a * (root - 1.0) for root in roots]
        above, below = max(t, undone[0]), min(-t, undone[1])
    return Interval(value - above * std_error, value - below * std_error)


def undo_skewness(quantile: float, per_root: Array) -> Array:
    """Return the quantile of a Studentised mean that skewness made of Student's.

    Parameters
    ----------
    quantile : float
        Of Student's t.
    per_root : ndarray
        Skewness over the root of the number of replicates, a.

    Notes
    -----
    Inverts g(T) = T + a T²/3 + a² T³/27 + a/6, which increases, and has no skewness to
    the first order in a.

    References
    ----------
    Hall (1992), On the removal of skewness by transformation, J. R. Statist. Soc. B 54.
    """
    skewed = np.abs(per_root) > SYMMETRIC
    a = np.where(skewed, per_root, 1.0)
    undone = 3.0 / a * (np.cbrt(1.0 + a * (quantile - a / 6.0)) - 1.0)
    return np.where(skewed, undone, quantile)
