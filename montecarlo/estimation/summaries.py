"""From the samples of a point to the rows of the table.

One estimate per divisor, quantity and summary.
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
    combinations,
    compared_rows,
)
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    NOT_NEGATIVE,
    PAIR_MEANS,
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
from montecarlo.sampling.batches import Batch
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.replicates import (
    PAIR_COLUMNS,
    Columns,
    end_column,
    format_column,
    grid_of,
    has_meaning,
    rows_column,
)

#: Stands in messages for the quantiles that tables lack.
ANY_QUANTILE = "q99 or any other percentage"


class RowKey(NamedTuple):
    """What names an estimate within a point."""

    divisor: str
    quantity: str
    summary: str
    number_format: str = "float64"
    softmax: str = "shifted"


#: Stands in the place of a summary: not one number, but how rows are distributed.
DISTRIBUTION = "distribution"


def every_key(point: DesignPoint, divisors: tuple[str, ...]) -> Iterator[RowKey]:
    """Name the rows of a point that a table of everything has, in its order.

    Parameters
    ----------
    point : DesignPoint
    divisors : tuple of str
        There are ratios of each to the baseline, if that is among them.
    """
    if not point.has_rows:
        of_pairs = [name for name in divisors if not parse_divisor(name).needs_keys]
        for pair_quantity in PAIR_QUANTITIES.values():
            for divisor in of_pairs if pair_quantity.divided else ("none",):
                yield RowKey(divisor, pair_quantity.name, "value")
        return
    for quantity in ROW_QUANTITIES.values():
        if has_meaning(quantity, point):
            yield from _keys_of(quantity, divisors)
    with_formats = point.formats and not point.is_masked
    for number_format, softmax in combinations(point.shape[1]) if with_formats else ():
        for one in FORMAT_QUANTITIES.values():
            for divisor in divisors:
                yield RowKey(divisor, one.name, "mean", number_format.name, softmax)


def _keys_of(quantity: Quantity, divisors: tuple[str, ...]) -> Iterator[RowKey]:
    """Name the rows of one quantity of rows."""
    for divisor in (d for d in divisors if not quantity.given or d == "none"):
        for summary in quantity.summaries:
            yield RowKey(divisor, quantity.name, summary)
    for divisor in divisors if BASELINE in divisors else ():
        for summary in quantity.compared if divisor != BASELINE else ():
            yield RowKey(f"{divisor}/{BASELINE}", quantity.name, summary)


def columns_of(point: DesignPoint, keys: Iterable[RowKey]) -> Columns:
    """Return what replicates have to be reduced to for some rows, and nothing else."""
    if not point.has_rows:
        return PAIR_COLUMNS
    means: dict[tuple[str, str], None] = {}
    counts: dict[tuple[str, str], None] = {}
    for key in keys:
        for one in _parts_of(key):
            column = one.divisor, _column_of(one)
            means[column] = None
            if QUANTITIES[one.quantity].given:
                means[one.divisor, rows_column(one.quantity)] = None
            if one.summary in ENDS:
                means[one.divisor, end_column(one.quantity, one.summary)] = None
            elif one.summary != "mean":
                counts[column] = None
    return Columns(tuple(means), tuple(counts))


def _parts_of(key: RowKey) -> Iterator[RowKey]:
    """Yield the rows of one sampled quantity and divisor that a row is made of."""
    quantity = QUANTITIES[key.quantity]
    base = quantity.multiple_of or quantity.root_of or key.quantity
    key = key._replace(quantity=base)
    over, _, under = key.divisor.partition("/")
    yield key._replace(divisor=over)
    if under:
        summary = "mean" if key.summary == SHARE_ABOVE else key.summary
        yield key._replace(divisor=under, summary=summary)


def _column_of(key: RowKey) -> str:
    if key.quantity in FORMAT_QUANTITIES:
        return format_column(key.quantity, key.number_format, key.softmax)
    return key.quantity


def offered_summaries(quantity: Quantity) -> tuple[str, ...]:
    """Say which summaries of a quantity of rows can be asked for, for a message."""
    if quantity.grid is None:
        return quantity.summaries
    return (*dict.fromkeys((*quantity.summaries, "median")), ANY_QUANTILE)


def has_interval(point: DesignPoint, quantity: str) -> bool:
    """Tell whether the entries have the moments that a quantity's interval needs.

    Those of normalised queries and keys are bounded.
    """
    if point.is_normalised:
        return True
    least = min(point.distribution_q.moments, point.distribution_k.moments)
    return least > QUANTITIES[quantity].moments


@dataclass(slots=True)
class Summaries:
    """The estimates of one point, each made when first asked for.

    Attributes
    ----------
    point : DesignPoint
    samples : Batch
    columns : Columns
        Those of the samples.
    """

    point: DesignPoint
    samples: Batch
    columns: Columns
    _made: dict[RowKey, Estimate] = field(default_factory=dict)
    _distributions: dict[tuple[str, str], RowDistribution] = field(default_factory=dict)

    def estimate(self, key: RowKey) -> Estimate:
        """Return the estimate of a row that the samples have the columns for."""
        if key not in self._made:
            made = self._make(key)
            if not has_interval(self.point, key.quantity):
                made = replace(made, std_error=math.nan, skewness=0.0, bounds=None)
            self._made[key] = made.in_range(*self._range_of(key))
        return self._made[key]

    def _range_of(self, key: RowKey) -> tuple[Range, float]:
        """Return the range of what a row estimates, and how exactly it is kept."""
        if key.summary == SHARE_ABOVE:
            return SHARE, ROUNDING
        if "/" in key.divisor or key.summary == QUANTILE_RATIO:
            return NOT_NEGATIVE, ROUNDING  # only what is not negative is compared
        n_keys = self._n_keys(key)
        within = range_of(key.quantity, n_keys, key.number_format, key.softmax)
        return within, ROUNDING if quantile_level(key.summary) is None else WIDEST_BIN

    def _n_keys(self, key: RowKey) -> int | None:
        """Return how many keys the rows have at most that a summary is of."""
        n_keys = self.point.n_keys
        if n_keys is None or key.summary not in ENDS:
            return n_keys
        alone = self.point.mask.is_causal and key.summary == "first"
        return 1 if alone else self.point.mask.longest(n_keys)

    def _make(self, key: RowKey) -> Estimate:
        base = QUANTITIES[key.quantity].multiple_of
        if base:
            made = self.estimate(key._replace(quantity=base))
            return made.times(self._factor(key.divisor))
        if base := QUANTITIES[key.quantity].root_of:
            return self.estimate(key._replace(quantity=base)).root()
        return self._of_rows(key) if self.point.has_rows else self._of_pairs(key)

    def _of_rows(self, key: RowKey) -> Estimate:
        if "/" in key.divisor:
            return self._ratio(key)
        if QUANTITIES[key.quantity].given:
            return self._of_some(key)
        if key.summary == QUANTILE_RATIO:
            rows = self._rows(key)
            high, low = (quantile_estimate(rows, QUANTILES[q]) for q in ("q90", "q10"))
            return ratio(high, low)
        if (level := quantile_level(key.summary)) is not None:
            return quantile_estimate(self._rows(key), level)
        return self._mean(key)

    def _mean(self, key: RowKey) -> Estimate:
        n_queries, n_keys = self.point.shape
        in_format = key.quantity in FORMAT_QUANTITIES
        rows = compared_rows(n_queries, n_keys) if in_format else n_queries
        column = _column_of(key)
        if key.summary in ENDS:
            rows, column = 1, end_column(column, key.summary)
        values = self._column(key.divisor, column)
        if QUANTITIES[key.quantity].indicator:
            return share_estimate(values, rows)
        within = range_of(
            key.quantity, self._n_keys(key), key.number_format, key.softmax
        )
        if all(map(math.isfinite, within)):
            return bounded_estimate(values, within)
        return mean_estimate(values)

    def _of_pairs(self, key: RowKey) -> Estimate:
        quantity, d_k = PAIR_QUANTITIES[key.quantity], self.point.d_k

        def function(means: Array) -> Array:
            return quantity.evaluate(dict(zip(PAIR_MEANS, means, strict=True)), d_k)

        divisor = parse_divisor(key.divisor).value(d_k)
        raw = jackknife(self.samples.means.T, function, quantity.interval_scale)
        return raw.times(divisor**-quantity.degree) if quantity.divided else raw

    def _ratio(self, key: RowKey) -> Estimate:
        over, under = key.divisor.split("/")
        if key.summary == SHARE_ABOVE:
            mean = self.estimate(key._replace(divisor=under, summary="mean"))
            rows = self._rows(key._replace(divisor=over))
            return share_above(rows, mean)
        if key.summary != "mean":
            parts = (self.estimate(key._replace(divisor=d)) for d in (over, under))
            return ratio(*parts)
        columns = [self._column(divisor, key.quantity) for divisor in (over, under)]
        with np.errstate(invalid="ignore"):  # 0 over 0 is not known, and says so
            return jackknife(np.stack(columns), lambda means: means[0] / means[1])

    def _of_some(self, key: RowKey) -> Estimate:
        """Estimate a mean or quantile over the rows that an indicator picks.

        Replicates without such a row say nothing of them.  Where there are some in
        few replicates only, the estimate is not known, and says so.
        """
        names = key.quantity, rows_column(key.quantity)
        columns = np.stack([self._column(key.divisor, name) for name in names])
        filled = columns[:, columns[1] > 0.0]
        n_filled, n = filled.shape[-1], self.samples.n_replicates
        if n_filled < min(FEWEST_OUTLIERS, n):
            return Estimate(math.nan, math.nan, n)
        if (level := quantile_level(key.summary)) is not None:
            return quantile_estimate(self._rows(key, n_filled), level)
        return jackknife(filled, lambda means: means[0] / means[1])

    def distribution(self, divisor: str, quantity: str) -> RowDistribution:
        """Return the distribution over rows of a quantity that is counted."""
        base = ROW_QUANTITIES[quantity].multiple_of
        rows = self._rows(RowKey(divisor, base or quantity, "mean"))
        return replace(rows, edges=rows.edges * self._factor(divisor)) if base else rows

    def _factor(self, divisor: str) -> float:
        """Return a divisor, or the ratio of two, as a number."""
        over, _, under = divisor.partition("/")
        value = parse_divisor(over).value(self.point.d_k, self.point.shape[1])
        return value / self._factor(under) if under else value

    def _rows(self, key: RowKey, n_replicates: int | None = None) -> RowDistribution:
        wanted = key.divisor, key.quantity
        if wanted not in self._distributions:
            counts = self.samples.counts[self.columns.counts.index(wanted)]
            self._distributions[wanted] = row_distribution(
                counts,
                grid_of(self.point, key.quantity),
                n_replicates or self.samples.n_replicates,
            )
        return self._distributions[wanted]

    def _column(self, divisor: str, name: str) -> Array:
        return self.samples.means[:, self.columns.means.index((divisor, name))]


def lacks(quantity: str, number_format: str, softmax: str, point: DesignPoint) -> str:
    """Return why a point has no row of a quantity; empty if it has one."""
    if quantity in FORMAT_QUANTITIES:
        if point.is_masked:
            return f"is not computed under a mask, got {point.mask.name}"
        ways = {(one.name, way) for one, way in combinations(point.shape[1])}
        ways |= {(name, FLOAT8_SOFTMAX) for name in FLOAT8}
        if point.formats and (number_format, softmax) in ways:
            return ""
        return (
            f"is not computed in {number_format} with the softmax "
            f"{softmax} at {point.n_keys} keys"
        )
    if not point.has_rows or has_meaning(ROW_QUANTITIES[quantity], point):
        return ""
    needed = "planted keys: a dependence planted(rho)"
    if ROW_QUANTITIES[quantity].needs == "no mask":
        needed = "rows of one length: no mask"
    if ROW_QUANTITIES[quantity].needs == "a mask":
        needed = "a query for each key: a mask, as full or causal"
    if ROW_QUANTITIES[quantity].needs == "gaussian keys":
        needed = "Gaussian keys, without dependence, initialisation or normalisation"
    return f"needs {needed}, got {point.name}"


def has_row(point: DesignPoint, key: RowKey) -> bool:
    """Tell whether a point has a row, of one divisor or of a ratio of any two.

    Names are canonical.
    """
    quantity = QUANTITIES[key.quantity]
    if (quantity.of == "pairs") == point.has_rows:
        return False
    if lacks(key.quantity, key.number_format, key.softmax, point):
        return False
    if quantity.of != "formats" and key != RowKey(*key[:3]):  # of no format
        return False
    if "/" in key.divisor:
        return key.summary in quantity.compared
    by_keys = quantity.of == "pairs" and parse_divisor(key.divisor).needs_keys
    one_for_all = quantity.given or not quantity.divided
    counted = quantity.grid is not None and quantile_level(key.summary) is not None
    at_end = point.is_masked and not quantity.given and key.summary in ENDS
    return (
        (counted or at_end or key.summary in quantity.summaries)
        and not by_keys
        and (key.divisor == "none" or not one_for_all)
    )
