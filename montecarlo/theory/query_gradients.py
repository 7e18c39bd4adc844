"""Exact mean squared norm of the gradient with respect to the query.

The gradient of v·softmax(K q/c) with respect to q is Kᵀ J v/c, J = diag(p) - p pᵀ the
Jacobian of softmax at K q/c and c the divisor.  In: the number of keys, d_k and c.
Out: E ‖Kᵀ J v‖², without the factor 1/c², for standard normal q, K and v.

>>> from montecarlo.theory import query_gradient_squared
>>> round(query_gradient_squared(128, d_k=64).value, 4)
1.2165
"""

import math
from functools import lru_cache

import numpy as np

from montecarlo.names import require_whole
from montecarlo.theory.exact_rows import MOST_KEYS, score_scale_of
from montecarlo.theory.row_expectations import (
    CHI_REACH,
    FEWER_NORM_POINTS,
    NORM_POINTS,
    expect_gaussian_query,
    weigh_lengths,
)
from montecarlo.theory.row_integrals import (
    PROFILE_FACTORS,
    ROUNDING,
    ROW_NAMES,
    Array,
    Reference,
    gaussian_means,
    log_complement,
    score_grid,
)

#: Denominators up to this are negligible in the integrals.
NEGLIGIBLE = 1e-290
_FROBENIUS_INDEX = ROW_NAMES.index("jacobian_frobenius_squared")


def query_gradient_squared(
    n_keys: int, *, d_k: int, divisor: str | float = "sqrt"
) -> Reference:
    """Return the mean squared norm of the query gradient, times the squared divisor.

    The gradient of v·softmax(K q/c) with respect to q is Kᵀ J v/c, with c the divisor
    and J the Jacobian of softmax.  The result is E ‖Kᵀ J v‖² for standard normal q, K
    and v.

    Parameters
    ----------
    n_keys : int
        Number of rows of K, from 2 to 2**20.
    d_k : int
    divisor : str or float
        c, as for `expected_row`.

    Returns
    -------
    Reference
        The numerical error has two parts: that of `expected_row` for ‖J‖_F², and the
        change with fewer values of |q| for ‖J z‖² (see below).

    Raises
    ------
    InputError
        If a number is out of range.

    Notes
    -----
    The expectation over v is tr(J K Kᵀ J).  Given q, K = z qᵀ/|q| + K': z are the
    scores divided by their standard deviation, and K' is normal in the d_k - 1
    directions orthogonal to q and independent of z.  J depends on z alone, so that K'
    K'ᵀ may be replaced by its mean, d_k - 1 times the identity::

        E ‖Kᵀ J v‖² = (d_k - 1) E ‖J‖_F² + E ‖J z‖²

    Examples
    --------
    >>> query_gradient_squared(128, d_k=64, divisor="none").value > 4.8
    True
    """
    n_keys = require_whole("n_keys", n_keys, 2, MOST_KEYS)
    scale, _ = score_scale_of(n_keys, None, d_k, divisor)
    row = expect_gaussian_query(d_k, n_keys, scale)
    fine, errors = _average_along_query(d_k, n_keys, scale, NORM_POINTS)
    coarse, _ = _average_along_query(d_k, n_keys, scale, FEWER_NORM_POINTS)
    return Reference(
        (d_k - 1) * float(row.values[_FROBENIUS_INDEX]) + fine,
        (d_k - 1) * float(row.errors[_FROBENIUS_INDEX]) + errors + abs(fine - coarse),
    )


@lru_cache(maxsize=1024)
def _average_along_query(
    d_k: int, n_keys: int, scale: float, n_points: int
) -> tuple[float, float]:
    """Return (E ‖J z‖² averaged over the length of the query, its error).

    It is `expect_along_query` for scores N(0, (scale |q|)²), averaged over |q| ~
    chi(d_k) at ``n_points`` quadrature points.
    """
    centre = math.sqrt(d_k)
    interval = max(0.0, centre - CHI_REACH) * scale, (centre + CHI_REACH) * scale
    stds, weight = weigh_lengths(d_k, scale, interval, n_points)
    references = [expect_along_query(float(std), n_keys) for std in stds]
    value, error = weight @ references / weight.sum()
    return float(value), float(error)


def expect_along_query(std: float, n_keys: float) -> Reference:
    """Return E ‖J z‖², the mean squared derivative of the weights by the scale.

    The n scores are s z with z standard normal, and J is the Jacobian of softmax there.
    J z is the derivative of the weights softmax(s z) with respect to s.

    Parameters
    ----------
    std : float
        s, positive.
    n_keys : float
        n, at least 2.

    Returns
    -------
    Reference
        The error is the change if the step is doubled, plus rounding.

    Notes
    -----
    As in `row_integrals.integrate_row`, whose notation this uses.  m_k and v_k are the
    mean and the variance of ln w = u + s z weighted with w^k exp(-w); every term is
    positive::

        E ‖J z‖² = E Σ p_i² (z_i - Σ p_j z_j)²
                 = 1/(6 s²) ∫ n(n-1) [2 a2² v2 φ^(n-2)
                   + (n-2) a2 a1² (v2 + (m2 - m1)²) φ^(n-3)] du
    """
    stds, n = np.array([std]), float(n_keys)
    u, stride = score_grid(stds)
    factors = (
        *PROFILE_FACTORS,
        lambda w, log_w: w * log_w,
        lambda w, log_w: w * log_w * log_w,
    )
    means = gaussian_means(factors, stds, u, stride)[:, 0]
    complement, a1, a1_log, a2, a2_log, a2_squared = means
    log_phi = log_complement(complement)
    m1, m2 = _divide_or_zero(a1_log, a1), _divide_or_zero(a2_log, a2)
    v2 = _divide_or_zero(a2_squared, a2) - m2 * m2
    terms = 2.0 * a2 * a2 * v2 * np.exp((n - 2.0) * log_phi)
    if n > 2.0:
        rest = (n - 2.0) * np.exp((n - 3.0) * log_phi)
        terms += a2 * a1 * a1 * (v2 + (m2 - m1) ** 2) * rest
    terms *= n * (n - 1.0) / (6.0 * std * std)
    fine = float(terms.sum() * (u[1] - u[0]))
    coarse = float(terms[::2].sum() * (u[2] - u[0]))
    return Reference(fine, abs(fine - coarse) + ROUNDING * fine)


def _divide_or_zero(part: Array, whole: Array) -> Array:
    """Return part/whole elementwise, and 0 where ``whole`` is below `NEGLIGIBLE`."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > NEGLIGIBLE)
