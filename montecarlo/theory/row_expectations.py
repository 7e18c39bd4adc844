"""Expectations over a row of attention: over the scores of a row and over the query.

In: d_k, number of keys, and what |q|, or q·k, is to be multiplied by.  Out:
expectations of `ROW_NAMES` with errors.  For Gaussian keys, expectations as functions
of the standard deviation of a row's scores are interpolated once per panel and number
of keys, and averaged over |q|.  For Rademacher queries and keys q·k = 2B - d, B
binomial: given q the scores of a row are independent and their distribution does not
depend on q, so that the integrals of `row_integrals` become sums over values of q·k.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from montecarlo.theory.row_integrals import (
    HIGHEST,
    LOWEST,
    LOWEST_T,
    MOST_LOG_KEYS,
    ROUNDING,
    STEP,
    STEP_T,
    WIDEST_GAP,
    Array,
    Expectations,
    LargestProfile,
    Profile,
    expect_gaussian_row,
    gaussian_profile,
    integrate_largest,
    integrate_row,
    join_largest,
    largest_profile,
    legendre,
    log_complement,
)

#: Panel 0 is 0 to FIRST_EDGE, as a function of s (the largest weight is
#: linear there); panel i > 0 is from FIRST_EDGE 2**((i-1)/PER_OCTAVE) on, as a function
#: of ln s, which is analytic for |Im ln s| < pi/4.
FIRST_EDGE, PER_OCTAVE = 0.25, 2
#: Chebyshev points of a panel.
POINTS = 12
#: |q| is within this of sqrt(d_k) but for a probability of 1e-15.
CHI_REACH = 8.0
#: Gauss-Legendre points of the part of |q| within a panel, and those of the check.
LENGTHS, FEWER_LENGTHS = 56, 40


@lru_cache(maxsize=1024)
def expect_fixed_length(d_k: int, n_keys: float, scale: float) -> Expectations:
    """Return the expectations over a row where every entry of q is 1 or -1.

    Parameters
    ----------
    d_k, n_keys : int
    scale : float
        Standard deviation of a divided score over |q|, where |q| is sqrt(d_k).

    Returns
    -------
    Expectations
        Shape (6,).
    """
    return expect_gaussian_row(math.sqrt(d_k) * scale, n_keys)


@lru_cache(maxsize=1024)
def expect_gaussian_length(d_k: int, n_keys: float, scale: float) -> Expectations:
    """Return the expectations over a row and a query of standard normal entries.

    Parameters
    ----------
    d_k, n_keys : int
    scale : float
        Standard deviation of a divided score over |q|.

    Returns
    -------
    Expectations
        Shape (6,).  The error adds those of the panels and the difference from fewer
        points in |q|.

    Notes
    -----
    Gauss-Legendre in |q| ~ chi_d itself, cut where the panels meet: in the quantile of
    |q| the integrand has no derivative at the ends.
    """
    fine, errors = _average(d_k, n_keys, scale, LENGTHS)
    coarse, _ = _average(d_k, n_keys, scale, FEWER_LENGTHS)
    return Expectations(fine, errors + np.abs(fine - coarse))


def _average(
    d_k: int, n_keys: float, scale: float, n_points: int
) -> tuple[Array, Array]:
    """Average the panels over |q|; also the average of their errors."""
    low = max(0.0, math.sqrt(d_k) - CHI_REACH) * scale
    high = (math.sqrt(d_k) + CHI_REACH) * scale
    total, errors, mass = np.zeros(6), np.zeros(6), 0.0
    for index in range(_panel_of(low), _panel_of(high) + 1):
        start, stop = edges(index)
        piece = max(start, low), min(stop, high)
        s, weight = weigh_lengths(d_k, scale, piece, n_points)
        coefficients, missed = make_panel(index, n_keys)
        x = _coordinate(s, index)
        total += np.polynomial.chebyshev.chebval(x, coefficients) @ weight
        errors += missed * weight.sum()
        mass += weight.sum()
    return total / mass, errors / mass


@lru_cache(maxsize=4096)
def weigh_lengths(
    d_k: int, scale: float, piece: tuple[float, float], n_points: int
) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes between two standard deviations, and their weights.

    The weights hold the density of |q| ~ chi_d over its value at the mode, or near it
    for d = 1.
    """
    centre, (start, stop) = math.sqrt(d_k), piece
    nodes, weights = legendre(n_points)
    s = start + (stop - start) * nodes
    length = s / scale
    log_density = (d_k - 1) * np.log(length / centre) - 0.5 * (length**2 - d_k)
    return s, (stop - start) * weights * np.exp(log_density)


def interpolate(values: Array) -> Array:
    """Return Chebyshev coefficients of what has these values at `chebpts1`.

    ``values`` has the points along its first axis, and so have the coefficients.
    """
    n_points = len(values)
    x = np.polynomial.chebyshev.chebpts1(n_points)
    basis = np.polynomial.chebyshev.chebvander(x, n_points - 1) * (2.0 / n_points)
    basis[:, 0] *= 0.5
    coefficients: Array = basis.T @ values
    return coefficients


def edges(index: int) -> tuple[float, float]:
    """Return the standard deviations between which a panel holds."""
    high = FIRST_EDGE * 2.0 ** (index / PER_OCTAVE)
    low = FIRST_EDGE * 2.0 ** ((index - 1) / PER_OCTAVE) if index > 0 else 0.0
    return low, high


def _panel_of(std: float) -> int:
    """Return the index of the panel that a standard deviation is in."""
    if std <= FIRST_EDGE:
        return 0
    return math.ceil(PER_OCTAVE * math.log2(std / FIRST_EDGE))


def _coordinate(std: Array, index: int) -> Array:
    """Map a panel to the interval from -1 to 1."""
    low, high = edges(index)
    if index == 0:
        return 2.0 * std / high - 1.0
    return 2.0 * np.log(std / low) / math.log(high / low) - 1.0


def _nodes(index: int) -> Array:
    """Return the standard deviations that the Chebyshev points of a panel stand for."""
    x = np.polynomial.chebyshev.chebpts1(POINTS)
    low, high = edges(index)
    if index == 0:
        return high * 0.5 * (x + 1.0)
    return low * np.exp(0.5 * (x + 1.0) * math.log(high / low))


@lru_cache(maxsize=64)
def _profiles(index: int) -> tuple[Profile, LargestProfile]:
    """Return what all numbers of keys share."""
    stds = _nodes(index)
    return gaussian_profile(stds), largest_profile(stds)


def forget_profiles() -> None:
    """Free what all numbers of keys share: 200 MB after a report's references."""
    _profiles.cache_clear()


@lru_cache(maxsize=4096)
def make_panel(index: int, n_keys: float) -> tuple[Array, Array]:
    """Interpolate the expectations over one range of standard deviations.

    Returns
    -------
    coefficients : ndarray, shape (POINTS, 6)
        Of Chebyshev polynomials.
    errors : ndarray, shape (6,)
        Of the values at the nodes, and of the interpolation.

    Notes
    -----
    The interpolation's error is taken from the last two Chebyshev coefficients.
    """
    row, largest = _profiles(index)
    at_nodes = join_largest(
        integrate_row(row, n_keys), integrate_largest(largest, n_keys)
    )
    coefficients = interpolate(at_nodes.values)
    missing = np.abs(coefficients[-2:]).sum(axis=0)
    return coefficients, at_nodes.errors.max(axis=0) + missing


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
    likely = probability > NEGLIGIBLE
    return values[likely], probability[likely]


@lru_cache(maxsize=16)
def _profile(d_k: int, scale: float) -> Profile:
    """Return the profile of q·k times a scale."""
    values, probabilities = score_distribution(d_k)
    return profile_of(scale * values, probabilities)


def profile_of(scores: Array, probabilities: Array) -> Profile:
    """Sum the kernels over the values of a score, each where it is not constant.

    Parameters
    ----------
    scores, probabilities : ndarray, shape (n_values,)
        Rising, and as likely with either sign.
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
