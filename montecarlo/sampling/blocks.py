"""Blocks: Q and K of some replicates, drawn and reduced to means or to rows' sums.

Pairs go one block after the other: the scores of one stay in the cache; those of
several do not, and every pass over them would take four times as long.  Small
replicates of rows go through NumPy in stacks: a call costs as much as a thousand
scores.  Rows are exponentiated in float32, which is what scores come in, but for those
that are nearly flat.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.gradients import (
    differences_to_largest,
    gradient_query,
    gradient_scores,
    jacobian_times,
)
from montecarlo.attention.number_formats import compared_rows, rising_order
from montecarlo.attention.quantities import (
    ELEMENT_ROWS,
    GAP_AT,
    GAP_NORMAL,
    SPECTRAL_ROWS,
    RowBlock,
    costly_rows,
    query_rows,
)
from montecarlo.attention.softmax import (
    Array,
    RowSums,
    Scores,
    matching_gaps,
    measure_gaps,
    softmax_rows,
    widen,
)
from montecarlo.sampling.design_points import DesignPoint, stream
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
    q, k, scores = (_in_rows(x) for x in drawn)
    squares = np.square(scores)
    return [
        *(_mean(q), _mean_product(q, q), _mean(k), _mean_product(k, k)),
        *(_mean(scores), _mean(np.abs(scores)), _mean_product(scores, scores)),
        *(_mean_product(squares, scores), _mean_product(squares, squares)),
        np.count_nonzero(scores <= at) / scores.size - GAP_NORMAL
        if math.isfinite(at)
        else math.nan,
    ]


def _in_rows(values: Scores) -> Scores:
    """Cut a block into the rows along which it is added up."""
    return values.reshape(-1, math.gcd(values.size, ADDED_AT_ONCE))


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


#: Returns the chunks of the keys of some replicates, in order, each of shape
#: (n_replicates, some keys, d_k); long ones are drawn again each time, so that they are
#: never all there.
Chunks = Callable[[], Iterator[Floats]]


@dataclass(frozen=True, slots=True)
class Stack:
    """What the rows of some replicates came to, before any quantity.

    Attributes
    ----------
    sums : list of RowSums
        One for each divisor, as the two that follow.
    gradient_scores, gradient_query : list of ndarray, shape (n_replicates, n_queries)
    squared_norm, variance, where, matching : ndarray
        As in `RowBlock`.
    scores : ndarray, shape (n_replicates, some rows, n_keys)
        Raw scores of the first rows.
    compared : ndarray of float64, shape (n_replicates, other rows, n_keys)
        As in `RowBlock`.
    """

    sums: list[RowSums]
    gradient_scores: list[Array]
    gradient_query: list[Array]
    squared_norm: Array
    variance: Array
    where: NDArray[np.intp]
    matching: Array
    scores: Floats
    compared: Array


def row_blocks(
    point: DesignPoint, seed: int, indices: range, divisors: Sequence[float]
) -> Iterator[RowBlock]:
    """Draw some replicates of rows and yield what they come to under each divisor.

    Parameters
    ----------
    point : DesignPoint
        With rows.
    seed : int
    indices : range
        Of the replicates.
    divisors : sequence of float
        Each sees the same draws.

    Yields
    ------
    RowBlock
        One for each divisor.
    """
    n_queries, n_keys = point.shape
    size, drawn = n_queries * n_keys, (n_queries + n_keys) * point.d_k
    at_once = max(1, min(SCORES_AT_ONCE // size, DRAWN_AT_ONCE // drawn))
    if keys_at_once(point) < n_keys:
        at_once = 1
    stacks = [
        _reduce_rows(point, seed, indices[i : i + at_once], divisors)
        for i in range(0, len(indices), at_once)
    ]
    scores = np.concatenate([stack.scores for stack in stacks])
    spectral = measure_gaps(scores[:, : costly_rows(SPECTRAL_ROWS, n_keys)])
    elements = measure_gaps(widen(scores[:, : costly_rows(ELEMENT_ROWS, n_keys)]))
    squared_norm, variance, where, matching, compared = (
        np.concatenate([getattr(stack, name) for stack in stacks])
        for name in ("squared_norm", "variance", "where", "matching", "compared")
    )
    order = rising_order(compared)
    for number, divisor in enumerate(divisors):
        yield RowBlock(
            _join([stack.sums[number] for stack in stacks]),
            np.concatenate([stack.gradient_scores[number] for stack in stacks]),
            np.concatenate([stack.gradient_query[number] for stack in stacks]),
            squared_norm,
            variance,
            where,
            matching,
            compared,
            order,
            softmax_rows(spectral, divisor),
            softmax_rows(elements, divisor),
        )


def _join(parts: list[RowSums]) -> RowSums:
    """Put the sums of the same divisor together, along the replicates."""
    return RowSums(
        parts[0].divisor,
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("raw_largest", "second", "s1", "s2", "s3", "weighted")
        ),
    )


def _reduce_rows(
    point: DesignPoint, seed: int, indices: range, divisors: Sequence[float]
) -> Stack:
    """Draw the replicates of one stack and reduce their rows."""
    queries, chunks = _draw(point, seed, indices)
    parts = [queries @ keys.transpose(0, 2, 1) for keys in chunks()]
    scores = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
    gaps = measure_gaps(scores)
    vector = np.stack(
        [
            stream(seed, point, i, "v").standard_normal((1, scores.shape[-1]))
            for i in indices
        ]
    )
    vector = vector.astype(np.float32)
    differences = differences_to_largest(vector, gaps)
    flat = [point.row_spread / divisor < FLAT for divisor in divisors]
    if any(flat):
        wide = measure_gaps(widen(scores))
        wide_differences = differences_to_largest(widen(vector), wide)
    planted, most = point.dependence.kind != "none", query_rows(point.shape[1])
    sums, products = [], []
    for divisor, is_flat in zip(divisors, flat, strict=True):
        rows = softmax_rows(wide if is_flat else gaps, divisor)
        sums.append(rows.sums)
        among = wide_differences if is_flat else differences
        products.append(jacobian_times(rows, among))
    return Stack(
        sums,
        [gradient_scores(*pair) for pair in zip(sums, products, strict=True)],
        gradient_query(sums, products, chunks(), most),
        widen(np.vecdot(queries, queries)),
        gaps.variance,
        gaps.where,
        matching_gaps(scores, gaps) if planted else np.zeros_like(gaps.largest),
        scores[:, : costly_rows(SPECTRAL_ROWS, point.shape[1])],
        _compared_scores(point, queries, chunks),
    )


def _compared_scores(point: DesignPoint, queries: Floats, chunks: Chunks) -> Array:
    """Return the scores of the rows that number formats are compared on, in float64.

    In float32, scores tie before any format rounds them: of 65,536 keys one in two
    thousand shares its score with another.
    """
    rows = compared_rows(*point.shape) if point.formats else 0
    wide = queries[:, :rows].astype(np.float64)
    parts = [
        wide @ keys.astype(np.float64).transpose(0, 2, 1)
        for keys in (chunks() if rows else ())
    ]
    empty = np.empty((len(wide), 0, point.shape[1]))
    return np.concatenate(parts, axis=-1) if parts else empty


def _draw(point: DesignPoint, seed: int, indices: range) -> tuple[Floats, Chunks]:
    """Draw queries, of shape (n_replicates, n_queries, d_k), and keys."""
    if keys_at_once(point) < point.shape[1]:
        (index,) = indices  # keys that come in chunks are those of one replicate
        queries = draw_queries(point, seed, index)[np.newaxis]
        return queries, lambda: (
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
