"""Softmax of attention rows, computed without cancellation.

Where one weight is close to 1, the quantities of interest (1 - p_max, the Jacobian,
gradients) are sums over the *other* weights.  All formulas of this package are
therefore written as sums of positive terms over all keys except the one of the largest
score; ``rest`` marks such sums, and so does a prime, as in Σ'.  They keep the relative
precision of the scores.

The rest is stored relative to the second largest score.  Its exponentials then lie
between 0 and 1 with at least one equal to 1, and keep their relative precision in
float32, the type of sampled scores.  Sums along rows are dot products with float64
accumulation, which need no temporary array.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.masks import QueryBlock

Array = NDArray[np.float64]
#: Scores and their exponentials, float32 or float64 as in the input.
Scores = NDArray[np.floating]
#: Replaces the largest and hidden scores in the rest; its exponential is 0.
FAR = -1e30
#: In float32, smaller exponentials are set to 0: a processor takes ten times as long
#: over subnormal numbers, and the cube of this number is normal.  The sum that they
#: belong to is at least 1, and 2¹⁷ of them are half a rounding error of it.
NEGLIGIBLE = 2.0**-42
#: Exponents that are certainly above and below its logarithm: e⁻²⁹ is 1.1 times as
#: large, e⁻³⁰ 0.4 times.
NOT_NEGLIGIBLE_TO, NEGLIGIBLE_FROM = -29.0, -30.0


@dataclass(frozen=True, slots=True)
class Gaps:
    """Differences of raw scores from the second largest and the largest of their row.

    Attributes
    ----------
    largest : ndarray, shape (..., n_queries)
        Largest score of each row.
    where : ndarray of int, shape (..., n_queries)
        Index of the key with the largest score.
    second : ndarray, shape (..., n_queries)
        Second largest minus largest score; at most 0.
    rest : ndarray of float32 or float64, shape (..., n_queries, n_keys)
        Score minus second largest score, at most 0; `FAR` at the largest score and,
        approximately, at hidden scores.
    variance : ndarray, shape (..., n_queries)
        Variance of the scores within each row, with denominator n - 1; inf or NaN if
        their squares overflow.
    lowest : float
        Minimum over all rows of lowest minus largest score.
    """

    largest: Array
    where: NDArray[np.intp]
    second: Array
    rest: Scores
    variance: Array
    lowest: float


def measure_gaps(scores: Scores, block: QueryBlock | None = None) -> Gaps:
    """Return differences of scores from the second largest and the largest of the row.

    Parameters
    ----------
    scores : ndarray of float32 or float64, shape (..., n_queries, n_keys)
        Raw scores, before division.  Hidden ones are set to `FAR`, in place.
    block : QueryBlock, optional
        States which scores are hidden; by default none is.

    Returns
    -------
    Gaps
        Of the visible scores.  For a row with one visible score, ``variance`` is 0 and
        ``second`` is `FAR`.
    """
    n_visible: int | NDArray[np.intp] = scores.shape[-1]
    if block is not None:
        n_visible = block.n_visible
        block.hide(scores, FAR)
    where, largest = scores.argmax(axis=-1), scores.max(axis=-1)
    rest = scores - largest[..., np.newaxis]
    if block is not None:
        block.hide(rest, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # NaN if squares overflow
        squares, total = widen(np.vecdot(rest, rest)), add_up(rest)
        variance = (squares - total**2 / n_visible) / np.maximum(n_visible - 1, 1)
    lowest = float(rest.min())
    set_in_rows(rest, where, -np.inf)
    if block is not None:
        block.hide(rest, FAR)
    second = np.maximum(rest.max(axis=-1), FAR)  # not -inf if n = 1
    rest -= second[..., np.newaxis]
    set_in_rows(rest, where, FAR)
    return Gaps(widen(largest), where, widen(second), rest, variance, lowest)


def widen(values: Scores) -> Array:
    """Return a float64 copy of an array, even if it is float64 already."""
    return values.astype(np.float64)


def add_up(values: Scores) -> Array:
    """Return the sums along the last axis, accumulated and returned in float64."""
    return widen(np.vecdot(values, np.ones(values.shape[-1], values.dtype)))


def set_in_rows(values: Scores, where: NDArray[np.intp], value: Scores | float) -> None:
    """Set an entry of each row in place: ``values[..., i, where[..., i]] = value``.

    Parameters
    ----------
    values : ndarray, shape (..., n_rows, n_keys)
    where : ndarray of int, shape (..., n_rows)
        Index of the key, in each row.
    value : float or ndarray, shape (..., n_rows)
    """
    column = np.asarray(value)[..., np.newaxis]
    np.put_along_axis(values, where[..., np.newaxis], column, axis=-1)


@dataclass(frozen=True)
class RowSums:
    """Sums of exponentials of divided scores, from which most quantities follow.

    With e = exp(score - largest score) for divided scores, weights are p = e/z, and p₁
    = 1/z is the largest.

    Attributes
    ----------
    divisor : float
        Number by which raw scores are divided.
    raw_largest : ndarray, shape (..., n_queries)
        Largest raw score of each row.
    second : ndarray, shape (..., n_queries)
        Second largest e, from 0 to 1.
    s1, s2, s3 : ndarray, shape (..., n_queries)
        Sums of e, e² and e³ over all keys except that of the largest score.
    weighted : ndarray, shape (..., n_queries)
        Sum of e times (raw score - largest raw score) over the same keys; at most 0.
    """

    divisor: float
    raw_largest: Array
    second: Array
    s1: Array
    s2: Array
    s3: Array
    weighted: Array

    @cached_property
    def z(self) -> Array:
        """Sum of e over all keys of each row, from 1 to n; shape (..., n_queries)."""
        return 1.0 + self.s1

    @property
    def largest(self) -> Array:
        """Largest divided score of each row, shape (..., n_queries)."""
        return self.raw_largest / self.divisor

    @property
    def unit(self) -> Array:
        """Second largest weight of each row, shape (..., n_queries).

        It is the unit of `SoftmaxRows.e`: e times this weight is a weight.
        """
        return self.second / self.z


@dataclass(frozen=True, slots=True)
class SoftmaxRows:
    """Softmax of rows of divided scores.

    Attributes
    ----------
    gaps : Gaps
        Of the raw scores.
    sums : RowSums
    e : ndarray of float32 or float64, shape (..., n_queries, n_keys)
        exp(score - second largest score) of divided scores; 0 at the largest and at
        hidden scores, and in float32 below `NEGLIGIBLE`.  Weights of the rest are e
        times `RowSums.unit`.
    """

    gaps: Gaps
    sums: RowSums
    e: Scores


def softmax_rows(gaps: Gaps, divisor: float) -> SoftmaxRows:
    """Return the softmax of rows of scores after division by ``divisor``.

    ``gaps`` are the differences of the raw scores, from `measure_gaps`.
    """
    e = gaps.rest / divisor
    # float64 reaches so far that its subnormal numbers are rare
    if e.dtype == np.float64 or gaps.lowest / divisor > NOT_NEGLIGIBLE_TO:
        np.exp(e, out=e)
    else:
        np.maximum(e, NEGLIGIBLE_FROM, out=e)
        np.exp(e, out=e)
        e *= e >= NEGLIGIBLE
    second = np.exp(gaps.second / divisor)
    total = add_up(e)
    sums = RowSums(
        divisor,
        gaps.largest,
        second,
        second * total,
        second**2 * widen(np.vecdot(e, e)),
        second**3 * widen(np.vecdot(e * e, e)),
        second * (widen(np.vecdot(e, gaps.rest)) + gaps.second * total),
    )
    return SoftmaxRows(gaps, sums, e)


def weight_max(sums: RowSums) -> Array:
    """Return the largest weight of each row, from 1/n to 1; shape (..., n_queries)."""
    return 1.0 / sums.z


def log_partition(sums: RowSums) -> Array:
    """Return ln Z for each row, the log-sum-exp of the divided scores.

    Shape (..., n_queries).
    """
    return sums.largest + np.log1p(sums.s1)


def entropy(sums: RowSums) -> Array:
    """Return the Shannon entropy of each row in nats, from 0 to ln n.

    Shape (..., n_queries).

    Notes
    -----
    H = ln z - Σ' p g, where g ≤ 0 is the divided score minus the largest one.  Both
    terms are at least 0, so that nothing cancels.
    """
    return np.asarray(np.log1p(sums.s1) - sums.weighted / (sums.z * sums.divisor))


def entropy_of_weights(weights: Scores) -> Scores:
    """Return the Shannon entropy of each row of weights, in nats.

    ``weights`` has the shape (..., n_keys), the result (...); a weight of 0 adds 0.
    """
    logs = np.log(np.where(weights > 0.0, weights, 1.0))
    entropies: Scores = -(weights * logs).sum(axis=-1)
    return entropies


def effective_keys(sums: RowSums) -> Array:
    """Return exp H for each row: the number of keys of a uniform row with entropy H.

    From 1 to n; shape (..., n_queries).
    """
    return np.exp(entropy(sums))


def inverse_participation(sums: RowSums) -> Array:
    """Return Σ p² for each row, from 1/n (uniform) to 1; shape (..., n_queries)."""
    return (1.0 + sums.s2) / sums.z**2


def weights_in_order(rows: SoftmaxRows) -> Array:
    """Return the softmax weights p, shape (..., n_queries, n_keys), key j in column j.

    They add up to 1 in each row.  Hidden keys have 0.
    """
    weights = rows.e * rows.sums.unit[..., np.newaxis]
    set_in_rows(weights, rows.gaps.where, weight_max(rows.sums))
    return weights
