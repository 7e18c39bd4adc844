"""An estimate with its interval, and the ways to get one from replicates or estimates.

Intervals come from differences between replicates, as `intervals` makes them.  They are
never those of a chi-square: entries of one QKᵀ share rows and columns.
"""

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from montecarlo.attention.quantities import ANY, Range, Scale, clip
from montecarlo.attention.softmax import Array
from montecarlo.estimation.intervals import (
    POINTWISE,
    RARE,
    Interval,
    Moments,
    interval_ends,
    jackknife_moments,
    mean_moments,
    one_interval,
    t_quantile,
)

#: Rounding of a mean in double precision, as a part of it: eight of its last places.
LAST_PLACES = 2.0**-50
#: Error that single precision may leave in a value of 1 or 0.
ROUNDING = 1e-6
#: By what part neighbouring bins may differ in width.
LIKE_NEIGHBOURS = 0.01


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error.

    Attributes
    ----------
    value : float
        NaN where none is known; where there still are bounds, it lies within these.
    std_error : float
        NaN where fewer than two replicates, or too few moments, give none.
    n_replicates : int
        Independent replicates behind it.
    skewness : float
        Of the replicates.
    bounds : callable or None
        One-sided error rate -> Interval, where that does not come from the above.
    within : (float, float)
        The range of the estimated quantity, to which intervals are cut.
    finest : Interval or None
        The bins of an estimate from a histogram: with any number of replicates its
        interval is no smaller.  None for other estimates.
    """

    value: float
    std_error: float
    n_replicates: int
    skewness: float = 0.0
    bounds: Callable[[float], Interval] | None = None
    within: Range = ANY
    finest: Interval | None = None

    def interval(self, error_rate: float) -> Interval:
        """Return the interval that misses on each side with this probability.

        The probability lies between 0 and 0.5.  What lies beyond the range of the
        quantity is cut off, which misses no value of it.
        """
        low, high = self.ends(error_rate)
        return Interval(clip(low, self.within), clip(high, self.within))

    def ends(self, error_rate: float) -> Interval:
        """Return the interval before its range cuts it."""
        if self.bounds is not None:
            return self.bounds(error_rate)
        return one_interval(
            self.value, self.std_error, self.skewness, self.n_replicates, error_rate
        )

    def at_rates(self, error_rates: Iterable[float]) -> "Estimate":
        """Return the same estimate with its intervals at some error rates alone.

        What others would be made of is dropped.
        """
        ends = {rate: self.ends(rate) for rate in error_rates}
        return self if self.bounds is None else replace(self, bounds=ends.__getitem__)

    @property
    def is_binned(self) -> bool:
        """Whether the 95 % interval is a bin, which replicates make no smaller.

        Also where it is two, and all but one of them lies beyond the range.
        """
        if self.finest is None or math.isnan(self.value):
            return False
        low, high = self.ends(POINTWISE)
        if self.finest.low <= low and high <= self.finest.high:
            return True
        low, high = self.interval(POINTWISE)
        width = self.finest.high - self.finest.low
        return high - low <= (1.0 + LIKE_NEIGHBOURS) * width < math.inf

    @property
    def own_error(self) -> float:
        """The standard error; NaN where the interval is that of a bin."""
        return math.nan if self.is_binned else self.std_error

    @property
    def numbers(self) -> tuple[float, ...]:
        """What tables hold: value, error, ends of the 95 % interval, replicates."""
        interval = self.interval(POINTWISE)
        return self.value, self.own_error, *interval, self.n_replicates

    @property
    def is_bounded(self) -> bool:
        """Whether the replicates bound the interval on both sides."""
        low, high = self.ends(POINTWISE)
        return math.isfinite(high - low)

    @property
    def rests_on_few(self) -> bool:
        """Whether so few replicates make most of the variance that it says little."""
        return abs(self.skewness) > RARE * math.sqrt(self.n_replicates)

    def in_range(self, within: Range, slack: float = ROUNDING) -> "Estimate":
        """Return the same estimate of a quantity whose values lie in a range.

        Parameters
        ----------
        within : (float, float)
        slack : float
            How far beyond it rounding may leave a value, as a part of it.  One that is
            farther off is wrong, and left as it is, to be seen.
        """
        value = clip(self.value, within)
        if abs(value - self.value) > slack * max(1.0, abs(value)):
            return self
        return replace(self, value=value, within=within)

    def times(self, factor: float) -> "Estimate":
        """Return the same estimate times an exact positive factor."""
        times, bounds = partial(operator.mul, factor), self.bounds
        return replace(
            self,
            value=times(self.value),
            std_error=times(self.std_error),
            bounds=bounds and (lambda rate: bounds(rate).mapped(times)),
            within=(times(self.within[0]), times(self.within[1])),
            finest=self.finest and self.finest.mapped(times),
        )

    def root(self) -> "Estimate":
        """Return the square root of an estimate of a positive quantity."""

        def bounds(error_rate: float) -> Interval:
            return self.interval(error_rate).mapped(
                lambda end: math.sqrt(max(0.0, end))
            )

        value = math.sqrt(self.value)
        error = self.std_error / (2.0 * value)
        return Estimate(value, error, self.n_replicates, self.skewness, bounds)


def mean_estimate(values: Array) -> Estimate:
    """Estimate a mean from one value per replicate.

    Where replicates differ, its standard error is at least what rounding leaves of it.
    """
    estimate = _estimate(mean_moments(values), len(values))
    least = LAST_PLACES * abs(estimate.value)
    if 0.0 < estimate.std_error < least:
        return replace(estimate, std_error=least)
    return estimate


def _estimate(moments: Moments, n_replicates: int) -> Estimate:
    value, error, skewness = map(float, moments)
    return Estimate(value, error, n_replicates, skewness)


def bounded_estimate(values: Array, within: Range) -> Estimate:
    """Estimate a mean of values within finite bounds from one value per replicate.

    Notes
    -----
    Where the mean hangs on rare replicates, or all agree by chance, their variance says
    nothing; what rarer ones could add is bounded, and so is this interval.

    References
    ----------
    Hoeffding (1963), Probability inequalities for sums of bounded random variables,
    J. Amer. Statist. Assoc. 58.
    """
    estimate = mean_estimate(values).in_range(within)
    value, n = estimate.value, estimate.n_replicates
    is_out_of_range = estimate.within != within
    if is_out_of_range or (estimate.std_error > 0.0 and estimate.is_bounded):
        return estimate
    low, high = within

    def bounds(error_rate: float) -> Interval:
        half_width = (high - low) * math.sqrt(-math.log(error_rate) / (2.0 * n))
        return Interval(max(low, value - half_width), min(high, value + half_width))

    error = half_width_error(bounds, max(2, n))
    return replace(estimate, std_error=error, bounds=bounds)


def share_estimate(values: Array, n_rows: int) -> Estimate:
    """Estimate a probability from the share of rows in each replicate.

    Notes
    -----
    Given its keys, the rows of a replicate are independent, so the true interval is at
    least the binomial one, of Clopper and Pearson.  Where replicates agree by chance,
    all 0 for example, their variance is not used: the interval covers both, and the
    t interval of at least the binomial error (half a row taken off 0 and 1), which is
    the wider one for few replicates.
    """
    estimate = mean_estimate(values)
    rows = n_rows * estimate.n_replicates
    hits = round(estimate.value * rows)
    share = (hits + 0.5) / (rows + 1.0)
    floor = math.sqrt(share * (1.0 - share) / rows)
    estimate = replace(estimate, std_error=max(estimate.std_error, floor))

    numbers = (estimate.value, estimate.std_error, estimate.skewness)
    moments = Moments(*map(np.asarray, numbers))

    def bounds(error_rate: float) -> Interval:
        # rare rows are no surprise here: the binomial interval knows of them
        ends = interval_ends(moments, estimate.n_replicates, error_rate)
        low, high = map(float, ends)
        least, most = clopper_pearson(hits, rows, error_rate)
        return Interval(min(low, least), max(high, most))

    error = half_width_error(bounds, max(2, estimate.n_replicates))
    return Estimate(estimate.value, error, estimate.n_replicates, bounds=bounds)


def share_of_replicates(share: Estimate) -> Estimate:
    """Return a share that no row drawn has, or that all have, with a safer interval.

    Notes
    -----
    Rows of a replicate share its keys.  Where none of any replicate counts, nothing
    tells how much they have in common, so each replicate is one trial: whether it has
    any such row.  That is at least as probable as a row's own share, so that its bound
    holds for that, whatever the dependence: about 3.7 over the replicates for 95 %.
    """
    hits = share.n_replicates if share.value == 1.0 else 0
    bounds = partial(clopper_pearson, hits, share.n_replicates)
    error = half_width_error(bounds, max(2, share.n_replicates))
    return replace(share, std_error=error, skewness=0.0, bounds=bounds)


def jackknife(
    values: Array, function: Callable[[Array], Array], scale: Scale | None = None
) -> Estimate:
    """Estimate a smooth function of several means.

    Parameters
    ----------
    values : ndarray, shape (n_means, n_replicates)
    function : callable
        (n_means, any) -> (any,), evaluated at the means over all replicates but one.
    scale : Scale, optional
        Where the interval is made; by default that of the function itself.

    Returns
    -------
    Estimate
        With the jackknife's first-order correction of bias and its standard error.

    References
    ----------
    Efron and Stein (1981), The jackknife estimate of variance, Ann. Statist. 9.
    """
    n = values.shape[-1]
    plain = _estimate(jackknife_moments(values, function), n)
    if scale is None:
        return plain
    scaled = jackknife_moments(values, lambda means: scale.forward(function(means)))
    inner = _estimate(scaled, n)

    def back(end: float) -> float:
        return float(scale.back(np.asarray(end)))

    return replace(plain, bounds=lambda rate: inner.interval(rate).mapped(back))


def ratio(over: Estimate, under: Estimate) -> Estimate:
    """Estimate a ratio of two positive quantities, dependent or not.

    Its interval is made of theirs, the error rate split between the two: valid for any
    dependence.
    """

    def divide(one: Interval, other: Interval) -> Interval:
        low = max(0.0, one.low) * _reciprocal(other.high)
        high = max(0.0, one.high) * _reciprocal(other.low)
        # 0 over 0 may be anything
        return Interval(
            0.0 if math.isnan(low) else low, math.inf if math.isnan(high) else high
        )

    def bounds(error_rate: float) -> Interval:
        each = 0.5 * error_rate
        return divide(over.interval(each), under.interval(each))

    n = min(over.n_replicates, under.n_replicates)
    value = max(0.0, over.value) * _reciprocal(under.value)
    if any(map(math.isnan, (value, over.value, under.value))):
        return Estimate(math.nan, math.nan, n, bounds=bounds)
    finest = over.finest and under.finest and divide(over.finest, under.finest)
    return Estimate(value, half_width_error(bounds, n), n, bounds=bounds, finest=finest)


def _reciprocal(value: float) -> float:
    """Return one over a number, infinite of what an interval pushed below 0."""
    return 1.0 / value if value > 0.0 else math.inf


def half_width_error(bounds: Callable[[float], Interval], n_replicates: int) -> float:
    """Return the standard error that a t interval as wide as the 95 % one has."""
    low, high = bounds(POINTWISE)
    return (high - low) / (2.0 * t_quantile(POINTWISE, n_replicates))


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
        # fewest heads that as many or fewer come with at least this probability
        probabilities = scipy.special.bdtr(np.arange(n), n, 0.5)
        below = int(np.searchsorted(probabilities, error_rate))
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
    """Estimate a probability from 0 or 1 per replicate, which are independent."""
    n, n_hits = len(hits), round(float(np.sum(hits)))
    share = n_hits / n
    error = math.sqrt(share * (1.0 - share) / n)
    return Estimate(share, error, n, bounds=partial(clopper_pearson, n_hits, n))


def clopper_pearson(hits: int, n: int, error_rate: float) -> Interval:
    """Return the exact binomial interval of a probability; the rate is one-sided.

    References
    ----------
    Clopper and Pearson (1934), The use of confidence or fiducial limits, Biometrika 26.
    """
    low = scipy.special.betaincinv(hits, n - hits + 1, error_rate) if hits else 0.0
    if hits == n:
        return Interval(float(low), 1.0)
    high = scipy.special.betaincinv(hits + 1, n - hits, 1.0 - error_rate)
    return Interval(float(low), float(high))


def log_log_slope(sizes: Sequence[float], estimates: Sequence[Estimate]) -> Estimate:
    """Estimate the least-squares slope of ln value against ln size.

    The logarithmic half-widths of their own intervals are added in squares.  Each side
    separately, since intervals of skewed quantities are not symmetric; for symmetric
    ones this is the usual propagation of errors.

    Parameters
    ----------
    sizes : sequence of float
        At least two different, positive.
    estimates : sequence of Estimate
        Independent, of positive quantities, one per size.
    """
    x = np.log(np.asarray(sizes, dtype=np.float64))
    centred = x - x.mean()
    weights = centred / float((centred**2).sum())
    n = min(estimate.n_replicates for estimate in estimates)
    logs = [_log(estimate.value) for estimate in estimates]
    value = _weigh(weights, logs)

    def combine(intervals: Sequence[Interval]) -> Interval:
        down = up = 0.0
        for weight, centre, (low, high) in zip(weights, logs, intervals, strict=True):
            below, above = centre - _log(low), _log(high) - centre
            if weight < 0.0:
                below, above = above, below
            if weight != 0.0:
                down += (weight * below) ** 2
                up += (weight * above) ** 2
        return Interval(value - math.sqrt(down), value + math.sqrt(up))

    def bounds(error_rate: float) -> Interval:
        return combine([estimate.interval(error_rate) for estimate in estimates])

    bins = [estimate.finest for estimate in estimates if estimate.finest is not None]
    finest = combine(bins) if len(bins) == len(estimates) else None
    return Estimate(value, half_width_error(bounds, n), n, bounds=bounds, finest=finest)


def _weigh(weights: Array, values: Sequence[float]) -> float:
    """Add up; NaN where infinities of both signs meet: two values of exact zero."""
    pairs = zip(weights.tolist(), values, strict=True)
    terms = [weight * value for weight, value in pairs if weight != 0.0]
    return math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)


def _log(value: float) -> float:
    """Logarithm with ln 0 = -inf, also of what an interval pushed below 0."""
    if math.isnan(value):
        return value
    return math.log(value) if value > 0.0 else -math.inf
