"""Exact expectations over a row of n independent scores, as integrals over one score.

In: a `Profile`, E of a few kernels of w = exp(u + x) for one score x, and for the
largest weight a `LargestProfile`.  Out: values and numerical errors of `ROW_NAMES`.
Both profiles are made here for N(0, s²) scores, for many s at once.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Order of the last axis of `Expectations`.
ROW_NAMES = (
    *("log_partition", "entropy", "inverse_participation"),
    *("jacobian_trace", "jacobian_frobenius_squared", "weight_max"),
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


class Profile(NamedTuple):
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


class Expectations(NamedTuple):
    """Expectations over a row and their numerical errors.

    Attributes
    ----------
    values, errors : ndarray, shape (..., 6)
        In the order of `ROW_NAMES`.
    """

    values: Array
    errors: Array


class Reference(NamedTuple):
    """An exact value.

    Attributes
    ----------
    value : float
    error : float
        How far numerics may have moved it.
    """

    value: float
    error: float


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


#: Grid of ln t: the tail below LOWEST_T is less than 5e-12 of 1/n up to n = 2**20.
LOWEST_T, STEP_T = -40.0, 0.2
#: Step of the largest score in standard deviations; its distribution has width 1/sqrt(2
#: ln n).  Errors come from twice the step, which has to do for 2**20 keys, too.
STEP_G = 0.04
#: Gauss-Legendre points between the largest score and one far below it: 200 of them
#: change no value by more than 1e-13 (36 neither), so the errors leave this out.
GAP_POINTS = 48
#: Gaps beyond this weigh nothing: exp(-40) of the largest.
WIDEST_GAP = 40.0
#: Parts of the largest score's distribution that are left out.
NEGLIGIBLE = 1e-18


class LargestProfile(NamedTuple):
    """What n - 1 scores below a largest one leave of exp(-t Z/w_1).

    Attributes
    ----------
    g : ndarray, shape (n_g,)
        The largest score in standard deviations.
    u : ndarray, shape (n_t,)
        ln t.
    log_psi : ndarray, shape (n_s, n_g, n_t)
        ln ∫ over x < s g of N(x; 0, s²) exp(-t exp(x - s g)) dx.
    log_below : ndarray, shape (n_g,)
        ln Φ(g), its limit at t = 0.
    """

    g: Array
    u: Array
    log_psi: Array
    log_below: Array


def largest_profile(stds: Array) -> LargestProfile:
    """Return the profile of a few s.

    Notes
    -----
    1 - psi = (1 - Φ(g)) + ∫ N(g - z/s) (1 - exp(-t exp(-z))) dz/s over gaps z > 0: the
    second factor does not depend on s, so that one product of matrices does it.
    """
    ends = round(REACH / STEP_G)
    g: Array = STEP_G * np.arange(-ends, ends + 1, dtype=np.float64)
    n_t = round((HIGHEST - LOWEST_T) / STEP_T) + 1
    u: Array = LOWEST_T + STEP_T * np.arange(n_t, dtype=np.float64)
    nodes, weights = legendre(GAP_POINTS)
    above = scipy.special.ndtr(-g)
    log_psi = np.empty((stds.size, g.size, u.size))
    for i, std in enumerate(stds):
        z = np.minimum(WIDEST_GAP, 2.0 * REACH * std) * nodes
        dz = np.minimum(WIDEST_GAP, 2.0 * REACH * std) * weights / std
        y = g[:, np.newaxis] - z / std
        density = np.exp(-0.5 * y * y) * (dz / math.sqrt(2.0 * math.pi))
        lost = -np.expm1(-np.exp(u - z[:, np.newaxis]))
        # Not a BLAS product: its last bit would depend on the number of threads.
        product = np.einsum("gz,zt->gt", density, lost)
        log_psi[i] = log_complement(above[:, np.newaxis] + product)
    return LargestProfile(g, u, log_psi, log_complement(above))


def integrate_largest(profile: LargestProfile, n_keys: float) -> Expectations:
    """Return the expected largest weight of a row of n scores.

    Returns
    -------
    Expectations
        Shape (n_s, 1).  The error is the difference from twice both steps.

    Notes
    -----
    p_max = 1/(1 + S), S the sum over the n - 1 scores below the largest, and
    1/(1 + S) = ∫ exp(-t (1 + S)) dt, so with t = exp u::

        E p_max = n ∫ N(g) ∫ t exp(-t) psi(t, g)^(n-1) du dg
    """
    n = float(n_keys)
    log_distribution = math.log(n / math.sqrt(2.0 * math.pi)) - 0.5 * profile.g**2
    log_distribution += (n - 1.0) * profile.log_below
    # An even number is dropped in front: the coarse grid is part of the fine one.
    first = int(np.argmax(log_distribution > math.log(NEGLIGIBLE))) // 2 * 2
    last = log_distribution.size - int(
        np.argmax(log_distribution[::-1] > math.log(NEGLIGIBLE))
    )
    g, log_psi = profile.g[first:last], profile.log_psi[:, first:last]
    log_density = math.log(n / math.sqrt(2.0 * math.pi)) - 0.5 * g * g
    inner = np.exp((n - 1.0) * log_psi + log_density[:, np.newaxis])
    kernel = np.exp(profile.u - np.exp(profile.u))
    inner *= kernel
    fine = STEP_G * STEP_T * inner.sum(axis=(-2, -1))
    coarse = 4.0 * STEP_G * STEP_T * inner[:, ::2, ::2].sum(axis=(-2, -1))
    errors = np.abs(fine - coarse) + ROUNDING * fine
    return Expectations(fine[:, np.newaxis], errors[:, np.newaxis])


@lru_cache(maxsize=8)
def legendre(n_points: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights for the interval from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n_points)
    return 0.5 * (nodes + 1.0), 0.5 * weights


#: ln n up to this: the lower end of the u grid is that far down.
MOST_LOG_KEYS = 14.0
#: Below this s the normal density is narrower than the kernels.
NARROW = 0.5
#: Step in standard deviations: the trapezoidal rule is off by exp(-2 pi²/step²).
NORMAL_STEP = 0.5
#: Points of the u grid in one s: features have width s over sqrt(2 ln n).
POINTS_IN_S = 40


def expect_gaussian_row(std: float, n_keys: float) -> Expectations:
    """Return the expectations over a row of n independent N(0, std²) scores.

    The standard deviation is positive, and there are at least two keys.

    Returns
    -------
    Expectations
        Shape (6,).
    """
    stds = np.array([std])
    both = join_largest(
        integrate_row(gaussian_profile(stds), n_keys),
        integrate_largest(largest_profile(stds), n_keys),
    )
    return Expectations(both.values[0], both.errors[0])


def join_largest(row: Expectations, largest: Expectations) -> Expectations:
    """Put the largest weight after the other quantities."""
    return Expectations(
        np.concatenate([row.values, largest.values], axis=-1),
        np.concatenate([row.errors, largest.errors], axis=-1),
    )


def gaussian_profile(stds: Array) -> Profile:
    """Return the profiles of scores N(0, s²) for a few neighbouring s.

    Parameters
    ----------
    stds : ndarray, shape (n_s,)
        Positive; all at most `NARROW` or none.

    Returns
    -------
    Profile
        Shape (n_s, n_u), on a grid that suits all of them.
    """
    u, stride = grid_of(stds)
    return profile_at(stds, u, stride)


def grid_of(stds: Array, bias: float = 0.0) -> tuple[Array, int]:
    """Return an even grid of u for scores N(0, s²), and for one N(bias, s²).

    Returns
    -------
    u : ndarray, shape (n_u,)
    stride : int
        Its step, in `STEP`.
    """
    widest = float(stds.max())
    stride = max(1, int(float(stds.min()) / (POINTS_IN_S * STEP)))
    low = LOWEST - MOST_LOG_KEYS - REACH * widest - max(bias, 0.0)
    high = HIGHEST + REACH * widest - min(bias, 0.0)
    n_u = math.ceil((high - low) / (stride * STEP)) + 1
    u: Array = low + stride * STEP * np.arange(n_u, dtype=np.float64)
    return u, stride


#: What multiplies w exp(-w) in what is averaged over one score, by w and ln w.
Factor = Callable[[Array, Array], Array]


def profile_at(stds: Array, u: Array, stride: int) -> Profile:
    """Return the profiles of scores N(0, s²) on a grid that `grid_of` has, or moved."""
    factors: tuple[Factor, ...]
    factors = (lambda w, _: np.ones_like(w), lambda _, log_w: log_w, lambda w, _: w)
    a1, a1_log, a2 = means_at(factors, stds, u, stride)
    return Profile(u, log_complement(_lost(stds, u, stride)), a1, a1_log, a2)


def means_at(factors: Sequence[Factor], stds: Array, u: Array, stride: int) -> Array:
    """Return the means of w exp(-w) times some factors over one score N(0, s²).

    Parameters
    ----------
    factors : sequence of callable
        Of w = exp(u + x) and ln w; of no more than a power of these.
    stds : ndarray, shape (n_s,)
        As for `gaussian_profile`.
    u : ndarray, shape (n_u,)
    stride : int
        As `grid_of` has them.

    Returns
    -------
    ndarray, shape (n_factors, n_s, n_u)
    """
    if float(stds.max()) <= NARROW:
        log_w, weight = _normal_grid(stds, u)
        w = np.exp(log_w)
        a1 = w * np.exp(-w)
        kernels = [a1 * factor(w, log_w) for factor in factors]
        return np.stack([np.einsum("sug,g->su", one, weight) for one in kernels])
    log_w = _kernel_grid()
    w = np.exp(log_w)
    a1 = STEP * w * np.exp(-w)
    kernels = [(a1 * factor(w, log_w))[::-1] for factor in factors]
    means = np.empty((len(kernels), stds.size, u.size))
    for i, std in enumerate(stds):
        z = _differences(float(std), u, stride)
        density = np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * std)
        densities = sliding_window_view(density, log_w.size)[::stride]
        for j, kernel in enumerate(kernels):
            # Not a BLAS product: its last bit would depend on the number of threads.
            means[j, i] = np.einsum("uw,w->u", densities, kernel)
    return means


def _lost(stds: Array, u: Array, stride: int) -> Array:
    """Return E (1 - exp(-w)) = ∫ w exp(-w) Φ((u - ln w)/s) d ln w, by parts."""
    if float(stds.max()) <= NARROW:
        log_w, weight = _normal_grid(stds, u)
        lost: Array = np.einsum("sug,g->su", -np.expm1(-np.exp(log_w)), weight)
        return lost
    log_w = _kernel_grid()
    w = np.exp(log_w)
    kernel = (STEP * w * np.exp(-w))[::-1]
    rows = []
    for std in stds:
        below = scipy.special.ndtr(_differences(float(std), u, stride))
        windows = sliding_window_view(below, log_w.size)[::stride]
        rows.append(np.einsum("uw,w->u", windows, kernel))
    return np.stack(rows)


def _normal_grid(stds: Array, u: Array) -> tuple[Array, Array]:
    """Return ln w on an even grid of the normal, and its weights: s small."""
    ends = round(REACH / NORMAL_STEP)
    g = NORMAL_STEP * np.arange(-ends, ends + 1)
    weight = np.exp(-0.5 * g * g)
    weight /= weight.sum()
    return u[:, np.newaxis] + stds[:, np.newaxis, np.newaxis] * g, weight


def _kernel_grid() -> Array:
    """Return an even grid of ln w on which the normal density is summed."""
    n_w = round((HIGHEST - LOWEST) / STEP) + 1
    return LOWEST + STEP * np.arange(n_w, dtype=np.float64)


def _differences(std: float, u: Array, stride: int) -> Array:
    """Return (u - ln w)/s: both grids have the same step, up to ``stride``."""
    n_z = stride * (u.size - 1) + _kernel_grid().size
    z: Array = (u[0] - HIGHEST + STEP * np.arange(n_z)) / std
    return z
