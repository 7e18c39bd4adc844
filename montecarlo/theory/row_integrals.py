"""Exact expectations over a row of n independent scores, from five functions of u.

In: a `Profile`, E of a few kernels of w = exp(u + x) for one score x.  Out: values and
numerical errors of `ROW_NAMES`.  Gaussian and binomial rows share this module.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Order of the last axis of `Expectations`.
ROW_NAMES = (
    "log_partition",
    "entropy",
    "inverse_participation",
    "jacobian_trace",
    "jacobian_frobenius_squared",
    "weight_max",
)

#: Step in u where nothing smooths the kernels: they are analytic for |Im u| < pi/2, so
#: the trapezoidal rule is off by about exp(-pi²/step), 3e-29; twice the step: 5e-15.
STEP = 0.15
#: w exp(-w) is below 1e-19 at ln w = LOWEST and below 1e-21 at HIGHEST.
LOWEST, HIGHEST = -44.0, 4.0
#: Standard deviations beyond which a score has probability 1e-20.
REACH = 9.4
#: Rounding of a sum of positive terms, and of the powers of phi, relative.
ROUNDING = 1e-13


@dataclass(frozen=True, slots=True)
class Profile:
    """Expectations over one score x, with w = exp(u + x), on an even grid of u.

    Attributes
    ----------
    u : ndarray, shape (n_u,)
    log_phi : ndarray, shape (..., n_u)
        ln E exp(-w).
    a1, a1_log, a2 : ndarray, shape (..., n_u)
        E w exp(-w), E w exp(-w) ln w and E w² exp(-w).
    """

    u: Array
    log_phi: Array
    a1: Array
    a1_log: Array
    a2: Array


@dataclass(frozen=True, slots=True)
class Expectations:
    """Expectations over a row and their numerical errors.

    Attributes
    ----------
    values, errors : ndarray, shape (..., 6)
        In the order of `ROW_NAMES`.
    """

    values: Array
    errors: Array


def integrate_row(profile: Profile, n_keys: float) -> Expectations:
    """Return the expectations over a row of n scores, all but the largest weight.

    Returns
    -------
    Expectations
        Shape (..., 5).  The error is the difference from twice the step, plus how far
        the weights are from summing to 1.

    Notes
    -----
    With Z the sum of the exponentials, 1/Z^k = ∫ t^(k-1) exp(-tZ) dt / Γ(k), and
    t = exp u, the scores separate.  Sums over different keys keep every term positive,
    so that small values keep their relative precision::

        E Σp              = n ∫ a1 φ^(n-1) du  = 1                  (self-check)
        E ln Z            = -γ - n ∫ u a1 φ^(n-1) du
        E H               = -n ∫ (a1_log + γ a1) φ^(n-1) du
        E Σp²             = n ∫ a2 φ^(n-1) du
        E tr J            = n(n-1) ∫ a1² φ^(n-2) du                 (Σ p_i p_j)
        E ‖J‖_F²          = n(n-1)/6 ∫ [2 a2² φ^(n-2)
                            + (n-2) a2 a1² φ^(n-3)] du

    The last is Σp² - 2Σp³ + (Σp²)² = 2 Σ p_i² p_j² + Σ p_i² p_j p_k, over different
    keys.  E H uses ∫ exp(-tZ) ln t dt = -(γ + ln Z)/Z; the entropy is Σ p (ln Z - x).

    References
    ----------
    The device is that of Derrida's random energy model, Phys. Rev. B 24 (1981) 2613.
    """
    fine = _sums(profile, n_keys, 1)
    coarse = _sums(profile, n_keys, 2)
    values, total = fine[..., 1:], fine[..., :1]
    errors = np.abs(values - coarse[..., 1:])
    errors = errors + (np.abs(total - 1.0) + ROUNDING) * np.abs(values)
    return Expectations(values, errors)


def _sums(profile: Profile, n_keys: float, stride: int) -> Array:
    """Return the six integrals of `integrate_row` on every ``stride``-th point."""
    u, log_phi = profile.u[::stride], profile.log_phi[..., ::stride]
    a1, a2 = profile.a1[..., ::stride], profile.a2[..., ::stride]
    a1_log = profile.a1_log[..., ::stride]
    n = float(n_keys)
    one_less = n * np.exp((n - 1.0) * log_phi)
    two_less = n * (n - 1.0) * np.exp((n - 2.0) * log_phi)
    frobenius = 2.0 * a2 * a2 * two_less
    if n_keys > 2:
        rest = n * (n - 1.0) * (n - 2.0) * np.exp((n - 3.0) * log_phi)
        frobenius += rest * a2 * a1 * a1
    step = u[1] - u[0]
    parts = (
        a1 * one_less,
        -u * a1 * one_less,
        -(a1_log + np.euler_gamma * a1) * one_less,
        a2 * one_less,
        a1 * a1 * two_less,
        frobenius / 6.0,
    )
    sums: Array = step * np.stack([part.sum(axis=-1) for part in parts], axis=-1)
    sums[..., 1] -= np.euler_gamma
    return sums


def log_complement(complement: Array) -> Array:
    """Return ln(1 - c), finite where c rounds to 1."""
    return np.log1p(-np.minimum(complement, 1.0 - 1e-16))
