"""Softmax of a row with its largest term split off, so that nothing cancels.

Where one weight is close to 1, everything of interest (1 - p_max, the Jacobian, the
gradients) is a sum over the *other* weights.  Every formula of this package is
therefore written with sums over all keys but the largest (marked ``rest``), each
term of which is positive: the relative precision of the scores survives to the result.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Raw scores of rows, measured from the largest one.

    Attributes
    ----------
    largest : ndarray, shape (..., n_queries)
        The largest score of each row.
    where : ndarray of int, shape (..., n_queries, 1)
        The key that has it.
    below : ndarray, shape (..., n_queries, n_keys)
        Score minus largest score, at most 0.
    """

    largest: Array
    where: NDArray[np.intp]
    below: Array


def measure_gaps(scores: Array) -> Gaps:
    """Split the largest score off each row.

    Parameters
    ----------
    scores : ndarray, shape (..., n_queries, n_keys)
        Raw scores, before any divisor.

    Returns
    -------
    Gaps
    """
    where = scores.argmax(axis=-1)[..., np.newaxis]
    largest = np.take_along_axis(scores, where, axis=-1)
    return Gaps(largest[..., 0], where, scores - largest)


@dataclass(frozen=True)
class SoftmaxRows:
    """Softmax of rows of divided scores, as the sums that every quantity is made of.

    ``e`` is exp(score - largest score) of all keys but the largest (0 there).
    The weights are p_1 = 1/z for the largest and p = e/z for the rest.

    Attributes
    ----------
    gaps : Gaps
        The raw scores, measured from the largest.
    divisor : float
        What they are divided by.
    e : ndarray, shape (..., n_queries, n_keys)
    s1, s2, s3 : ndarray, shape (..., n_queries)
        Sums of e, e², e³ over the rest.
    """

    gaps: Gaps
    divisor: float
    e: Array
    s1: Array
    s2: Array
    s3: Array

    @cached_property
    def z(self) -> Array:
        """Sum of the exponentials over the largest exponential, at least 1."""
        return normaliser(self.s1)

    @cached_property
    def largest(self) -> Array:
        """The largest divided score of each row."""
        return self.gaps.largest / self.divisor


def normaliser(s1: Array) -> Array:
    """Return what exponentials are divided by to become weights: 1 + s1."""
    return 1.0 + s1


def softmax_rows(gaps: Gaps, divisor: float) -> SoftmaxRows:
    """Exponentiate divided scores and sum their powers.

    Parameters
    ----------
    gaps : Gaps
        From `measure_gaps`.
    divisor : float
        Positive.

    Returns
    -------
    SoftmaxRows
    """
    e = np.exp(gaps.below / divisor)
    np.put_along_axis(e, gaps.where, 0.0, axis=-1)  # the largest is kept apart
    squares = e * e
    s1, s2 = e.sum(axis=-1), squares.sum(axis=-1)
    squares *= e
    return SoftmaxRows(gaps, divisor, e, s1, s2, squares.sum(axis=-1))


def weight_max(rows: SoftmaxRows) -> Array:
    """Return the largest weight of each row, 1/z."""
    return 1.0 / rows.z


def log_partition(rows: SoftmaxRows) -> Array:
    """Return ln Z of the divided scores, Z being the sum of their exponentials."""
    return rows.largest + np.log1p(rows.s1)


def entropy(rows: SoftmaxRows) -> Array:
    """Return the entropy of each row in nats.

    Notes
    -----
    H = ln z - Σ' p g with g the divided gap to the largest score: both terms are at
    least 0, so nothing cancels where H is small.
    """
    weighted = (rows.e * rows.gaps.below).sum(axis=-1)
    result: Array = np.log1p(rows.s1) - weighted / (rows.z * rows.divisor)
    return result


def effective_keys(rows: SoftmaxRows) -> Array:
    """Return exp H: the number of keys a uniform row of the same entropy has."""
    return np.exp(entropy(rows))


def inverse_participation(rows: SoftmaxRows) -> Array:
    """Return Σ p²: 1/n for a uniform row, 1 for a one-hot row."""
    return (1.0 + rows.s2) / rows.z**2


def matching_weight(rows: SoftmaxRows) -> Array:
    """Return the weight that query i gives to key i."""
    n_queries = rows.e.shape[-2]
    own = np.diagonal(rows.e[..., :n_queries], axis1=-2, axis2=-1)
    return np.where(matching_is_largest(rows) > 0.0, 1.0, own) / rows.z


def matching_is_largest(rows: SoftmaxRows) -> Array:
    """Return 1 where key i has the largest score of query i, else 0.

    Dividing keeps the order, so that this is the same under every divisor.
    """
    where = rows.gaps.where[..., 0]
    found: Array = (where == np.arange(where.shape[-1])).astype(np.float64)
    return found


def weights_by_rank(rows: SoftmaxRows) -> Array:
    """Return the weights of each row in descending order, shape as ``rows.e``."""
    weights = rows.e / rows.z[..., np.newaxis]
    np.put_along_axis(weights, rows.gaps.where, weight_max(rows)[..., np.newaxis], -1)
    return -np.sort(-weights, axis=-1)
