"""Replicates: Q and K of a point, drawn and reduced to sums and counts.

A replicate is one fresh Q and K; what comes back of it is a few dozen float64 means,
kept by index, and integer counts of row values, which add up in any order.  Nothing
here depends on how many replicates are asked for at once.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.grids import Grid
from montecarlo.attention.number_formats import (
    FLOAT8,
    FLOAT8_SOFTMAX,
    NUMBER_FORMATS,
    NumberFormat,
    combinations,
    exponentials_in,
    softmax_in,
    weights_in,
)
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    PAIR_MEANS,
    RANKS,
    ROW_QUANTITIES,
    FormatRows,
    Quantity,
    RowBlock,
)
from montecarlo.attention.softmax import Array, weights_by_rank
from montecarlo.sampling.batches import Batch, Counts
from montecarlo.sampling.blocks import pair_means, row_blocks
from montecarlo.sampling.design_points import DesignPoint

#: Bytes just below the largest array, 32 MB, from which the C library learns.
LESSON = 2**25 - 2**16


def keep_freed_memory() -> None:
    """Make the C library keep freed arrays for the next ones.

    glibc gives every freed array of more than 128 KB back to the system, until it has
    seen a larger one freed; then it keeps what is smaller than that.  Blocks of pairs,
    which are made and freed a thousand times a second, take a third of the time then.
    Other C libraries are not harmed: the array is never touched.
    """
    np.empty(LESSON, dtype=np.uint8)


keep_freed_memory()  # on import: once in every worker

#: Scores of the replicates of rows that are evaluated together.
SCORES_TOGETHER = 2**21
#: Values of one replicate whose cubed counts are kept: sums of more are not exact.
MOST_CUBED = 2**12
#: Values of one replicate from which on a sort by digits is the faster one.
LONG = 2**10


@lru_cache(maxsize=1024)
def mean_columns(
    point: DesignPoint, divisors: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Name the columns of `Batch.means`: pairs of divisor and quantity (or mean)."""
    if not point.has_rows:
        return tuple(("none", name) for name in PAIR_MEANS)
    ranks = [f"rank{rank}" for rank in RANKS if rank <= point.shape[1]]
    formats = [
        format_column(quantity, number_format.name, softmax)
        for number_format, softmax in format_combinations(point)
        for quantity in format_quantities(point)
    ]
    return tuple(
        (divisor, name)
        for divisor in divisors
        for name in (*_row_columns(point, divisor), *ranks, *formats)
    )


def _row_columns(point: DesignPoint, divisor: str) -> Iterator[str]:
    """Name the columns of the quantities of rows under one divisor."""
    for name in sampled_quantities(point):
        quantity = ROW_QUANTITIES[name]
        if quantity.divisors((divisor,)):
            yield name
            if quantity.given:
                yield rows_column(name)


def rows_column(quantity: str) -> str:
    """Name the column of the share of rows that a quantity of some rows is one of."""
    return f"{quantity}:rows"


def format_combinations(point: DesignPoint) -> list[tuple[NumberFormat, str]]:
    """Return the number formats and ways of softmax that a point is computed in.

    Those of eight bits where a quantity of formats is asked for alone.
    """
    if not point.formats or not point.has_rows:
        return []
    asked = any(name in FORMAT_QUANTITIES for name, _ in point.also)
    short = [(one, FLOAT8_SOFTMAX) for one in FLOAT8.values() if asked]
    return combinations(point.shape[1]) + short


def format_quantities(point: DesignPoint) -> tuple[str, ...]:
    """Name the quantities of rows in number formats that a point is asked about."""
    also = dict(point.also)
    return tuple(
        name for name, one in FORMAT_QUANTITIES.items() if one.tabled or name in also
    )


def format_column(quantity: str, number_format: str, softmax: str) -> str:
    """Name the column of a quantity in a number format."""
    return f"{quantity}@{number_format}@{softmax}"


@lru_cache(maxsize=1024)
def row_quantities(point: DesignPoint) -> tuple[str, ...]:
    """Name the quantities of rows that are looked at in a point."""
    tabled = (name for name, one in ROW_QUANTITIES.items() if one.tabled)
    asked = (name for name, _ in point.also if name in ROW_QUANTITIES)
    return tuple(
        name
        for name in dict.fromkeys((*tabled, *asked))
        if has_meaning(ROW_QUANTITIES[name], point)
    )


def has_meaning(quantity: Quantity, point: DesignPoint) -> bool:
    """Tell whether a point has what a quantity of rows needs."""
    if quantity.needs == "planted keys":
        return point.dependence.kind == "planted"
    if quantity.needs == "gaussian keys":
        return point.is_independent and point.distribution_k.name == "gaussian"
    return True


@lru_cache(maxsize=1024)
def sampled_quantities(point: DesignPoint) -> tuple[str, ...]:
    """Name those that are computed; others are known multiples of these."""
    return tuple(
        name for name in row_quantities(point) if not ROW_QUANTITIES[name].multiple_of
    )


@lru_cache(maxsize=1024)
def count_columns(
    point: DesignPoint, divisors: tuple[str, ...]
) -> tuple[tuple[str, str, Grid], ...]:
    """Name the histograms of `Batch.counts`: divisor, quantity and grid."""
    if not point.has_rows:
        return ()
    return tuple(
        (divisor, name, grid)
        for divisor, name in itertools.product(divisors, sampled_quantities(point))
        if (grid := _counted_on(point, ROW_QUANTITIES[name])) is not None
        and ROW_QUANTITIES[name].divisors((divisor,))
    )


def _counted_on(point: DesignPoint, quantity: Quantity) -> Grid | None:
    """Return the grid of a quantity whose quantiles are wanted, None for others."""
    wanted = quantity.has_quantiles or quantity.name in dict(point.also)
    return quantity.grid_for(point.shape[1]) if wanted else None


def sample(
    point: DesignPoint, seed: int, start: int, stop: int, divisors: tuple[str, ...]
) -> Batch:
    """Draw the replicates ``start`` to ``stop - 1`` of a point and reduce them.

    Parameters
    ----------
    point : DesignPoint
    seed : int
    start, stop : int
        Indices of replicates, ``0 <= start < stop``.
    divisors : tuple of str
        Names of divisors; each sees the same draws.

    Returns
    -------
    Batch
        The same bytes for an index, whatever else is in the batch.
    """
    if not point.has_rows:
        return Batch(pair_means(point, seed, range(start, stop)), ())
    n_queries, n_keys = point.shape
    together = max(1, SCORES_TOGETHER // (n_queries * n_keys))
    columns = count_columns(point, divisors)
    counts = tuple(
        np.zeros((6 if ROW_QUANTITIES[name].given else 3, grid.n_bins), np.int64)
        for _, name, grid in columns
    )
    means = []
    for first in range(start, stop, together):
        indices = range(first, min(first + together, stop))
        found, counted = row_values(point, seed, indices, divisors)
        means.append(found)
        for values, (_, name, grid), total in zip(
            counted, columns, counts, strict=True
        ):
            if ROW_QUANTITIES[name].given:
                total[:] += count_some(values, grid)
            else:
                total[:] += count_bins(grid.bins(values), grid.n_bins)
    return Batch(np.concatenate(means), counts)


def row_values(
    point: DesignPoint, seed: int, indices: range, divisors: tuple[str, ...]
) -> tuple[Array, list[Array]]:
    """Draw some replicates of rows and evaluate all quantities on them together.

    Returns
    -------
    means : ndarray, shape (n_replicates, n_columns)
    values : list of ndarray, shape (n_replicates, n_rows)
        Of the quantities that are counted, in the order of `count_columns`; NaN where
        a quantity of some rows alone is not one of a row.
    """
    means: list[Array] = []
    counted = []
    _, n_keys = point.shape
    values_of = [parse_divisor(name).value(point.d_k, n_keys) for name in divisors]
    ranks = [rank - 1 for rank in RANKS if rank <= n_keys]
    quantities = [ROW_QUANTITIES[name] for name in sampled_quantities(point)]
    blocks = row_blocks(point, seed, indices, values_of)
    for divisor, block in zip(divisors, blocks, strict=True):
        found: dict[Callable[[RowBlock], Array], Array] = {}
        for quantity in quantities:
            if not quantity.divisors((divisor,)):
                continue
            if quantity.evaluate not in found:  # some rows, and all, share values
                found[quantity.evaluate] = quantity.evaluate(block)
            values = found[quantity.evaluate]
            if quantity.given:
                among = found[ROW_QUANTITIES[quantity.given].evaluate]
                among = among[:, : values.shape[-1]]  # costly ones: of the first rows
                means += [(values * among).mean(axis=-1), among.mean(axis=-1)]
                values = np.where(among == 1.0, values, np.nan)
            else:
                means.append(values.mean(axis=-1))
            if _counted_on(point, quantity) is not None:
                counted.append(values)
        by_rank = weights_by_rank(block.elements)[..., ranks].mean(axis=1)
        means.extend(by_rank.T)
        if point.formats:
            means.extend(_format_means(point, block))
    return np.stack(means, axis=-1), counted


def _format_means(point: DesignPoint, block: RowBlock) -> Iterator[Array]:
    """Yield the means of the quantities of number formats, by replicate."""
    divided = block.compared / block.sums.divisor
    exact = softmax_in(divided, NUMBER_FORMATS["float64"], "shifted_wide")
    before = "", False
    for number_format, softmax in format_combinations(point):
        shifted = softmax.startswith("shifted")
        if before != (before := (number_format.name, shifted)):
            e = exponentials_in(divided, number_format, shifted=shifted)
        weights = weights_in(e, number_format, wide=softmax.endswith("_wide"))
        rows = FormatRows(weights, exact, divided, block.order, number_format)
        for name in format_quantities(point):
            yield FORMAT_QUANTITIES[name].evaluate(rows).mean(axis=-1)


def count_bins(bins: np.ndarray[tuple[int, ...], np.dtype[Any]], n_bins: int) -> Counts:
    """Count row values, and how powers of a replicate's cumulative count rise.

    Parameters
    ----------
    bins : ndarray of int, shape (n_replicates, n_rows)
        The bin of each row's value.
    n_bins : int

    Returns
    -------
    ndarray of int64, shape (3, n_bins)
        Of the count, of its square and of its cube; none of the cube for more than
        `MOST_CUBED` rows, where sums of cubes would not be exact.

    Notes
    -----
    A replicate's cumulative count rises from i - 1 to i at its i-th smallest value, so
    its square rises by 2i - 1 there: the sum of squares over replicates is again a
    sum of integers over bins, and the variance between replicates can be had from it;
    from cubes, the skewness.
    """
    n_replicates, n_rows = bins.shape
    # sixteen bits hold any bin, and long rows of them are sorted by their digits
    narrow = np.sort(bins.astype(np.uint16), stable=n_rows >= LONG)
    ordered = narrow.astype(np.intp).ravel()
    rank = np.arange(1.0, n_rows + 1.0)
    counts = np.zeros((3, n_bins), dtype=np.int64)
    counts[0] = np.bincount(ordered, minlength=n_bins)
    for power in (2, 3) if n_rows <= MOST_CUBED else (2,):
        rises = np.tile(rank**power - (rank - 1.0) ** power, n_replicates)
        counts[power - 1] = np.bincount(ordered, rises, n_bins)
    return counts


def count_some(values: Array, grid: Grid) -> Counts:
    """Count values that only some rows of each replicate have.

    Parameters
    ----------
    values : ndarray, shape (n_replicates, n_rows)
        NaN for the other rows; at most `MOST_CUBED` rows.
    grid : LayeredGrid or SignedGrid

    Returns
    -------
    ndarray of int64, shape (6, n_bins)
        As from `count_bins`, of the count c, its square and its cube; then, with m the
        rows of a replicate that have a value, of c·m, c²·m and c·m²: what the
        variance of a ratio of sums is made of.

    Notes
    -----
    Values are gone through once, sorted: rows without one come last, so that they
    change no rank.
    """
    ordered = np.sort(values, axis=-1)  # NaN goes to the end
    there = ~np.isnan(ordered)
    rank = (1.0 + np.nonzero(there)[-1]).astype(np.float64)
    per_replicate = there.sum(axis=-1)
    rows = np.repeat(per_replicate, per_replicate).astype(np.float64)
    bins = grid.bins(ordered[there])
    squares, cubes = 2.0 * rank - 1.0, 3.0 * rank * (rank - 1.0) + 1.0
    rises = (None, squares, cubes, rows, squares * rows, rows * rows)
    return np.stack(
        [np.bincount(bins, rise, grid.n_bins).astype(np.int64) for rise in rises]
    )
