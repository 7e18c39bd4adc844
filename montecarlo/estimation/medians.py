"""The median of seeds: no mean of what was censored, and an interval that is exact.

A run that never gets there has an infinite number of steps, and is a result like any
other; of two that never do the ratio may be anything, and counts against either bound.
"""

import math

import numpy as np
from scipy.stats import binom

from montecarlo.attention.softmax import Array
from montecarlo.estimation.estimates import Estimate, half_width_error
from montecarlo.estimation.intervals import Interval


def median_estimate(values: Array) -> Estimate:
    """Estimate a median from one value per replicate.

    Parameters
    ----------
    values : ndarray, shape (n_replicates,)
        May be infinite; one that is not a number could be any.

    Notes
    -----
    The ends are order statistics: as many values lie below the median as heads fall in
    as many throws of a coin, whatever the distribution, and ties widen it only.

    References
    ----------
    Thompson (1936), On confidence ranges for the median, Ann. Math. Statist. 7.
    """
    least = np.sort(np.where(np.isnan(values), -np.inf, values))
    most = np.sort(np.where(np.isnan(values), np.inf, values))
    n = len(values)

    def bounds(error_rate: float) -> Interval:
        below = int(binom.ppf(error_rate, n, 0.5))  # fewest with more than this
        if below == 0:
            return Interval(-math.inf, math.inf)
        return Interval(float(least[below - 1]), float(most[n - below]))

    with np.errstate(invalid="ignore"):
        value = float(np.median(least) + np.median(most)) / 2.0
        error = half_width_error(bounds, max(2, n))
    return Estimate(value, error, n, bounds=bounds)
