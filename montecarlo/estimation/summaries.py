"""Estimates of a point: one for each divisor, quantity and summary, from its samples.

`every_key` lists the estimates that a point has, `columns_of` the numbers to which its
replicates must be reduced for some of them, and `Summaries` computes them.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from montecarlo.attention.divisors import BASELINE, parse_divisor
from montecarlo.attention.grids import WIDEST_BIN
from montecarlo.attention.masks import ENDS
from montecarlo.attention.number_formats import (
    FLOAT8,
    FLOAT8_SOFTMAX,
    format_ways,
    n_compared_rows,
)
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    NOT_NEGATIVE,
    PAIR_QUANTITIES,
    QUANTILE_RATIO,
    QUANTILES,
    QUANTITIES,
    ROW_QUANTITIES,
    SHARE,
    SHARE_ABOVE,
    Quantity,
    Range,
    quantile_level,
    range_of,
)
from montecarlo.attention.softmax import Array
from montecarlo.estimation.estimates import (
    ROUNDING,
    Estimate,
    bounded_estimate,
    jackknife,
    mean_estimate,
    ratio,
    share_estimate,
)
from montecarlo.estimation.intervals import FEWEST_OUTLIERS
from montecarlo.estimation.row_distribution import (
    RowDistribution,
    quantile_estimate,
    row_distribution,
    share_above,
)
from montecarlo.names import suggest
from montecarlo.sampling.batches import Batch
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.replicates import (
    Columns,
    format_column,
    grid_of,
    has_meaning,
    pair_columns,
    part_column,
)

#: The quantiles that are not columns of tables, in messages.
ANY_QUANTILE = "q99 (not 0.99) or any other percentage"


class RowKey(NamedTuple):
    """The names that identify an estimate at a point: a row of measurements.csv.

    Attributes
    ----------
    divisor : str
        Name of a divisor; or ``"a/b"`` for the ratio of the quantity under divisor a to
        that under b.
    quantity : str
        Key of `QUANTITIES`.
    summary : str
        ``"mean"``, ``"median"``, ``"q90"`` and so on, over attention rows; ``"value"``
        for a quantity of pairs.
    number_format, softmax : str
        Number format and algorithm of softmax, for quantities of formats.
    """

    divisor: str
    quantity: str
    summary: str
    number_format: str = "float64"
    softmax: str = "shifted"


#: In place of a summary: the distribution function over rows is wanted, not a number.
DISTRIBUTION = "distribution"


def every_key(point: DesignPoint, divisors: tuple[str, ...]) -> Iterator[RowKey]:
    """Yield the keys of all estimates of a point, in the order of measurements.csv.

    ``divisors`` are canonical names.  If `BASELINE` is among them, attention rows also
    have the ratio of each other divisor to it, for the summaries ``compared``.  Without
    rows, divisors that depend on the number of keys are skipped.
    """
    if not point.has_rows:
        of_pairs = [name for name in divisors if not parse_divisor(name).needs_keys]
        for pair_quantity in PAIR_QUANTITIES.values():
            for divisor in of_pairs if pair_quantity.divided else ("none",):
                yield RowKey(divisor, pair_quantity.name, "value")
        return
    for quantity in ROW_QUANTITIES.values():
        if has_meaning(quantity, point):
            yield from _row_keys(quantity, divisors)
    with_formats = point.formats and not point.is_masked
    for number_format, softmax in format_ways(point.shape[1]) if with_formats else ():
        for name in FORMAT_QUANTITIES:
            for divisor in divisors:
                yield RowKey(divisor, name, "mean", number_format.name, softmax)


def _row_keys(quantity: Quantity, divisors: tuple[str, ...]) -> Iterator[RowKey]:
    """Yield the keys of a quantity of attention rows, for all divisors and ratios.

    All divisors come first, then the ratios of the others to `BASELINE`, if that is
    among them.  A quantity with a condition (``given``) has only the divisor ``none``.
    """
    for divisor in (d for d in divisors if not quantity.given or d == "none"):
        for summary in quantity.summaries:
            yield RowKey(divisor, quantity.name, summary)
    for divisor in divisors if BASELINE in divisors else ():
        for summary in quantity.compared if divisor != BASELINE else ():
            yield RowKey(f"{divisor}/{BASELINE}", quantity.name, summary)


def columns_of(point: DesignPoint, keys: Iterable[RowKey]) -> Columns:
    """Return the numbers to which each replicate of a point is to be reduced.

    They are what the estimates with the given keys need, as `Columns`: for the mean
    entropy ``("sqrt", "entropy")``.  For a point without rows they are those of
    `pair_columns`.
    """
    if not point.has_rows:
        return pair_columns(key.quantity for key in keys)
    means: dict[tuple[str, str], None] = {}
    counts: dict[tuple[str, str], None] = {}
    for key in keys:
        for part in _sampled_parts(key):
            column = part.divisor, _column_name(part)
            means[column] = None
            if QUANTITIES[part.quantity].given:
                means[part.divisor, part_column(part.quantity, "rows")] = None
            if part.summary in ENDS:
                means[part.divisor, part_column(part.quantity, part.summary)] = None
            elif part.summary != "mean":
                counts[column] = None
    return Columns(tuple(means), tuple(counts))


def _sampled_parts(key: RowKey) -> Iterator[RowKey]:
    """Yield the keys of the sampled estimates from which an estimate is computed.

    For the ratio ``none/sqrt`` of a mean, these are the means under ``none`` and under
    ``sqrt``.  Each has a single divisor and a quantity that is sampled itself.
    """
    quantity = QUANTITIES[key.quantity]
    base = quantity.multiple_of or quantity.root_of or key.quantity
    key = key._replace(quantity=base)
    over, _, under = key.divisor.partition("/")
    yield key._replace(divisor=over)
    if under:
        summary = "mean" if key.summary == SHARE_ABOVE else key.summary
        yield key._replace(divisor=under, summary=summary)


def _column_name(key: RowKey) -> str:
    """Return the name of the column of replicates that has the quantity of a key.

    Such as ``entropy``, or in a number format ``format_overflow@float16@naive``.
    """
    if key.quantity in FORMAT_QUANTITIES:
        return format_column(key.quantity, key.number_format, key.softmax)
    return key.quantity


def offered_summaries(quantity: Quantity) -> tuple[str, ...]:
    """Return the names of a quantity's summaries, for an error message.

    If the quantity has quantiles, ``median`` and words for any quantile are among them:
    ``("mean", "median", "q99 (not 0.99) or any other percentage")``.
    """
    if quantity.grid is None:
        return quantity.summaries
    return (*dict.fromkeys((*quantity.summaries, "median")), ANY_QUANTILE)


def has_interval(point: DesignPoint, quantity: str) -> bool:
    """Return whether a quantity has confidence intervals at a point.

    The entries must have finite moments up to `Quantity.moments`.  Entries of
    normalised queries and keys are bounded, and have all moments.
    """
    least = min(point.distribution_q.moments, point.distribution_k.moments)
    return point.is_normalised or least > QUANTITIES[quantity].moments


@dataclass(slots=True)
class Summaries:
    """The estimates of one point, each computed when it is first requested.

    Attributes
    ----------
    point : DesignPoint
    samples : Batch
        All replicates of the point.
    columns : Columns
        The columns of ``samples``.
    """

    point: DesignPoint
    samples: Batch
    columns: Columns
    _estimates: dict[RowKey, Estimate] = field(default_factory=dict)
    _distributions: dict[tuple[str, str], RowDistribution] = field(default_factory=dict)

    def estimate(self, key: RowKey) -> Estimate:
        """Return the estimate with a key, clipped to its range; cached.

        A value too far outside is not clipped: see `Estimate.in_range`.  If the point
        fails `has_interval`, standard error and interval are NaN.  ``columns`` must
        have all columns that the estimate needs.
        """
        if key not in self._estimates:
            raw = self._compute(key)
            if not has_interval(self.point, key.quantity):
                raw = replace(raw, std_error=math.nan, skewness=0.0, bounds=None)
            self._estimates[key] = raw.in_range(*self._range(key))
        return self._estimates[key]

    def _range(self, key: RowKey) -> tuple[Range, float]:
        """Return ((smallest, largest) possible value of an estimate, tolerance).

        The tolerance is how far, relatively, an estimate may lie outside of the range:
        by rounding, or for quantiles by the width of a bin.  `Estimate.in_range` takes
        both.
        """
        if key.summary == SHARE_ABOVE:
            return SHARE, ROUNDING
        if "/" in key.divisor or key.summary == QUANTILE_RATIO:
            return NOT_NEGATIVE, ROUNDING  # ratios are of non-negative quantities only
        n_keys = self.point.n_keys
        if n_keys is not None and key.summary in ENDS:
            is_first = self.point.mask.is_causal and key.summary == "first"
            n_keys = 1 if is_first else self.point.mask.longest(n_keys)
        within = range_of(key.quantity, n_keys, key.number_format, key.softmax)
        return within, ROUNDING if quantile_level(key.summary) is None else WIDEST_BIN

    def _compute(self, key: RowKey) -> Estimate:
        """Return the estimate with a key before it is clipped to its range."""
        quantity = QUANTITIES[key.quantity]
        if base := quantity.multiple_of:
            estimate = self.estimate(key._replace(quantity=base))
            return estimate.times(self._divisor_value(key.divisor))
        if base := quantity.root_of:
            return self.estimate(key._replace(quantity=base)).root()
        return (self._row_estimate if self.point.has_rows else self._pair_estimate)(key)

    def _row_estimate(self, key: RowKey) -> Estimate:
        """Return the estimate of a summary of a sampled quantity of attention rows."""
        if "/" in key.divisor:
            return self._ratio(key)
        if QUANTITIES[key.quantity].given:
            return self._conditional_estimate(key)
        level = quantile_level(key.summary)
        if key.summary != QUANTILE_RATIO and level is None:
            return self._mean(key)
        rows = self.distribution(key.divisor, key.quantity)
        if level is not None:
            return quantile_estimate(rows, level)
        return ratio(*(quantile_estimate(rows, QUANTILES[q]) for q in ("q90", "q10")))

    def _mean(self, key: RowKey) -> Estimate:
        """Return the estimate of a mean over attention rows.

        For the summaries ``first`` and ``last``, only that row of each replicate
        counts.
        """
        shape, in_format = self.point.shape, key.quantity in FORMAT_QUANTITIES
        n_rows = n_compared_rows(*shape) if in_format else shape[0]
        column = _column_name(key)
        if key.summary in ENDS:
            n_rows, column = 1, part_column(column, key.summary)
        values = self._column(key.divisor, column)
        if QUANTITIES[key.quantity].indicator:
            return share_estimate(values, n_rows)
        within, _ = self._range(key)
        if all(map(math.isfinite, within)):
            return bounded_estimate(values, within)
        return mean_estimate(values)

    def _pair_estimate(self, key: RowKey) -> Estimate:
        """Return the estimate of a quantity of pairs, which is a function of means."""
        quantity, d_k = PAIR_QUANTITIES[key.quantity], self.point.d_k
        names = [name for _, name in self.columns.means]

        def function(means: Array) -> Array:
            """Return the quantity before division, shape (any,), from means.

            ``means`` has the shape (n_means, any), with a row for each column.
            """
            return quantity.evaluate(dict(zip(names, means, strict=True)), d_k)

        factor = parse_divisor(key.divisor).value(d_k) ** -quantity.degree
        # contiguous, as sums along other axes depend on the number of columns
        means = np.ascontiguousarray(self.samples.means.T)
        return jackknife(means, function, quantity.interval_scale).times(factor)

    def _ratio(self, key: RowKey) -> Estimate:
        """Return the estimate of the ratio of a summary under two divisors.

        ``key.divisor`` names both, such as ``none/sqrt``.  The summary `SHARE_ABOVE`
        means the share of rows under the first divisor whose value exceeds the mean
        under the second.
        """
        over, under = key.divisor.split("/")
        if key.summary == SHARE_ABOVE:
            mean = self.estimate(key._replace(divisor=under, summary="mean"))
            return share_above(self.distribution(over, key.quantity), mean)
        if key.summary != "mean":
            parts = (key._replace(divisor=divisor) for divisor in (over, under))
            return ratio(*map(self.estimate, parts))
        columns = [self._column(divisor, key.quantity) for divisor in (over, under)]
        with np.errstate(invalid="ignore"):  # 0/0 is NaN: not determined
            return jackknife(np.stack(columns), lambda means: means[0] / means[1])

    def _conditional_estimate(self, key: RowKey) -> Estimate:
        """Return the estimate of a summary over the rows that meet a condition.

        The condition is `Quantity.given`.  Only replicates with such a row are used.
        If not all replicates have one, and fewer than `FEWEST_OUTLIERS` do, the
        estimate is NaN.
        """
        names = key.quantity, part_column(key.quantity, "rows")
        columns = np.stack([self._column(key.divisor, name) for name in names])
        filled = columns[:, columns[1] > 0.0]
        n_filled, n = filled.shape[-1], self.samples.n_replicates
        if n_filled < min(FEWEST_OUTLIERS, n):
            return Estimate(math.nan, math.nan, n)
        if (level := quantile_level(key.summary)) is not None:
            rows = self.distribution(key.divisor, key.quantity, n_filled)
            return quantile_estimate(rows, level)
        return jackknife(filled, lambda means: means[0] / means[1])

    def _divisor_value(self, divisor: str) -> float:
        """Return the value of a divisor, or of the ratio of two, at this point.

        For ``none/sqrt`` at d_k = 64 it is 1/8.
        """
        over, _, under = divisor.partition("/")
        value = parse_divisor(over).value(self.point.d_k, self.point.shape[1])
        return value / self._divisor_value(under) if under else value

    def distribution(
        self, divisor: str, quantity: str, n_replicates: int | None = None
    ) -> RowDistribution:
        """Return the distribution of a quantity over attention rows, cached.

        ``n_replicates`` is the number of replicates in which a row has the quantity;
        default: all.  ``columns.counts`` must have the quantity, or the one of which it
        is a multiple.
        """
        if base := ROW_QUANTITIES[quantity].multiple_of:
            rows = self.distribution(divisor, base)
            return replace(rows, edges=rows.edges * self._divisor_value(divisor))
        column = divisor, quantity
        if column not in self._distributions:
            self._distributions[column] = row_distribution(
                self.samples.counts[self.columns.counts.index(column)],
                grid_of(self.point, quantity),
                n_replicates or self.samples.n_replicates,
            )
        return self._distributions[column]

    def _column(self, divisor: str, name: str) -> Array:
        """Return a column of the samples: a mean by replicate, (n_replicates,)."""
        return self.samples.means[:, self.columns.means.index((divisor, name))]


#: What a point must have for a quantity, by `Quantity.needs`, for messages.
_NEEDS = {
    "planted keys": "planted keys: a dependence planted(rho)",
    "no mask": "rows of one length: no mask",
    "a mask": "a query for each key: a mask, such as mask='causal' or --mask causal",
    "gaussian keys": "Gaussian keys, no dependence, initialisation or normalisation",
}


def reason_missing(point: DesignPoint, key: RowKey) -> str:
    """Return the reason why a quantity is not defined at a point; "" if it is defined.

    The reason follows the name of the quantity: ``needs planted keys: ...``.  Divisor
    and summary of ``key`` do not matter.  Whether the point has rows is not checked:
    without rows, the result is "" for all quantities but those of formats.  With rows,
    the quantity must be one of rows or formats.
    """
    quantity, number_format, softmax = key.quantity, key.number_format, key.softmax
    if quantity in FORMAT_QUANTITIES:
        if point.is_masked:
            return f"is not computed under a mask, got {point.mask.name}"
        ways = {(one.name, way) for one, way in format_ways(point.shape[1])}
        ways |= {(name, FLOAT8_SOFTMAX) for name in FLOAT8}
        if point.formats and (number_format, softmax) in ways:
            return ""
        way = f"{number_format} with the softmax {softmax} at {point.n_keys} keys"
        known = dict(sorted(ways))
        near = suggest(number_format, known) * (number_format not in known)
        return f"is not computed in {way}; formats: {', '.join(known)}.{near}"
    if not point.has_rows or has_meaning(ROW_QUANTITIES[quantity], point):
        return ""
    got = "keys {1}, normalisation {2}, dependence {3}, initialisation {4}, mask {5}"
    names = [name or "none" for name in point.names]
    return f"needs {_NEEDS[ROW_QUANTITIES[quantity].needs]}, got {got.format(*names)}"


def has_row(point: DesignPoint, key: RowKey) -> bool:
    """Return whether a point has the estimate with a given key.

    Ratios of any two divisors count, not only those to `BASELINE`.  All names in the
    key must be canonical.
    """
    quantity = QUANTITIES[key.quantity]
    if (quantity.of == "pairs") == point.has_rows or reason_missing(point, key):
        return False
    if quantity.of != "formats" and key != RowKey(*key[:3]):
        return False
    if "/" in key.divisor:
        return key.summary in quantity.compared
    by_keys = quantity.of == "pairs" and parse_divisor(key.divisor).needs_keys
    is_for_none_only = quantity.given or not quantity.divided
    is_counted = quantity.grid is not None and quantile_level(key.summary) is not None
    at_end = point.is_masked and not quantity.given and key.summary in ENDS
    return (
        (is_counted or at_end or key.summary in quantity.summaries)
        and not by_keys
        and (key.divisor == "none" or not is_for_none_only)
    )
