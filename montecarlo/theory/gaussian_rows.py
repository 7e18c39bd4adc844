"""Rows of n independent N(0, s²) scores, for many s at once.

In: standard deviations of the scores.  Out: the `Profile` of each, and with the number
of keys the expectations of `ROW_NAMES`.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import ndtr

from montecarlo.theory.largest_weight import integrate_largest, largest_profile
from montecarlo.theory.row_integrals import (
    HIGHEST,
    LOWEST,
    REACH,
    STEP,
    Array,
    Expectations,
    Profile,
    integrate_row,
    log_complement,
)

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


def profile_at(stds: Array, u: Array, stride: int) -> Profile:
    """Return the profiles of scores N(0, s²) on a grid that `grid_of` has, or moved."""
    if float(stds.max()) <= NARROW:
        parts = _sum_over_normal(stds, u)
    else:
        parts = np.stack([_sum_over_kernel(float(s), u, stride) for s in stds], axis=1)
    complement, a1, a1_log, a2 = parts
    return Profile(u, log_complement(complement), a1, a1_log, a2)


def _sum_over_normal(stds: Array, u: Array) -> Array:
    """Sum the kernels over an even grid of the normal: s small."""
    ends = round(REACH / NORMAL_STEP)
    g = NORMAL_STEP * np.arange(-ends, ends + 1)
    weight = np.exp(-0.5 * g * g)
    weight /= weight.sum()
    log_w = u[:, np.newaxis] + stds[:, np.newaxis, np.newaxis] * g
    w = np.exp(log_w)
    a1 = w * np.exp(-w)
    kernels = (-np.expm1(-w), a1, a1 * log_w, a1 * w)
    return np.stack([np.einsum("sug,g->su", kernel, weight) for kernel in kernels])


def _sum_over_kernel(std: float, u: Array, stride: int) -> Array:
    """Sum the normal density over an even grid of the kernels: s not small.

    Notes
    -----
    1 - φ(u) = ∫ w exp(-w) Φ((u - ln w)/s) d ln w, by parts.  Both grids have the same
    step (up to ``stride``), so all differences u - ln w lie on one line.
    """
    n_w = round((HIGHEST - LOWEST) / STEP) + 1
    log_w = LOWEST + STEP * np.arange(n_w)
    w = np.exp(log_w)
    a1 = STEP * w * np.exp(-w)
    kernels = np.stack([a1, a1 * log_w, a1 * w])[:, ::-1]
    z = (u[0] - HIGHEST + STEP * np.arange(stride * (u.size - 1) + n_w)) / std
    density = np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * std)
    densities = sliding_window_view(density, n_w)[::stride]
    distributions = sliding_window_view(ndtr(z), n_w)[::stride]
    # Not a BLAS product: its last bit would depend on the number of threads.
    parts = [np.einsum("uw,w->u", densities, kernel) for kernel in kernels]
    return np.stack([np.einsum("uw,w->u", distributions, kernels[0]), *parts])
