"""The softmax Jacobian J = diag(p) - p pᵀ and gradients through it.

J is never formed, and nothing cancels (see `softmax`).

All of J is by the divided scores.  ``gradient_query``, which is by q, carries the chain
rule's factor 1/divisor.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import (
    Array,
    Gaps,
    RowSums,
    Scores,
    SoftmaxRows,
    add_up,
    put,
    weights_in_order,
    widen,
)

#: Steps of the secular iteration; it converges quadratically, and six steps leave a
#: relative error below 1e-9 for every row tried.
SECULAR_STEPS = 6
#: Largest weights that differ by less, relatively, are taken for equal.
TIED = 1e-14
#: Below this nothing is divided by.
SMALLEST = float(np.finfo(np.float64).tiny)


def jacobian_trace(sums: RowSums) -> Array:
    """Return tr J = 1 - Σ p².

    Notes
    -----
    (2 s1 + s1² - s2)/z²; s1² - s2 is a sum of products of different terms, at least
    0, and at most as large as what it is subtracted from can resolve.
    """
    return (2.0 * sums.s1 + (sums.s1**2 - sums.s2)) / sums.z**2


def jacobian_frobenius_squared(sums: RowSums) -> Array:
    """Return ‖J‖_F² = Σ p² - 2 Σ p³ + (Σ p²)².

    Notes
    -----
    With a2 = Σ' p², a3 = Σ' p³ over the rest and p1 = 1/z the largest weight:
    (p1(1 - p1))² + (a2 - 2 a3) + 2 p1² a2 + a2².  The textbook form is exactly 0 in
    many rows at large d_k, where this one keeps its relative precision.
    """
    z2 = sums.z**2
    a2, a3 = sums.s2 / z2, sums.s3 / (z2 * sums.z)
    return (sums.s1 / z2) ** 2 + (a2 - 2.0 * a3) + 2.0 * a2 / z2 + a2**2


def jacobian_frobenius(sums: RowSums) -> Array:
    """Return the Frobenius norm of J."""
    return np.sqrt(jacobian_frobenius_squared(sums))


def jacobian_spectral(rows: SoftmaxRows) -> Array:
    """Return the largest eigenvalue of J, its spectral norm.

    Notes
    -----
    The eigenvalues of diag(p) - p pᵀ solve Σ p²/(p - x) = 1; the largest lies between
    the second largest weight p2 and the largest p1.  With p1 split off, 1 - p1 = s1/z
    and in units of p2, so that no square underflows (r = p/p2, x = p2(1 + y)):
    (y + 1 - p1 s1/(z p2))/(p1 - p2 - p2 y) = Σ' r²/(y + 1 - r).  Each step replaces the
    right side by c + b/y of the same value and slope, and solves the quadratic.

    References
    ----------
    Bunch, Nielsen and Sorensen (1978), Rank-one modification of the symmetric
    eigenproblem, Numer. Math. 31.
    """
    sums, r = rows.sums, rows.e
    alone = sums.second == 0.0  # one-hot: J is 0
    second = np.where(alone, 1.0, sums.second)
    p1, p2 = 1.0 / sums.z, second / sums.z
    squares, behind = r * r, 1.0 - r
    gap = (1.0 - second) / sums.z
    untied = second < 1.0 - TIED
    gap = np.where(untied, gap, 1.0)
    others = np.maximum(sums.s1 / second, 1.0)  # at most n - 1
    shift = 1.0 - others / sums.z
    y = 0.5 * np.minimum(gap / np.maximum(p2, SMALLEST), others)
    for _ in range(SECULAR_STEPS):
        share = y.astype(r.dtype)[..., np.newaxis] + behind
        np.reciprocal(share, out=share)
        terms = squares * share
        value = add_up(terms)
        b = y * y * widen(np.vecdot(terms, share))
        c = value - b / y
        half = 0.5 * (shift - gap * c + p2 * b)
        root = np.sqrt(half * half + (1.0 + p2 * c) * gap * b)
        # the form of the positive root that does not cancel
        low = gap * b / np.maximum(np.abs(half) + root, SMALLEST)
        high = (root - half) / (1.0 + p2 * c)
        y = np.maximum(np.where(half > 0.0, low, high), SMALLEST)
    largest = np.where(untied, p2 * (1.0 + y), p1)  # tied weights are an eigenvalue
    return np.where(alone, 0.0, largest)


def element_gradient(rows: SoftmaxRows) -> Array:
    """Return p(1 - p), the diagonal of J, for all elements of all rows.

    Returns
    -------
    ndarray, shape (..., n_queries * n_keys)
    """
    p = rows.e * rows.sums.unit[..., np.newaxis]
    elements = p * (1.0 - p)
    put(elements, rows.gaps.where, rows.sums.s1 / rows.sums.z**2)
    return elements.reshape(*elements.shape[:-2], -1)


def differences_to_largest(vector: Scores, gaps: Gaps) -> Scores:
    """Return v minus its value at the key of the largest score, for each row.

    Parameters
    ----------
    vector : ndarray, shape (..., 1, n_keys)
        One v per replicate.
    gaps : Gaps

    Returns
    -------
    ndarray, shape (..., n_queries, n_keys)
    """
    v = np.broadcast_to(vector, gaps.rest.shape)
    return v - np.take_along_axis(v, gaps.where[..., np.newaxis], axis=-1)


def jacobian_times(rows: SoftmaxRows, differences: Scores) -> Scores:
    """Return J v for each row, in units of the row's second largest weight.

    Parameters
    ----------
    rows : SoftmaxRows
    differences : ndarray, shape (..., n_queries, n_keys)
        Of v, from `differences_to_largest`.

    Returns
    -------
    ndarray, shape (..., n_queries, n_keys)
        J v over `RowSums.unit`: no row is small.

    Notes
    -----
    J v = p (v - p·v).  Written with u = v - v at the largest key, p·v is replaced by
    the sum Σ' p u over the rest, which is small where J is small.
    """
    sums, e = rows.sums, rows.e
    mean = widen(np.vecdot(e, differences)) / sums.z  # Σ' p u, in the same units
    kind = differences.dtype
    product = differences - (sums.second * mean).astype(kind)[..., np.newaxis]
    product *= e
    put(product, rows.gaps.where, -mean)
    return product


def gradient_query(
    sums: Sequence[RowSums],
    products: Sequence[Scores],
    keys: Iterable[NDArray[np.float32]],
    most: int | None = None,
) -> list[Array]:
    """Return ‖Kᵀ J v‖/divisor for each divisor: the gradient of v·p by the query.

    Parameters
    ----------
    sums : sequence of RowSums
        One for each divisor.
    products : sequence of ndarray, shape (..., n_queries, n_keys)
        From `jacobian_times`: in units in which float32 loses nothing.
    keys : iterable of ndarray of float32, shape (..., some keys, d_k)
        Chunks of the keys, in order; gone through once.
    most : int or None
        Of the first rows alone, so many at most.

    Returns
    -------
    list of ndarray, shape (..., n_rows)
    """
    start = 0
    gradients: list[Scores] = []
    for chunk in keys:
        part = np.s_[..., :most, start : start + chunk.shape[-2]]
        added = [p[part].astype(np.float32, copy=False) @ chunk for p in products]
        if start:
            added = [a + b for a, b in zip(gradients, added, strict=True)]
        gradients, start = added, start + chunk.shape[-2]
    return [
        np.sqrt(widen(np.vecdot(gradient, gradient)))
        * one.unit[..., :most]
        / one.divisor
        for one, gradient in zip(sums, gradients, strict=True)
    ]


def add_key_gradients(
    rows: SoftmaxRows,
    by_weights: Scores,
    queries: NDArray[np.float32],
    by_output: NDArray[np.float32],
    sums: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> None:
    """Add what some queries pass back to the keys and values that they see, in place.

    Parameters
    ----------
    rows : SoftmaxRows
    by_weights : ndarray, shape (..., n_queries, n_keys)
        Gradient by the weights: of the output times the values.
    queries, by_output : ndarray of float32, shape (..., n_queries, d_k)
        Gradient by the output of each query.
    sums : tuple of ndarray of float32, shape (..., n_keys, d_k)
        Gradients by the keys, without the factor 1/divisor, and by the values.
    """
    by_scores = jacobian_times(rows, differences_to_largest(by_weights, rows.gaps))
    by_scores *= rows.sums.unit[..., np.newaxis]
    to_keys, to_values = sums
    to_keys += by_scores.swapaxes(-1, -2) @ queries
    to_values += weights_in_order(rows).swapaxes(-1, -2) @ by_output
