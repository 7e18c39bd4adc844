"""Exact distribution of the largest softmax weight p_max of a row of Gaussian scores.

In: the number of keys, a weight t, and either the standard deviation s of the scores or
d_k and a factor on q·k.  Out: the share of rows with p_max >= t, and quantiles of
p_max, each with its numerical error.

Two methods are used.  For a single s, the Laplace transform of Σ exp(x - x_max) over
the other scores x is inverted by the Euler sum of Abate and Whitt, ORSA Journal on
Computing 7 (1995) 36.  For t >= 1/2 and an average over the query, a Fourier inversion
(Gil-Pelaez, Biometrika 38 (1951) 481) gives the expected number of weights >= t.  φ is
the standard normal density unless it is defined otherwise.

>>> round(share_for_gaussian_query(64, 128, scale=1.0, threshold=0.9).value, 6)
0.39481
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import scipy
from numpy.typing import NDArray

from montecarlo.theory.row_expectations import chebyshev_coefficients, weigh_lengths
from montecarlo.theory.row_integrals import (
    REACH,
    ROUNDING,
    Array,
    Profile,
    Reference,
    gaussian_profile,
    legendre,
)

#: A of Abate and Whitt's Euler sum: its discretisation error is exp(-A), and rounding
#: is multiplied by exp(A/2).
DISCRETISATION = 20.0
#: Largest factor on exp(-A).  For t >= 1/2 the sum inverts an expected number of
#: weights: the factor is the number of weights >= 1/(1 + 3r), r = (1 - t)/t <= 1, at
#: most 4.
DISCRETISATION_FACTOR = 4.0
#: Initial and largest number of terms of the sum; doubled until two sums agree.
FIRST_TERMS, MOST_TERMS = 24, 1536
#: The truncation error is less than this times the change from half the terms.  The
#: largest ratio that was found is 3, near the corner of the distribution at t = 1/2.
CONVERGENCE_FACTOR = 4.0
#: Partial sums are averaged over this many more terms, with binomial weights.
AVERAGED_TERMS = 12
#: Initial and smallest step of the largest score, in standard deviations.
FIRST_STEP, LEAST_STEP = 0.1, 0.003
#: Terms and steps are refined until the change is below this.  The error of a share
#: averaged over queries is about 5 LEBESGUE times as much, below 1e-6.
AGREED = 6e-8
#: Gauss-Legendre points per piece of the integral over gaps.  Over a piece the phase of
#: exp(-θ w) changes by at most PIECE_RADIANS, and the gap by at most PIECE_STDS
#: standard deviations.
PIECE_POINTS, PIECE_RADIANS, PIECE_STDS = 16, 12.0, 3.0
#: exp(-NEGLIGIBLE_EXPONENT) is neglected, and so is a probability of NEGLIGIBLE.
NEGLIGIBLE_EXPONENT, NEGLIGIBLE = 26.0, 1e-13
#: Largest rotation of θ exp(-s z) by the shifted contour of z, in radians.
ROTATION = 0.9
#: Panels of ln s per octave, Chebyshev points per panel, and the Lebesgue constant of
#: these: interpolation multiplies errors at the points by at most that.
PER_OCTAVE, POINTS, LEBESGUE = 2, 14, 2.65
#: From this panel on, s >= 0.354, the Fourier inversion is used where t >= 1/2.
FIRST_FOURIER_PANEL = -3
#: The period of the Fourier sum is PERIOD_STDS s + PERIOD_OFFSET; the offset allows for
#: ln n and ln t.  Its terms are cut off at exp(-FOURIER_CUTOFF).
PERIOD_STDS, PERIOD_OFFSET, FOURIER_CUTOFF = 40.0, 80.0, 48.0
#: Rounding error of the Fourier sum, per key.
FOURIER_ROUNDING = 1e-15
#: The average over |q| covers sqrt(d_k) ± CHI_REACH; the error includes the rest.
CHI_REACH = 5.5
#: Gauss-Legendre points in |q| per panel, and the fewer ones that give the error.
NORM_POINTS, FEWER_NORM_POINTS = 48, 36
#: Tolerance of quantiles, in ln(t/(1 - t)).
ROOT_TOLERANCE = 1e-9
MOST_ITERATIONS = 100
#: Quantiles closer to 1 than this are returned as 1.
ONE_TOLERANCE = 1e-12
#: Above 1/2 at most one weight of a row lies, so that from this t on P(p_max >= t) is
#: the expected number of weights >= t.
AT_MOST_ONE = 0.5
#: Largest step in ln(t/(1 - t)) of the root finder.
WIDEST_STEP = 2.0
#: Gauss-Laguerre points in |q|²/2, the fewer ones of the check, and the smallest d_k
#: for which they are tried.
LAGUERRE, FEWER_LAGUERRE, LAGUERRE_FROM = 12, 9, 8


def share_for_std(std: float, n_keys: int, threshold: float) -> Reference:
    """Return the share of rows whose largest weight reaches a threshold.

    The scores of a row are ``n_keys`` independent N(0, std²) numbers.  The share is
    from the inversion of a Laplace transform, clipped to 0 to 1.  Its terms and steps
    are refined until the share changes by less than `AGREED`, or the limits are
    reached.  It is exactly 1 for a ``threshold`` of at most 1/n_keys, and 0 if its
    upper bound is below `NEGLIGIBLE`; this bound is then the error.
    """
    if threshold * n_keys <= 1.0:
        return Reference(1.0, 0.0)
    bound = _share_bound(std, n_keys, threshold)
    if bound < NEGLIGIBLE:
        return Reference(0.0, bound)
    if n_keys == 2:  # p >= t where the scores are far enough apart
        apart = math.log(threshold / (1.0 - threshold)) / (math.sqrt(2.0) * std)
        return Reference(min(1.0, 2.0 * float(scipy.special.ndtr(-apart))), NEGLIGIBLE)
    terms, step = FIRST_TERMS, FIRST_STEP
    while True:
        others = (1.0 - threshold) / threshold
        value, by_terms, by_steps = _invert_transform(std, n_keys, others, terms, step)
        more_terms = not by_terms < AGREED and terms < MOST_TERMS
        more_steps = not by_steps < AGREED and step > LEAST_STEP
        if not (more_terms or more_steps):
            error = CONVERGENCE_FACTOR * by_terms + by_steps
            error += DISCRETISATION_FACTOR * math.exp(-DISCRETISATION)
            return Reference(min(max(value, 0.0), 1.0), error)
        if more_terms:
            terms *= 2
        if more_steps:
            step *= 0.5


def _share_bound(std: float, n_keys: int, threshold: float) -> float:
    """Return an upper bound of the share of rows with p_max >= threshold.

    Parameters are those of `share_for_std`; p_max is the largest of the n weights of a
    row.  The bound may exceed 1.

    Notes
    -----
    By Jensen's inequality, the mean of exp(score) is at least exp(mean score), so that
    a weight is at most exp(score - mean score)/n.  The bound is the expected number of
    weights for which this expression reaches the threshold.
    """
    return n_keys * float(scipy.special.ndtr(-math.log(threshold * n_keys) / std))


def _invert_transform(
    std: float, n_keys: int, others: float, n_terms: int, step: float
) -> tuple[float, float, float]:
    """Return the probability that the other weights sum to at most ``others``.

    The sum Σ w is relative to the largest weight: w = exp(-gap) for each other score,
    and gap is its distance to the largest score.  See
    `montecarlo.theory.largest_weight_share` for the formulas.

    Parameters
    ----------
    std : float
        Standard deviation s of the scores.
    n_keys : int
    others : float
        Upper limit of Σ w.
    n_terms : int
        Number of terms of the Euler sum.
    step : float
        Step of the largest score in standard deviations, z.

    Returns
    -------
    value, by_terms, by_steps : float
        ``by_terms`` is the largest change over all sums with at least half the terms:
        near a corner of the distribution sums oscillate, and two of them may agree by
        chance.  ``by_steps`` is the change with twice the step.

    Notes
    -----
    z is integrated along z + iβ in the complex plane, where exp(-θ exp(-sz)) oscillates
    less for all θ.
    """
    k = np.arange(n_terms + AVERAGED_TERMS + 1)
    theta: NDArray[np.complex128] = np.empty(k.size, dtype=np.complex128)
    theta.real, theta.imag = DISCRETISATION, 2.0 * math.pi * k
    theta /= 2.0 * others
    first, gaps, widths = _gap_nodes(std, theta, truncated=others > 1.0)
    ends = round(REACH / step)
    z = step * np.arange(-ends, ends + 1)
    below = np.log1p(-np.minimum(scipy.special.ndtr(-z), 1.0 - 1e-16))
    there = np.log(n_keys) - 0.5 * z * z + (n_keys - 1.0) * below
    z = z[there > math.log(NEGLIGIBLE * 1e-4)]
    # with gaps truncated at 0, ψ would grow along a contour farther from the real axis
    farthest = 1.0 / math.sqrt(2.0 * math.log(n_keys)) if others > 1.0 else 1.0
    beside = 1j * min(ROTATION / std, farthest)
    density = np.exp(-0.5 * (z[:, np.newaxis] - gaps / std) ** 2)
    lost = -np.expm1(-theta * np.exp(-gaps)[:, np.newaxis])
    lost *= (widths * np.exp(beside * gaps / std))[:, np.newaxis]
    complement = (density @ lost.view(np.float64)).view(np.complex128)
    normal = np.exp(-0.5 * beside * beside - beside * z) / math.sqrt(2.0 * math.pi)
    complement *= (normal / std)[:, np.newaxis]
    # for smaller gaps exp(-θ w) = 0
    small = scipy.special.erfc((z + beside - first / std) / math.sqrt(2.0))
    complement += 0.5 * small[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.exp((n_keys - 1.0) * np.log1p(-complement))
    rows[~np.isfinite(rows)] = 0.0  # ψ = 0
    rows *= (n_keys * normal * np.exp(-0.5 * z * z))[:, np.newaxis]
    scale = math.exp(DISCRETISATION / 2.0) / others
    fine, coarse = (
        _partial_sums(rows[::stride].sum(axis=0) * (step * stride) / theta, scale)
        for stride in (1, 2)
    )
    value = _euler_average(fine, n_terms)
    fewer = np.array([_euler_average(fine, n) for n in range(n_terms // 2, n_terms)])
    by_terms = float(np.abs(fewer - value).max())
    return value, by_terms, abs(_euler_average(coarse, n_terms) - value)


def _gap_nodes(
    std: float, theta: NDArray[np.complex128], *, truncated: bool
) -> tuple[float, Array, Array]:
    """Return nodes of a quadrature over the gap y from a score to the largest one.

    Parameters
    ----------
    std : float
    theta : ndarray, shape (n_terms,)
        Arguments of the Laplace transform; the first is real, the last the largest.
    truncated : bool
        Whether gaps start at 0.  For thresholds t >= 1/2 they need not, as at most one
        weight reaches t.  Without truncation the distribution of Σ w has no corner at
        1.

    Returns
    -------
    first : float
        Smallest gap; below it exp(-θ w) is negligible.
    gaps, widths : ndarray, shape (n_nodes,)
        Gauss-Legendre nodes and weights on pieces, which are short where
        exp(-θ exp(-y)) oscillates or φ(z - y/s) varies.
    """
    first, fastest = math.log(theta[0].real / NEGLIGIBLE_EXPONENT), abs(theta[-1])
    if truncated:
        first = max(first, 0.0)
    last = min(
        math.log(fastest) + NEGLIGIBLE_EXPONENT, max(first, 0.0) + 4.0 * REACH * std
    )
    edges = [first]
    while edges[-1] < last:
        turning = PIECE_RADIANS / (fastest * math.exp(-edges[-1]))
        edges.append(edges[-1] + min(turning, PIECE_STDS * min(std, 1.0)))
    nodes, weights = legendre(PIECE_POINTS)
    starts, lengths = np.array(edges[:-1]), np.diff(edges)
    gaps = starts[:, np.newaxis] + lengths[:, np.newaxis] * nodes
    widths = lengths[:, np.newaxis] * weights
    return first, gaps.ravel(), widths.ravel()


def _partial_sums(transform: NDArray[np.complex128], scale: float) -> Array:
    """Return the partial sums of an alternating series, times ``scale``.

    The terms are (-1)^k Re transform_k, k from 0, and the first one is halved.  The
    sums have the shape of ``transform``.
    """
    terms = transform.real * (-1.0) ** np.arange(transform.size)
    terms[0] *= 0.5
    return scale * np.cumsum(terms)


def _euler_average(sums: Array, n_terms: int) -> float:
    """Return a weighted mean of the partial sums from number ``n_terms`` on.

    The weights are binomial probabilities: Euler's method for alternating series.
    """
    weights = [
        math.comb(AVERAGED_TERMS, j) / 2.0**AVERAGED_TERMS
        for j in range(AVERAGED_TERMS + 1)
    ]
    return math.fsum(np.multiply(sums[n_terms : n_terms + AVERAGED_TERMS + 1], weights))


@lru_cache(maxsize=4096)
def share_for_gaussian_query(
    d_k: int, n_keys: int, scale: float, threshold: float
) -> Reference:
    """Return the share of rows with p_max >= threshold, averaged over the query.

    p_max is the largest softmax weight of a row.  The scores are scale · q·k for
    standard normal q and k.

    Parameters
    ----------
    d_k, n_keys : int
    scale : float
        1/divisor; given q the scores are N(0, s²) with s = scale |q|.
    threshold : float
        t, between 0 and 1.

    Returns
    -------
    Reference
        The error is that of the panels plus the change with fewer points in |q|.

    Notes
    -----
    For t >= 1/2 the share is the expected number of weights >= t, n P(p >= t) for one
    weight p.  Let s z be the score of p, z standard normal, and L the logarithm of the
    sum of the other n - 1 exponentials.  With U a standard exponential variable and V =
    ln U - L::

        P(p >= t)      = P(s z - L >= ln(t/(1 - t)))
        P(V > u)       = E exp(-exp(u + L)) = φ(u)^(n-1),  φ(u) = E exp(-exp(u + s z))
        E exp(-iωL)    = E exp(iωV) / Γ(1 + iω)

    and the distribution of s z - L follows by Fourier inversion.  Division by Γ
    amplifies rounding by exp(πω/2), and z damps it by exp(-s²ω²/2): together by
    exp(π²/8s²) at most.  For s < 0.354 that is too much, and `share_for_std` is used
    instead.
    """
    if threshold * n_keys <= 1.0:
        return Reference(1.0, 0.0)
    (fine, errors), (coarse, _) = (
        _average_over_query(d_k, n_keys, scale, threshold, n_points)
        for n_points in (NORM_POINTS, FEWER_NORM_POINTS)
    )
    return Reference(min(max(fine, 0.0), 1.0), errors + abs(fine - coarse))


def _average_over_query(
    d_k: int, n_keys: int, scale: float, threshold: float, n_points: int
) -> tuple[float, float]:
    """Return (P(p_max >= threshold) averaged over the query length, its error).

    The length |q| has the chi distribution with d_k degrees of freedom.  The
    probability given |q| is interpolated on panels of ln s, where s = scale |q| is the
    standard deviation of the scores, and averaged at ``n_points`` quadrature points per
    panel.  The error is absolute.  It includes that of the panels, rounding, and what
    |q| beyond sqrt(d_k) ± `CHI_REACH` may add; but not that of the quadrature.
    """
    shortest = max(1e-9, math.sqrt(d_k) - CHI_REACH)
    longest = math.sqrt(d_k) + CHI_REACH
    low, high = shortest * scale, longest * scale
    below = scipy.special.gammainc(0.5 * d_k, 0.5 * shortest**2)
    outside = float(below + scipy.special.gammaincc(0.5 * d_k, 0.5 * longest**2))
    total = errors = mass = 0.0
    for index in range(_panel_index(low), _panel_index(high) + 1):
        start, stop = (2.0 ** ((index + i) / PER_OCTAVE) for i in (0, 1))
        interval = max(start, low), min(stop, high)
        s, weight = weigh_lengths(d_k, scale, interval, n_points)
        mass += float(weight.sum())
        coefficients, error = _interpolate_panel(index, n_keys, threshold)
        x = 2.0 * PER_OCTAVE * np.log2(s / start) - 1.0
        total += float(np.polynomial.chebyshev.chebval(x, coefficients) @ weight)
        errors += error * float(weight.sum())
    value = total / mass
    return value, errors / mass + outside / threshold + ROUNDING * abs(value)


def _panel_index(std: float) -> int:
    """Return the index of the panel that contains a standard deviation of scores.

    `_panel_nodes` gives the range of a panel.  An edge belongs to the panel that it
    begins.
    """
    return math.floor(PER_OCTAVE * math.log2(std))


@lru_cache(maxsize=4096)
def _interpolate_panel(
    index: int, n_keys: int, threshold: float
) -> tuple[Array, float]:
    """Return P(p_max >= threshold) on a panel, as a polynomial in ln s.

    p_max is the largest weight of a row, and s the standard deviation of the scores.
    `_panel_nodes` gives the range of a panel.

    Returns
    -------
    coefficients : ndarray
        Of Chebyshev polynomials, shape (POINTS,); a single 0 if the share is
        negligible.
    error : float
        The error of the values at the nodes times `LEBESGUE`, plus the absolute sum of
        the last two coefficients.
    """
    stds = _panel_nodes(index)
    widest = 2.0 ** ((index + 1) / PER_OCTAVE)
    if (bound := _share_bound(widest, n_keys, threshold)) < NEGLIGIBLE:
        return np.zeros(1), bound
    if threshold >= AT_MOST_ONE and index >= FIRST_FOURIER_PANEL:
        frequencies, terms, error = _fourier_terms(index, n_keys)
        logit = math.log(threshold / (1.0 - threshold))
        sums = (terms * np.exp(-1j * frequencies * logit)).imag.sum(axis=-1)
        values = n_keys * (0.5 + sums)  # Gil-Pelaez, midpoint rule
    else:
        shares = [share_for_std(float(std), n_keys, threshold) for std in stds]
        values = np.array([share.value for share in shares])
        error = max(share.error for share in shares)
    coefficients = chebyshev_coefficients(values)
    return coefficients, LEBESGUE * error + float(np.abs(coefficients[-2:]).sum())


def _panel_nodes(index: int) -> Array:
    """Return the standard deviations at the Chebyshev points of a panel, (POINTS,).

    Panel ``index`` is from 2**(index/PER_OCTAVE) to 2**((index + 1)/PER_OCTAVE).
    """
    x = np.polynomial.chebyshev.chebpts1(POINTS)
    return 2.0 ** ((index + 0.5 * (x + 1.0)) / PER_OCTAVE)


@lru_cache(maxsize=64)
def _fourier_factors(index: int) -> tuple[Profile, Array, NDArray[np.complex128]]:
    """Return the factors of a panel's Fourier series that do not depend on n_keys.

    Returns
    -------
    profile : Profile
        For the standard deviations of panel ``index``; u is its grid.
    frequencies : ndarray, shape (n_frequencies,)
        The ω of a midpoint rule.
    waves : ndarray, shape (n_u, n_frequencies)
        exp(iωu).
    """
    stds = _panel_nodes(index)
    profile = gaussian_profile(stds)
    s = float(stds[0])
    last = (
        0.5 * math.pi + math.sqrt(0.25 * math.pi**2 + 2.0 * FOURIER_CUTOFF * s * s)
    ) / s**2
    step = 2.0 * math.pi / (PERIOD_STDS * float(stds[-1]) + PERIOD_OFFSET)
    frequencies = step * np.arange(0.5, math.ceil(last / step), dtype=np.float64)
    waves: NDArray[np.complex128] = np.exp(1j * profile.u[:, np.newaxis] * frequencies)
    return profile, frequencies, waves


@lru_cache(maxsize=512)
def _fourier_terms(
    index: int, n_keys: int
) -> tuple[Array, NDArray[np.complex128], float]:
    """Return the Fourier series of P(s z - L >= y) in y, at the nodes s of a panel.

    See `share_for_gaussian_query` for z and L.

    Returns
    -------
    frequencies : ndarray, shape (n_frequencies,)
        The ω.
    terms : ndarray, shape (POINTS, n_frequencies)
        Coefficients a(ω): P(s z - L >= y) = 1/2 + Σ Im[a(ω) exp(-iωy)].
    error : float
        Rounding error of n P(s z - L >= y).
    """
    profile, frequencies, waves = _fourier_factors(index)
    density = profile.a1 * np.exp((n_keys - 2.0) * profile.log_phi)
    density /= density.sum(axis=-1, keepdims=True)
    stds = _panel_nodes(index)[:, np.newaxis]
    terms = (density @ waves.view(np.float64)).view(np.complex128)
    logs = scipy.special.loggamma(1.0 + 1j * frequencies)
    terms *= np.exp(-0.5 * (stds * frequencies) ** 2 - logs)
    terms *= 2.0 * frequencies[0] / (math.pi * frequencies)
    grown = math.exp(math.pi**2 / (8.0 * float(stds[0, 0]) ** 2))
    return frequencies, terms, n_keys * FOURIER_ROUNDING * grown


@lru_cache(maxsize=4096)
def quantile_of_queries(
    d_k: int, n_keys: int, scale: float, probability: float
) -> Reference:
    """Return a quantile of the largest weight of a row, averaged over the query.

    Queries and keys are standard normal.

    Parameters
    ----------
    d_k, n_keys : int
    scale : float
        1/divisor: the scores are scale · q·k.
    probability : float
        Level of the quantile, between 0 and 1.

    Returns
    -------
    Reference
        The error is as from `solve_quantile`.  Quantiles that differ from 1 by less
        than `ONE_TOLERANCE` are returned as 1.

    Notes
    -----
    Quantiles below 1/2 use Gauss-Laguerre quadrature in |q|²/2, which needs few points
    unless d_k is small.  `share_for_gaussian_query` is used where that is not accurate.
    """

    def by_laguerre(n_points: int, threshold: float) -> Reference:
        """Return P(p_max >= threshold), averaged over |q| ~ chi(d_k).

        The scores are N(0, (scale |q|)²).  The rule is Gauss-Laguerre in |q|²/2 with
        ``n_points`` nodes.  The error is the largest one at a node.
        """
        halves, weights = gamma_quadrature(n_points, 0.5 * d_k - 1.0)
        stds = scale * np.sqrt(2.0 * halves)
        shares = [share_for_std(float(std), n_keys, threshold) for std in stds]
        value = math.fsum(w * one.value for w, one in zip(weights, shares, strict=True))
        return Reference(value, max(one.error for one in shares))

    averaged = partial(share_for_gaussian_query, d_k, n_keys, scale)
    if averaged(1.0 - ONE_TOLERANCE).value > 1.0 - probability:
        return Reference(1.0, ONE_TOLERANCE)
    if averaged(AT_MOST_ONE).value > 1.0 - probability:
        return solve_quantile(probability, n_keys, averaged, AT_MOST_ONE)
    for_typical = partial(share_for_std, scale * math.sqrt(d_k), n_keys)
    start = solve_quantile(probability, n_keys, for_typical).value
    if d_k >= LAGUERRE_FROM:
        for_points = partial(by_laguerre, LAGUERRE)
        quantile = solve_quantile(probability, n_keys, for_points, start)
        fewer = by_laguerre(FEWER_LAGUERRE, quantile.value).value
        off = abs(fewer - (1.0 - probability))
        if off < 10.0 * AGREED:
            return Reference(quantile.value, quantile.error + off * quantile.value)
    return solve_quantile(probability, n_keys, averaged, start)


@lru_cache(maxsize=256)
def gamma_quadrature(n_points: int, alpha: float) -> tuple[Array, Array]:
    """Return nodes and weights for means over a gamma(alpha + 1, 1) variable.

    The rule is Gauss-Laguerre.  Both have shape (n_points,), and the weights sum to 1.

    References
    ----------
    Golub and Welsch, Mathematics of Computation 23 (1969) 221: nodes are eigenvalues of
    the Jacobi matrix, and weights are the squared first entries of its eigenvectors.
    """
    k = np.arange(n_points)
    off = np.sqrt(k[1:] * (k[1:] + alpha))
    matrix = np.diag(2.0 * k + 1.0 + alpha) + np.diag(off, 1) + np.diag(off, -1)
    nodes, vectors = np.linalg.eigh(matrix)
    return nodes, vectors[0] ** 2


def solve_quantile(
    probability: float,
    n_keys: int,
    share: Callable[[float], Reference],
    start: float | None = None,
) -> Reference:
    """Return a quantile of the largest weight of a row, by root finding.

    The result is the weight t with P(p_max < t) = probability.

    Parameters
    ----------
    probability : float
    n_keys : int
    share : callable
        t -> P(p_max >= t).
    start : float, optional
        First guess of t; the default is somewhat above 1/n, the least possible p_max.

    Returns
    -------
    Reference
        The error is that of the share, divided by the density of p_max.

    Notes
    -----
    Secant method in ln(t/(1 - t)), within a bracket.
    """
    wanted = 1.0 - probability
    low, high = -math.log(n_keys - 1.0), math.inf
    here = low + 1.0 if start is None else math.log(start / (1.0 - start))
    before, residual_before, slope = low, probability, -1.0
    for _ in range(MOST_ITERATIONS):
        reached = share(float(scipy.special.expit(here)))
        residual = reached.value - wanted
        if here != before:
            slope = (residual - residual_before) / (here - before)
        if abs(residual) <= max(reached.error, 1e-9):
            break
        low, high = (here, high) if residual > 0.0 else (low, here)
        before, residual_before = here, residual
        step = here - residual / slope if slope < 0.0 else math.inf
        if not low < step < high or step > here + WIDEST_STEP:
            step = 0.5 * (low + high) if high < math.inf else here + WIDEST_STEP
        if abs(step - here) <= ROOT_TOLERANCE:
            break
        here = step
    weight = float(scipy.special.expit(here))
    # d ln(t/(1-t)) = dt/(t(1-t))
    error = (reached.error + abs(residual)) / max(-slope, 1e-300)
    return Reference(
        weight, (min(error, 1.0) + ROOT_TOLERANCE) * weight * (1.0 - weight)
    )
