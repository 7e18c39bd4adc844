"""The expected largest weight of a row of n independent N(0, s²) scores.

In: standard deviations of the scores.  Out: a `LargestProfile`, and with the number of
keys the expectation and its numerical error.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from montecarlo.theory.row_integrals import (
    HIGHEST,
    REACH,
    ROUNDING,
    Array,
    Expectations,
    log_complement,
)

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


@dataclass(frozen=True, slots=True)
class LargestProfile:
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
    above = ndtr(-g)
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
