"""The exact mean square of the gradient by the query, without its factor 1/c.

In: number of keys, d_k and a divisor c.  Out: E ‖Kᵀ J v‖² for v standard normal, where
K are standard normal keys and J is the Jacobian of the softmax of K q/c by its
argument; and its part along the query as a function of the scores' standard deviation.

>>> from montecarlo.theory import query_gradient_squared
>>> round(query_gradient_squared(128, d_k=64).value, 4)
1.2165
"""

import math
from functools import lru_cache

import numpy as np

from montecarlo.names import require_whole
from montecarlo.theory.exact_rows import MOST_KEYS, scales_of
from montecarlo.theory.row_expectations import (
    CHI_REACH,
    FEWER_LENGTHS,
    LENGTHS,
    expect_gaussian_length,
    weigh_lengths,
)
from montecarlo.theory.row_integrals import (
    ROUNDING,
    ROW_NAMES,
    Array,
    Reference,
    grid_of,
    means_at,
    profile_at,
)

#: Less than this is no part of an integral.
NOTHING = 1e-290
_FROBENIUS = ROW_NAMES.index("jacobian_frobenius_squared")


def query_gradient_squared(
    n_keys: int, *, d_k: int, divisor: str | float = "sqrt"
) -> Reference:
    """Return E ‖Kᵀ J v‖² over standard normal queries, keys and v.

    Parameters
    ----------
    n_keys : int
        Rows of K, 2 to 2**20.
    d_k : int
    divisor : str or float
        c: what scores are divided by before the softmax, as for `expected_row`.  The
        gradient by q itself is Kᵀ J v / c.

    Returns
    -------
    Reference
        With the error that `expected_row` states for ‖J‖_F², and that of fewer lengths
        of the query for the rest.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    E over v of ‖Kᵀ J v‖² is tr(J K Kᵀ J).  Given q, K = z qᵀ/|q| + K' with K' normal in
    the d_k - 1 directions that are orthogonal to q, and independent of z.  J depends on
    z alone, the scores in standard deviations, so that K' K'ᵀ may be replaced by its
    mean, d_k - 1 times the identity::

        E ‖Kᵀ J v‖² = (d_k - 1) E ‖J‖_F² + E ‖J z‖²

    Examples
    --------
    >>> query_gradient_squared(128, d_k=64, divisor="none").value > 4.8
    True
    """
    n_keys = require_whole("n_keys", n_keys, 2, MOST_KEYS)
    scale, _ = scales_of(n_keys, None, d_k, divisor)
    row = expect_gaussian_length(d_k, n_keys, scale)
    fine, errors = _along_query(d_k, n_keys, scale, LENGTHS)
    coarse, _ = _along_query(d_k, n_keys, scale, FEWER_LENGTHS)
    return Reference(
        (d_k - 1) * float(row.values[_FROBENIUS]) + fine,
        (d_k - 1) * float(row.errors[_FROBENIUS]) + errors + abs(fine - coarse),
    )


@lru_cache(maxsize=1024)
def _along_query(
    d_k: int, n_keys: int, scale: float, n_points: int
) -> tuple[float, float]:
    """Average `expect_along_query` and its error over |q| ~ chi_d."""
    centre = math.sqrt(d_k)
    piece = max(0.0, centre - CHI_REACH) * scale, (centre + CHI_REACH) * scale
    stds, weight = weigh_lengths(d_k, scale, piece, n_points)
    found = [expect_along_query(float(std), n_keys) for std in stds]
    value, error = weight @ [(one.value, one.error) for one in found] / weight.sum()
    return float(value), float(error)


def expect_along_query(std: float, n_keys: float) -> Reference:
    """Return E ‖J z‖² for z of n independent standard normals, J at the softmax of s z.

    It is also the mean square of the derivative of the weights by s.

    Parameters
    ----------
    std : float
        s, positive.
    n_keys : float
        n, at least 2.

    Returns
    -------
    Reference
        Its error is the difference from twice the step.

    Notes
    -----
    With the device of `row_integrals.integrate_row`, and the mean and the variance of
    ln w = u + s z under w^k exp(-w), m_k and v_k, every term is positive::

        E ‖J z‖² = E Σ p_i² (z_i - Σ p_j z_j)²
                 = 1/(6 s²) ∫ n(n-1) [2 a2² v2 φ^(n-2)
                   + (n-2) a2 a1² (v2 + (m2 - m1)²) φ^(n-3)] du
    """
    stds, n = np.array([std]), float(n_keys)
    u, stride = grid_of(stds)
    profile = profile_at(stds, u, stride)
    a1, a2 = profile.a1[0], profile.a2[0]
    a2_log, a2_squared = means_at(
        (lambda w, log_w: w * log_w, lambda w, log_w: w * log_w * log_w),
        stds,
        u,
        stride,
    )[:, 0]
    m1, m2 = _ratio(profile.a1_log[0], a1), _ratio(a2_log, a2)
    v2 = _ratio(a2_squared, a2) - m2 * m2
    log_phi = profile.log_phi[0]
    terms = 2.0 * a2 * a2 * v2 * np.exp((n - 2.0) * log_phi)
    if n > 2.0:
        rest = (n - 2.0) * np.exp((n - 3.0) * log_phi)
        terms += a2 * a1 * a1 * (v2 + (m2 - m1) ** 2) * rest
    terms *= n * (n - 1.0) / (6.0 * std * std)
    fine = float(terms.sum() * (u[1] - u[0]))
    coarse = float(terms[::2].sum() * (u[2] - u[0]))
    return Reference(fine, abs(fine - coarse) + ROUNDING * fine)


def _ratio(part: Array, whole: Array) -> Array:
    """Divide where something is left."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > NOTHING)
