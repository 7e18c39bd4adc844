"""Replicates: Q and K of a design point, drawn and reduced to means and counts.

A replicate is one fresh Q and K.  It is reduced to a few dozen float64 means and to
integer counts of row values.  Its results do not depend on the other replicates, nor on
what else is requested.

Pairs are processed one block at a time, so that its scores stay in the cache; the
passes over several blocks would take four times as long.  Small replicates of rows are
stacked in arrays, as a call of NumPy costs as much as a thousand scores.  Under a mask,
rows are processed in blocks of queries with the keys that are visible to them.
Exponentials are float32 like the scores, except where scores are nearly equal.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.grids import LogGrid
from montecarlo.attention.masks import query_blocks
from montecarlo.attention.number_formats import (
    ALL_FORMATS,
    NUMBER_FORMATS,
    exponentials_in,
    n_compared_rows,
    softmax_in,
    weights_in,
)
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    GAP_AT,
    GAP_NORMAL,
    PAIR_MEANS,
    PAIR_QUANTITIES,
    ROW_QUANTITIES,
    Quantity,
)
from montecarlo.attention.rows import Floats, RowBlock, ScoreBlock
from montecarlo.attention.softmax import Array, Scores, widen
from montecarlo.sampling.batches import Batch, Counts
from montecarlo.sampling.design_points import DesignPoint, stream
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.sampling.matrices import draw_matrices

#: Number of terms that are summed in their own precision; sums of these are float64.
ADDED_AT_ONCE = 2**12


def pair_means(
    point: DesignPoint, seed: int, indices: range, names: Sequence[str] = PAIR_MEANS
) -> Array:
    """Return means of entries and scores, for fresh replicates of a point without rows.

    Scores are those of all pairs of a query and a key; under the dependence ``pairs``,
    only those of query i and key i.

    Parameters
    ----------
    point : DesignPoint
        Without rows.
    seed : int
    indices : range
        Indices of the replicates.
    names : sequence of str
        Of `PAIR_MEANS`; default: all.

    Returns
    -------
    ndarray, shape (n_replicates, n_names)
        The named means of each replicate, in the order of ``names``.  ``gap`` is NaN if
        the variance of a score is not known.

    Notes
    -----
    Scores are float32.  If entries have a mean other than 0, mean squares are much
    larger than the variance, and they are computed in float64.
    """
    standard = point.distribution_q.is_standard and point.distribution_k.is_standard
    mean, variance = score_moments(point)
    at = mean + GAP_AT * math.sqrt(variance)
    means = []
    for index in indices:
        q, k = draw_matrices(point, seed, index)
        matching = point.dependence.kind != "none"  # only scores of q_i and k_i count
        scores = np.vecdot(q, k) if matching else q @ k.T
        if point.is_normalised:
            scores *= np.float32(point.normalisation.gain)
        drawn: list[Scores] = [q, k, scores]
        if not standard:
            drawn = [x.astype(np.float64) for x in drawn]
        means.append(_reduce_pairs(drawn, at, names))
    return np.array(means)


def _reduce_pairs(
    matrices: list[Scores], gap_at: float, names: Sequence[str]
) -> list[float]:
    """Return the means of one replicate that ``names`` of `PAIR_MEANS` ask for.

    ``matrices`` are Q, K and their scores.  The mean ``gap`` is the share of scores of
    at most ``gap_at``, minus `GAP_NORMAL`.  ``gap_at`` is infinite if the variance of a
    score is not known; then ``gap`` is NaN.
    """
    # reshaped to the rows along which terms are summed
    q, k, scores = (x.reshape(-1, math.gcd(x.size, ADDED_AT_ONCE)) for x in matrices)
    squares = np.square(scores) if {"s3", "s4"}.intersection(names) else scores
    means: dict[str, Callable[[], float]] = {
        "q": lambda: _mean(q),
        "q2": lambda: _mean_product(q, q),
        "k": lambda: _mean(k),
        "k2": lambda: _mean_product(k, k),
        "s": lambda: _mean(scores),
        "abs": lambda: _mean(np.abs(scores)),
        "s2": lambda: _mean_product(scores, scores),
        "s3": lambda: _mean_product(squares, scores),
        "s4": lambda: _mean_product(squares, squares),
        "gap": lambda: (
            np.count_nonzero(scores <= gap_at) / scores.size - GAP_NORMAL
            if math.isfinite(gap_at)
            else math.nan
        ),
    }
    return [means[name]() for name in names]


def _mean(values: Scores) -> float:
    """Return the mean of all elements of a matrix."""
    return _mean_product(values, np.ones(values.shape[-1], values.dtype))


def _mean_product(left: Scores, right: Scores) -> float:
    """Return the mean of the elementwise product of two matrices of the same shape."""
    sums: list[float] = np.vecdot(left, right).tolist()  # then summed in float64
    return sum(sums) / left.size


def score_moments(point: DesignPoint) -> tuple[float, float]:
    """Return the exact mean and variance of a score q·k, to standardise scores.

    Parameters
    ----------
    point : DesignPoint
        One without rows, which samples pairs of a query and a key.

    Returns
    -------
    mean, variance : float
        The variance is infinite if it is not known, or if it does not exist.

    Notes
    -----
    Entries are m_q + s_q a and m_k + s_k b with standardised a and b.  For dependent
    pairs, a b has mean rho and variance 1 + rho² if they are Gaussian, and
    1 + rho (kurtosis - 1) - rho² if entries are copied.  The entries of a projected
    token of norm sqrt(width) have width times the variance of a weight.  If the entries
    of q, or those of k, are symmetric about 0 and then normalised to the norm r, q·k
    has mean 0 and variance r⁴/d_k, times the squared gain.
    """
    initialisation = point.initialisation
    if point.is_normalised:
        known = point.dependence.kind == "none" and point.has_symmetric_entries
        return 0.0, point.row_spread**2 if known else math.inf
    if initialisation is not None:
        entry = initialisation.width * initialisation.weight_variance(point.d_k)
        return 0.0, point.d_k * entry**2
    q, k = point.distribution_q, point.distribution_k
    rho, product_variance = point.dependence.rho, 1.0
    if rho:
        gaussian = point.distribution_k.family == "gaussian"
        product_variance += rho**2 if gaussian else rho * (k.kurtosis - 1.0) - rho**2
    variance = product_variance * (q.std * k.std) ** 2
    variance += (q.mean * k.std) ** 2 + (k.mean * q.std) ** 2
    variance += 2.0 * rho * q.mean * k.mean * q.std * k.std
    mean = q.mean * k.mean + rho * q.std * k.std
    return point.d_k * mean, point.d_k * variance


#: Rows are exponentiated in float64 if their divided scores have a smaller standard
#: deviation: entropies and traces vary as its square.  At this value the rounding of
#: float32 is at most a third of the standard error of 131072 replicates.
FLAT = 1.0 / 64.0
#: Largest numbers of scores, and of entries of queries and keys, in one stack.
SCORES_AT_ONCE = 2**20
DRAWN_AT_ONCE = 2**22
#: A number to which replicates are reduced: (divisor, name of a quantity or a variant).
Column = tuple[str, str]


def score_blocks(
    point: DesignPoint,
    seed: int,
    indices: range,
    matrices: Sequence[tuple[Floats, Floats]],
    *,
    by_key: bool = False,
) -> Iterator[ScoreBlock]:
    """Yield the raw scores of several replicates, in blocks of queries.

    Parameters
    ----------
    point : DesignPoint
        With rows.
    seed : int
    indices : range
        Indices of the replicates.
    matrices : sequence of (ndarray, ndarray)
        Queries and keys of each replicate, from `draw_matrices`.
    by_key : bool
        Whether key and value gradients are requested.
    """
    queries, keys = (_stack(parts) for parts in zip(*matrices, strict=True))
    gain, n_keys = point.normalisation.gain, point.shape[1]
    if point.is_normalised:
        keys = keys * np.float32(gain)

    def draw(name: str) -> Floats:
        """Return standard normal vectors from the random stream ``name``.

        They are float32, of shape (n_replicates, n_keys, d_k): ``values``, one per key,
        or ``by_output``, one per query (there are n_keys of each).  If `score_blocks`
        has ``by_key`` False, they are not needed, and the second axis has length 0.
        """
        if not by_key:
            return np.empty((len(indices), 0, point.d_k), np.float32)
        normal, shape = DISTRIBUTIONS["gaussian"].draw, (n_keys, point.d_k)
        return _stack([normal(stream(seed, point, i, name), shape) for i in indices])

    drawn = [stream(seed, point, i, "v").standard_normal((1, n_keys)) for i in indices]
    weight_gradient = np.stack(drawn).astype(np.float32)
    values, grad_output = draw("values"), draw("by_output")
    for block in query_blocks(point.mask, point.shape, point.queries_at_once):
        q, k = queries[:, block.queries], keys[:, block.keys]
        yield ScoreBlock(
            block,
            all_rows=point.is_masked,
            queries=q,
            keys=k,
            gain=gain,
            scores=q @ k.transpose(0, 2, 1),
            weight_gradient=weight_gradient[..., block.keys],
            values=values[:, block.keys],
            grad_output=grad_output[:, block.queries],
        )


def _stack(parts: Sequence[Floats]) -> Floats:
    """Return arrays stacked along a new first axis; a single array is not copied."""
    return parts[0][np.newaxis] if len(parts) == 1 else np.stack(parts)


def _stack_size(point: DesignPoint) -> int:
    """Return how many replicates of a point with rows are stacked in one array.

    At least 1; limited by `SCORES_AT_ONCE` and `DRAWN_AT_ONCE`.
    """
    n_queries, n_keys = point.shape
    rows = point.queries_at_once
    scores = rows * min(n_keys, point.mask.longest(n_keys) + rows)
    entries = (n_queries + n_keys) * point.d_k
    return max(1, min(SCORES_AT_ONCE // scores, DRAWN_AT_ONCE // entries))


#: Bytes of the array in `keep_freed_memory`; glibc ignores arrays above 32 MiB.
LESSON = 2**25 - 2**16


def keep_freed_memory() -> None:
    """Make the C library keep the memory of freed arrays for new ones.

    Notes
    -----
    An array of `LESSON` bytes is allocated and freed at once.  glibc returns every
    freed array of more than 128 kB to the system, until a larger one was freed; then it
    keeps arrays up to that size.  With that, blocks of pairs, which are allocated and
    freed a thousand times a second, take a third of the time.  With other C libraries
    this has no effect; as nothing is written into the array, it takes no memory.
    """
    np.empty(LESSON, dtype=np.uint8)


keep_freed_memory()  # on import: once in every worker

#: Scores of the replicates whose row values are counted together.
SCORES_TOGETHER = 2**21
#: Largest number of values of a replicate for which sums of cubed counts are exact.
MOST_CUBED = 2**12
#: Number of values of a replicate from which on a radix sort is faster.
LONG = 2**10


class Columns(NamedTuple):
    """The columns of a `Batch`: the numbers to which each replicate is reduced.

    Attributes
    ----------
    means : tuple of (str, str)
        Columns of `Batch.means`: a divisor, and the name of a quantity or a result of
        `part_column` or `format_column`.
    counts : tuple of (str, str)
        The columns whose row values are also counted, for `Batch.counts`.
    """

    means: tuple[tuple[str, str], ...]
    counts: tuple[tuple[str, str], ...] = ()

    @property
    def divisors(self) -> tuple[str, ...]:
        """Names of the divisors of all columns, each once, in order."""
        return tuple(dict.fromkeys(name for name, _ in self.means))


#: Separator in the name of a column of a number format.
FORMAT_SIGN = "@"


class _ReadMeans(dict[str, np.float64]):
    """Means over pairs, all of them 1, that keeps those which are read."""

    def __missing__(self, name: str) -> np.float64:
        return self.setdefault(name, np.float64(1.0))


def pair_columns(quantities: Iterable[str]) -> Columns:
    """Return the columns of the means over pairs that quantities are computed from.

    ``quantities`` are keys of `PAIR_QUANTITIES`; columns are in the order of
    `PAIR_MEANS`.

    Examples
    --------
    >>> pair_columns(["score_variance"]).means
    (('none', 's'), ('none', 's2'))
    """
    read = _ReadMeans()
    with np.errstate(all="ignore"):  # what is computed from them has no meaning
        for name in quantities:
            PAIR_QUANTITIES[name].evaluate(read, 1)
    return Columns(tuple(("none", name) for name in PAIR_MEANS if name in read))


def part_column(quantity: str, part: str) -> str:
    """Return the name of a column beside that of a quantity: ``entropy:first``.

    ``part`` is ``first`` or ``last``, under a mask, for the quantity of only that row;
    or ``rows``, of a conditional quantity, for the share of rows that meet its
    condition, `Quantity.given`.
    """
    return f"{quantity}:{part}"


def format_column(quantity: str, number_format: str, softmax: str) -> str:
    """Return the name of the column with a quantity in a number format.

    Such as ``format_overflow@float16@naive``.
    """
    return FORMAT_SIGN.join((quantity, number_format, softmax))


@lru_cache(maxsize=1024)
def grid_of(point: DesignPoint, quantity: str) -> LogGrid:
    """Return the grid on which the row values of a quantity are counted.

    Raises
    ------
    LookupError
        If row values of the quantity are not counted, so that it has no quantiles.
    """
    grid = ROW_QUANTITIES[quantity].grid_for(point.shape[1])
    if grid is None:
        raise LookupError(f"{quantity} has no quantiles")
    return grid


def has_meaning(quantity: Quantity, point: DesignPoint) -> bool:
    """Return whether a quantity of attention rows is defined at a point with rows."""
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
    """Draw the replicates ``start`` to ``stop - 1`` of a point; return their `Batch`.

    Parameters
    ----------
    point : DesignPoint
    seed : int
    start, stop : int
        Indices of replicates, ``0 <= start < stop``.
    columns : Columns
        Columns to compute; at a point without rows, those of `pair_columns`.

    Returns
    -------
    Batch
        For each index and column the same bytes, whatever else is requested.
    """
    if not point.has_rows:
        names = [name for _, name in columns.means]
        return Batch(pair_means(point, seed, range(start, stop), names), ())
    together = max(1, SCORES_TOGETHER // math.prod(point.shape))
    means: list[Array] = []
    counts: list[Counts] = []
    for first in range(start, stop, together):
        indices = range(first, min(first + together, stop))
        some_means, values = row_values(point, seed, indices, columns)
        means.append(some_means)
        counted = [
            _count(one, name, grid_of(point, name))
            for one, (_, name) in zip(values, columns.counts, strict=True)
        ]
        if counts:
            counted = [a + b for a, b in zip(counts, counted, strict=True)]
        counts = counted
    return Batch(np.concatenate(means), tuple(counts))


def _count(values: Array, quantity: str, grid: LogGrid) -> Counts:
    """Return the counts of row values in the bins of a grid, as in `Batch.counts`.

    ``values`` has the shape (n_replicates, n_rows).  The counts are from `count_some`
    if the quantity has a condition, else from `count_bins`.
    """
    if ROW_QUANTITIES[quantity].given:
        return count_some(values, grid)
    return count_bins(grid.bins(values), grid.n_bins)


def row_values(
    point: DesignPoint, seed: int, indices: range, columns: Columns
) -> tuple[Array, list[Array]]:
    """Return means over attention rows, and values of rows, of fresh replicates.

    Parameters
    ----------
    point : DesignPoint
        The point whose attention rows are sampled.
    seed : int
    indices : range
        Indices of the replicates.
    columns : Columns

    Returns
    -------
    means : ndarray, shape (n_replicates, n_columns)
        Mean over the rows of each replicate, for each column of ``columns.means``.
        Rows that do not meet the condition of a quantity count as 0.
    values : list of ndarray, shape (n_replicates, n_rows)
        Values of single rows, for each column of ``columns.counts``.  NaN in rows that
        do not meet the condition of a quantity.  Costly quantities have fewer rows, and
        a quantity ``by_key`` has a value for each key instead.
    """
    size, stacks, products = _stack_size(point), [], []
    has_formats = any(FORMAT_SIGN in name for _, name in columns.means)
    n_compared = n_compared_rows(*point.shape)
    for first in range(0, len(indices), size):
        some = indices[first : first + size]
        matrices = [draw_matrices(point, seed, index) for index in some]
        if has_formats:
            products += [widen(q[:n_compared]) @ widen(k).T for q, k in matrices]
        stacks.append(_stack_values(point, seed, some, matrices, columns))
        del matrices  # before the next are drawn
    means, values = {}, {}
    for divisor, name in stacks[0]:
        parts = zip(*(one[divisor, name] for one in stacks), strict=True)
        rows, values[divisor, name] = (_join(arrays, 0) for arrays in parts)
        means[divisor, name] = rows.mean(axis=-1)
        means[divisor, part_column(name, "first")] = rows[:, 0]
        means[divisor, part_column(name, "last")] = rows[:, -1]
    if has_formats:
        scores = point.normalisation.gain * np.stack(products)
        means.update(_format_means(point, scores, columns))
    return (
        np.stack([means[column] for column in columns.means], axis=-1),
        [values[column] for column in columns.counts],
    )


def _stack_values(
    point: DesignPoint,
    seed: int,
    indices: range,
    matrices: Sequence[tuple[Floats, Floats]],
    columns: Columns,
) -> dict[Column, list[Array]]:
    """Return the quantities of attention rows for several replicates at once.

    Parameters are those of `row_values`, and ``matrices``, the queries and keys of each
    replicate.

    Returns
    -------
    dict
        For each column two arrays, shape (n_replicates, n_rows): the values to be
        averaged and those to be counted.
    """
    quantities: defaultdict[str, list[Quantity]] = defaultdict(list)
    for divisor, name in columns.means:
        if name in ROW_QUANTITIES:
            quantities[divisor].append(ROW_QUANTITIES[name])
    by_key = any(one.by_key for some in quantities.values() for one in some)
    shape = len(indices), point.shape[1], point.d_k
    gradients: defaultdict[Column, Floats] = defaultdict(
        lambda: np.zeros(shape, np.float32)
    )
    parts: defaultdict[Column, list[Sequence[Array]]] = defaultdict(list)
    for scores in score_blocks(point, seed, indices, matrices, by_key=by_key):
        for divisor, some in quantities.items():
            number = parse_divisor(divisor).value(point.d_k, point.shape[1])
            is_flat = point.row_spread / number < FLAT
            block = RowBlock(scores.widened if is_flat else scores, number)
            for name, *arrays in _row_columns(block, some):
                parts[divisor, name].append(arrays)
            for one in some:
                if one.by_key:
                    total = gradients[divisor, one.name]
                    total[:, scores.block.keys] += one.evaluate(block)
    for column, total in gradients.items():
        norms = np.sqrt(widen(np.vecdot(total, total)))
        parts[column].append((norms, norms))
    return {
        column: [_join(arrays, -1) for arrays in zip(*found, strict=True)]
        for column, found in parts.items()
    }


def _join(arrays: Sequence[Array], axis: int) -> Array:
    """Return arrays joined along an axis; a single array is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis)


def _row_columns(
    block: RowBlock, quantities: Sequence[Quantity]
) -> Iterator[tuple[str, Array, Array]]:
    """Yield (name of a column, values to average, values to count) for a block of rows.

    Values to count go into the bins of a histogram.  There is a column for each
    quantity, except for those that have a value per key.  Before a conditional
    quantity comes a column of its condition.  Both arrays have the shape (n_replicates,
    n_rows).  They differ only for conditional quantities: for rows that do not meet the
    condition, the first has 0 and the second NaN.
    """
    evaluate = cache(lambda function: function(block))  # shared by conditional ones
    for quantity in quantities:
        if quantity.by_key:
            continue
        rows = evaluate(quantity.evaluate)
        if not quantity.given:
            yield quantity.name, rows, rows
            continue
        given = evaluate(ROW_QUANTITIES[quantity.given].evaluate)
        given = given[:, : rows.shape[-1]]  # costly quantities have fewer rows
        yield part_column(quantity.name, "rows"), given, given
        yield quantity.name, rows * given, np.where(given == 1.0, rows, np.nan)


def _format_means(
    point: DesignPoint, scores: Array, columns: Columns
) -> Iterator[tuple[Column, Array]]:
    """Yield (column of a number format, its mean in each replicate).

    The means have the shape (n_replicates,).  ``scores`` are raw scores, before
    division, of shape (n_replicates, n_rows, n_keys).

    Notes
    -----
    Scores are computed in float64.  In float32, of 65,536 keys one in two thousand
    shares its score with another before a format rounds it.
    """
    for divisor in columns.divisors:
        names = [
            name
            for column, name in columns.means
            if column == divisor and FORMAT_SIGN in name
        ]
        number = parse_divisor(divisor).value(point.d_k, point.shape[1])
        for name, rows in _format_columns(scores / number, names):
            yield (divisor, name), rows.mean(axis=-1)


def _format_columns(scores: Array, names: Sequence[str]) -> Iterator[tuple[str, Array]]:
    """Yield (name, values of rows) for each column of a number format.

    ``scores`` are divided scores in float64, shape (..., n_keys).  Values have the
    shape (...).  ``names`` are results of `format_column`.
    """
    exact = softmax_in(scores, NUMBER_FORMATS["float64"], "shifted_wide")

    @lru_cache(maxsize=1)
    def exponentials(number_format: str, *, shifted: bool) -> Array:
        """Return the exponentials of ``scores``, each step rounded to a number format.

        They are float64, and not rounded if the format is for storage only.  With
        ``shifted``, the largest score of the row is subtracted first.  The last result
        is cached.
        """
        return exponentials_in(scores, ALL_FORMATS[number_format], shifted=shifted)

    @lru_cache(maxsize=1)
    def weights(number_format: str, softmax: str) -> Array:
        """Return the softmax weights of ``scores`` in a number format, as float64.

        ``softmax`` is the algorithm, such as ``shifted``, one of `SOFTMAXES`.  The last
        result is cached.
        """
        e = exponentials(number_format, shifted=softmax.startswith("shifted"))
        wide = softmax.endswith("_wide")
        return weights_in(e, ALL_FORMATS[number_format], wide=wide)

    for name in names:
        quantity, *computed = name.split(FORMAT_SIGN)
        yield name, FORMAT_QUANTITIES[quantity].evaluate(weights(*computed), exact)


def count_bins(bins: np.ndarray[tuple[int, ...], np.dtype[Any]], n_bins: int) -> Counts:
    """Return counts of row values in bins, from which variances follow, too.

    Parameters
    ----------
    bins : ndarray of int, shape (n_replicates, n_rows)
        Bin of the value of each row.
    n_bins : int

    Returns
    -------
    ndarray of int64, shape (3, n_bins)
        Their cumulative sums over bins are the sums over replicates of c, c² and c³,
        where c is the number of rows of a replicate up to a bin.  The increments of c³
        are 0 for more than `MOST_CUBED` rows, as sums would not be exact.

    Notes
    -----
    At the i-th smallest value of a replicate, c increases from i - 1 to i and c² by
    2i - 1.  The variance of c between replicates follows from the sums of c and c², and
    its skewness from those of c³.
    """
    n_replicates, n_rows = bins.shape
    # integers of sixteen bits are sorted by radix sort if stable
    narrow = np.sort(bins.astype(np.uint16), stable=n_rows >= LONG)
    ordered = narrow.astype(np.intp).ravel()
    rank = np.arange(1.0, n_rows + 1.0)
    counts = np.zeros((3, n_bins), dtype=np.int64)
    counts[0] = np.bincount(ordered, minlength=n_bins)
    for power in (2, 3) if n_rows <= MOST_CUBED else (2,):
        increments = np.tile(rank**power - (rank - 1.0) ** power, n_replicates)
        counts[power - 1] = np.bincount(ordered, increments, n_bins)
    return counts


def count_some(values: Array, grid: LogGrid) -> Counts:
    """Return counts of row values in bins for a quantity that only some rows have.

    Parameters
    ----------
    values : ndarray, shape (n_replicates, n_rows)
        NaN for rows that do not meet the condition; at most `MOST_CUBED` rows.
    grid : LogGrid

    Returns
    -------
    ndarray of int64, shape (6, n_bins)
        Increments of c, c² and c³ as from `count_bins`; then of c m, c² m and c m²,
        where m is the number of rows of a replicate that meet the condition.  The
        variance of a ratio of sums follows from these.
    """
    ordered = np.sort(values, axis=-1)  # NaN is last and changes no rank
    inside = ~np.isnan(ordered)
    rank = (1.0 + np.nonzero(inside)[-1]).astype(np.float64)
    per_replicate = inside.sum(axis=-1)
    rows = np.repeat(per_replicate, per_replicate).astype(np.float64)
    bins = grid.bins(ordered[inside])
    squares, cubes = 2.0 * rank - 1.0, 3.0 * rank * (rank - 1.0) + 1.0
    increments = (None, squares, cubes, rows, squares * rows, rows * rows)
    return np.stack(
        [np.bincount(bins, one, grid.n_bins).astype(np.int64) for one in increments]
    )
