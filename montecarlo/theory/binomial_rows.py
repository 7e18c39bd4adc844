"""Rows of n scores of Rademacher queries and keys: q·k = 2B - d, B binomial.

In: d_k, number of keys, and what q·k is to be multiplied by.  Out: expectations of
`ROW_NAMES` with errors.  Given q the scores of a row are independent and their
distribution does not depend on q, so that the integrals of `row_integrals` become sums
over the values of q·k; nothing is interpolated.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from montecarlo.theory.gaussian_rows import MOST_LOG_KEYS, join_largest
from montecarlo.theory.largest_weight import LOWEST_T, STEP_T, WIDEST_GAP
from montecarlo.theory.row_integrals import (
    HIGHEST,
    LOWEST,
    ROUNDING,
    STEP,
    Array,
    Expectations,
    Profile,
    integrate_row,
    log_complement,
)

#: Values of q·k less probable than this are left out.
NEGLIGIBLE = 1e-24


@lru_cache(maxsize=1024)
def expect_binomial(d_k: int, n_keys: int, scale: float) -> Expectations:
    """Return the expectations over a row of Rademacher queries and keys.

    Parameters
    ----------
    d_k, n_keys : int
    scale : float
        What q·k of entries 1 and -1 is multiplied by; positive.

    Returns
    -------
    Expectations
        Shape (6,).
    """
    return join_largest(
        integrate_row(_profile(d_k, scale), n_keys),
        _integrate_largest(d_k, n_keys, scale),
    )


@lru_cache(maxsize=64)
def score_distribution(d_k: int) -> tuple[Array, Array]:
    """Return the values of q·k, rising by 2, and their probabilities.

    Notes
    -----
    Binomial coefficients by their ratios, from the middle outwards.
    """
    middle = d_k // 2
    up = np.arange(middle, d_k, dtype=np.float64)
    down = np.arange(middle, 0, -1, dtype=np.float64)
    rising = np.cumprod((d_k - up) / (up + 1.0))
    falling = np.cumprod(down / (d_k - down + 1.0))
    probability: Array = np.concatenate([falling[::-1], [1.0], rising])
    probability /= probability.sum()
    values: Array = 2.0 * np.arange(d_k + 1, dtype=np.float64) - d_k
    kept = probability > NEGLIGIBLE
    return values[kept], probability[kept]


@lru_cache(maxsize=16)
def _profile(d_k: int, scale: float) -> Profile:
    """Sum the kernels over the values of a score, each where it is not constant."""
    values, probabilities = score_distribution(d_k)
    widest = scale * float(values[-1])
    low = LOWEST - MOST_LOG_KEYS - widest
    n_u = math.ceil((HIGHEST + widest - low) / STEP) + 1
    u: Array = low + STEP * np.arange(n_u, dtype=np.float64)
    complement, a1, a1_log, a2 = np.zeros((4, u.size))
    for x, probability in zip(scale * values, probabilities, strict=True):
        start, stop = np.searchsorted(u, (LOWEST - x, HIGHEST - x))
        log_w = u[start:stop] + x
        w = np.exp(log_w)
        kernel = probability * w * np.exp(-w)
        complement[start:stop] -= probability * np.expm1(-w)
        complement[stop:] += probability
        a1[start:stop] += kernel
        a1_log[start:stop] += kernel * log_w
        a2[start:stop] += kernel * w
    return Profile(u, log_complement(complement), a1, a1_log, a2)


@lru_cache(maxsize=16)
def _largest_profile(d_k: int, scale: float) -> tuple[Array, Array, Array]:
    """Return ln t, ln psi and the part of psi that has the largest value itself.

    psi(t, x) = Σ over values y <= x of P(y) exp(-t exp(y - x)); the values are the
    first axis, ln t the second.
    """
    _, probability = score_distribution(d_k)
    n_t = round((HIGHEST - LOWEST_T) / STEP_T) + 1
    u: Array = LOWEST_T + STEP_T * np.arange(n_t, dtype=np.float64)
    n_gaps = min(probability.size, 1 + math.ceil(WIDEST_GAP / (2.0 * scale)))
    gaps = 2.0 * scale * np.arange(n_gaps)
    lost = -np.expm1(-np.exp(u - gaps[:, np.newaxis]))
    padded = np.concatenate([np.zeros(n_gaps - 1), probability])
    below = sliding_window_view(padded, n_gaps)[:, ::-1]  # P(x - gap)
    above = np.concatenate([np.cumsum(probability[:0:-1])[::-1], [0.0]])
    # Not a BLAS product: its last bit would depend on the number of threads.
    product = np.einsum("xz,zt->xt", below, lost)
    log_psi = log_complement(above[:, np.newaxis] + product)
    share: Array = probability[:, np.newaxis] * np.exp(-np.exp(u) - log_psi)
    share = np.minimum(share, 1.0 - 1e-16)  # the least value is alone
    return u, log_psi, share


def _integrate_largest(d_k: int, n_keys: int, scale: float) -> Expectations:
    """Return the expected largest weight, shape (1,).

    Notes
    -----
    Several scores may share the largest value x.  With psi' = psi without x itself,
    psi^n - psi'^n is the expectation of exp(-t Σ exp(x_i - x)) where x is the largest::

        E p_max = Σ over x ∫ t (psi^n - psi'^n) du,  t = exp u
    """
    u, log_psi, share = _largest_profile(d_k, scale)
    terms = -np.exp(n_keys * log_psi + u) * np.expm1(n_keys * np.log1p(-share))
    by_t = terms.sum(axis=0)
    fine, coarse = STEP_T * by_t.sum(), 2.0 * STEP_T * by_t[::2].sum()
    error = abs(fine - coarse) + ROUNDING * fine
    return Expectations(np.array([fine]), np.array([error]))
