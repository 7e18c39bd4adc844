"""The exact distribution of the largest weight of a row of Gaussian scores.

In: number of keys, the standard deviation of the scores of a row or d_k and a divisor,
and a weight t.  Out: P(p_max >= t), the share of saturated rows for t = 0.9, and
quantiles of p_max, each with its numerical error.

>>> round(share_of_queries(64, 128, scale=1.0, threshold=0.9).value, 6)
0.39481
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import scipy
from numpy.typing import NDArray

from montecarlo.theory.row_expectations import interpolate, weigh_lengths
from montecarlo.theory.row_integrals import (
    REACH,
    ROUNDING,
    Array,
    Profile,
    Reference,
    gaussian_profile,
    legendre,
)

#: Abate and Whitt's Euler sum: it is off by exp(-DISCRETE), and by rounding times
#: exp(DISCRETE / 2).
DISCRETE = 20.0
#: Where gaps have no end the sum inverts a number of weights: those of at least
#: 1/(1 + 3r), r = (1 - t)/t <= 1, are what it is off by, times exp(-DISCRETE).
MOST_WEIGHTS = 4.0
#: Terms of the sum at first, and at most: they are doubled until two sums agree.
FIRST_TERMS, MOST_TERMS = 24, 1536
#: A sum is off by less than this many times what half its terms change: three times
#: was found, at thresholds beside the corner at 1/2, near which sums turn slowly.
SLOWEST = 4.0
#: Averaging steps at the end of the sum.
AVERAGED = 12
#: Steps of the largest score in standard deviations: at first, and at least.
FIRST_STEP, LEAST_STEP = 0.1, 0.003
#: Where sums agree so closely, no more terms or steps are added: five times LEBESGUE of
#: it, what a share averaged over queries is off by, is below 1e-6.
AGREED = 6e-8
#: Gauss-Legendre points of a piece of the gaps, over which exp(-theta w) turns by at
#: most TURN, or a Gaussian density changes by three standard deviations.
PIECE_POINTS, TURN, WIDEST_PIECE = 16, 12.0, 3.0
#: exp(-VANISHED) is nothing, and so is a probability of NEGLIGIBLE.
VANISHED, NEGLIGIBLE = 26.0, 1e-13
#: How far exp(-θ exp(-sz)) is turned, in radians, where s is not below it.
ROTATED = 0.9
#: Panels of ln s, two an octave, and their Chebyshev points, between which errors of
#: values at them grow to LEBESGUE times as much at most.
PER_OCTAVE, POINTS, LEBESGUE = 2, 14, 2.65
#: From this panel on, s = 0.354, the weights above a threshold come from `_waves`.
FIRST_WAVES = -3
#: A Fourier sum repeats itself after this many s, and this much for ln n and for ln t;
#: it ends where exp(-ENDED) of it is left.
PERIOD, PERIOD_LEAST, ENDED = 40.0, 80.0, 48.0
#: Rounding of a Fourier sum, for each key.
WAVES_ROUNDING = 1e-15
#: |q| is averaged over within this of sqrt(d_k): the error holds what is beyond.
CHI_REACH = 5.5
LENGTHS, FEWER_LENGTHS = 48, 36
#: Roots are found to this part of the weight.
ROOT = 1e-9
MOST_ITERATIONS = 100
#: Weights that are so close to 1 are not told from it.
ONE = 1e-12
#: No two weights are larger: the largest is at least t when one is, from here on.
LONE = 0.5
#: Steps of ln(t/(1 - t)) at most.
WIDEST_STEP = 2.0
#: Lengths of the query, and of a check; from d_k = SHORT on they do.
LAGUERRE, FEWER_LAGUERRE, SHORT = 12, 9, 8


def share_at(std: float, n_keys: int, threshold: float) -> Reference:
    """Return P(p_max >= t) for one standard deviation of the scores.

    Terms and steps are doubled until neither changes the sum by more than `AGREED`.
    """
    if threshold * n_keys <= 1.0:
        return Reference(1.0, 0.0)
    bound = _bound(std, n_keys, threshold)
    if bound < NEGLIGIBLE:
        return Reference(0.0, bound)
    if n_keys == 2:  # p >= t where the scores are far enough apart
        apart = math.log(threshold / (1.0 - threshold)) / (math.sqrt(2.0) * std)
        return Reference(min(1.0, 2.0 * float(scipy.special.ndtr(-apart))), NEGLIGIBLE)
    terms, step = FIRST_TERMS, FIRST_STEP
    while True:
        others = (1.0 - threshold) / threshold
        value, by_terms, by_steps = _invert(std, n_keys, others, terms, step)
        more_terms = not by_terms < AGREED and terms < MOST_TERMS
        more_steps = not by_steps < AGREED and step > LEAST_STEP
        if not (more_terms or more_steps):
            error = SLOWEST * by_terms + by_steps
            error += MOST_WEIGHTS * math.exp(-DISCRETE)
            return Reference(min(max(value, 0.0), 1.0), error)
        if more_terms:
            terms *= 2
        if more_steps:
            step *= 0.5


def _bound(std: float, n_keys: int, threshold: float) -> float:
    """Return what the mean number of weights of at least t does not exceed.

    A weight is below exp(score - mean score)/n: the mean of exponentials is not below
    the exponential of the mean.
    """
    return n_keys * float(scipy.special.ndtr(-math.log(threshold * n_keys) / std))


def _invert(
    std: float, n_keys: int, others: float, n_terms: int, step: float
) -> tuple[float, float, float]:
    """Return P(Σ w <= others) by n terms and steps of the largest score: an Euler sum.

    Beside it stands how far sums of fewer terms, and of fewer steps, are from it.  By
    terms it is the farthest of all sums of half the terms or more: where the
    distribution has a corner they swing about, and two alone may agree by chance.

    The largest score runs along a line beside the real one, z + iβ, where
    exp(-θ exp(-sz)) oscillates less for all θ.
    """
    k = np.arange(n_terms + AVERAGED + 1)
    theta: NDArray[np.complex128] = np.empty(k.size, dtype=np.complex128)
    theta.real, theta.imag = DISCRETE, 2.0 * math.pi * k
    theta /= 2.0 * others
    first, gaps, widths = _gaps(std, theta, truncated=others > 1.0)
    ends = round(REACH / step)
    z = step * np.arange(-ends, ends + 1)
    below = np.log1p(-np.minimum(scipy.special.ndtr(-z), 1.0 - 1e-16))
    there = np.log(n_keys) - 0.5 * z * z + (n_keys - 1.0) * below
    z = z[there > math.log(NEGLIGIBLE * 1e-4)]
    # where gaps end at 0, ψ would grow along a line that is far beside
    farthest = 1.0 / math.sqrt(2.0 * math.log(n_keys)) if others > 1.0 else 1.0
    beside = 1j * min(ROTATED / std, farthest)
    density = np.exp(-0.5 * (z[:, np.newaxis] - gaps / std) ** 2)
    lost = -np.expm1(-theta * np.exp(-gaps)[:, np.newaxis])
    lost *= (widths * np.exp(beside * gaps / std))[:, np.newaxis]
    complement = (density @ lost.view(np.float64)).view(np.complex128)
    normal = np.exp(-0.5 * beside * beside - beside * z) / math.sqrt(2.0 * math.pi)
    complement *= (normal / std)[:, np.newaxis]
    # smaller gaps lose all
    small = scipy.special.erfc((z + beside - first / std) / math.sqrt(2.0))
    complement += 0.5 * small[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.exp((n_keys - 1.0) * np.log1p(-complement))
    rows[~np.isfinite(rows)] = 0.0  # ψ = 0
    rows *= (n_keys * normal * np.exp(-0.5 * z * z))[:, np.newaxis]
    scale = math.exp(DISCRETE / 2.0) / others
    fine, coarse = (
        _partial_sums(rows[::stride].sum(axis=0) * (step * stride) / theta, scale)
        for stride in (1, 2)
    )
    value = _average(fine, n_terms)
    fewer = np.array([_average(fine, n) for n in range(n_terms // 2, n_terms)])
    by_terms = float(np.abs(fewer - value).max())
    return value, by_terms, abs(_average(coarse, n_terms) - value)


def _gaps(
    std: float, theta: NDArray[np.complex128], *, truncated: bool
) -> tuple[float, Array, Array]:
    """Return the smallest gap at which exp(-θ w) is not nothing, nodes and widths.

    Pieces are short where exp(-θ exp(-y)) oscillates, and where φ(z - y/s) changes.
    From weights of 1/2 on, one score alone can lead, so that gaps need no end: without
    it the distribution of their sum has no corner at 1.
    """
    first, fastest = math.log(theta[0].real / VANISHED), abs(theta[-1])
    if truncated:
        first = max(first, 0.0)
    last = min(math.log(fastest) + VANISHED, max(first, 0.0) + 4.0 * REACH * std)
    edges = [first]
    while edges[-1] < last:
        turning = TURN / (fastest * math.exp(-edges[-1]))
        edges.append(edges[-1] + min(turning, WIDEST_PIECE * min(std, 1.0)))
    nodes, weights = legendre(PIECE_POINTS)
    starts, lengths = np.array(edges[:-1]), np.diff(edges)
    gaps = starts[:, np.newaxis] + lengths[:, np.newaxis] * nodes
    widths = lengths[:, np.newaxis] * weights
    return first, gaps.ravel(), widths.ravel()


def _partial_sums(transform: NDArray[np.complex128], scale: float) -> Array:
    """Return the partial sums of the alternating series."""
    terms = transform.real * (-1.0) ** np.arange(transform.size)
    terms[0] *= 0.5
    sums: Array = scale * np.cumsum(terms)
    return sums


def _average(sums: Array, n_terms: int) -> float:
    """Average the partial sums from n terms on by binomial weights."""
    weights = [math.comb(AVERAGED, j) / 2.0**AVERAGED for j in range(AVERAGED + 1)]
    return math.fsum(np.multiply(sums[n_terms : n_terms + AVERAGED + 1], weights))


@lru_cache(maxsize=4096)
def share_of_queries(
    d_k: int, n_keys: int, scale: float, threshold: float
) -> Reference:
    """Return P(p_max >= t), averaged over the length of a standard normal query.

    Parameters
    ----------
    d_k, n_keys : int
    scale : float
        Standard deviation of a divided score over |q|.
    threshold : float

    Notes
    -----
    The error adds the difference from fewer lengths.  From t = 1/2 on the share is the
    mean number of weights of at least t, n P(p >= t) for one weight p.  With x its
    score, L the logarithm of the sum of the other exponentials and E exponential, so
    that V = ln E - L has a known tail::

        P(p >= t)      = P(sz - L >= ln(t/(1 - t)))
        P(V > u)       = E exp(-exp(u + L)) = φ(u)^(n-1),  φ(u) = E exp(-exp(u + x))
        E exp(-iωL)    = E exp(iωV) / Γ(1 + iω)

    The division makes rounding larger by exp(πω/2), the normal z smaller by
    exp(-s²ω²/2): by exp(π²/8s²) at most, which is too much for shorter queries,
    s < 0.354, whose share is inverted.
    """
    if threshold * n_keys <= 1.0:
        return Reference(1.0, 0.0)
    (fine, errors), (coarse, _) = (
        _average_panels(d_k, n_keys, scale, threshold, n_points)
        for n_points in (LENGTHS, FEWER_LENGTHS)
    )
    return Reference(min(max(fine, 0.0), 1.0), errors + abs(fine - coarse))


def _average_panels(
    d_k: int, n_keys: int, scale: float, threshold: float, n_points: int
) -> tuple[float, float]:
    """Average the panels of ln s over |q| ~ chi_d, and their errors.

    Beyond the ends there are 1/t such weights at most.
    """
    shortest = max(1e-9, math.sqrt(d_k) - CHI_REACH)
    longest = math.sqrt(d_k) + CHI_REACH
    low, high = shortest * scale, longest * scale
    below = scipy.special.gammainc(0.5 * d_k, 0.5 * shortest**2)
    beyond = float(below + scipy.special.gammaincc(0.5 * d_k, 0.5 * longest**2))
    total = errors = mass = 0.0
    for index in range(_panel_of(low), _panel_of(high) + 1):
        start, stop = (2.0 ** ((index + i) / PER_OCTAVE) for i in (0, 1))
        piece = max(start, low), min(stop, high)
        s, weight = weigh_lengths(d_k, scale, piece, n_points)
        mass += float(weight.sum())
        coefficients, error = _panel(index, n_keys, threshold)
        x = 2.0 * PER_OCTAVE * np.log2(s / start) - 1.0
        total += float(np.polynomial.chebyshev.chebval(x, coefficients) @ weight)
        errors += error * float(weight.sum())
    value = total / mass
    return value, errors / mass + beyond / threshold + ROUNDING * abs(value)


def _panel_of(std: float) -> int:
    return math.floor(PER_OCTAVE * math.log2(std))


@lru_cache(maxsize=4096)
def _panel(index: int, n_keys: int, threshold: float) -> tuple[Array, float]:
    """Interpolate over a panel of ln s; 0 where there are next to no such weights.

    The error is that of the values, and of the last two coefficients.
    """
    stds = _nodes(index)
    widest = 2.0 ** ((index + 1) / PER_OCTAVE)
    if (bound := _bound(widest, n_keys, threshold)) < NEGLIGIBLE:
        return np.zeros(1), bound
    if threshold >= LONE and index >= FIRST_WAVES:
        frequencies, terms, error = _waves(index, n_keys)
        logit = math.log(threshold / (1.0 - threshold))
        sums = (terms * np.exp(-1j * frequencies * logit)).imag.sum(axis=-1)
        values = n_keys * (0.5 + sums)  # Gil-Pelaez, by midpoints
    else:
        shares = [share_at(float(std), n_keys, threshold) for std in stds]
        values = np.array([share.value for share in shares])
        error = max(share.error for share in shares)
    coefficients = interpolate(values)
    return coefficients, LEBESGUE * error + float(np.abs(coefficients[-2:]).sum())


def _nodes(index: int) -> Array:
    """Return the standard deviations of the Chebyshev points of a panel, ascending."""
    x = np.polynomial.chebyshev.chebpts1(POINTS)
    stds: Array = 2.0 ** ((index + 0.5 * (x + 1.0)) / PER_OCTAVE)
    return stds


@lru_cache(maxsize=64)
def _profile_waves(index: int) -> tuple[Profile, Array, NDArray[np.complex128]]:
    """Return what all numbers of keys share: a profile, frequencies, and waves."""
    stds = _nodes(index)
    profile = gaussian_profile(stds)
    s = float(stds[0])
    last = (0.5 * math.pi + math.sqrt(0.25 * math.pi**2 + 2.0 * ENDED * s * s)) / s**2
    step = 2.0 * math.pi / (PERIOD * float(stds[-1]) + PERIOD_LEAST)
    frequencies = step * np.arange(0.5, math.ceil(last / step), dtype=np.float64)
    waves: NDArray[np.complex128] = np.exp(1j * profile.u[:, np.newaxis] * frequencies)
    return profile, frequencies, waves


@lru_cache(maxsize=512)
def _waves(index: int, n_keys: int) -> tuple[Array, NDArray[np.complex128], float]:
    """Return frequencies, the terms of the sum for sz - L at each, and its error.

    Terms have the shape (n_s, n_frequencies); the error is that of the number above a
    threshold.
    """
    profile, frequencies, waves = _profile_waves(index)
    density = profile.a1 * np.exp((n_keys - 2.0) * profile.log_phi)
    density /= density.sum(axis=-1, keepdims=True)
    stds = _nodes(index)[:, np.newaxis]
    terms = (density @ waves.view(np.float64)).view(np.complex128)
    logs = scipy.special.loggamma(1.0 + 1j * frequencies)
    terms *= np.exp(-0.5 * (stds * frequencies) ** 2 - logs)
    terms *= 2.0 * frequencies[0] / (math.pi * frequencies)
    grown = math.exp(math.pi**2 / (8.0 * float(stds[0, 0]) ** 2))
    return frequencies, terms, n_keys * WAVES_ROUNDING * grown


@lru_cache(maxsize=4096)
def quantile_of_queries(
    d_k: int, n_keys: int, scale: float, probability: float
) -> Reference:
    """Return a quantile of p_max, over standard normal queries of all lengths.

    Few lengths do, those of Gauss and Laguerre for |q|²/2, but for very short queries.
    """

    def over(n_points: int) -> Callable[[float], Reference]:
        halves, weights = laguerre(n_points, 0.5 * d_k - 1.0)
        stds = scale * np.sqrt(2.0 * halves)

        def share(threshold: float) -> Reference:
            shares = [share_at(float(std), n_keys, threshold) for std in stds]
            value = math.fsum(
                w * one.value for w, one in zip(weights, shares, strict=True)
            )
            return Reference(value, max(one.error for one in shares))

        return share

    averaged = partial(share_of_queries, d_k, n_keys, scale)
    if averaged(1.0 - ONE).value > 1.0 - probability:
        return Reference(1.0, ONE)
    if averaged(LONE).value > 1.0 - probability:
        return solve(probability, n_keys, averaged, LONE)
    typical = solve(
        probability, n_keys, lambda t: share_at(scale * math.sqrt(d_k), n_keys, t)
    )
    if d_k >= SHORT:
        quantile = solve(probability, n_keys, over(LAGUERRE), typical.value)
        fewer = over(FEWER_LAGUERRE)(quantile.value).value
        off = abs(fewer - (1.0 - probability))
        if off < 10.0 * AGREED:
            return Reference(quantile.value, quantile.error + off * quantile.value)
    return solve(probability, n_keys, averaged, typical.value)


@lru_cache(maxsize=256)
def laguerre(n_points: int, alpha: float) -> tuple[Array, Array]:
    """Return nodes and weights for the gamma distribution of shape alpha + 1.

    Golub and Welsch, Mathematics of Computation 23 (1969) 221: eigenvalues of the
    Jacobi matrix, and the first entries of its eigenvectors, squared.
    """
    k = np.arange(n_points)
    off = np.sqrt(k[1:] * (k[1:] + alpha))
    matrix = np.diag(2.0 * k + 1.0 + alpha) + np.diag(off, 1) + np.diag(off, -1)
    nodes, vectors = np.linalg.eigh(matrix)
    return nodes, vectors[0] ** 2


def solve(
    probability: float,
    n_keys: int,
    share: Callable[[float], Reference],
    start: float | None = None,
) -> Reference:
    """Find the weight that a row stays below with a probability.

    Secants in ln(t/(1 - t)), kept within the ends that are known; below 1/n no row is.
    """
    wanted = 1.0 - probability
    low, high = -math.log(n_keys - 1.0), math.inf
    here = low + 1.0 if start is None else math.log(start / (1.0 - start))
    before, residual_before, slope = low, probability, -1.0
    for _ in range(MOST_ITERATIONS):
        reached = share(_weight(here))
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
        if abs(step - here) <= ROOT:
            break
        here = step
    weight = _weight(here)
    # d ln(t/(1-t)) = dt/(t(1-t))
    error = (reached.error + abs(residual)) / max(-slope, 1e-300)
    return Reference(weight, (min(error, 1.0) + ROOT) * weight * (1.0 - weight))


def _weight(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))
