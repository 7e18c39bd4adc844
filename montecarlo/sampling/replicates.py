"""Replicates: Q and K of a point, drawn and reduced to sums and counts.

A replicate is one fresh Q and K; what comes back of it is a few dozen float64 means,
kept by index, and integer counts of row values, which add up in any order.  Nothing
here depends on how many replicates are asked for at once.

Pairs go one block after the other: the scores of one stay in the cache; those of
several do not, and every pass over them would take four times as long.  Small
replicates of rows go through NumPy in stacks: a call costs as much as a thousand
scores.  Masked ones go block of queries by block, with the keys that these see.  Rows
are exponentiated in float32, which is what scores come in, but for those that are
nearly flat.
"""

import math
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import cache, lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.gradients import (
    add_key_gradients,
    differences_to_largest,
    gradient_query,
    jacobian_times,
)
from montecarlo.attention.grids import LogGrid
from montecarlo.attention.masks import QueryBlock, query_blocks
from montecarlo.attention.number_formats import (
    ALL_FORMATS,
    NUMBER_FORMATS,
    compared_rows,
    exponentials_in,
    softmax_in,
    weights_in,
)
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    GAP_AT,
    GAP_NORMAL,
    PAIR_MEANS,
    ROW_QUANTITIES,
    SPECTRAL_ROWS,
    FirstRows,
    Quantity,
    RowBlock,
    costly_rows,
    query_rows,
)
from montecarlo.attention.softmax import (
    Array,
    RowSums,
    Scores,
    SoftmaxRows,
    matching_gaps,
    measure_gaps,
    softmax_rows,
    widen,
)
from montecarlo.sampling.batches import Batch, Counts
from montecarlo.sampling.design_points import DesignPoint, stream
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.sampling.matrices import (
    Floats,
    draw_keys,
    draw_matrices,
    draw_queries,
    keys_at_once,
)

#: Terms that are added up in the precision they come in; their sums are in float64.
ADDED_AT_ONCE = 2**12


def pair_means(point: DesignPoint, seed: int, indices: range) -> Array:
    """Draw some replicates of pairs and reduce them.

    The point has no rows.

    Returns
    -------
    ndarray, shape (n_replicates, n_means)
        `PAIR_MEANS` of each block.

    Notes
    -----
    Scores are float32.  Where entries have a mean, squares are much larger than the
    variance that is made of them, so all is float64 from there on.
    """
    standard = point.distribution_q.is_standard and point.distribution_k.is_standard
    mean, variance = score_moments(point)
    at = mean + GAP_AT * math.sqrt(variance)
    means = []
    for index in indices:
        q, k = draw_matrices(point, seed, index)
        matching = point.dependence.kind != "none"  # only matching pairs count
        scores = np.vecdot(q, k) if matching else q @ k.T
        if point.is_normalised:
            scores *= np.float32(point.normalisation.gain)
        drawn: list[Scores] = [q, k, scores]
        if not standard:
            drawn = [x.astype(np.float64) for x in drawn]
        means.append(_reduce_pairs(drawn, at))
    return np.array(means)


def _reduce_pairs(drawn: list[Scores], at: float) -> list[float]:
    """Return `PAIR_MEANS` of a block: entries of q, those of k, and scores.

    A distribution without a variance, for which ``at`` is infinite, has no gap.
    """
    # cut into the rows along which they are added up
    q, k, scores = (x.reshape(-1, math.gcd(x.size, ADDED_AT_ONCE)) for x in drawn)
    squares = np.square(scores)
    return [
        *(_mean(q), _mean_product(q, q), _mean(k), _mean_product(k, k)),
        *(_mean(scores), _mean(np.abs(scores)), _mean_product(scores, scores)),
        *(_mean_product(squares, scores), _mean_product(squares, squares)),
        np.count_nonzero(scores <= at) / scores.size - GAP_NORMAL
        if math.isfinite(at)
        else math.nan,
    ]


def _mean(values: Scores) -> float:
    """Return the mean of all values."""
    return _mean_product(values, np.ones(values.shape[-1], values.dtype))


def _mean_product(one: Scores, other: Scores) -> float:
    """Return the mean of the elementwise product."""
    sums: list[float] = np.vecdot(one, other).tolist()  # added up in float64
    return sum(sums) / one.size


def score_moments(point: DesignPoint) -> tuple[float, float]:
    """Return mean and variance of a score: what its distribution is standardised by.

    The point has no rows.  The variance is infinite where it is not known.

    Notes
    -----
    Entries are m_q + s_q a and m_k + s_k b, where a and b are standardised, symmetric
    and, in matching pairs, dependent: a b has mean rho and variance 1 + rho² for
    Gaussian entries, 1 + rho (kurtosis - 1) - rho² for copied ones.  A projection of a
    token of length sqrt(width) has width times the variance of a weight.  Of normalised
    entries of q, or of k, that are as likely with either sign, each, products of two
    have mean 0, and the squares add up to that of the length: q·k has mean 0 and d_k
    times the product of two such squares over d_k as its variance.
    """
    initialisation = point.initialisation
    if point.is_normalised:
        known = point.dependence.kind == "none" and point.has_symmetric_entries
        return 0.0, point.row_spread**2 if known else math.inf
    if initialisation is not None:
        entry = initialisation.width * initialisation.weight_variance(point.d_k)
        return 0.0, point.d_k * entry**2
    q, k = point.distribution_q, point.distribution_k
    rho, of_product = point.dependence.rho, 1.0
    if rho:
        gaussian = point.distribution_k.family == "gaussian"
        of_product += rho**2 if gaussian else rho * (k.kurtosis - 1.0) - rho**2
    variance = of_product * (q.std * k.std) ** 2
    variance += (q.mean * k.std) ** 2 + (k.mean * q.std) ** 2
    variance += 2.0 * rho * q.mean * k.mean * q.std * k.std
    mean = q.mean * k.mean + rho * q.std * k.std
    return point.d_k * mean, point.d_k * variance


#: Rows whose divided scores have a smaller standard deviation are exponentiated in
#: float64.  Their entropies and traces vary as its square: down to here the rounding
#: of float32 is a third of the standard error of 131072 replicates at most, and ten of
#: them at a twentieth of it.
FLAT = 1.0 / 64.0
#: Scores, and entries of queries and keys, that go through NumPy at once; more
#: replicates than this are looped over.
SCORES_AT_ONCE = 2**18
DRAWN_AT_ONCE = 2**20


#: Keys that are in float64 at once, so that they stay in cache.
KEYS_WIDENED = 2**12


#: Returns the chunks of the keys of some replicates, in order, each of shape
#: (n_replicates, some keys, d_k); long ones are drawn again each time, so that they are
#: never all there.
Chunks = Callable[[], Iterator[Floats]]


#: Of `RowBlock`, what is needed under some divisors alone.
GRADIENTS = ("gradient_query", "gradient_key", "gradient_value")
#: Of `RowSums`, what has an entry for each row.
SUMS = ("raw_largest", "second", "s1", "s2", "s3", "weighted")


class Pass(NamedTuple):
    """What rows are looked at under one divisor.

    Attributes
    ----------
    divisor : float
        What scores are divided by.
    by_query, by_key : bool
        Whether the norms of the gradients by the query, and by keys and values, are
        needed.
    """

    divisor: float
    by_query: bool = True
    by_key: bool = False


def row_blocks(
    point: DesignPoint,
    seed: int,
    indices: range,
    passes: Sequence[Pass],
    *,
    formats: bool = False,
) -> Iterator[RowBlock]:
    """Draw some replicates of rows and yield what they come to under each divisor.

    Parameters
    ----------
    point : DesignPoint
        With rows.
    seed : int
    indices : range
        Of the replicates.
    passes : sequence of Pass
        Each sees the same draws, whichever others there are.
    formats : bool
        Whether rows are compared in number formats.

    Yields
    ------
    RowBlock
        One for each pass.
    """
    n_queries, n_keys = point.shape
    size, drawn = n_queries * n_keys, (n_queries + n_keys) * point.d_k
    at_once = max(1, min(SCORES_AT_ONCE // size, DRAWN_AT_ONCE // drawn))
    if keys_at_once(point) < n_keys:
        at_once = 1
    stacks = [
        _reduce_rows(point, seed, indices[i : i + at_once], passes, formats=formats)
        for i in range(0, len(indices), at_once)
    ]
    shared, *each = (
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for parts in zip(*stacks, strict=True)
    )
    first_rows = FirstRows(shared.pop("scores"))
    for one, own in zip(passes, each, strict=True):
        yield RowBlock(
            RowSums(one.divisor, **{name: own.pop(name) for name in SUMS}),
            **own,
            **shared,
            first_rows=first_rows,
        )


def _reduce_rows(
    point: DesignPoint,
    seed: int,
    indices: range,
    passes: Sequence[Pass],
    *,
    formats: bool,
) -> list[dict[str, NDArray[Any]]]:
    """Draw the replicates of one stack and reduce their rows.

    Returns
    -------
    list of dict
        First what all divisors share, as in `RowBlock`, and the raw ``scores`` of the
        first rows; then what each has of its own, that of `RowSums` by itself.
    """
    queries, chunks = _draw(point, seed, indices)
    vector = None
    if any(one.by_query for one in passes):
        vector = _draw_vectors(point, seed, indices)
    shared, *own = _reduce_queries(point, queries, chunks, vector, passes)
    shared["compared"] = _compared_scores(point, queries, chunks if formats else None)
    return [shared, *own]


def _reduce_queries(  # noqa: PLR0913, PLR0917 - what rows are made of
    point: DesignPoint,
    queries: Floats,
    chunks: Chunks,
    vector: Floats | None,
    passes: Sequence[Pass],
    block: QueryBlock | None = None,
    backward: "Backward | None" = None,
) -> list[dict[str, NDArray[Any]]]:
    """Reduce the rows of some queries, as `_reduce_rows` does with all.

    Parameters
    ----------
    point : DesignPoint
    queries : ndarray of float32, shape (n_replicates, n_queries, d_k)
    chunks : callable
        Returns chunks of the keys that any of them sees.
    vector : ndarray of float32, shape (n_replicates, 1, n_keys), or None
        What gradients by the query are of; None where there are none.
    passes : sequence of Pass
    block : QueryBlock, optional
        Which queries they are under a mask, and what it hides from them.
    backward : Backward, optional
        Gradients by keys and values, to which what these queries pass back is added.
    """
    parts = [queries @ keys.transpose(0, 2, 1) for keys in chunks()]
    scores = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
    gaps = measure_gaps(scores, block)
    flat = [point.row_spread / one.divisor < FLAT for one in passes]
    wide = measure_gaps(widen(scores), block) if any(flat) else gaps
    differences = {}
    if vector is not None:
        differences[False] = differences_to_largest(vector, gaps)
        if any(flat):
            differences[True] = differences_to_largest(widen(vector), wide)
    own: list[dict[str, NDArray[Any]]] = []
    by_query = []
    for one, is_flat in zip(passes, flat, strict=True):
        rows = softmax_rows(wide if is_flat else gaps, one.divisor)
        own.append({name: getattr(rows.sums, name) for name in SUMS})
        own[-1] |= dict.fromkeys(GRADIENTS, np.empty((len(queries), 0)))
        if backward is not None and one.by_key:
            backward.add(len(own), rows)
        if one.by_query:
            product = jacobian_times(rows, differences[is_flat])
            by_query.append((own[-1], rows.sums, product))
    n_queries, n_keys = scores.shape[1:]
    if by_query:
        places, sums, products = zip(*by_query, strict=True)
        most = query_rows(n_keys) if block is None else n_queries
        found = gradient_query(sums, products, chunks(), most)
        for place, gradient in zip(places, found, strict=True):
            place["gradient_query"] = gradient
    # the column of the first query's own key
    own_key = 0 if block is None else block.queries.start - block.keys.start
    shared = {
        "squared_norm": widen(np.vecdot(queries, queries)),
        "variance": gaps.variance,
        "where": gaps.where - own_key,
        "matching": (
            matching_gaps(scores[..., own_key:], gaps)
            if point.dependence.kind != "none"
            else np.zeros_like(gaps.largest)
        ),
        "scores": (
            scores[:, : costly_rows(SPECTRAL_ROWS, n_keys)] if block is None else scores
        ),
    }
    return [shared, *own]


class Backward:
    """Gradients that reach keys and values, added up over the queries that see them.

    That by the output of each query is standard normal, and so are the values; both are
    as long as a key.

    Parameters
    ----------
    point : DesignPoint
        With a mask.
    seed : int
    indices : range
        Of the replicates.
    queries : ndarray of float32, shape (n_replicates, n_keys, d_k)
    """

    def __init__(
        self, point: DesignPoint, seed: int, indices: range, queries: Floats
    ) -> None:
        draw, shape = DISTRIBUTIONS["gaussian"].draw, queries.shape[1:]
        self.queries, self.gain = queries, point.normalisation.gain
        self.values, self.by_output = (
            stack([draw(stream(seed, point, i, which), shape) for i in indices])
            for which in ("values", "by_output")
        )
        #: those of each pass, by its number
        self.sums: dict[int, tuple[Floats, Floats]] = {}

    def begin(self, block: QueryBlock) -> None:
        """Take the gradients by the weights of the next queries, for all passes."""
        self.block = block
        by_output = self.by_output[:, block.queries]
        self.by_weights = by_output @ self.values[:, block.keys].transpose(0, 2, 1)

    def add(self, number: int, rows: SoftmaxRows) -> None:
        """Add what these queries pass back, under the divisor of a pass."""
        if number not in self.sums:
            self.sums[number] = np.zeros_like(self.values), np.zeros_like(self.values)
        to_keys, to_values = (one[:, self.block.keys] for one in self.sums[number])
        queries = self.block.queries
        add_key_gradients(
            rows,
            self.by_weights,
            self.queries[:, queries],
            self.by_output[:, queries],
            (to_keys, to_values),
        )

    def norms(self, number: int) -> dict[str, Array]:
        """Return the norms under the divisor of a pass; empty where none are needed."""
        if number not in self.sums:
            return {}
        by_key, by_value = (
            np.sqrt(widen(np.vecdot(one, one))) for one in self.sums[number]
        )
        return {"gradient_key": self.gain * by_key, "gradient_value": by_value}


def masked_row_blocks(
    point: DesignPoint, seed: int, indices: range, passes: Sequence[Pass]
) -> Iterator[list[RowBlock]]:
    """Draw some replicates of masked rows and yield them, some queries at a time.

    Parameters
    ----------
    point : DesignPoint
        With a mask.
    seed : int
    indices : range
        Of the replicates.
    passes : sequence of Pass

    Yields
    ------
    list of RowBlock
        One for each pass, of the same queries; these come in order.

    Notes
    -----
    All keys of a replicate are there at once, but of the scores those of one block
    alone: keys that none of its queries sees are left out.
    """
    matrices = [draw_matrices(point, seed, index) for index in indices]
    queries, keys = (stack(parts) for parts in zip(*matrices, strict=True))
    keys = _with_gain(point, keys)
    vectors = None
    if any(one.by_query for one in passes):
        vectors = _draw_vectors(point, seed, indices)
    backward = None
    if any(one.by_key for one in passes):
        backward = Backward(point, seed, indices, queries)
    n_keys = point.shape[1]
    for block in query_blocks(point.mask, n_keys, point.queries_at_once):
        seen = keys[:, block.keys]
        if backward is not None:
            backward.begin(block)
        shared, *each = _reduce_queries(
            point,
            queries[:, block.queries],
            partial(iter, (seen,)),
            None if vectors is None else vectors[..., block.keys],
            passes,
            block,
            backward,
        )
        if backward is not None and block.queries.stop == n_keys:
            for number, own in enumerate(each, 1):
                own.update(backward.norms(number))
        first_rows = FirstRows(shared.pop("scores"), block)
        yield [
            RowBlock(
                RowSums(one.divisor, **{name: own.pop(name) for name in SUMS}),
                **own,
                **shared,
                compared=np.empty((len(indices), 0, n_keys)),
                first_rows=first_rows,
            )
            for one, own in zip(passes, each, strict=True)
        ]


def _masked_at_once(point: DesignPoint) -> int:
    """Return how many masked replicates go through NumPy together."""
    n_queries, n_keys = point.shape
    rows = point.queries_at_once
    scores = rows * min(n_keys, point.mask.longest(n_keys) + rows)
    drawn = (n_queries + n_keys) * point.d_k
    return max(1, min(SCORES_AT_ONCE // scores, DRAWN_AT_ONCE // drawn))


def _draw_vectors(point: DesignPoint, seed: int, indices: range) -> Floats:
    """Draw what gradients are of: one vector for each replicate."""
    drawn = [
        stream(seed, point, i, "v").standard_normal((1, point.shape[1]))
        for i in indices
    ]
    return np.stack(drawn).astype(np.float32)


def _compared_scores(
    point: DesignPoint, queries: Floats, chunks: Chunks | None
) -> Array:
    """Return the scores of the rows that number formats are compared on, in float64.

    In float32, scores tie before any format rounds them: of 65,536 keys one in two
    thousand shares its score with another.  Without keys there are none.
    """
    if chunks is None:
        return np.empty((len(queries), 0, point.shape[1]))
    wide = queries[:, : compared_rows(*point.shape)].astype(np.float64)
    parts = [
        wide @ widen(keys[:, first : first + KEYS_WIDENED]).transpose(0, 2, 1)
        for keys in chunks()
        for first in range(0, keys.shape[1], KEYS_WIDENED)
    ]
    return np.concatenate(parts, axis=-1)


def _draw(point: DesignPoint, seed: int, indices: range) -> tuple[Floats, Chunks]:
    """Draw queries, of shape (n_replicates, n_queries, d_k), and keys."""
    if keys_at_once(point) < point.shape[1]:
        (index,) = indices  # keys that come in chunks are those of one replicate
        queries, _ = draw_queries(point, seed, index)
        return queries[np.newaxis], lambda: (
            _with_gain(point, k[np.newaxis]) for k in draw_keys(point, seed, index)
        )
    matrices = [draw_matrices(point, seed, index) for index in indices]
    queries, keys = (stack(parts) for parts in zip(*matrices, strict=True))
    keys = _with_gain(point, keys)
    return queries, lambda: iter((keys,))


def _with_gain(point: DesignPoint, keys: Floats) -> Floats:
    """Multiply keys by the gain of the product: so gradients by the query have it."""
    if not point.is_normalised:
        return keys
    return keys * np.float32(point.normalisation.gain)


def stack(parts: Sequence[Floats]) -> Floats:
    """Put the matrices of replicates together; one alone, often large, as it is."""
    return parts[0][np.newaxis] if len(parts) == 1 else np.stack(parts)


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


class Columns(NamedTuple):
    """What the replicates of a point are reduced to.

    Attributes
    ----------
    means : tuple of (str, str)
        The columns of `Batch.means`: divisor, and quantity, `rows_column` or
        `format_column`.
    counts : tuple of (str, str)
        Those whose rows are also counted, for `Batch.counts`.
    """

    means: tuple[tuple[str, str], ...]
    counts: tuple[tuple[str, str], ...] = ()

    @property
    def divisors(self) -> tuple[str, ...]:
        """The divisors of its columns."""
        return tuple(dict.fromkeys(name for name, _ in self.means))

    def of(self, divisor: str) -> tuple[str, ...]:
        """Return the names of its columns under one divisor."""
        return tuple(name for one, name in self.means if one == divisor)


#: Parts the name of a column of a number format.
FORMAT_SIGN = "@"
#: Those of any pairs: all are made in one go.
PAIR_COLUMNS = Columns(tuple(("none", name) for name in PAIR_MEANS))


def rows_column(quantity: str) -> str:
    """Name the column of the share of rows that a quantity of some rows is one of."""
    return f"{quantity}:rows"


def end_column(quantity: str, summary: str) -> str:
    """Name the column of a quantity of the first row, or of the last."""
    return f"{quantity}:{summary}"


def format_column(quantity: str, number_format: str, softmax: str) -> str:
    """Name the column of a quantity in a number format."""
    return FORMAT_SIGN.join((quantity, number_format, softmax))


def is_of_format(column: str) -> bool:
    """Tell whether a column is of a number format."""
    return FORMAT_SIGN in column


@lru_cache(maxsize=1024)
def grid_of(point: DesignPoint, quantity: str) -> LogGrid:
    """Return the grid that the rows of a quantity are counted on.

    Raises
    ------
    LookupError
        If its rows are not counted.
    """
    grid = ROW_QUANTITIES[quantity].grid_for(point.shape[1])
    if grid is None:
        raise LookupError(f"{quantity} has no quantiles")
    return grid


def has_meaning(quantity: Quantity, point: DesignPoint) -> bool:
    """Tell whether a point has what a quantity of rows needs."""
    if quantity.needs in {"a mask", "no mask"}:
        return point.is_masked == (quantity.needs == "a mask")
    if quantity.needs == "planted keys":
        return point.dependence.kind == "planted"
    if quantity.needs == "gaussian keys":
        return point.is_independent and point.distribution_k.name == "gaussian"
    return True


def sample(
    point: DesignPoint, seed: int, start: int, stop: int, columns: Columns
) -> Batch:
    """Draw the replicates ``start`` to ``stop - 1`` of a point and reduce them.

    Parameters
    ----------
    point : DesignPoint
    seed : int
    start, stop : int
        Indices of replicates, ``0 <= start < stop``.
    columns : Columns
        What to reduce them to; of pairs all means, whatever it names.

    Returns
    -------
    Batch
        The same bytes for an index and a column, whatever else is in the batch.
    """
    if not point.has_rows:
        return Batch(pair_means(point, seed, range(start, stop)), ())
    n_queries, n_keys = point.shape
    together = max(1, SCORES_TOGETHER // (n_queries * n_keys))
    grids = [grid_of(point, name) for _, name in columns.counts]
    counts = tuple(
        np.zeros((6 if ROW_QUANTITIES[name].given else 3, grid.n_bins), np.int64)
        for (_, name), grid in zip(columns.counts, grids, strict=True)
    )
    means = []
    for first in range(start, stop, together):
        indices = range(first, min(first + together, stop))
        found, counted = row_values(point, seed, indices, columns)
        means.append(found)
        for values, (_, name), grid, total in zip(
            counted, columns.counts, grids, counts, strict=True
        ):
            if ROW_QUANTITIES[name].given:
                total[:] += count_some(values, grid)
            else:
                total[:] += count_bins(grid.bins(values), grid.n_bins)
    return Batch(np.concatenate(means), counts)


def row_values(
    point: DesignPoint, seed: int, indices: range, columns: Columns
) -> tuple[Array, list[Array]]:
    """Draw some replicates of rows and evaluate what columns name on them together.

    Returns
    -------
    means : ndarray, shape (n_replicates, n_columns)
    values : list of ndarray, shape (n_replicates, n_rows)
        Of the quantities that are counted; NaN where a quantity of some rows alone is
        not one of a row.
    """
    names = {divisor: columns.of(divisor) for divisor in columns.divisors}
    passes = [
        Pass(
            parse_divisor(divisor).value(point.d_k, point.shape[1]),
            any(one.by_query for one in some),
            any(one.by_key for one in some),
        )
        for divisor, mine in names.items()
        for some in [[ROW_QUANTITIES[one] for one in mine if one in ROW_QUANTITIES]]
    ]
    means: dict[tuple[str, str], Array] = {}
    if point.is_masked:
        values = _masked_values(point, seed, indices, passes, names)
    else:
        values = {}
        formats = any(is_of_format(name) for _, name in columns.means)
        blocks = row_blocks(point, seed, indices, passes, formats=formats)
        for divisor, block in zip(names, blocks, strict=True):
            for name, *found in _row_columns(block, names[divisor]):
                values[divisor, name] = found
            in_formats = filter(is_of_format, names[divisor])
            for name, mean in _format_columns(block, in_formats):
                means[divisor, name] = mean
    for (divisor, name), (rows, _) in values.items():
        means[divisor, name] = rows.mean(axis=-1)
        means[divisor, end_column(name, "first")] = rows[:, 0]
        means[divisor, end_column(name, "last")] = rows[:, -1]
    return (
        np.stack([means[column] for column in columns.means], axis=-1),
        [values[column][1] for column in columns.counts],
    )


def _masked_values(
    point: DesignPoint,
    seed: int,
    indices: range,
    passes: Sequence[Pass],
    names: Mapping[str, Collection[str]],
) -> dict[tuple[str, str], list[Array]]:
    """Draw masked replicates and evaluate columns on blocks of their queries.

    Returns
    -------
    dict
        Divisor and column to what `_row_columns` yields of it, of all queries.
    """
    at_once = _masked_at_once(point)
    stacks = []
    for first in range(0, len(indices), at_once):
        some = indices[first : first + at_once]
        parts: dict[tuple[str, str], list[list[Array]]] = {}
        for blocks in masked_row_blocks(point, seed, some, passes):
            for divisor, block in zip(names, blocks, strict=True):
                for name, *found in _row_columns(block, names[divisor]):
                    parts.setdefault((divisor, name), []).append(found)
        stacks.append({column: _join(found, -1) for column, found in parts.items()})
    return {column: _join([one[column] for one in stacks], 0) for column in stacks[0]}


def _join(parts: Sequence[Sequence[Array]], axis: int) -> list[Array]:
    """Put parts of several arrays together, each with its own."""
    return [np.concatenate(arrays, axis) for arrays in zip(*parts, strict=True)]


def _row_columns(
    block: RowBlock, names: Collection[str]
) -> Iterator[tuple[str, Array, Array]]:
    """Yield columns of rows: name, the values whose mean it has, and those counted."""
    apply = cache(lambda function: function(block))  # some rows, and all, share values
    for name in names:
        if name not in ROW_QUANTITIES:
            continue
        quantity = ROW_QUANTITIES[name]
        rows = apply(quantity.evaluate)
        if not quantity.given:
            yield name, rows, rows
            continue
        among = apply(ROW_QUANTITIES[quantity.given].evaluate)
        among = among[:, : rows.shape[-1]]  # costly ones: of the first rows
        yield rows_column(name), among, among
        yield name, rows * among, np.where(among == 1.0, rows, np.nan)


def _format_columns(
    block: RowBlock, names: Iterable[str]
) -> Iterator[tuple[str, Array]]:
    """Yield columns of number formats: name, and mean of each replicate."""
    # formats one after the other: the ways of softmax share exponentials
    asked = sorted(
        (number_format, softmax, quantity)
        for name in names
        for quantity, number_format, softmax in [name.split(FORMAT_SIGN)]
    )
    if not asked:
        return
    divided = block.compared / block.sums.divisor
    exact = softmax_in(divided, NUMBER_FORMATS["float64"], "shifted_wide")
    before = "", False
    for (name, softmax), quantities in groupby(asked, key=itemgetter(0, 1)):
        number_format, shifted = ALL_FORMATS[name], softmax.startswith("shifted")
        if before != (before := (name, shifted)):
            e = exponentials_in(divided, number_format, shifted=shifted)
        weights = weights_in(e, number_format, wide=softmax.endswith("_wide"))
        for *_, quantity in quantities:
            rows = FORMAT_QUANTITIES[quantity].evaluate(weights, exact)
            yield format_column(quantity, name, softmax), rows.mean(axis=-1)


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


def count_some(values: Array, grid: LogGrid) -> Counts:
    """Count values that only some rows of each replicate have.

    Parameters
    ----------
    values : ndarray, shape (n_replicates, n_rows)
        NaN for the other rows; at most `MOST_CUBED` rows.
    grid : LogGrid

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
