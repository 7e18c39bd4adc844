"""Confidence intervals of means and of smooth functions of means, vectorised.

In: one value per replicate, along the last axis.  Out: estimate, standard error and
skewness (`EstimateMoments`), and from these the ends of an interval at any error rate.
Error rates are one-sided: an interval at rate 0.025 is a 95 % interval.
"""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from montecarlo.attention.softmax import Array

#: One-sided error rate of a pointwise 95 % interval.
POINTWISE = 0.025
#: Largest skewness/sqrt(n_replicates) that is treated as 0: it changes no digit.
SYMMETRIC = 1e-7
#: Largest skewness/sqrt(n_replicates) at which the interval of a mean has finite ends.
#: k equal outliers among n replicates have a skewness of about sqrt(n/k): above this,
#: nearly all of the variance comes from fewer than `FEWEST_OUTLIERS` replicates.
MOST_SKEWED = 0.3
FEWEST_OUTLIERS = math.floor(1.0 / MOST_SKEWED**2)


class Interval(NamedTuple):
    """The lower and the upper end of a confidence interval; may be infinite or NaN."""

    low: float
    high: float

    def mapped(self, function: Callable[[float], float]) -> "Interval":
        """Return the interval with an increasing function applied to both ends."""
        return Interval(function(self.low), function(self.high))


def round_end(value: float, digits: int, *, up: bool) -> float:
    """Return an end of an interval, rounded outwards to some significant digits.

    ``digits`` is their number, and ``up`` says whether it is the upper end.  Infinity
    and NaN are returned as they are.

    Examples
    --------
    >>> round_end(0.12345, 3, up=False), round_end(0.12345, 3, up=True)
    (0.123, 0.124)
    """
    if not math.isfinite(value):
        return value
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    shortest = repr(float(value))  # the double nearest to 0.1 is 0.1, not above it
    return float(Context(digits, rounding).create_decimal(shortest))


#: Smallest ratio of the ends of an interval at which its error is shown as a factor: it
#: is too asymmetric for an error that is added and subtracted.
WIDE = 2.0
#: Quantile of the normal distribution at 0.975, and the coefficients of 1/degrees, its
#: square and so on that Student's t has beside it.
NORMAL_QUANTILE = 1.959963984540054
T_TERMS = 2.372271230, 2.822498616, 2.555849680, 1.589534053


def factor_of(low: float, high: float) -> float | None:
    """Return the factor f of an estimate value ×/÷ f, from its 95 % interval.

    f = exp(ln(high/low) / 2 / 1.96), where the exponent is the standard error of the
    logarithm.  ``low`` and ``high`` are the ends.  None if high/low is below `WIDE`, or
    if an end is not positive or not finite.
    """
    if not 0.0 < low < high < math.inf or high < WIDE * low:
        return None
    return math.exp(math.log(high / low) / (2.0 * NORMAL_QUANTILE))


class EstimateMoments(NamedTuple):
    """Value, standard error and skewness of estimates, from which intervals follow.

    Attributes
    ----------
    value : ndarray, any shape
        The estimates.
    std_error : ndarray, same shape
        Their standard errors; NaN for fewer than two replicates.
    skewness : ndarray, same shape
        Skewness over replicates; 0 if all replicates are equal.
    """

    value: Array
    std_error: Array
    skewness: Array


@lru_cache(maxsize=4096)
def t_quantile(error_rate: float, n_replicates: float) -> float:
    """Return the value that Student's t exceeds with probability ``error_rate``.

    The distribution has n_replicates - 1 degrees of freedom.

    Notes
    -----
    At the rate `POINTWISE` it is the series in 1/degrees whose relative error is at
    most 4e-10 from 63 degrees of freedom on, since importing SciPy takes longer than
    most measurements.

    References
    ----------
    Abramowitz and Stegun (1964), Handbook of mathematical functions, 26.7.5.
    """
    if (degrees := n_replicates - 1) >= 63 and error_rate == POINTWISE:
        return NORMAL_QUANTILE + sum(c / degrees**i for i, c in enumerate(T_TERMS, 1))
    return -float(scipy.special.stdtrit(degrees, error_rate))


def mean_moments(values: Array) -> EstimateMoments:
    """Return means over replicates, with their standard errors and skewness.

    ``values`` has the shape (..., n_replicates), the result (...).
    """
    n = values.shape[-1]
    centre = values.mean(axis=-1)
    deviation, skewness = _measure_deviations(values - centre[..., np.newaxis])
    error = deviation / math.sqrt(n - 1) if n > 1 else np.full_like(centre, np.nan)
    return EstimateMoments(centre, error, skewness)


def jackknife_moments(
    values: Array, function: Callable[[Array], Array]
) -> EstimateMoments:
    """Return jackknife estimates of a smooth function of several means.

    Parameters
    ----------
    values : ndarray, shape (n_means, ..., n_replicates)
    function : callable
        Means, shape (n_means, ..., any) -> values, shape (..., any).  It is called with
        the means over all replicates, and with those over all replicates but one.

    Returns
    -------
    EstimateMoments
        Shape (...): the estimates, corrected for bias to first order; their errors, the
        root of the squared jackknife standard error plus the squared bias; and the
        skewness.  With one replicate they are not corrected, and the errors are NaN.

    References
    ----------
    Efron and Stein (1981), The jackknife estimate of variance, Ann. Statist. 9.
    """
    n = values.shape[-1]
    total = values.sum(axis=-1, keepdims=True)
    whole = function(total / n)[..., 0]
    if n < 2:
        return EstimateMoments(whole, np.full_like(whole, np.nan), np.zeros_like(whole))
    return leave_one_out_moments(whole, function((total - values) / (n - 1)))


def leave_one_out_moments(whole: Array, left_out: Array) -> EstimateMoments:
    """Return jackknife estimates from values that leave out one replicate at a time.

    Parameters
    ----------
    whole : ndarray, shape (...)
        Values from all replicates.
    left_out : ndarray, shape (..., n_replicates)
        For each replicate, the values from all others.

    Returns
    -------
    EstimateMoments
        Shape (...), corrected for bias, with errors as from `jackknife_moments`.
    """
    n = left_out.shape[-1]
    centre = left_out.mean(axis=-1)
    # a replicate that increases the value leaves it smaller when omitted
    deviation, skewness = _measure_deviations(centre[..., np.newaxis] - left_out)
    bias = (n - 1) * (centre - whole)
    # the bias is no better known than its size.  It is the larger part of the error if
    # the derivative at the means is 0
    error = np.hypot(math.sqrt(n - 1) * deviation, bias)
    return EstimateMoments(whole - bias, error, skewness)


def _measure_deviations(deviations: Array) -> tuple[Array, Array]:
    """Return (root mean square, skewness) of deviations along the last axis.

    The deviations are those of replicates from their mean.  The skewness is E d³ / (E
    d²)^(3/2) for deviations d; 0 if all are 0.
    """
    largest = np.abs(deviations).max(axis=-1)
    scale = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)
    units = deviations / scale[..., np.newaxis]  # so that powers do not overflow
    squares = np.square(units)
    second = squares.mean(axis=-1)
    third = np.multiply(squares, units, out=squares).mean(axis=-1)
    skewness = third / np.where(second > 0.0, second * np.sqrt(second), 1.0)
    return np.sqrt(second) * scale, skewness


def interval_ends(
    moments: EstimateMoments, n_replicates: int, error_rate: float
) -> tuple[Array, Array]:
    """Return the lower and the upper ends of confidence intervals.

    Parameters
    ----------
    moments : EstimateMoments
        Shape (...).
    n_replicates : int
    error_rate : float
        Probability with which each end misses the true value, between 0 and 0.5.

    Returns
    -------
    low, high : ndarray, shape (...)

    Notes
    -----
    Each end is that of Student's t interval or of Hall's (`hall_quantile`), whichever
    is wider.  Student's misses too often on one side if replicates are skewed, Hall's
    on both sides if they have heavy tails.  Ends are finite however skewed replicates
    are, unlike those of `Estimate.ends`.
    """
    t = t_quantile(error_rate, n_replicates)
    a = moments.skewness / math.sqrt(n_replicates)
    above = np.maximum(t, hall_quantile(t, a))
    below = np.minimum(-t, hall_quantile(-t, a))
    low = moments.value - above * moments.std_error
    return low, moments.value - below * moments.std_error


def hall_quantile(quantile: float, scaled_skewness: Array) -> Array:
    """Return quantiles of mean / standard error for the mean of skewed replicates.

    Parameters
    ----------
    quantile : float
        The quantile for symmetric replicates, that of Student's t.
    scaled_skewness : ndarray, shape (...)
        a, the skewness of the replicates divided by sqrt(n_replicates).

    Returns
    -------
    ndarray, shape (...)

    Notes
    -----
    The inverse of g(T) = T + a T²/3 + a² T³/27 + a/6, which is increasing, at
    ``quantile``.  g(T) has no skewness to first order in a.

    References
    ----------
    Hall (1992), On the removal of skewness by transformation, J. R. Statist. Soc. B 54.
    """
    skewed = np.abs(scaled_skewness) > SYMMETRIC
    a = np.where(skewed, scaled_skewness, 1.0)
    corrected = 3.0 / a * (np.cbrt(1.0 + a * (quantile - a / 6.0)) - 1.0)
    return np.where(skewed, corrected, quantile)
