"""Replicates: draw Q and K of a condition and reduce them to sums and counts.

The only place that draws matrices.  A replicate is one fresh Q and K; what comes back
of it is a few dozen float64 means, kept by index, and integer counts of row values,
which add up in any order.  Nothing here depends on how many replicates are asked for
at once.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.grids import LogGrid
from montecarlo.attention.number_formats import (
    FORMAT_QUANTITIES,
    NUMBER_FORMATS,
    NumberFormat,
    combinations,
    compared_rows,
    softmax_in,
)
from montecarlo.attention.pairs import GAP_AT, GAP_NORMAL, PAIR_MEANS
from montecarlo.attention.rows import RANKS, ROW_QUANTITIES, SORTED_ROWS, RowBlock
from montecarlo.attention.softmax import (
    Array,
    measure_gaps,
    softmax_rows,
    weights_by_rank,
)
from montecarlo.sampling.batches import Batch, Counts
from montecarlo.sampling.conditions import Condition, stream
from montecarlo.sampling.dependence import correlate, parse_dependence
from montecarlo.sampling.laws import parse_law
from montecarlo.sampling.setups import parse_setup, project

Floats = NDArray[np.float32]

#: Scores that go through NumPy at once; more replicates than this are looped over.
SCORES_AT_ONCE = 2**15
#: Values of one replicate whose cubed counts are kept: sums of more are not exact.
MOST_CUBED = 2**12


def mean_columns(
    condition: Condition, divisors: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Name the columns of `Batch.means`: pairs of divisor and quantity (or mean)."""
    if condition.n_keys is None:
        return tuple(("none", name) for name in PAIR_MEANS)
    ranks = [f"rank{rank}" for rank in RANKS if rank <= condition.n_keys]
    formats = [
        format_column(quantity, number_format.name, softmax)
        for number_format, softmax in format_combinations(condition)
        for quantity in FORMAT_QUANTITIES
    ]
    return tuple(
        (divisor, name)
        for divisor in divisors
        for name in (*row_quantities(condition), *ranks, *formats)
    )


def format_combinations(condition: Condition) -> list[tuple[NumberFormat, str]]:
    """Return the number formats and ways of softmax that a condition is computed in."""
    if not condition.formats or condition.n_keys is None:
        return []
    return combinations(condition.n_keys)


def format_column(quantity: str, number_format: str, softmax: str) -> str:
    """Name the column of a quantity in a number format."""
    return f"{quantity}@{number_format}@{softmax}"


def row_quantities(condition: Condition) -> tuple[str, ...]:
    """Name the quantities of rows that mean something in a condition."""
    kind = parse_dependence(condition.dependence).kind
    gaussian_keys = (condition.law_k, condition.setup, kind) == ("gaussian", "", "none")
    return tuple(
        quantity.name
        for quantity in ROW_QUANTITIES.values()
        if (gaussian_keys or not quantity.gaussian_keys)
        and (kind == "planted" or not quantity.planted)
    )


def count_columns(
    condition: Condition, divisors: tuple[str, ...]
) -> tuple[tuple[str, str, LogGrid], ...]:
    """Name the histograms of `Batch.counts`: divisor, quantity and grid."""
    if condition.n_keys is None:
        return ()
    return tuple(
        (divisor, name, grid)
        for divisor in divisors
        for name in row_quantities(condition)
        if (grid := ROW_QUANTITIES[name].grid) is not None
    )


def sample(
    condition: Condition, seed: int, start: int, stop: int, divisors: tuple[str, ...]
) -> Batch:
    """Draw the replicates ``start`` to ``stop - 1`` of a condition and reduce them.

    Parameters
    ----------
    condition : Condition
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
    if condition.n_keys is None:
        lines = [_pair_means(condition, seed, index) for index in range(start, stop)]
        return Batch(np.array(lines), ())
    n_queries, n_keys = condition.shape
    at_once = max(1, SCORES_AT_ONCE // (n_queries * n_keys))
    parts = [
        row_values(condition, seed, range(i, min(i + at_once, stop)), divisors)
        for i in range(start, stop, at_once)
    ]
    means = np.concatenate([means for means, _ in parts])
    columns = count_columns(condition, divisors)
    values = zip(*(values for _, values in parts), strict=True)
    counts = tuple(
        count_bins(grid.bins(np.concatenate(pieces)), grid.n_bins)
        for pieces, (_, _, grid) in zip(values, columns, strict=True)
    )
    return Batch(means, counts)


def draw_matrices(condition: Condition, seed: int, index: int) -> tuple[Floats, Floats]:
    """Draw Q and K of one replicate.

    Returns
    -------
    q : ndarray of float32, shape (n_queries, d_k)
    k : ndarray of float32, shape (n_keys, d_k)
    """
    n_queries, n_keys = condition.shape
    rng_q = stream(seed, condition, index, "q")
    rng_k = stream(seed, condition, index, "k")
    law_q, law_k = parse_law(condition.law_q), parse_law(condition.law_k)
    setup = parse_setup(condition.setup)
    if setup is not None:
        q = project(setup, n_queries, condition.d_k, rng_q)
        return q, project(setup, n_keys, condition.d_k, rng_k)
    q = law_q.draw(rng_q, (n_queries, condition.d_k))
    k = law_k.draw(rng_k, (n_keys, condition.d_k))
    dependence = parse_dependence(condition.dependence)
    if dependence.kind != "none":
        gaussian = condition.family_k == "gaussian"
        copy = None if gaussian else stream(seed, condition, index, "copy")
        k = correlate(q, k, dependence.rho, copy)
    return law_q.rescale(q), law_k.rescale(k)


def _pair_means(condition: Condition, seed: int, index: int) -> list[float]:
    """Return `PAIR_MEANS` of one block of pairs."""
    q, k = draw_matrices(condition, seed, index)
    if condition.dependence == "none":
        scores = (q @ k.T).astype(np.float64)
    else:  # only matching pairs count
        scores = (q * k).sum(axis=1, dtype=np.float64)
    squares = scores * scores
    unit = math.sqrt(condition.d_k * _entry_scale(condition))
    below = (scores <= GAP_AT * unit).mean() - GAP_NORMAL
    return [
        float(q.mean(dtype=np.float64)),
        float(np.square(q, dtype=np.float64).mean()),
        float(k.mean(dtype=np.float64)),
        float(np.square(k, dtype=np.float64).mean()),
        float(scores.mean()),
        float(np.abs(scores).mean()),
        float(squares.mean()),
        float((squares * scores).mean()),
        float((squares * squares).mean()),
        float(below),
    ]


def _entry_scale(condition: Condition) -> float:
    """Return the product of the variances of an entry of q and of k."""
    return (parse_law(condition.law_q).std * parse_law(condition.law_k).std) ** 2


def row_values(
    condition: Condition, seed: int, indices: range, divisors: tuple[str, ...]
) -> tuple[Array, list[Array]]:
    """Draw some replicates of rows, which go through NumPy together.

    Returns
    -------
    means : ndarray, shape (n_replicates, n_columns)
    values : list of ndarray, shape (n_replicates, n_rows)
        Of the quantities that are counted, in the order of `count_columns`.
    """
    drawn = [draw_matrices(condition, seed, index) for index in indices]
    queries = np.stack([q for q, _ in drawn])
    keys = np.stack([k for _, k in drawn])
    n_keys = keys.shape[1]
    vector = np.stack(
        [stream(seed, condition, i, "v").standard_normal((1, n_keys)) for i in indices]
    )
    scores = (queries @ keys.transpose(0, 2, 1)).astype(np.float64)
    gaps = measure_gaps(scores)
    spread = scores.var(axis=-1, ddof=1)
    squared_norm = np.square(queries, dtype=np.float64).sum(axis=-1)
    ranks = [rank - 1 for rank in RANKS if rank <= n_keys]
    means, counted = [], []
    for divisor in divisors:
        rows = softmax_rows(gaps, DIVISORS[divisor].value(condition.d_k))
        block = RowBlock(rows, keys, vector, squared_norm, spread)
        for name in row_quantities(condition):
            quantity = ROW_QUANTITIES[name]
            values = quantity.evaluate(block)
            means.append(values.mean(axis=-1))
            if quantity.grid is not None:
                counted.append(values)
        by_rank = weights_by_rank(block.first(SORTED_ROWS))[..., ranks].mean(axis=1)
        means.extend(by_rank.T)
        if condition.formats:
            most = compared_rows(scores.shape[1], n_keys)
            divided = scores[:, :most] / rows.divisor
            means.extend(_format_means(condition, divided))
    return np.stack(means, axis=-1), counted


def _format_means(condition: Condition, divided: Array) -> list[Array]:
    """Return the means of the quantities of number formats, by replicate."""
    exact = softmax_in(divided, NUMBER_FORMATS["float64"], "shifted_wide")
    means = []
    for number_format, softmax in format_combinations(condition):
        weights = softmax_in(divided, number_format, softmax)
        means += [
            quantity.evaluate(weights, exact).mean(axis=-1)
            for quantity in FORMAT_QUANTITIES.values()
        ]
    return means


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
    sum of integers over bins, and the spread between replicates can be had from it;
    from cubes, the skewness.
    """
    ordered = np.sort(bins, axis=-1)
    n_rows = ordered.shape[-1]
    rank = np.arange(1.0, n_rows + 1.0)
    counts = np.zeros((3, n_bins), dtype=np.int64)
    counts[0] = np.bincount(ordered.ravel(), minlength=n_bins)
    for power in (2, 3) if n_rows <= MOST_CUBED else (2,):
        rises = np.broadcast_to(rank**power - (rank - 1.0) ** power, ordered.shape)
        counts[power - 1] = np.bincount(ordered.ravel(), rises.ravel(), n_bins)
    return counts
