"""Exact expectations over an attention row of n independent scores.

In: expectations over a single score x of a few functions of w = exp(u + x), on a grid
of u (a `Profile`, and a `LargestProfile` for the largest weight).  Out: the
expectations of the quantities in `ROW_NAMES`, as one-dimensional integrals over u, with
numerical errors.  For scores N(0, s²) the profiles are computed here, for several s at
once.

In formulas p are the softmax weights, H their entropy in nats, Z the sum of exp(x) over
the row, J = diag(p) - p pᵀ the Jacobian of softmax, γ Euler's constant and φ(u) =
E exp(-w).  Where φ and Φ are the normal density and distribution, it is said.
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

#: The quantities on the last axis of `Expectations`: E ln Z, E H, E Σp², E tr J,
#: E ‖J‖_F² and E p_max.
ROW_NAMES = (
    *("log_partition", "entropy", "inverse_participation"),
    *("jacobian_trace", "jacobian_frobenius_squared", "weight_max"),
)

#: Smallest step in u.  The kernels are analytic for |Im u| < pi/2, so the error of the
#: trapezoidal rule is about exp(-pi²/step): 3e-29, and 5e-15 with twice the step.
STEP = 0.15
#: w exp(-w) is below 1e-19 at ln w = LOWEST and below 1e-21 at HIGHEST.
LOWEST, HIGHEST = -44.0, 4.0
#: A normal score is farther than this from its mean, in standard deviations, with
#: probability 1e-20.
REACH = 9.4
#: Relative rounding error of a sum of positive terms, and of the powers of phi.
ROUNDING = 1e-13


class Profile(NamedTuple):
    """Expectations over one score x of functions of w = exp(u + x), on a grid of u.

    Attributes
    ----------
    u : ndarray, shape (n_u,)
        Evenly spaced.
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
    """Expectations over an attention row and their numerical errors.

    Attributes
    ----------
    values, errors : ndarray, shape (..., 6)
        In the order of `ROW_NAMES`.
    """

    values: Array
    errors: Array


class Reference(NamedTuple):
    """An exact value with its numerical error.

    Attributes
    ----------
    value : float
    error : float
        Bound or estimate of the absolute error, from quadrature and rounding.
    """

    value: float
    error: float


def integrate_row(profile: Profile, n_keys: float) -> Expectations:
    """Return expectations of five quantities of a row of softmax of independent scores.

    They are those of `ROW_NAMES`, in its order, without the last, the largest weight.

    Parameters
    ----------
    profile : Profile
        Expectations over one score.
    n_keys : float
        Number of independent scores in the row, n.

    Returns
    -------
    Expectations
        Shape (..., 5).  The error is the change if the step is doubled, plus a relative
        error: the deviation of E Σp from 1, and rounding.

    Notes
    -----
    With 1/Z^k = ∫ t^(k-1) exp(-tZ) dt / Γ(k) and t = exp u, the expectation factorises
    over the scores.  Sums run over distinct keys, so that all terms are positive and
    small values keep their relative precision::

        E Σp              = n ∫ a1 φ^(n-1) du  = 1                  (self-check)
        E ln Z            = -γ - n ∫ u a1 φ^(n-1) du
        E H               = -n ∫ (a1_log + γ a1) φ^(n-1) du
        E Σp²             = n ∫ a2 φ^(n-1) du
        E tr J            = n(n-1) ∫ a1² φ^(n-2) du                 (Σ p_i p_j)
        E ‖J‖_F²          = n(n-1)/6 ∫ [2 a2² φ^(n-2)
                            + (n-2) a2 a1² φ^(n-3)] du

    φ is exp(log_phi).  The last is Σp² - 2Σp³ + (Σp²)² = 2 Σ p_i² p_j² + Σ p_i² p_j
    p_k, over distinct keys.  E H uses ∫ exp(-tZ) ln t dt = -(γ + ln Z)/Z and H = Σ p
    (ln Z - x).

    References
    ----------
    B. Derrida, Phys. Rev. B 24 (1981) 2613, uses this integral for the random energy
    model.
    """
    return compare_steps(
        _trapezoid_integrals(profile, n_keys, 1),
        _trapezoid_integrals(profile, n_keys, 2),
    )


def compare_steps(fine: Array, coarse: Array) -> Expectations:
    """Return integrals as expectations, with errors from a grid of twice the step.

    Parameters
    ----------
    fine, coarse : ndarray, shape (..., 1 + n_quantities)
        Integrals with one step, and with twice that step.  The first of them is E Σp,
        which is 1 apart from its error.

    Returns
    -------
    Expectations
        Shape (..., n_quantities): the other integrals of ``fine``.  The error is the
        difference of both grids, plus a relative error: the deviation of E Σp from 1,
        and rounding.
    """
    values, total = fine[..., 1:], fine[..., :1]
    errors = np.abs(values - coarse[..., 1:])
    errors = errors + (np.abs(total - 1.0) + ROUNDING) * np.abs(values)
    return Expectations(values, errors)


def _trapezoid_integrals(profile: Profile, n_keys: float, stride: int) -> Array:
    """Return the six integrals of `integrate_row`, shape (..., 6).

    The first is E Σp.  The others are in the order of `ROW_NAMES`, without the largest
    weight.  The trapezoidal rule uses every ``stride``-th point of u.
    """
    u, log_phi, a1, a1_log, a2 = (part[..., ::stride] for part in profile)
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
    """Return ln(1 - c) elementwise, for c in ``complement``; finite even at c = 1."""
    return np.log1p(-np.minimum(complement, 1.0 - 1e-16))


#: Grid of ln t, and its step.  Up to n = 2**20, the part of the integral below exp(-40)
#: is less than 5e-12 times 1/n, the least possible largest weight.
STEP_T = 0.2
N_T = round((HIGHEST + 40.0) / STEP_T) + 1
LOG_T: Array = -40.0 + STEP_T * np.arange(N_T, dtype=np.float64)
#: Step of the largest score in standard deviations.  The largest score has width
#: 1/sqrt(2 ln n), and twice this step, which gives the errors, must resolve it for
#: 2**20 keys.
STEP_G = 0.04
#: Gauss-Legendre points of the gap between another score and the largest one.  With 36
#: or 200 of them no value changes by more than 1e-13, so the errors omit this.
GAP_POINTS = 48
#: Scores farther than this below the largest are neglected: exp(-40) of its weight.
WIDEST_GAP = 40.0
#: Density of the largest score below which it is neglected.
NEGLIGIBLE = 1e-18


class LargestProfile(NamedTuple):
    """Expectations over one score x, if it is below s g, the largest score of the row.

    Attributes
    ----------
    g : ndarray, shape (n_g,)
        The largest score, in standard deviations s.
    log_psi : ndarray, shape (n_s, n_g, n_t)
        ln ψ(t, g) for t on the grid `LOG_T`, with ψ = E [exp(-t exp(x - s g)); x < s g]
        for x from N(0, s²).
    log_below : ndarray, shape (n_g,)
        ln P(x < s g), which is ln ψ at t = 0.
    """

    g: Array
    log_psi: Array
    log_below: Array


def largest_profile(stds: Array) -> LargestProfile:
    """Return the `LargestProfile` of N(0, s²) scores for each s in ``stds``.

    Notes
    -----
    1 - ψ = (1 - Φ(g)) + ∫ φ(g - z/s) (1 - exp(-t exp(-z))) dz/s over gaps z > 0, with Φ
    and φ the normal distribution and density.  The density depends on (g, z) and the
    other factor on (z, t): the integral is a matrix product.
    """
    ends = round(REACH / STEP_G)
    g: Array = STEP_G * np.arange(-ends, ends + 1, dtype=np.float64)
    nodes, weights = legendre(GAP_POINTS)
    above = scipy.special.ndtr(-g)
    log_psi = np.empty((stds.size, g.size, LOG_T.size))
    for i, std in enumerate(stds):
        widest = np.minimum(WIDEST_GAP, 2.0 * REACH * std)
        z, dz = widest * nodes, widest * weights / std
        y = g[:, np.newaxis] - z / std
        density = np.exp(-0.5 * y * y) * (dz / math.sqrt(2.0 * math.pi))
        lost = -np.expm1(-np.exp(LOG_T - z[:, np.newaxis]))
        # Not a BLAS product: its last bit would depend on the number of threads.
        product = np.einsum("gz,zt->gt", density, lost)
        log_psi[i] = log_complement(above[:, np.newaxis] + product)
    return LargestProfile(g, log_psi, log_complement(above))


def integrate_largest(profile: LargestProfile, n_keys: float) -> Expectations:
    """Return the expected largest weight of a row of n = ``n_keys`` scores.

    The result has one value for each standard deviation s of the scores.

    Returns
    -------
    Expectations
        Shape (n_s, 1).  The error is the change if both steps are doubled.

    Notes
    -----
    p_max = 1/(1 + S), where S is the sum of exp(x - s g) over the n - 1 scores x below
    the largest, s g.  With 1/(1 + S) = ∫ exp(-t (1 + S)) dt, t = exp u and φ the normal
    density::

        E p_max = n ∫ φ(g) ∫ t exp(-t) ψ(t, g)^(n-1) du dg
    """
    n = float(n_keys)
    log_density = math.log(n / math.sqrt(2.0 * math.pi)) - 0.5 * profile.g * profile.g
    log_distribution = log_density + (n - 1.0) * profile.log_below
    likely = np.flatnonzero(log_distribution > math.log(NEGLIGIBLE))
    # Drop an even number of points in front, so that the coarse grid keeps its points.
    part = slice(likely[0] // 2 * 2, likely[-1] + 1)
    log_rows = (n - 1.0) * profile.log_psi[:, part] + log_density[part, np.newaxis]
    inner = np.exp(log_rows) * np.exp(LOG_T - np.exp(LOG_T))
    fine = STEP_G * STEP_T * inner.sum(axis=(-2, -1))
    coarse = 4.0 * STEP_G * STEP_T * inner[:, ::2, ::2].sum(axis=(-2, -1))
    errors = np.abs(fine - coarse) + ROUNDING * fine
    return Expectations(fine[:, np.newaxis], errors[:, np.newaxis])


@lru_cache(maxsize=8)
def legendre(n_points: int) -> tuple[Array, Array]:
    """Return nodes and weights of Gauss-Legendre quadrature on [0, 1].

    Each has shape (n_points,).
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_points)
    return 0.5 * (nodes + 1.0), 0.5 * weights


#: Largest ln n: the lower end of the u grid allows for it.
MOST_LOG_KEYS = 14.0
#: Up to this s the normal density is narrower than the kernels, and the grid follows
#: it.
NARROW = 0.5
#: Step of that grid in standard deviations: the error of the trapezoidal rule is
#: exp(-2 pi²/step²).
NORMAL_STEP = 0.5
#: Points of the u grid per s.  Integrands have width s/sqrt(2 ln n).
POINTS_IN_S = 40


def expect_gaussian_row(std: float, n_keys: float) -> Expectations:
    """Return expectations over a row of n independent N(0, std²) scores.

    They are those of the six quantities in `ROW_NAMES`.

    Parameters
    ----------
    std : float
        Positive.
    n_keys : float
        n, at least 2.

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
    """Return the expectations of `integrate_row` and the largest weight, joined.

    Values and errors are each joined along the last axis, the largest weight last: the
    shapes (..., 5) and (..., 1) become (..., 6), in the order of `ROW_NAMES`.
    """
    return Expectations(
        np.concatenate([row.values, largest.values], axis=-1),
        np.concatenate([row.errors, largest.errors], axis=-1),
    )


def gaussian_profile(stds: Array, grid: tuple[Array, int] | None = None) -> Profile:
    """Return the `Profile` of N(0, s²) scores, for several s of similar size.

    Parameters
    ----------
    stds : ndarray, shape (n_s,)
        The s, positive; either all at most `NARROW` or all above it.
    grid : (ndarray, int), optional
        The grid of u and its stride, as from `score_grid`, perhaps shifted; default:
        that of ``score_grid(stds)``.

    Returns
    -------
    Profile
        Arrays of shape (n_s, n_u), on a common grid of u.
    """
    u, stride = score_grid(stds) if grid is None else grid
    complement, a1, a1_log, a2 = gaussian_means(PROFILE_FACTORS, stds, u, stride)
    return Profile(u, log_complement(complement), a1, a1_log, a2)


def score_grid(stds: Array, bias: float = 0.0) -> tuple[Array, int]:
    """Return an evenly spaced grid of u for integrals over N(0, s²) scores.

    One of the scores may have another mean than 0.

    Parameters
    ----------
    stds : ndarray, shape (n_s,)
        The s; the grid suits all of them.
    bias : float
        The other mean.

    Returns
    -------
    u : ndarray, shape (n_u,)
    stride : int
        The step of u, as a multiple of `STEP`.
    """
    widest = float(stds.max())
    stride = max(1, int(float(stds.min()) / (POINTS_IN_S * STEP)))
    low = LOWEST - MOST_LOG_KEYS - REACH * widest - max(bias, 0.0)
    high = HIGHEST + REACH * widest - min(bias, 0.0)
    n_u = math.ceil((high - low) / (stride * STEP)) + 1
    u: Array = low + stride * STEP * np.arange(n_u, dtype=np.float64)
    return u, stride


#: (w, ln w) -> the factor f of a kernel f w exp(-w), elementwise.
KernelFactor = Callable[[Array, Array], Array]
#: The factors of a1, a1_log and a2 in a `Profile`.
PROFILE_FACTORS: tuple[KernelFactor, ...] = (
    lambda w, _: np.ones_like(w),
    lambda _, log_w: log_w,
    lambda w, _: w,
)


def gaussian_means(
    factors: Sequence[KernelFactor], stds: Array, u: Array, stride: int
) -> Array:
    """Return means of functions of w = exp(u + x) over one score x from N(0, s²).

    The functions are 1 - exp(-w) and, for each factor f, the kernel f(w, ln w) w
    exp(-w).

    Parameters
    ----------
    factors : sequence of callable
        The f; each grows no faster than a power of w and ln w.
    stds : ndarray, shape (n_s,)
        The s, as for `gaussian_profile`.
    u : ndarray, shape (n_u,)
    stride : int
        As from `score_grid`.

    Returns
    -------
    ndarray, shape (1 + n_factors, n_s, n_u)

    Notes
    -----
    For s above `NARROW` the mean of 1 - exp(-w) is integrated by parts: ∫ w exp(-w)
    Φ((u - ln w)/s) d ln w, Φ the normal distribution.
    """
    if float(stds.max()) <= NARROW:
        log_w, weight = _log_w_nodes(stds, u)
        w = np.exp(log_w)
        a1 = w * np.exp(-w)
        functions = [-np.expm1(-w), *(a1 * factor(w, log_w) for factor in factors)]
        return np.stack([np.einsum("sug,g->su", one, weight) for one in functions])
    n_w = round((HIGHEST - LOWEST) / STEP) + 1
    log_w = LOWEST + STEP * np.arange(n_w, dtype=np.float64)
    w = np.exp(log_w)
    a1 = STEP * w * np.exp(-w)
    kernels = [a1, *(a1 * factor(w, log_w) for factor in factors)]
    # All u - ln w, which lie on one grid, as u has step ``stride`` · `STEP`.
    n_differences = stride * (u.size - 1) + n_w
    differences = u[0] - HIGHEST + STEP * np.arange(n_differences)
    means = np.empty((len(kernels), stds.size, u.size))
    for i, std in enumerate(stds):
        z = differences / std
        density = np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * std)
        below = scipy.special.ndtr(z)
        for j, kernel in enumerate(kernels):
            values = density if j else below
            windows = sliding_window_view(values, n_w)[::stride]
            # Not a BLAS product: its last bit would depend on the number of threads.
            means[j, i] = np.einsum("uw,w->u", windows, kernel[::-1])
    return means


def _log_w_nodes(stds: Array, u: Array) -> tuple[Array, Array]:
    """Return (nodes of ln w = u + s g for a standard normal g, their probabilities).

    The shapes are (n_s, n_u, n_g) and (n_g,).  Nodes are evenly spaced in g.  It is for
    s up to `NARROW`.
    """
    ends = round(REACH / NORMAL_STEP)
    g = NORMAL_STEP * np.arange(-ends, ends + 1)
    weight = np.exp(-0.5 * g * g)
    weight /= weight.sum()
    return u[:, np.newaxis] + stds[:, np.newaxis, np.newaxis] * g, weight
