"""Exact expectations over an attention row, averaged over the query.

In: d_k, the number of keys, and the factor on q·k (1/divisor for entries of variance
1).  Out: expectations of the quantities in `ROW_NAMES`, with errors.

Gaussian keys: given q, scores are normal with a standard deviation proportional to |q|.
Expectations as functions of that standard deviation are interpolated by Chebyshev
polynomials on panels, once per panel and number of keys, and averaged over |q|.

Rademacher queries and keys: q·k = 2B - d with B binomial, whatever q is, and the scores
of a row are independent.  Expectations over a score in `row_integrals` become sums over
the values of q·k.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from montecarlo.theory.row_integrals import (
    HIGHEST,
    LOG_T,
    LOWEST,
    MOST_LOG_KEYS,
    ROUNDING,
    STEP,
    STEP_T,
    WIDEST_GAP,
    Array,
    Expectations,
    LargestProfile,
    Profile,
    gaussian_profile,
    integrate_largest,
    integrate_row,
    join_largest,
    largest_profile,
    legendre,
    log_complement,
)

#: Panels of the standard deviation s.  Panel 0 is from 0 to FIRST_EDGE, interpolated in
#: s, in which the largest weight is linear there.  Panel i > 0 starts at FIRST_EDGE
#: 2**((i-1)/PER_OCTAVE) and is interpolated in ln s: expectations are analytic for
#: |Im ln s| < pi/4.
FIRST_EDGE, PER_OCTAVE = 0.25, 2
#: Chebyshev points of a panel.
POINTS = 12
#: |q| differs from sqrt(d_k) by more than this with probability 1e-15.
CHI_REACH = 8.0
#: Gauss-Legendre points in |q| per panel, and the fewer ones that give the error.
NORM_POINTS, FEWER_NORM_POINTS = 56, 40


@lru_cache(maxsize=1024)
def expect_gaussian_query(d_k: int, n_keys: float, scale: float) -> Expectations:
    """Return expectations over a row with standard normal queries and keys.

    They are those of the six quantities in `ROW_NAMES`, averaged over the query: given
    q, the scores are N(0, (scale |q|)²).

    Parameters
    ----------
    d_k : int
    n_keys : float
        Number of scores in the row, at least 2; may be fractional.
    scale : float
        Factor on q·k; positive.

    Returns
    -------
    Expectations
        Shape (6,).  The error is that of the panels plus the change with fewer values
        of |q|.

    Notes
    -----
    Gauss-Legendre quadrature in |q|, which has the chi distribution with d_k degrees of
    freedom, on each panel.  As a function of the quantile level of |q|, the integrand
    would not be smooth at the ends.
    """
    fine, errors = _average_over_query(d_k, n_keys, scale, NORM_POINTS)
    coarse, _ = _average_over_query(d_k, n_keys, scale, FEWER_NORM_POINTS)
    return Expectations(fine, errors + np.abs(fine - coarse))


def _average_over_query(
    d_k: int, n_keys: float, scale: float, n_points: int
) -> tuple[Array, Array]:
    """Return (row expectations averaged over |q| ~ chi(d_k), their errors).

    Parameters are those of `expect_gaussian_query`, and ``n_points``, the number of
    quadrature points per panel.  Values and errors have shape (6,), in the order of
    `ROW_NAMES`.  The errors are those of `interpolate_panel`.
    """
    low = max(0.0, math.sqrt(d_k) - CHI_REACH) * scale
    high = (math.sqrt(d_k) + CHI_REACH) * scale
    total, errors, mass = np.zeros(6), np.zeros(6), 0.0
    for index in range(_panel_index(low), _panel_index(high) + 1):
        start, stop = panel_edges(index)
        piece = max(start, low), min(stop, high)
        s, weight = weigh_lengths(d_k, scale, piece, n_points)
        coefficients, missed = interpolate_panel(index, n_keys)
        x = _panel_coordinate(s, index)
        total += np.polynomial.chebyshev.chebval(x, coefficients) @ weight
        errors += missed * weight.sum()
        mass += weight.sum()
    return total / mass, errors / mass


@lru_cache(maxsize=4096)
def weigh_lengths(
    d_k: int, scale: float, interval: tuple[float, float], n_points: int
) -> tuple[Array, Array]:
    """Return nodes and weights of a quadrature over the length of a query.

    The length |q| has the chi distribution with d_k degrees of freedom; the rule is
    Gauss-Legendre on one interval.

    Parameters
    ----------
    d_k : int
    scale : float
        A node is a standard deviation s = scale |q|.
    interval : (float, float)
        Range of s.
    n_points : int
        Number of nodes.

    Returns
    -------
    s, weights : ndarray, shape (n_points,)
        The weights contain the chi density up to a constant factor that is the same for
        all intervals: divide by the sum of all weights.
    """
    centre, (start, stop) = math.sqrt(d_k), interval
    nodes, weights = legendre(n_points)
    s = start + (stop - start) * nodes
    length = s / scale
    log_density = (d_k - 1) * np.log(length / centre) - 0.5 * (length**2 - d_k)
    return s, (stop - start) * weights * np.exp(log_density)


def chebyshev_coefficients(values: Array) -> Array:
    """Return the Chebyshev coefficients of the polynomial through given values.

    Parameters
    ----------
    values : ndarray, shape (n_points, ...)
        At the points ``numpy.polynomial.chebyshev.chebpts1(n_points)``.

    Returns
    -------
    ndarray, shape (n_points, ...)
    """
    n_points = len(values)
    x = np.polynomial.chebyshev.chebpts1(n_points)
    basis = np.polynomial.chebyshev.chebvander(x, n_points - 1) * (2.0 / n_points)
    basis[:, 0] *= 0.5
    return basis.T @ values


def panel_edges(index: int) -> tuple[float, float]:
    """Return the smallest and the largest standard deviation of a panel.

    Panels divide the range of standard deviations of scores.  Panel 0 begins at 0.
    Further panels begin at `FIRST_EDGE`, and each covers a factor of 2**(1/PER_OCTAVE).
    """
    high = FIRST_EDGE * 2.0 ** (index / PER_OCTAVE)
    low = FIRST_EDGE * 2.0 ** ((index - 1) / PER_OCTAVE) if index > 0 else 0.0
    return low, high


def _panel_index(std: float) -> int:
    """Return the index of the panel that contains a standard deviation of scores.

    An edge between two panels belongs to the lower one.
    """
    if std <= FIRST_EDGE:
        return 0
    return math.ceil(PER_OCTAVE * math.log2(std / FIRST_EDGE))


def _panel_coordinate(std: Array, index: int) -> Array:
    """Return the coordinates in [-1, 1] of standard deviations in a panel, elementwise.

    They are linear in ln std, or in std itself for panel 0.
    """
    low, high = panel_edges(index)
    if index == 0:
        return 2.0 * std / high - 1.0
    return 2.0 * np.log(std / low) / math.log(high / low) - 1.0


def _panel_nodes(index: int) -> Array:
    """Return the standard deviations of a panel at its Chebyshev points.

    `_panel_coordinate` maps them to these points.  The shape is (POINTS,).
    """
    x = np.polynomial.chebyshev.chebpts1(POINTS)
    low, high = panel_edges(index)
    if index == 0:
        return high * 0.5 * (x + 1.0)
    return low * np.exp(0.5 * (x + 1.0) * math.log(high / low))


@lru_cache(maxsize=64)
def _panel_profiles(index: int) -> tuple[Profile, LargestProfile]:
    """Return the profiles of scores at the nodes of a panel: (all keys, the largest).

    They do not depend on the number of keys, so each panel is computed once.
    """
    stds = _panel_nodes(index)
    return gaussian_profile(stds), largest_profile(stds)


def forget_profiles() -> None:
    """Clear the cache of `_panel_profiles`, which takes 200 MB after a report."""
    _panel_profiles.cache_clear()


@lru_cache(maxsize=4096)
def interpolate_panel(index: int, n_keys: float) -> tuple[Array, Array]:
    """Return row expectations as polynomials in the standard deviation of scores.

    The polynomials interpolate the expectations of `ROW_NAMES` on one panel.

    Parameters
    ----------
    index : int
        Index of the panel.
    n_keys : float

    Returns
    -------
    coefficients : ndarray, shape (POINTS, 6)
        Of Chebyshev polynomials in `_panel_coordinate`.
    errors : ndarray, shape (6,)
        The largest error at the nodes, plus the interpolation error, which is estimated
        by the absolute sum of the last two coefficients.
    """
    row, largest = _panel_profiles(index)
    at_nodes = join_largest(
        integrate_row(row, n_keys), integrate_largest(largest, n_keys)
    )
    coefficients = chebyshev_coefficients(at_nodes.values)
    missing = np.abs(coefficients[-2:]).sum(axis=0)
    return coefficients, at_nodes.errors.max(axis=0) + missing


#: Values of q·k less probable than this are neglected.
NEGLIGIBLE = 1e-24


@lru_cache(maxsize=1024)
def expect_rademacher_pairs(d_k: int, n_keys: int, scale: float) -> Expectations:
    """Return expectations over a row with Rademacher queries and keys.

    They are those of the six quantities in `ROW_NAMES`.

    Parameters
    ----------
    d_k, n_keys : int
    scale : float
        Factor on q·k for entries 1 and -1; positive.

    Returns
    -------
    Expectations
        Shape (6,).
    """
    values, probabilities = rademacher_scores(d_k)
    return join_largest(
        integrate_row(discrete_profile(scale * values, probabilities), n_keys),
        _rademacher_largest_weight(d_k, n_keys, scale),
    )


@lru_cache(maxsize=64)
def rademacher_scores(d_k: int) -> tuple[Array, Array]:
    """Return (possible values of q·k for entries 1 and -1, their probabilities).

    Both have the shape (n_values,).  Values ascend.  Very improbable ones are left out,
    see `NEGLIGIBLE`.

    Notes
    -----
    q·k is 2B - d_k with B from Binomial(d_k, 1/2).  Binomial coefficients are computed
    from their ratios, from the middle outwards, so that none overflows.
    """
    middle = d_k // 2
    up = np.arange(middle, d_k, dtype=np.float64)
    down = np.arange(middle, 0, -1, dtype=np.float64)
    rising = np.cumprod((d_k - up) / (up + 1.0))
    falling = np.cumprod(down / (d_k - down + 1.0))
    probability: Array = np.concatenate([falling[::-1], [1.0], rising])
    probability /= probability.sum()
    values: Array = 2.0 * np.arange(d_k + 1, dtype=np.float64) - d_k
    likely = probability > NEGLIGIBLE
    return values[likely], probability[likely]


def discrete_profile(scores: Array, probabilities: Array) -> Profile:
    """Return the `Profile` of a score that takes finitely many values.

    Parameters
    ----------
    scores : ndarray, shape (n_values,)
        Ascending; the last has the largest absolute value.
    probabilities : ndarray, shape (n_values,)

    Notes
    -----
    Each kernel is summed only over the u where it is not constant to 1e-19.
    """
    widest = float(scores[-1])
    low = LOWEST - MOST_LOG_KEYS - widest
    n_u = math.ceil((HIGHEST + widest - low) / STEP) + 1
    u: Array = low + STEP * np.arange(n_u, dtype=np.float64)
    complement, a1, a1_log, a2 = np.zeros((4, u.size))
    for x, probability in zip(scores, probabilities, strict=True):
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
def _rademacher_largest_profile(d_k: int, scale: float) -> tuple[Array, Array]:
    """Return (ln ψ, share) for the largest weight with Rademacher queries and keys.

    Both have the shape (n_values, n_t): for each possible value x of a score, which is
    ``scale`` times q·k, ascending, and for each t on the grid `LOG_T`.  ψ(t, x) is the
    sum of P(y) exp(-t exp(y - x)) over the possible values y <= x.  ``share`` is the
    part of the term y = x in this sum.
    """
    _, probability = rademacher_scores(d_k)
    n_gaps = min(probability.size, 1 + math.ceil(WIDEST_GAP / (2.0 * scale)))
    gaps = 2.0 * scale * np.arange(n_gaps)
    lost = -np.expm1(-np.exp(LOG_T - gaps[:, np.newaxis]))
    padded = np.concatenate([np.zeros(n_gaps - 1), probability])
    below = sliding_window_view(padded, n_gaps)[:, ::-1]  # P(x - gap)
    above = np.concatenate([np.cumsum(probability[:0:-1])[::-1], [0.0]])
    # Not a BLAS product: its last bit would depend on the number of threads.
    product = np.einsum("xz,zt->xt", below, lost)
    log_psi = log_complement(above[:, np.newaxis] + product)
    share: Array = probability[:, np.newaxis] * np.exp(-np.exp(LOG_T) - log_psi)
    share = np.minimum(share, 1.0 - 1e-16)  # 1 for the lowest value
    return log_psi, share


def _rademacher_largest_weight(d_k: int, n_keys: int, scale: float) -> Expectations:
    """Return the expected largest weight of a row, with its error; shape (1,).

    Queries and keys are Rademacher.  Parameters are those of `expect_rademacher_pairs`.

    Notes
    -----
    Several scores may share the largest value x.  With ψ' = ψ without the term y = x,
    ψ^n - ψ'^n is the expectation of exp(-t Σ exp(x_i - x)) over rows with maximum x::

        E p_max = Σ over x ∫ t (ψ^n - ψ'^n) du,  t = exp u
    """
    log_psi, share = _rademacher_largest_profile(d_k, scale)
    terms = -np.exp(n_keys * log_psi + LOG_T) * np.expm1(n_keys * np.log1p(-share))
    by_t = terms.sum(axis=0)
    fine, coarse = STEP_T * by_t.sum(), 2.0 * STEP_T * by_t[::2].sum()
    error = abs(fine - coarse) + ROUNDING * fine
    return Expectations(np.array([fine]), np.array([error]))
