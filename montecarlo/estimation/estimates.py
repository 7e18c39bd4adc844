"""An estimate with its interval, and the ways to get one from replicates.

Intervals come from differences between replicates and Student's t.  They are never
those of a chi-square: entries of one QKᵀ share rows and columns.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, stdtrit

from montecarlo.attention.softmax import Array

#: One-sided error of the pointwise 95 % intervals of the tables.
POINTWISE = 0.025


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error.

    Attributes
    ----------
    value : float
    std_error : float
        NaN where fewer than two replicates, or too few moments, give none.
    n_replicates : int
        Independent replicates behind it.
    bounds : callable or None
        One-sided error rate -> Interval, where that is not the t interval.
    """

    value: float
    std_error: float
    n_replicates: int
    bounds: Callable[[float], Interval] | None = None

    def interval(self, error_rate: float) -> Interval:
        """Return the interval that misses on each side with this probability.

        Parameters
        ----------
        error_rate : float
            One-sided, between 0 and 0.5.

        Returns
        -------
        Interval
        """
        if self.bounds is not None:
            return self.bounds(error_rate)
        half = t_quantile(error_rate, self.n_replicates) * self.std_error
        return Interval(self.value - half, self.value + half)

    def scaled(self, factor: float) -> "Estimate":
        """Return the same estimate times an exact positive factor."""
        return Estimate(self.value * factor, self.std_error * factor, self.n_replicates)


@lru_cache(maxsize=4096)
def t_quantile(error_rate: float, n_replicates: int) -> float:
    """Return the upper quantile of Student's t with n - 1 degrees of freedom."""
    if n_replicates < 2:
        return math.nan
    return -float(stdtrit(n_replicates - 1, error_rate))


def mean_estimate(values: Array) -> Estimate:
    """Estimate a mean.

    Parameters
    ----------
    values : ndarray, shape (n_replicates,)
        One value per replicate.
    """
    n = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Estimate(float(values.mean()), error, n)


def share_estimate(values: Array, n_rows: int) -> Estimate:
    """Estimate a probability from the share of rows in each replicate.

    Parameters
    ----------
    values : ndarray, shape (n_replicates,)
    n_rows : int
        Rows of a replicate.

    Notes
    -----
    Given its keys, the rows of a replicate are independent, so the true interval is at
    least the binomial one, of Clopper and Pearson.  Where replicates agree by chance,
    all 0 for example, their spread is not believed: the interval covers both, and the
    t interval of at least the binomial error (half a row taken off 0 and 1), which is
    the wider one for few replicates.
    """
    estimate = mean_estimate(values)
    rows = n_rows * estimate.n_replicates
    hits = round(estimate.value * rows)
    inside = (hits + 0.5) / (rows + 1.0)
    floor = math.sqrt(inside * (1.0 - inside) / rows)
    estimate = replace(estimate, std_error=max(estimate.std_error, floor))

    def bounds(error_rate: float) -> Interval:
        low, high = estimate.interval(error_rate)
        least = betaincinv(hits, rows - hits + 1, error_rate) if hits else 0.0
        most = 1.0
        if hits < rows:
            most = float(betaincinv(hits + 1, rows - hits, 1.0 - error_rate))
        return Interval(min(low, float(least)), max(high, most))

    error = half_width_error(bounds, max(2, estimate.n_replicates))
    return Estimate(estimate.value, error, estimate.n_replicates, bounds)


def jackknife(values: Array, function: Callable[[Array], Array]) -> Estimate:
    """Estimate a smooth function of several means.

    Parameters
    ----------
    values : ndarray, shape (n_means, n_replicates)
    function : callable
        (n_means, any) -> (any,), evaluated at the means over all replicates but one.

    Returns
    -------
    Estimate
        With the jackknife's first-order correction of bias and its standard error.

    References
    ----------
    Efron and Stein (1981), The jackknife estimate of variance, Ann. Statist. 9.
    """
    n = values.shape[1]
    total = values.sum(axis=1, keepdims=True)
    whole = float(function(total / n)[0])
    if n < 2:
        return Estimate(whole, math.nan, n)
    left_out = function((total - values) / (n - 1))
    centre = float(left_out.mean())
    error = math.sqrt((n - 1) / n * float(np.square(left_out - centre).sum()))
    return Estimate(n * whole - (n - 1) * centre, error, n)


def product(parts: Sequence[tuple[Estimate, int]]) -> Estimate:
    """Estimate a product of powers of positive quantities, dependent or not.

    Parameters
    ----------
    parts : sequence of (Estimate, int)
        Factors and their exponents, 1 or -1.

    Returns
    -------
    Estimate
        Its interval is made of the factors' intervals, the error rate split over them:
        valid for any dependence.
    """

    def end(interval: Interval, power: int, *, upper: bool) -> float:
        if power > 0:
            return max(0.0, interval.high if upper else interval.low)
        divisor = max(0.0, interval.low if upper else interval.high)
        return math.inf if divisor == 0.0 else 1.0 / divisor

    def bounds(error_rate: float) -> Interval:
        share = error_rate / len(parts)
        intervals = [(part.interval(share), power) for part, power in parts]
        return Interval(
            math.prod(end(i, power, upper=False) for i, power in intervals),
            math.prod(end(i, power, upper=True) for i, power in intervals),
        )

    value = math.prod(
        end(Interval(part.value, part.value), power, upper=True)
        for part, power in parts
    )
    n = min(part.n_replicates for part, _ in parts)
    return Estimate(value, half_width_error(bounds, n), n, bounds)


def half_width_error(bounds: Callable[[float], Interval], n_replicates: int) -> float:
    """Return the standard error that a t interval as wide as the 95 % one has."""
    low, high = bounds(POINTWISE)
    return (high - low) / (2.0 * t_quantile(POINTWISE, n_replicates))
