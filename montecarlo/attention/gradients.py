"""The softmax Jacobian J = diag(p) - p pᵀ and gradients that pass through it.

J is the derivative of a row's weights p with respect to its divided scores.  It is
never formed, and nothing cancels; see `softmax` for the notation.
"""

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import (
    Array,
    Gaps,
    RowSums,
    Scores,
    SoftmaxRows,
    add_up,
    set_in_rows,
    widen,
)

#: Steps of the iteration for the spectral norm.  It converges quadratically; after six
#: steps the relative error was below 1e-9 in every row tried.
SECULAR_STEPS = 6
#: The two largest weights count as equal if they differ by less, relatively.
TIED = 1e-14
#: Smallest positive normal float64; prevents division by 0.
SMALLEST = float(np.finfo(np.float64).tiny)


def jacobian_trace(sums: RowSums) -> Array:
    """Return tr J = 1 - Σ p² for each row, from 0 to 1 - 1/n; shape (..., n_queries).

    Notes
    -----
    Computed as (2 s1 + s1² - s2)/z², with the sums s1, s2 and z of `RowSums`.  Since
    each of their terms is at most 1, s2 is at most s1, and the subtraction loses no
    precision.
    """
    return (2.0 * sums.s1 + (sums.s1**2 - sums.s2)) / sums.z**2


def jacobian_frobenius_squared(sums: RowSums) -> Array:
    """Return ‖J‖_F² = Σ p² - 2 Σ p³ + (Σ p²)² for each row, from 0 to 1/4.

    The shape is (..., n_queries).

    Notes
    -----
    Computed as (p₁(1 - p₁))² + (a₂ - 2 a₃) + 2 p₁² a₂ + a₂², with the largest weight p₁
    and the sums over the rest a₂ = Σ' p² and a₃ = Σ' p³.  The form above is exactly 0
    in many rows at large d_k; this one keeps its relative precision.
    """
    z2 = sums.z**2
    a2, a3 = sums.s2 / z2, sums.s3 / (z2 * sums.z)
    return (sums.s1 / z2) ** 2 + (a2 - 2.0 * a3) + 2.0 * a2 / z2 + a2**2


def jacobian_frobenius(sums: RowSums) -> Array:
    """Return the Frobenius norm of J for each row, 0 to 1/2; shape (..., n_queries)."""
    return np.sqrt(jacobian_frobenius_squared(sums))


def jacobian_spectral(rows: SoftmaxRows, n_rows: int | None = None) -> Array:
    """Return the spectral norm of J for each row: its largest eigenvalue, 0 to 1/2.

    Parameters
    ----------
    rows : SoftmaxRows
    n_rows : int, optional
        Number of first rows that are evaluated; by default all.

    Returns
    -------
    ndarray, shape (..., n_rows)

    Notes
    -----
    The eigenvalues x of diag(p) - p pᵀ solve the secular equation Σ p²/(p - x) = 1.
    The largest lies between the second largest weight p₂ and the largest p₁.  With
    r = p/p₂ and x = p₂(1 + y), and with the term of p₁ separated, the equation is
    (y + 1 - p₁ s1/(z p₂))/(p₁ - p₂ - p₂ y) = Σ' r²/(y + 1 - r), where no square
    underflows and 1 - p₁ = s1/z.  Each step replaces the right-hand side by c + b/y
    with the same value and slope at the current y, and solves the resulting quadratic.

    References
    ----------
    Bunch, Nielsen and Sorensen (1978), Rank-one modification of the symmetric
    eigenproblem, Numer. Math. 31.
    """
    r = rows.e[..., :n_rows, :]
    second, s1, z = (
        sums[..., :n_rows] for sums in (rows.sums.second, rows.sums.s1, rows.sums.z)
    )
    one_hot = second == 0.0  # J = 0
    second = np.where(one_hot, 1.0, second)
    p1, p2 = 1.0 / z, second / z
    squares, behind = r * r, 1.0 - r
    untied = second < 1.0 - TIED
    gap = np.where(untied, (1.0 - second) / z, 1.0)
    others = np.maximum(s1 / second, 1.0)  # at most n - 1
    shift = 1.0 - others / z
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
    # a tied weight is an eigenvalue
    return np.where(one_hot, 0.0, np.where(untied, p2 * (1.0 + y), p1))


def element_gradient(rows: SoftmaxRows) -> Array:
    """Return p(1 - p) for each weight p, the diagonal of J, all rows in one axis.

    Returns
    -------
    ndarray, shape (..., n_queries * n_keys)
        From 0 to 1/4.
    """
    p = rows.e * rows.sums.unit[..., np.newaxis]
    elements = p * (1.0 - p)
    set_in_rows(elements, rows.gaps.where, rows.sums.s1 / rows.sums.z**2)
    return elements.reshape(*elements.shape[:-2], -1)


def differences_to_largest(
    weight_gradient: Scores, gaps: Gaps, n_rows: int | None = None
) -> Scores:
    """Return v minus its value at the largest score of each row.

    Parameters
    ----------
    weight_gradient : ndarray, shape (..., 1 or n_queries, n_keys)
        v, a gradient with respect to the weights: one for each replicate or for each
        row.
    gaps : Gaps
        Differences of the scores, which have the key of the largest score of each row.
    n_rows : int, optional
        Number of first rows that are returned; by default all.  If it is given, v must
        be the same for all rows: shape (..., 1, n_keys).

    Returns
    -------
    ndarray, shape (..., n_rows, n_keys)
    """
    where = gaps.where[..., :n_rows, np.newaxis]
    v = np.broadcast_to(weight_gradient, (*where.shape[:-1], weight_gradient.shape[-1]))
    return v - np.take_along_axis(v, where, axis=-1)


def jacobian_times(rows: SoftmaxRows, differences: Scores) -> Scores:
    """Return J v / (second largest weight of the row), for the first rows.

    J v is the gradient with respect to the divided scores, for a gradient v with
    respect to the weights.

    Parameters
    ----------
    rows : SoftmaxRows
    differences : ndarray, shape (..., n_rows, n_keys)
        v as `differences_to_largest` returns it; its n_rows are the rows evaluated.

    Returns
    -------
    ndarray, shape (..., n_rows, n_keys)
        J v / `RowSums.unit`.  Its entries are not all tiny even if those of J are.

    Notes
    -----
    J v = p (v - p·v).  With u, the differences of v to its value at the largest score,
    J v = p (u - Σ' p u).  The sum over the rest is small where J is.
    """
    n_rows = differences.shape[-2]
    e = rows.e[..., :n_rows, :]
    second, z = rows.sums.second[..., :n_rows], rows.sums.z[..., :n_rows]
    mean = widen(np.vecdot(e, differences)) / z  # Σ' p u over the unit
    product = differences - (second * mean).astype(differences.dtype)[..., np.newaxis]
    product *= e
    set_in_rows(product, rows.gaps.where[..., :n_rows], -mean)
    return product


def gradient_query(sums: RowSums, product: Scores, keys: NDArray[np.float32]) -> Array:
    """Return ‖Kᵀ J v‖/divisor, the norm of the gradient of v·p with respect to q.

    Parameters
    ----------
    sums : RowSums
    product : ndarray, shape (..., n_rows, n_keys)
        From `jacobian_times`, for the first rows.
    keys : ndarray of float32, shape (..., n_keys, d_k)

    Returns
    -------
    ndarray, shape (..., n_rows)
    """
    gradient = product.astype(np.float32, copy=False) @ keys
    norm = np.sqrt(widen(np.vecdot(gradient, gradient)))
    return norm * sums.unit[..., : norm.shape[-1]] / sums.divisor
