"""`Estimate`, a value with its confidence interval, and the functions that return one.

Intervals come from the variance between replicates, see `intervals`.  A chi-square
interval of a variance would be wrong: the entries of QKᵀ share rows and columns.
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
    MOST_SKEWED,
    POINTWISE,
    SYMMETRIC,
    EstimateMoments,
    Interval,
    interval_ends,
    jackknife_moments,
    mean_moments,
    t_quantile,
)

#: Relative rounding error of a mean in double precision: eight units in the last place.
LAST_PLACES = 2.0**-50
#: Rounding error of a value of about 1 that was computed in single precision.
ROUNDING = 1e-6
#: Largest relative difference in width between neighbouring bins of a grid.
BIN_WIDTH_CHANGE = 0.01


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its standard error and its confidence intervals.

    Attributes
    ----------
    value : float
        NaN if it is not determined; there may still be an interval.
    std_error : float
        NaN with fewer than two replicates, or without the moments that it needs; inf if
        it is computed from an interval that is infinite.
    n_replicates : int
        Number of independent replicates.
    skewness : float
        Skewness over replicates.
    bounds : callable or None
        One-sided error rate -> interval.  None: the interval follows from the
        attributes above.
    within : (float, float)
        Range of the estimated quantity, to which intervals are clipped.
    smallest_interval : Interval or None
        For an estimate from a histogram: its bin, which is the smallest interval that
        any number of replicates can give.  None for other estimates.
    """

    value: float
    std_error: float
    n_replicates: int
    skewness: float = 0.0
    bounds: Callable[[float], Interval] | None = None
    within: Range = ANY
    smallest_interval: Interval | None = None

    def interval(self, error_rate: float) -> Interval:
        """Return the confidence interval, clipped to the range of the quantity.

        Each end misses the true value with probability ``error_rate``, between 0 and
        0.5.
        """
        return self.ends(error_rate).mapped(lambda end: clip(end, self.within))

    def ends(self, error_rate: float) -> Interval:
        """Return the confidence interval before it is clipped.

        Each end misses the true value with probability ``error_rate``.  The interval is
        the first of these that applies:

        - ``bounds(error_rate)``, if there are ``bounds``;
        - infinite, if the estimate `depends_on_outliers`;
        - on each side the wider of Student's and Hall's interval, as from
          `interval_ends`; NaN if the standard error is NaN.

        It is computed by Python, which is ten times faster than NumPy for one estimate.
        """
        if self.bounds is not None:
            return self.bounds(error_rate)
        t = t_quantile(error_rate, self.n_replicates)
        a = self.skewness / math.sqrt(self.n_replicates)
        if self.depends_on_outliers:
            return Interval(-math.inf, math.inf)
        above, below = t, -t
        if abs(a) > SYMMETRIC:
            roots = (math.cbrt(1.0 + a * (side * t - a / 6.0)) for side in (1.0, -1.0))
            hall = [3.0 / a * (root - 1.0) for root in roots]
            above, below = max(t, hall[0]), min(-t, hall[1])
        return Interval(
            self.value - above * self.std_error, self.value - below * self.std_error
        )

    def at_rates(self, error_rates: Iterable[float]) -> "Estimate":
        """Return a copy whose ``bounds`` are a table of intervals at some error rates.

        ``error_rates`` are one-sided; other rates raise KeyError.  The copy is small
        and can be pickled.  Without ``bounds``, the estimate itself is returned.
        """
        ends = {rate: self.ends(rate) for rate in error_rates}
        return self if self.bounds is None else replace(self, bounds=ends.__getitem__)

    def with_bounds(self, bounds: Callable[[float], Interval]) -> "Estimate":
        """Return a copy with other ``bounds``, and the standard error by these.

        That is half the width of the 95 % interval divided by the quantile of Student's
        t; inf if an end is infinite.
        """
        low, high = bounds(POINTWISE)
        width = 2.0 * t_quantile(POINTWISE, max(2, self.n_replicates))
        return replace(self, std_error=(high - low) / width, bounds=bounds)

    @property
    def is_binned(self) -> bool:
        """Whether the 95 % interval is one bin of a grid, the smallest possible one.

        An interval that is hardly wider than a bin after clipping counts, too.  False
        if the estimate is NaN, or not from a histogram.
        """
        if self.smallest_interval is None or math.isnan(self.value):
            return False
        smallest, (low, high) = self.smallest_interval, self.ends(POINTWISE)
        if smallest.low <= low and high <= smallest.high:
            return True
        low, high = self.interval(POINTWISE)
        width = smallest.high - smallest.low
        return high - low <= (1.0 + BIN_WIDTH_CHANGE) * width < math.inf

    @property
    def reported_error(self) -> float:
        """The standard error, or NaN if the 95 % interval is one bin."""
        return math.nan if self.is_binned else self.std_error

    @property
    def numbers(self) -> tuple[float, ...]:
        """Value, standard error, ends of the 95 % interval and number of replicates.

        These are columns of measurements.csv.  The second is `reported_error`: NaN if
        the interval is one bin.
        """
        interval = self.interval(POINTWISE)
        return self.value, self.reported_error, *interval, self.n_replicates

    @property
    def is_bounded(self) -> bool:
        """Whether both ends of the 95 % interval are finite before it is clipped.

        False if an end is NaN.
        """
        return all(map(math.isfinite, self.ends(POINTWISE)))

    @property
    def depends_on_outliers(self) -> bool:
        """Whether nearly all of the variance may be due to very few replicates.

        Very few are fewer than `FEWEST_OUTLIERS`.  An even larger and rarer value may
        then not have been drawn yet.
        """
        return abs(self.skewness) > MOST_SKEWED * math.sqrt(self.n_replicates)

    def in_range(self, within: Range, slack: float = ROUNDING) -> "Estimate":
        """Return a copy with the range ``within``, its value clipped to that range.

        Parameters
        ----------
        within : (float, float)
            Smallest and largest possible value of the estimated quantity.
        slack : float
            Largest distance from the range that rounding explains, as a part of the
            nearer end or of 1, whichever is larger.  A value farther away is an error:
            the estimate itself is then returned, without the range, to expose it.
        """
        value = clip(self.value, within)
        if abs(value - self.value) > slack * max(1.0, abs(value)):
            return self
        return replace(self, value=value, within=within)

    def times(self, factor: float) -> "Estimate":
        """Return the estimate of ``factor`` times the quantity.

        The factor is exact and positive.
        """
        times, bounds = partial(operator.mul, factor), self.bounds
        smallest = self.smallest_interval
        return replace(
            self,
            value=times(self.value),
            std_error=times(self.std_error),
            bounds=bounds and (lambda rate: bounds(rate).mapped(times)),
            within=(times(self.within[0]), times(self.within[1])),
            smallest_interval=smallest and smallest.mapped(times),
        )

    def root(self) -> "Estimate":
        """Return the estimate of the square root of the quantity.

        ``value`` must be positive, or NaN; 0 raises ZeroDivisionError, and a negative
        value ValueError.  Negative ends of intervals count as 0.
        """
        value = math.sqrt(self.value)
        return Estimate(
            value,
            self.std_error / (2.0 * value),
            self.n_replicates,
            self.skewness,
            lambda rate: self.interval(rate).mapped(
                lambda end: math.sqrt(max(0.0, end))
            ),
        )


def mean_estimate(values: Array) -> Estimate:
    """Return the estimate of a mean from one value per replicate.

    ``values`` has the shape (n_replicates,).  A standard error that is not 0 is at
    least the rounding error of the mean.
    """
    estimate = _estimate(mean_moments(values), len(values))
    error, least = estimate.std_error, LAST_PLACES * abs(estimate.value)
    return replace(estimate, std_error=max(error, least) if error > 0.0 else error)


def _estimate(moments: EstimateMoments, n_replicates: int) -> Estimate:
    """Return an `Estimate` from its value, standard error and skewness.

    ``moments`` has them, as arrays of shape ().
    """
    value, error, skewness = map(float, moments)
    return Estimate(value, error, n_replicates, skewness)


def bounded_estimate(values: Array, within: Range) -> Estimate:
    """Return the estimate of a mean of values that have a finite range.

    Parameters
    ----------
    values : ndarray, shape (n_replicates,)
    within : (float, float)
        Finite range of the values.  A mean outside of it is returned as it is, without
        a range: see `Estimate.in_range`.

    Notes
    -----
    If a few replicates make nearly all of the variance, or all are equal by chance, the
    variance bounds nothing.  Then the interval is Hoeffding's, which needs the range
    only.

    References
    ----------
    Hoeffding (1963), Probability inequalities for sums of bounded random variables,
    J. Amer. Statist. Assoc. 58.
    """
    estimate = mean_estimate(values).in_range(within)
    is_determined = estimate.std_error > 0.0 and estimate.is_bounded
    if estimate.within != within or is_determined:  # out of range: see `in_range`
        return estimate
    value, n, (low, high) = estimate.value, estimate.n_replicates, within

    def bounds(error_rate: float) -> Interval:
        """Return Hoeffding's interval at a one-sided error rate, within the range."""
        half_width = (high - low) * math.sqrt(-math.log(error_rate) / (2.0 * n))
        return Interval(max(low, value - half_width), min(high, value + half_width))

    return estimate.with_bounds(bounds)


def share_estimate(values: Array, n_rows: int) -> Estimate:
    """Return the estimate of the probability that an attention row has a property.

    Parameters
    ----------
    values : ndarray, shape (n_replicates,)
        Share of the rows of the replicate that have the property, from 0 to 1.
    n_rows : int
        Number of rows of a replicate.

    Notes
    -----
    Given its keys, the rows of a replicate are independent, so the variance is at least
    the binomial one: the interval covers that of Clopper and Pearson.  It also covers
    the t interval.  That is of a standard error of at least the binomial one, with half
    a row added to the hits and one to the rows, since replicates may be equal by
    chance.
    """
    moments, n = mean_moments(values), len(values)
    rows = n_rows * n
    hits = round(float(moments.value) * rows)
    share = (hits + 0.5) / (rows + 1.0)
    floor = np.asarray(math.sqrt(share * (1.0 - share) / rows))
    moments = moments._replace(std_error=np.maximum(moments.std_error, floor))

    def bounds(error_rate: float) -> Interval:
        """Return the smallest interval that covers the binomial and the t interval.

        Both have the one-sided ``error_rate``.  The binomial interval is Clopper and
        Pearson's for ``hits`` of ``rows``, and the t interval is from `interval_ends`
        for ``moments``.
        """
        # finite, however skewed: the binomial interval allows for rare rows
        low, high = map(float, interval_ends(moments, n, error_rate))
        least, most = clopper_pearson(hits, rows, error_rate)
        return Interval(min(low, least), max(high, most))

    return Estimate(float(moments.value), math.nan, n).with_bounds(bounds)


def share_of_replicates(share: Estimate) -> Estimate:
    """Return an estimated share of rows that is 0 or 1 with a wider interval.

    The interval is valid for any dependence between the rows of a replicate.

    Parameters
    ----------
    share : Estimate
        Its value is 0 or 1: no row has the property, or all have it.

    Notes
    -----
    Without a row that differs, the dependence between the rows of a replicate, which
    share its keys, cannot be estimated.  So a replicate is one trial: whether any of
    its rows has the property.  That is at least as probable as for a single row, so its
    upper bound, 3.7/n_replicates at 95 %, holds for a row, too.
    """
    hits = share.n_replicates if share.value == 1.0 else 0
    return share.with_bounds(partial(clopper_pearson, hits, share.n_replicates))


def jackknife(
    values: Array, function: Callable[[Array], Array], scale: Scale | None = None
) -> Estimate:
    """Return the jackknife estimate of a smooth function of several means.

    Parameters
    ----------
    values : ndarray, shape (n_means, n_replicates)
    function : callable
        Means, shape (n_means, any) -> values, shape (any,).
    scale : Scale, optional
        The interval is computed for ``scale.forward`` of the function, which is more
        nearly normal, and mapped back.  Value and standard error are not affected.
        Default: no transformation.

    Returns
    -------
    Estimate
        Corrected for bias to first order.

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
        """Return an end of the interval on ``scale``, mapped back."""
        return float(scale.back(np.asarray(end)))

    return replace(plain, bounds=lambda rate: inner.interval(rate).mapped(back))


def ratio(over: Estimate, under: Estimate) -> Estimate:
    """Return the estimate of the ratio ``over``/``under`` of two positive quantities.

    The interval of the ratio combines the intervals of both quantities, each at half of
    the error rate.  It is valid for any dependence of the two estimates.  The value is
    inf if only ``under`` is estimated as 0.  It is NaN if both are, or if either is
    NaN.
    """

    def divide(numerator: Interval, denominator: Interval) -> Interval:
        """Return the range of x/y for positive x in a numerator, y in a denominator.

        Negative ends count as 0, and x/0 is inf.  For 0/0 the lower end is 0 and the
        upper end inf.
        """
        low = max(0.0, numerator.low) * _reciprocal(denominator.high)
        high = max(0.0, numerator.high) * _reciprocal(denominator.low)
        # 0/0 and 0 * inf are NaN: any ratio is possible
        return Interval(
            0.0 if math.isnan(low) else low, math.inf if math.isnan(high) else high
        )

    def bounds(error_rate: float) -> Interval:
        """Return the interval of ``over``/``under`` at a one-sided error rate.

        It combines the intervals of ``over`` and ``under`` at half of this rate.
        """
        each = 0.5 * error_rate
        return divide(over.interval(each), under.interval(each))

    n = min(over.n_replicates, under.n_replicates)
    value = max(0.0, over.value) * _reciprocal(under.value)
    if any(map(math.isnan, (value, over.value, under.value))):
        return Estimate(math.nan, math.nan, n, bounds=bounds)
    smallest, other = over.smallest_interval, under.smallest_interval
    smallest = smallest and other and divide(smallest, other)
    return Estimate(value, math.nan, n, smallest_interval=smallest).with_bounds(bounds)


def _reciprocal(value: float) -> float:
    """Return 1/value; inf if the value is NaN or not positive."""
    return 1.0 / value if value > 0.0 else math.inf


def median_estimate(values: Array, most: Array | None = None) -> Estimate:
    """Return the estimate of a median from one value per replicate.

    Values may be censored, that is, known only to lie between two bounds.

    Parameters
    ----------
    values : ndarray, shape (n_replicates,)
        Lower bound of each value.  NaN means -inf.
    most : ndarray, shape (n_replicates,), optional
        Upper bound of each value.  NaN means inf.  Default: ``values``, not censored.

    Returns
    -------
    Estimate
        Its value is halfway between the median of the lower bounds and that of the
        upper bounds.  If only the latter is infinite, it is the former.  It is -inf if
        the former is.

    Notes
    -----
    The ends of the interval are order statistics.  The number of values below the
    median is binomial with probability 1/2 for any continuous distribution; ties make
    the interval conservative.

    References
    ----------
    Thompson (1936), On confidence ranges for the median, Ann. Math. Statist. 7.
    """
    high = values if most is None else most
    lowest = np.sort(np.where(np.isnan(values), -np.inf, values))
    highest = np.sort(np.where(np.isnan(high), np.inf, high))
    n = len(values)

    def bounds(error_rate: float) -> Interval:
        """Return the interval of the median at a one-sided error rate.

        The lower end is an order statistic of the sorted lower bounds, ``lowest``; the
        upper end is one of the sorted upper bounds, ``highest``.  (-inf, inf) if there
        are too few values for this rate.
        """
        # number of order statistics below which P(binomial <= number) < error_rate
        probabilities = scipy.special.bdtr(np.arange(n), n, 0.5)
        below = int(np.searchsorted(probabilities, error_rate))
        if below == 0:
            return Interval(-math.inf, math.inf)
        return Interval(float(lowest[below - 1]), float(highest[n - below]))

    with np.errstate(invalid="ignore"):
        value, largest = float(np.median(lowest)), float(np.median(highest))
    if math.isfinite(largest):
        value = (value + largest) / 2.0
    return Estimate(value, math.nan, n).with_bounds(bounds)


def share_of_seeds(hits: Array) -> Estimate:
    """Return the estimate of a probability from independent trials.

    ``hits`` is 1 or 0 for each trial, such as whether the training run with a seed
    succeeded.
    """
    n, n_hits = len(hits), round(float(np.sum(hits)))
    share = n_hits / n
    error = math.sqrt(share * (1.0 - share) / n)
    return Estimate(share, error, n, bounds=partial(clopper_pearson, n_hits, n))


def clopper_pearson(hits: int, n: int, error_rate: float) -> Interval:
    """Return the exact binomial interval of a probability.

    Parameters
    ----------
    hits, n : int
        Number of successes, and of independent trials.
    error_rate : float
        Largest probability with which each end misses, between 0 and 0.5.

    References
    ----------
    Clopper and Pearson (1934), The use of confidence or fiducial limits, Biometrika 26.
    """
    low = scipy.special.betaincinv(hits, n - hits + 1, error_rate) if hits else 0.0
    upper = 1.0 - error_rate
    high = scipy.special.betaincinv(hits + 1, n - hits, upper) if hits < n else 1.0
    return Interval(float(low), float(high))


def log_log_slope(sizes: Sequence[float], estimates: Sequence[Estimate]) -> Estimate:
    """Return the least-squares slope of ln value against ln size, as an estimate.

    The slope is infinite if the value of an estimate is not positive.  It is NaN if two
    such values make it infinite in opposite directions, or if a value is NaN.

    Parameters
    ----------
    sizes : sequence of float
        Positive, at least two of them different.
    estimates : sequence of Estimate
        Independent estimates of positive quantities, one per size.

    Notes
    -----
    The slope is a weighted sum of the logarithms.  On each side, the distances from the
    logarithm of a value to that of the end of its interval are weighted and added in
    squares.  For symmetric intervals this is the usual propagation of errors.
    """
    x = np.log(np.asarray(sizes, dtype=np.float64))
    centred = x - x.mean()
    weights = (centred / float((centred**2).sum())).tolist()
    n = min(estimate.n_replicates for estimate in estimates)
    logs = [_log(estimate.value) for estimate in estimates]
    terms = [w * log for w, log in zip(weights, logs, strict=True) if w != 0.0]
    # NaN for infinities of both signs, which `fsum` refuses: two values are exactly 0
    value = math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)

    def combine(intervals: Sequence[Interval]) -> Interval:
        """Return the interval of the slope from an interval of each estimate.

        On each side, the distances of the ends from ``logs``, times ``weights``, are
        squared and added.  The root of the sum is the distance of the end from
        ``value``.
        """
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
        """Return the interval of the slope at a one-sided error rate.

        It combines the intervals of ``estimates`` at the same rate.
        """
        return combine([estimate.interval(error_rate) for estimate in estimates])

    bins = [one.smallest_interval for one in estimates if one.smallest_interval]
    smallest = combine(bins) if len(bins) == len(estimates) else None
    return Estimate(value, math.nan, n, smallest_interval=smallest).with_bounds(bounds)


def _log(value: float) -> float:
    """Return ln value; -inf if the value is not positive, and NaN for NaN."""
    return -math.inf if value <= 0.0 else math.log(value)
