"""The softmax Jacobian J = diag(p) - p pᵀ and gradients through it.

J is never formed, and nothing cancels (see `softmax`).

All of J is by the divided scores.  ``gradient_scores`` and ``gradient_query`` carry
the chain rule's factor 1/divisor: they are by q·k and by q.
"""

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array, SoftmaxRows

#: Steps of the secular iteration; it converges quadratically, and six steps leave a
#: relative error below 1e-9 for every row tried.
SECULAR_STEPS = 6
#: Largest weights that differ by less, relatively, are taken for equal.
TIED = 1e-14
#: Below this nothing is divided by.
SMALLEST = float(np.finfo(np.float64).tiny)


def jacobian_trace(rows: SoftmaxRows) -> Array:
    """Return tr J = 1 - Σ p².

    Notes
    -----
    (2 s1 + s1² - s2)/z²; s1² - s2 is a sum of products of different terms, at least
    0, and at most as large as what it is subtracted from can resolve.
    """
    return (2.0 * rows.s1 + (rows.s1**2 - rows.s2)) / rows.z**2


def jacobian_frobenius_squared(rows: SoftmaxRows) -> Array:
    """Return ‖J‖_F² = Σ p² - 2 Σ p³ + (Σ p²)².

    Notes
    -----
    With a2 = Σ' p², a3 = Σ' p³ over the rest and p1 = 1/z the largest weight:
    (p1(1 - p1))² + (a2 - 2 a3) + 2 p1² a2 + a2².  The textbook form is exactly 0 in
    many rows at large d_k, where this one keeps its relative precision.
    """
    z2 = rows.z**2
    a2, a3 = rows.s2 / z2, rows.s3 / (z2 * rows.z)
    return (rows.s1 / z2) ** 2 + (a2 - 2.0 * a3) + 2.0 * a2 / z2 + a2**2


def jacobian_frobenius(rows: SoftmaxRows) -> Array:
    """Return the Frobenius norm of J."""
    return np.sqrt(jacobian_frobenius_squared(rows))


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
    second = rows.e.max(axis=-1)
    alone = second == 0.0  # one-hot: J is 0
    second = np.where(alone, 1.0, second)
    p1, p2 = 1.0 / rows.z, second / rows.z
    r = rows.e / second[..., np.newaxis]
    squares, behind = r * r, 1.0 - r
    gap = (1.0 - second) / rows.z
    untied = second < 1.0 - TIED
    gap = np.where(untied, gap, 1.0)
    others = np.maximum(rows.s1 / second, 1.0)  # at most n - 1
    shift = 1.0 - others / rows.z
    y = 0.5 * np.minimum(gap / np.maximum(p2, SMALLEST), others)
    for _ in range(SECULAR_STEPS):
        apart = y[..., np.newaxis] + behind
        terms = squares / apart
        value = terms.sum(axis=-1)
        terms /= apart
        b = y * y * terms.sum(axis=-1)
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
    p = rows.e / rows.z[..., np.newaxis]
    elements = p * (1.0 - p)
    at_largest = (rows.s1 / rows.z**2)[..., np.newaxis]
    np.put_along_axis(elements, rows.gaps.where, at_largest, axis=-1)
    return elements.reshape(*elements.shape[:-2], -1)


def jacobian_times(rows: SoftmaxRows, vector: Array) -> Array:
    """Return J v for each row.

    Parameters
    ----------
    rows : SoftmaxRows
    vector : ndarray, shape (..., 1, n_keys)
        One v per replicate.

    Returns
    -------
    ndarray, shape (..., n_queries, n_keys)

    Notes
    -----
    J v = p (v - p·v).  Written with u = v - v at the largest key, p·v is replaced by
    the sum Σ' p u over the rest, which is small where J is small.
    """
    v = np.broadcast_to(vector, rows.e.shape)
    product = v - np.take_along_axis(v, rows.gaps.where, axis=-1)
    mean = (rows.e * product).sum(axis=-1)[..., np.newaxis]
    z = rows.z[..., np.newaxis]
    mean /= z
    product -= mean
    product *= rows.e
    np.put_along_axis(product, rows.gaps.where, -mean, axis=-1)
    product /= z
    return product


def gradient_scores(rows: SoftmaxRows, product: Array) -> Array:
    """Return ‖J v‖/divisor: the gradient of v·p by the undivided scores.

    Parameters
    ----------
    rows : SoftmaxRows
    product : ndarray, shape (..., n_queries, n_keys)
        J v, from `jacobian_times`.
    """
    norm: Array = np.sqrt((product * product).sum(axis=-1)) / rows.divisor
    return norm


def gradient_query(
    rows: SoftmaxRows, product: Array, keys: NDArray[np.float32]
) -> Array:
    """Return ‖Kᵀ J v‖/divisor: the gradient of v·p by the query.

    Parameters
    ----------
    rows : SoftmaxRows
    product : ndarray, shape (..., n_queries, n_keys)
        J v, from `jacobian_times`.
    keys : ndarray of float32, shape (..., n_keys, d_k)

    Notes
    -----
    Each row is brought to size 1 before the float32 product with the keys and back
    after it, so that gradients far below float32's range keep their precision.
    """
    size = np.abs(product).max(axis=-1)[..., np.newaxis]
    unit = np.divide(product, size, out=np.zeros_like(product), where=size > 0.0)
    gradient = (unit.astype(np.float32) @ keys).astype(np.float64)
    norm = np.sqrt((gradient * gradient).sum(axis=-1))
    result: Array = norm * size[..., 0] / rows.divisor
    return result
