"""Medians and shares of seeds: nothing censored is averaged, and intervals are exact.

A run that never gets there took more steps than it had, and is a result like any
other; of two that never do the ratio may be anything, and counts against either bound.
"""

import math

import numpy as np
from scipy.special import betaincinv
from scipy.stats import binom

from montecarlo.attention.softmax import Array
from montecarlo.estimation.estimates import Estimate, half_width_error
from montecarlo.estimation.intervals import Interval


def median_estimate(values: Array, most: Array | None = None) -> Estimate:
    """Estimate a median from one value per replicate.

    Parameters
    ----------
    values : ndarray, shape (n_replicates,)
        What each is at least; one that is not a number could be any.
    most : ndarray, shape (n_replicates,), optional
        What each is at most, where that is not the same; may be infinite.

    Notes
    -----
    The ends are order statistics: as many values lie below the median as heads fall in
    as many throws of a coin, whatever the distribution, and ties widen it only.  The
    value is what the median is at least, where it may be infinite.

    References
    ----------
    Thompson (1936), On confidence ranges for the median, Ann. Math. Statist. 7.
    """
    high = values if most is None else most
    lowest = np.sort(np.where(np.isnan(values), -np.inf, values))
    highest = np.sort(np.where(np.isnan(high), np.inf, high))
    n = len(values)

    def bounds(error_rate: float) -> Interval:
        below = int(binom.ppf(error_rate, n, 0.5))  # fewest with more than this
        if below == 0:
            return Interval(-math.inf, math.inf)
        return Interval(float(lowest[below - 1]), float(highest[n - below]))

    with np.errstate(invalid="ignore"):
        value, largest = float(np.median(lowest)), float(np.median(highest))
        if math.isfinite(largest):
            value = (value + largest) / 2.0
        error = half_width_error(bounds, max(2, n))
    return Estimate(value, error, n, bounds=bounds)


def share_of_seeds(hits: Array) -> Estimate:
    """Estimate a probability from 0 or 1 per replicate, which are independent.

    References
    ----------
    Clopper and Pearson (1934), The use of confidence or fiducial limits, Biometrika 26.
    """
    n, n_hits = len(hits), round(float(np.sum(hits)))
    share = n_hits / n

    def bounds(error_rate: float) -> Interval:
        low = betaincinv(n_hits, n - n_hits + 1, error_rate) if n_hits else 0.0
        most = n_hits + 1, n - n_hits, 1.0 - error_rate
        return Interval(float(low), float(betaincinv(*most)) if n_hits < n else 1.0)

    error = math.sqrt(share * (1.0 - share) / n)
    return Estimate(share, error, n, bounds=bounds)
