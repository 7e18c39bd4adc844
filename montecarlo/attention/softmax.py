"""Softmax of a row with its largest term split off, so that nothing cancels.

Where one weight is close to 1, everything of interest (1 - p_max, the Jacobian, the
gradients) is a sum over the *other* weights.  Every formula of this package is
therefore written with sums over all keys but the largest (marked ``rest``), each
term of which is positive: the relative precision of the scores survives to the result.

The rest is measured from the second largest score, so that no exponential of weight in
these sums is small: they keep their relative precision in float32, too, which is what
long arrays of scores come in.  Sums along rows are dot products: these go through an
array once and leave none behind.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.masks import QueryBlock

Array = NDArray[np.float64]
#: Scores and their exponentials: float32 or float64, whichever came in.
Scores = NDArray[np.floating]
#: Stands for the largest score among the rest: its exponential is 0 for any divisor.
FAR = -1e30
#: Exponentials below it are 0 in float32: a processor takes ten times as long over
#: subnormal numbers, and down to it cubes are none.  2¹⁷ of them are half a rounding
#: error of the sum that they belong to, which is at least 1.
NEGLIGIBLE = 2.0**-42
#: Gaps whose exponentials surely are not below it, and surely are: e⁻²⁹ is 1.1 times as
#: large, e⁻³⁰ 0.4 times.
NOT_NEGLIGIBLE_TO, NEGLIGIBLE_FROM = -29.0, -30.0


@dataclass(frozen=True, slots=True)
class Gaps:
    """Raw scores of rows, the largest split off.

    Attributes
    ----------
    largest : ndarray, shape (..., n_queries)
        The largest score of each row.
    where : ndarray of int, shape (..., n_queries)
        The key that has it.
    second : ndarray, shape (..., n_queries)
        Second largest score minus largest score, at most 0.
    rest : ndarray of float32 or float64, shape (..., n_queries, n_keys)
        Score minus second largest score, at most 0; `FAR` at the largest, and about
        that where a mask hides it.
    variance : ndarray, shape (..., n_queries)
        Variance of the scores within each row, n - 1 in the denominator.
    lowest : float
        The least score minus the largest score of its row, of all rows.
    """

    largest: Array
    where: NDArray[np.intp]
    second: Array
    rest: Scores
    variance: Array
    lowest: float


def measure_gaps(scores: Scores, block: QueryBlock | None = None) -> Gaps:
    """Split the largest score off each row.

    Parameters
    ----------
    scores : ndarray of float32 or float64, shape (..., n_queries, n_keys)
        Raw scores, before any divisor.  What a mask hides becomes `FAR`, in place.
    block : QueryBlock, optional
        What a mask hides; by default nothing.

    Returns
    -------
    Gaps
        Of the scores that are visible.  A row of one has the variance 0, and `FAR` for
        its second score.
    """
    n_visible: int | NDArray[np.intp] = scores.shape[-1]
    if block is not None:
        n_visible = block.n_visible
        block.hide(scores, FAR)
    where = scores.argmax(axis=-1)
    largest = pick(scores, where)
    rest = scores - largest[..., np.newaxis]
    if block is not None:
        block.hide(rest, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # NaN if squares overflow
        variance = _variance_about_zero(rest, n_visible)
    lowest = float(rest.min())
    put(rest, where, -np.inf)
    if block is not None:
        block.hide(rest, FAR)
    second = np.maximum(pick(rest, rest.argmax(axis=-1)), FAR)  # a row of one has none
    rest -= second[..., np.newaxis]
    put(rest, where, FAR)
    return Gaps(widen(largest), where, widen(second), rest, variance, lowest)


def _variance_about_zero(gaps: Scores, n: int | NDArray[np.intp]) -> Array:
    """Return the variance of each row; of gaps, whose mean is not much larger.

    Of the ``n`` gaps of a row that count the others are 0.
    """
    squares, total = widen(np.vecdot(gaps, gaps)), add_up(gaps)
    variance: Array = (squares - total**2 / n) / np.maximum(n - 1, 1)
    return variance


def widen(values: Scores) -> Array:
    """Return sums in float64, whatever their terms were in."""
    return values.astype(np.float64)


def add_up(values: Scores) -> Array:
    """Return the sum of each row, in float64."""
    return widen(np.vecdot(values, np.ones(values.shape[-1], values.dtype)))


def pick(values: Scores, where: NDArray[np.intp]) -> Scores:
    """Return one value of each row, that of the given key."""
    flat: Scores = values.reshape(-1)[_places(values, where)]
    return flat.reshape(where.shape)


def put(values: Scores, where: NDArray[np.intp], value: float | Scores) -> None:
    """Set one value of each row, that of the given key, in place."""
    values.reshape(-1)[_places(values, where)] = (
        value if isinstance(value, float) else value.ravel()
    )


def _places(values: Scores, where: NDArray[np.intp]) -> NDArray[np.intp]:
    return where.ravel() + np.arange(0, values.size, values.shape[-1])


@dataclass(frozen=True)
class RowSums:
    """Softmax of rows of divided scores, as the sums that most quantities are made of.

    The weights are p_1 = 1/z for the largest score and p = exp(score - largest)/z for
    the rest.

    Attributes
    ----------
    divisor : float
        What raw scores are divided by.
    raw_largest : ndarray, shape (..., n_queries)
        The largest raw score of each row.
    second : ndarray, shape (..., n_queries)
        exp(second largest score - largest score).
    s1, s2, s3 : ndarray, shape (..., n_queries)
        Sums of e, e², e³ over the rest, e being exp(score - largest score).
    weighted : ndarray, shape (..., n_queries)
        Sum of e times raw score minus largest raw score: at most 0.
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
        """Sum of the exponentials over the largest exponential, at least 1."""
        return normaliser(self.s1)

    @cached_property
    def largest(self) -> Array:
        """The largest divided score of each row."""
        return self.raw_largest / self.divisor

    @property
    def unit(self) -> Array:
        """The second largest weight of each row, which the rest is measured in."""
        return self.second / self.z


@dataclass(frozen=True, slots=True)
class SoftmaxRows:
    """Softmax of rows of divided scores: the sums, and the exponentials themselves.

    Attributes
    ----------
    gaps : Gaps
        The raw scores.
    sums : RowSums
    e : ndarray of float32 or float64, shape (..., n_queries, n_keys)
        exp(score - second largest score), 0 at the largest: weights are
        e times `RowSums.unit`.
    """

    gaps: Gaps
    sums: RowSums
    e: Scores


def normaliser(s1: Array) -> Array:
    """Return what exponentials are divided by to become weights: 1 + s1."""
    return 1.0 + s1


def _exponentials(gaps: Gaps, divisor: float) -> Scores:
    """Return exp(score - second largest score), without subnormal numbers."""
    e = gaps.rest / divisor
    if e.dtype == np.float64 or gaps.lowest / divisor > NOT_NEGLIGIBLE_TO:
        np.exp(e, out=e)
        return e
    np.maximum(e, NEGLIGIBLE_FROM, out=e)
    np.exp(e, out=e)
    e *= e >= NEGLIGIBLE
    return e


def softmax_rows(gaps: Gaps, divisor: float) -> SoftmaxRows:
    """Exponentiate divided scores and sum their powers."""
    e = _exponentials(gaps, divisor)
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
    """Return the largest weight of each row, 1/z."""
    return 1.0 / sums.z


def log_partition(sums: RowSums) -> Array:
    """Return ln Z of the divided scores, Z being the sum of their exponentials."""
    return sums.largest + np.log1p(sums.s1)


def entropy(sums: RowSums) -> Array:
    """Return the entropy of each row in nats.

    Notes
    -----
    H = ln z - Σ' p g with g the divided gap to the largest score: both terms are at
    least 0, so nothing cancels where H is small.
    """
    return np.asarray(np.log1p(sums.s1) - sums.weighted / (sums.z * sums.divisor))


def entropy_of_weights(weights: Scores) -> Scores:
    """Return the entropy of rows of weights that are given, in nats."""
    logs = np.log(np.where(weights > 0.0, weights, 1.0))
    found: Scores = -(weights * logs).sum(axis=-1)
    return found


def effective_keys(sums: RowSums) -> Array:
    """Return exp H: the number of keys a uniform row of the same entropy has."""
    return np.exp(entropy(sums))


def inverse_participation(sums: RowSums) -> Array:
    """Return Σ p²: 1/n for a uniform row, 1 for a one-hot row."""
    return (1.0 + sums.s2) / sums.z**2


def matching_gaps(scores: Scores, gaps: Gaps) -> Array:
    """Return the score that query i gives to key i minus the largest of its row."""
    n_queries = scores.shape[-2]
    matching = np.diagonal(scores[..., :n_queries], axis1=-2, axis2=-1)
    return matching - gaps.largest


def matching_weight(sums: RowSums, matching: Array) -> Array:
    """Return the weight that query i gives to key i, from `matching_gaps`."""
    return np.exp(matching / sums.divisor) / sums.z


def matching_is_largest(where: NDArray[np.intp]) -> Array:
    """Return 1 where key i has the largest score of query i, else 0.

    Dividing keeps the order, so that this is the same under every divisor.
    """
    return np.asarray(where == np.arange(where.shape[-1]), dtype=np.float64)


def weights_in_order(rows: SoftmaxRows) -> Array:
    """Return the weights of each row in the order of its keys, shape as ``rows.e``."""
    weights = rows.e * rows.sums.unit[..., np.newaxis]
    put(weights, rows.gaps.where, weight_max(rows.sums))
    return weights
