"""Quantities that papers state something of: each drawn and, where it can be, exact.

What draws and computes the record of papers, `montecarlo.claims.papers`; a new quantity
is an entry of `MEASURES` and one of papers.toml.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import msgspec
import numpy as np
from numpy.polynomial import Polynomial
from scipy.integrate import quad
from scipy.optimize import brentq, minimize, root_scalar
from scipy.special import digamma, expit, gamma, log_softmax, ndtr, softmax

from montecarlo.attention.gradients import jacobian_frobenius_squared
from montecarlo.attention.number_formats import NUMBER_FORMATS, ROUNDINGS
from montecarlo.attention.softmax import (
    FAR,
    RowSums,
    entropy,
    inverse_participation,
    measure_gaps,
    softmax_rows,
)
from montecarlo.claims.papers import Setting
from montecarlo.estimation.estimates import (
    Estimate,
    half_width_error,
    mean_estimate,
    product,
    share_estimate,
)
from montecarlo.estimation.intervals import Interval
from montecarlo.sampling.streams import ModelRows
from montecarlo.theory import expected_row
from montecarlo.theory.cosine_scores import POINTS, cosine_nodes, expect_cosines
from montecarlo.theory.limits import limit_of
from montecarlo.theory.row_integrals import (
    REACH,
    ROW_NAMES,
    Array,
    gaussian_profile,
    integrate_row,
    log_complement,
)
from montecarlo.theory.score_distribution import expected_maximum


@dataclass(frozen=True, slots=True)
class PaperMeasure:
    """How a quantity is found.

    Attributes
    ----------
    exact : callable or None
        Setting -> value; None where theory has none.
    draw : callable or None
        (source of rows, setting) -> estimate; None where nothing is random.
    """

    exact: Callable[[Setting], float] | None = None
    draw: Callable[[ModelRows, Setting], Estimate] | None = None


def keys_of(at: Setting) -> int:
    """Return the number of keys, where a quantity needs it."""
    return _needed("n_keys", at.n_keys)


def dimension_of(at: Setting) -> int:
    """Return the length of queries, where a quantity needs it."""
    return _needed("d_k", at.d_k)


def _needed(name: str, size: int | None) -> int:
    if size is None:
        raise ValueError(f"{name} must be given here, got None")
    return size


# --- Rows that are drawn --------------------------------------------------------------

#: Scores (..., n_keys) -> a value of each row.
RowValue = Callable[[Array], Array]


def entropy_of(scores: Array) -> Array:
    """Return the entropy of the weights of each row, in nats."""
    return entropy(_sums(scores))


def concentration_of(scores: Array) -> Array:
    """Return Σp² of each row."""
    return inverse_participation(_sums(scores))


def frobenius_of(scores: Array) -> Array:
    """Return ‖J‖_F² of each row."""
    return jacobian_frobenius_squared(_sums(scores))


def first_weight_of(scores: Array) -> Array:
    """Return the weight of the first key of each row."""
    return np.asarray(softmax(scores, axis=-1)[..., 0])


def _sums(scores: Array) -> RowSums:
    """Return softmax of rows; one of a single key is given a second without weight."""
    if scores.shape[-1] == 1:
        scores = np.append(scores, np.full_like(scores, FAR), axis=-1)
    return softmax_rows(measure_gaps(scores), 1.0).sums


def mean_over_rows(source: ModelRows, at: Setting, value: RowValue) -> Estimate:
    """Estimate the mean of a value over rows of normal scores, one of them raised."""
    found = []
    for rows in source.normal(keys_of(at)):
        scores = rows * (at.std or 1.0)
        if at.gap is not None:
            scores[:, 0] += at.gap
        found.append(value(scores))
    return mean_estimate(np.concatenate(found))


def mean_over_mask(source: ModelRows, at: Setting, value: RowValue) -> Estimate:
    """Estimate the mean over the rows of a causal mask."""
    rows = source.causal(keys_of(at))
    found = [weight * value((at.std or 1.0) * z) for z, weight in rows]
    return mean_estimate(np.concatenate(found))


def unscaled_over_scaled(source: ModelRows, at: Setting, value: RowValue) -> Estimate:
    """Estimate what a mean over rows of q·k is, over the one with √d_k divided by."""
    none, sqrt = (_mean_of_queries(source, at, divisor, value) for divisor in _two(at))
    return product([(none, 1), (sqrt, -1)])


def small_jacobians(source: ModelRows, at: Setting) -> Estimate:
    """Estimate in what part of unscaled rows ‖J‖_F² is below its mean under √d_k."""
    exact = expected_row(keys_of(at), d_k=at.d_k)["jacobian_frobenius_squared"].value
    return _mean_of_queries(
        source, at, 1.0, lambda scores: (frobenius_of(scores) < exact).astype(float)
    )


def query_gradients(source: ModelRows, at: Setting) -> Estimate:
    """Estimate E |Kᵀ J v|² unscaled over that with √d_k, all entries standard normal.

    Notes
    -----
    The output o has one dimension, and ∂o/∂q = Kᵀ J v over the divisor, which is left
    out here: with it the ratio is d_k times as large.  Along q the keys are the scores
    over |q|; across it they are d_k - 1 further normal entries each, of which Kᵀ (J v)
    takes ‖J v‖² times a chi-square: no key need be drawn.
    """
    none, sqrt = (_query_gradient(source, at, divisor) for divisor in _two(at))
    return product([(none, 1), (sqrt, -1)])


def log_slope(growth: Estimate, reach: float) -> Estimate:
    """Return ln of a positive estimate over a number, with the interval that it has."""

    def bounds(error_rate: float) -> Interval:
        low, high = growth.interval(error_rate)
        return Interval(_log(low) / reach, _log(high) / reach)

    n = growth.n_replicates
    value = math.log(growth.value) / reach
    return replace(
        growth, value=value, std_error=half_width_error(bounds, n), bounds=bounds
    )


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _two(at: Setting) -> tuple[float, float]:
    return 1.0, math.sqrt(dimension_of(at))


def _mean_of_queries(
    source: ModelRows, at: Setting, divisor: float, value: RowValue
) -> Estimate:
    """Estimate a mean over rows q·k: normal given |q|, so that no key need be drawn."""
    found = []
    for rows in source.normal(keys_of(at)):
        lengths = source.lengths(dimension_of(at), len(rows))
        found.append(value(rows * (lengths / divisor)[:, np.newaxis]))
    return mean_estimate(np.concatenate(found))


def _query_gradient(source: ModelRows, at: Setting, divisor: float) -> Estimate:
    found = []
    for along, v in zip(
        source.normal(keys_of(at)), source.normal(keys_of(at)), strict=True
    ):
        n_rows = len(along)
        lengths = source.lengths(dimension_of(at), n_rows)[:, np.newaxis]
        weights = softmax(along * lengths / divisor, axis=-1)
        moved = weights * (v - (weights * v).sum(axis=-1, keepdims=True))
        inner = (along * moved).sum(axis=-1) ** 2
        across = source.lengths(dimension_of(at) - 1, n_rows) ** 2
        found.append(inner + across * (moved**2).sum(axis=-1))
    return mean_estimate(np.concatenate(found))


# --- Scores that keep rows as they are ------------------------------------------------

#: What may be held, by the name of its expectation, and how a row has it.
HELD = {
    "entropy": ("entropy", entropy_of),
    "concentration": ("inverse_participation", concentration_of),
}
#: Standard deviations between which s(n) is looked for.
LEAST, MOST = 1e-3, 200.0
#: Half of the step in ln s that slopes are taken over.
STEP = 1e-3


@lru_cache(maxsize=1024)
def std_that_holds(holds: str, level: float, n_keys: float) -> float:
    """Return the s at which the expectation over a row of n keys is at its level.

    Notes
    -----
    The exact expectations of `montecarlo.theory`; both are monotone in s.
    """
    place = ROW_NAMES.index(HELD[holds][0])

    def off(log_std: float) -> float:
        profile = gaussian_profile(np.array([math.exp(log_std)]))
        return float(integrate_row(profile, n_keys).values[0, place]) - level

    return math.exp(brentq(off, math.log(LEAST), math.log(MOST), xtol=1e-12))


def mean_exponent(holds: str, level: float, low: int, high: int) -> float:
    """Return the mean of that between two numbers of keys."""
    first, last = (std_that_holds(holds, level, n) for n in (low, high))
    return math.log(last / first) / math.log(math.log(high) / math.log(low))


def drawn_growth_exponent(
    source: ModelRows, holds: str, level: float, low: int, high: int
) -> Estimate:
    """Estimate the mean exponent from rows that are drawn, without any integral.

    Notes
    -----
    With z drawn, the mean over the rows of s z is a function of s, and where it is at
    the level an estimate of s; its error is that of the mean over its slope.
    """
    reach = math.log(math.log(high) / math.log(low))
    (first, first_error, n_first), (last, last_error, n_last) = (
        _drawn_std(source, holds, level, n) for n in (low, high)
    )
    error = math.hypot(first_error / first, last_error / last) / reach
    return Estimate(math.log(last / first) / reach, error, min(n_first, n_last))


def _drawn_std(
    source: ModelRows, holds: str, level: float, n_keys: int
) -> tuple[float, float, int]:
    """Return s, its standard error and the number of rows behind it."""
    value_of = HELD[holds][1]

    def values(std: float) -> Array:
        # drawn again each time: so many rows do not fit into memory
        again = ModelRows(source.seed, f"{source.name} {n_keys}")
        return np.concatenate([value_of(std * z) for z in again.normal(n_keys)])

    def off(log_std: float) -> float:
        return float(values(math.exp(log_std)).mean()) - level

    # both sides of where rows of this length begin to concentrate
    usual = 0.5 * math.log(math.log(n_keys))
    root = root_scalar(off, x0=usual, x1=usual + 0.3, xtol=1e-5).root
    found = values(math.exp(root))
    slope = (off(root + STEP) - off(root - STEP)) / (2.0 * STEP)
    error = float(found.std(ddof=1)) / math.sqrt(found.size) / abs(slope)
    std = math.exp(root)
    return std, error * std, found.size


# --- Limits, by theory ----------------------------------------------------------------

#: ln n of two numbers of keys so large that an exponent between them is its limit to
#: nine digits.
VERY_LARGE = (1e12, 1e13)


def raised_weight_limit(at: Setting) -> float:
    """Return the weight of a score above equal ones by a gap, for n without bound.

    Notes
    -----
    Multiplied by γ ln n, its weight is 1/(1 + (n - 1)/n^(γΔ)); γ = 0 stands for scores
    that are not multiplied, of whatever gap.
    """
    return float(np.heaviside((at.growth or 0.0) * (at.gap or 0.0) - 1.0, 0.5))


def concentration_limit(at: Setting) -> float:
    """Return E Σp² of normal scores for n without bound, at a fixed s/√(2 ln n).

    Notes
    -----
    With m = √(2 ln n)/s below 1, the largest exponentials tend to the points w of a
    Poisson process of intensity w^(-m-1).  From 1/Z² = ∫ t exp(-t Z) dt and the
    process's Laplace functional it is::

        Γ(2 - m) ∫ t^(m-1) exp(-Γ(1 - m)/m t^m) dt = Γ(2 - m)/Γ(1 - m)

    With m from 1 on no weight keeps a part of the sum.
    """
    m = 1.0 / (at.times or 1.0)
    return float(gamma(2.0 - m) / gamma(1.0 - m)) if m < 1.0 else 0.0


def gap_that_holds(entropy: float, log_n: float) -> float:
    """Return by how much one score must lie above n equal ones for an entropy.

    Notes
    -----
    The others share the weight r; the entropy -(1 - r) ln(1 - r) - r ln(r/n) rises with
    r until all are equal, and the gap is its slope: ln n + ln((1 - r)/r).
    """

    def off(log_r: float) -> float:
        r = math.exp(log_r)
        return -(1.0 - r) * math.log1p(-r) - r * (log_r - log_n) - entropy

    all_equal = -math.log1p(math.exp(-log_n))
    log_r = brentq(off, -80.0, min(all_equal, -1e-12), xtol=1e-14)
    return log_n + math.log1p(-math.exp(log_r)) - log_r


def gap_exponent(at: Setting) -> float:
    """Return the exponent with which that gap grows with ln n between two n."""
    low, high = at.from_keys or 2, keys_of(at)
    logs = math.log(low - 1), math.log(high - 1)
    first, last = (gap_that_holds(at.level or 0.0, log_n) for log_n in logs)
    return math.log(last / first) / math.log(math.log(high) / math.log(low))


def gap_exponent_limit(at: Setting) -> float:
    """Return it for n without bound."""
    first, last = (gap_that_holds(at.level or 0.0, log_n) for log_n in VERY_LARGE)
    return math.log(last / first) / math.log(VERY_LARGE[1] / VERY_LARGE[0])


def normal_exponent_limit(at: Setting) -> float:
    """Return the exponent of s of normal scores that keeps an entropy, likewise.

    Notes
    -----
    In the limit of `concentration_limit` the entropy is ψ(1) - ψ(1 - m), a function of
    m = √(2 ln n)/s alone.
    """

    def off(m: float) -> float:
        return float(digamma(1.0) - digamma(1.0 - m)) - (at.level or 0.0)

    m = brentq(off, 1e-12, 1.0 - 1e-12)
    first, last = (math.sqrt(2.0 * log_n) / m for log_n in VERY_LARGE)
    return math.log(last / first) / math.log(VERY_LARGE[1] / VERY_LARGE[0])


def score_exponent_limit(at: Setting) -> float:
    """Return the exponent of the root mean square of q·k for d_k without bound.

    Notes
    -----
    Half of the degree of E (q·k)² = d (1 + ρ²) + d² ρ².
    """
    square = (at.correlation or 0.0) ** 2
    return Polynomial([0.0, 1.0 + square, square]).trim().degree() / 2.0


def jacobian_limit(at: Setting, summary: str) -> float:
    """Return what ‖J‖_F of unscaled rows tends to for d_k without bound."""
    found = limit_of("jacobian_frobenius", summary, keys_of(at))
    if found is None:
        raise ValueError(f"summary must have a limit, got {summary!r}")
    ends = {"zero": 0.0, "constant": found.constant, "infinity": math.inf}
    return ends[found.tends_to]


def spectral_bound(at: Setting) -> float:
    """Return the largest (max u - min u)²/4 of a unit vector u, at least ‖J‖_2.

    Notes
    -----
    uᵀ J u is the variance of u under the weights, at most a quarter of the square of
    its range; the range of a unit vector is largest at (1, -1, 0, ...)/√2.
    """
    ends = np.zeros(keys_of(at))
    ends[:2] = 1.0, -1.0
    return float(np.ptp(ends / np.linalg.norm(ends)) ** 2 / 4.0)


# --- Bounds of the Jacobian -----------------------------------------------------------

#: Rows that a search starts from.
STARTS = 8

#: Scores -> what is to be made small, and its gradient.
Lost = Callable[[Array], tuple[float, Array]]


def jacobian(weights: Array) -> Array:
    """Return diag(p) - p pᵀ."""
    return np.diag(weights) - np.outer(weights, weights)


def spectral_norm(at: Setting) -> float:
    """Return ‖J‖_2 where two keys have all of the weight, one half each."""
    weights = np.zeros(at.n_keys or 2)
    weights[:2] = 0.5
    return float(np.linalg.norm(jacobian(weights), 2))


@lru_cache(maxsize=8)
def searched_norm(at: Setting) -> float:
    """Return the largest ‖J‖_2 that a search over rows of scores finds."""
    return _search(lost_norm, at.n_keys or 2)


@lru_cache(maxsize=8)
def searched_entry(at: Setting) -> float:
    """Return the largest |J_ij| that a search over rows of scores finds."""
    return _search(lost_entry, at.n_keys or 2)


def lost_norm(scores: Array) -> tuple[float, Array]:
    """Return -‖J‖_2 and its gradient by the scores.

    Of uᵀ J u = Σ p u² - (Σ p u)², u the first eigenvector.
    """
    weights = softmax(scores)
    values, vectors = np.linalg.eigh(jacobian(weights))
    top = vectors[:, -1]
    by_weight = top**2 - 2.0 * (weights @ top) * top
    return -float(values[-1]), -weights * (by_weight - weights @ by_weight)


def lost_entry(scores: Array) -> tuple[float, Array]:
    """Return minus the largest |J_ij| and its gradient by the scores.

    It stands on the diagonal: p_i p_j is at most p_i (1 - p_i).
    """
    weights = softmax(scores)
    place = int(np.argmax(weights * (1.0 - weights)))
    p = weights[place]
    slope = (1.0 - 2.0 * p) * p * (np.eye(len(scores))[place] - weights)
    return -float(p * (1.0 - p)), -slope


def _search(lost: Lost, n_keys: int) -> float:
    # rows that differ, without drawing any
    starts = 2.0 * np.sin(np.outer(np.arange(1, STARTS + 1), np.arange(n_keys) ** 2))
    found = [minimize(lost, one, jac=True, method="L-BFGS-B").fun for one in starts]
    return -float(min(found))


# --- Short number formats -------------------------------------------------------------

#: Exponent of the least number of each format: what is at most half of it becomes 0.
LEAST_POWER = {"e4m3": -9, "e5m2": -16, "float16": -24, "bfloat16": -133}
#: Keys of the sink: the first of a sequence.
SINK_KEYS = 4


def gap_of(at: Setting) -> float:
    """Return how far below the largest score an exponential becomes 0."""
    kept = math.log(at.scale or 1.0)
    return kept + (1 - LEAST_POWER[at.number_format]) * math.log(2.0)


def behind_sink(at: Setting) -> float:
    """Return the expected share of the other keys whose exponential becomes 0.

    Their scores are N(0, s²), those of the sink N(Δ, s²), and the largest is that of a
    block of the sink alone, as where blocks are taken in their order.
    """
    std, gap = at.std or 1.0, gap_of(at)

    def part(g: float) -> float:
        density = math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)
        largest = SINK_KEYS * density * ndtr(g) ** (SINK_KEYS - 1)
        return float(largest * ndtr(((at.gap or 0.0) + std * g - gap) / std))

    return float(quad(part, -REACH, REACH, epsabs=1e-12, limit=200)[0])


def drawn_behind_sink(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it from rows that are drawn and rounded."""
    std, found = at.std or 1.0, []
    for rows in source.normal(keys_of(at)):
        scores = std * rows
        largest = (at.gap or 0.0) + scores[:, :SINK_KEYS].max(axis=1, keepdims=True)
        found.append(_lost(scores[:, SINK_KEYS:] - largest, at).mean(axis=1))
    return _mean(np.concatenate(found))


def leading_order(at: Setting) -> float:
    """Return it where the largest score of the sink is replaced by its mean."""
    std, largest = at.std or 1.0, expected_maximum(SINK_KEYS)
    return float(ndtr((at.gap or 0.0) / std + largest - gap_of(at) / std))


def over_leading_order(at: Setting) -> float:
    """Return the exact share over the one to leading order."""
    return behind_sink(at) / leading_order(at)


def in_row(at: Setting) -> float:
    """Return the expected share of a row's exponentials that become 0."""
    std, gap, n = at.std or 1.0, gap_of(at), keys_of(at)

    def part(g: float) -> float:
        density = math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)
        return float(density * ndtr(g) ** (n - 2) * ndtr(g - gap / std))

    # each of the other n - 1 keys, where one of n is the largest
    return (n - 1) * float(quad(part, -REACH, REACH, epsabs=1e-14, limit=400)[0])


def drawn_in_row(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it from rows that are drawn and rounded."""
    std, found = at.std or 1.0, []
    for rows in source.normal(keys_of(at)):
        below = std * (rows - rows.max(axis=1, keepdims=True))
        found.append(_lost(below, at).mean(axis=1))
    return _mean(np.concatenate(found))


def drawn_normalised(source: ModelRows, at: Setting) -> Estimate:
    """Estimate the share of a row's weights, divided by their sum, that become 0."""
    found = [
        _lost(log_softmax((at.std or 1.0) * rows, axis=1), at).mean(axis=1)
        for rows in source.normal(keys_of(at))
    ]
    return _mean(np.concatenate(found))


def _mean(shares: Array) -> Estimate:
    """Estimate the mean of shares; that none is lost in rows drawn is no certainty."""
    found = mean_estimate(shares)
    return found if found.std_error > 0.0 else share_estimate(shares, 1)


def _lost(below: Array, at: Setting) -> Array:
    """Tell which become 0, given their logarithms, by rounding them."""
    rounded = ROUNDINGS[at.number_format](np.exp(below) * (at.scale or 1.0))
    return np.asarray(rounded == 0.0, dtype=np.float64)


# --- Correlated entries ---------------------------------------------------------------


def second_moment(d_k: int, correlation: float) -> float:
    """Return E (q·k)² of standard normal entries: d (1 + ρ²) + d² ρ²."""
    return d_k * (1.0 + correlation**2) + (d_k * correlation) ** 2


def score_exponent(at: Setting) -> float:
    """Return the exponent of the root mean square of q·k between two d_k."""
    low, high, correlation = _sizes(at)
    growth = second_moment(high, correlation) / second_moment(low, correlation)
    return 0.5 * math.log(growth) / math.log(high / low)


def drawn_score_exponent(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it from pairs that are drawn."""
    low, high, correlation = _sizes(at)
    small, large = (_mean_square(source, d_k, correlation) for d_k in (low, high))
    growth = product([(large, 1), (small, -1)])
    return log_slope(growth, 2.0 * math.log(high / low))


def _sizes(at: Setting) -> tuple[int, int, float]:
    return at.from_d_k or 0, dimension_of(at), at.correlation or 0.0


def _mean_square(source: ModelRows, d_k: int, correlation: float) -> Estimate:
    across = math.sqrt(1.0 - correlation**2)
    found = [
        (q * (correlation * q + across * z)).sum(axis=1) ** 2
        for q, z in source.pairs(d_k)
    ]
    return mean_estimate(np.concatenate(found))


# --- Attention as it is built today ---------------------------------------------------

#: Keys from which on Llama 4 multiplies scores by more, and by how much.
FLOOR_KEYS, PER_LOG = 8192, 0.1
#: The largest score of a head to which Kimi K2 caps it.
CAP = 100.0
#: Scores of a row whose exact means are integrals: standard normal, on an even grid.
GRID = np.linspace(-REACH, REACH, 4001)
DENSITY = np.exp(-0.5 * GRID**2) / math.sqrt(2.0 * math.pi) * (GRID[1] - GRID[0])
#: An even grid of ln t, t the variable of a Laplace transform: both ends are nothing.
LOG_T = np.linspace(-60.0, 6.0, 6001)


def gain_of(at: Setting) -> float:
    """Return what cosines are multiplied by: without a gain of its own log2(n² - n).

    The latter is where Henry et al. let it begin: log2 of how many pairs there are.
    """
    return math.log2(keys_of(at) * (keys_of(at) - 1)) if at.gain is None else at.gain


def cosine_variance(at: Setting) -> float:
    """Return the variance of a cosine, multiplied by the gain."""
    scores, probability = cosine_nodes(dimension_of(at), gain_of(at), POINTS)
    return float((scores**2) @ probability)


def _cosine_row(name: str) -> Callable[[Setting], float]:
    """Return the exact expectation over a row of cosines, multiplied by the gain."""
    place = ROW_NAMES.index(name)

    def exact(at: Setting) -> float:
        found = expect_cosines(dimension_of(at), keys_of(at), gain_of(at))
        return float(found.values[place])

    return exact


def drawn_cosine_row(source: ModelRows, at: Setting, value: RowValue) -> Estimate:
    """Estimate it with keys that are drawn.

    Of a normal key the part along the query is normal, and across it d_k - 1 further
    normal entries, of which only the length is drawn.
    """
    found = []
    for along in source.normal(keys_of(at)):
        across = source.lengths(dimension_of(at) - 1, along.size).reshape(along.shape)
        found.append(value(gain_of(at) * along / np.hypot(along, across)))
    return mean_estimate(np.concatenate(found))


def largest_of(scores: Array) -> Array:
    """Return the largest weight of each row."""
    return 1.0 / _sums(scores).z


def _largest_of_queries(at: Setting) -> float:
    """Return the largest weight of rows of normal q·k, divided by √d_k."""
    return expected_row(keys_of(at), d_k=at.d_k)["weight_max"].value


def milder_cosines(at: Setting) -> float:
    """Return the largest weight of rows of cosines over that of normal q·k/√d_k."""
    return _cosine_row("weight_max")(at) / _largest_of_queries(at)


def drawn_milder_cosines(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it with the cosines drawn."""
    found = drawn_cosine_row(source, at, largest_of)
    return found.times(1.0 / _largest_of_queries(at))


def aligned_weight(at: Setting) -> float:
    """Return the weight of a key whose cosine is above that of the others by a gap."""
    rest = (keys_of(at) - 1) * math.exp(-gain_of(at) * (at.gap or 0.0))
    return 1.0 / (1.0 + rest)


def aligned_weight_limit(at: Setting) -> float:
    """Return it for n without bound.

    Notes
    -----
    A fixed gain loses against n - 1 keys; log2(n² - n) is 2 log2 n in the limit, and n
    to the power of 2 Δ/ln 2 wins against them where Δ is above ln(2)/2.
    """
    power = 0.0 if at.gain is not None else 2.0 * (at.gap or 0.0) / math.log(2.0)
    return float(np.heaviside(power - 1.0, 0.5))


def kept_weight(at: Setting) -> float:
    """Return the sum of the weights beside a sink of a fixed score, in the mean.

    Notes
    -----
    Scores are N(0, s²), that of the sink is the gap.  With Z the sum of exponentials
    less the gap, 1 - E 1/(1 + Z), and 1/(1 + Z) = ∫ exp(-t - t Z) dt.
    """
    t = np.exp(LOG_T)
    exponentials = np.exp((at.std or 1.0) * GRID - (at.gap or 0.0))
    lost = np.array([DENSITY @ -np.expm1(-one * exponentials) for one in t])
    terms = t * np.exp(-t) * np.exp(keys_of(at) * log_complement(lost))
    return 1.0 - float(terms.sum() * (LOG_T[1] - LOG_T[0]))


def drawn_kept_weight(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it from rows that are drawn."""
    found = []
    for rows in source.normal(keys_of(at)):
        sink = np.full((len(rows), 1), at.gap or 0.0)
        scores = np.append((at.std or 1.0) * rows, sink, axis=1)
        found.append(1.0 - softmax(scores, axis=1)[:, -1])
    return mean_estimate(np.concatenate(found))


def cap_factor(at: Setting) -> float:
    """Return what scores are multiplied by where the largest of a head has a level."""
    return min(1.0, CAP / (at.level or CAP))


def capped_std(at: Setting) -> float:
    """Return the s at which the largest of n² scores is at a level in the mean."""
    return (at.level or CAP) / expected_maximum(keys_of(at) ** 2)


def capped_over_critical(at: Setting) -> float:
    """Return that s over √(2 ln n)."""
    return capped_std(at) / critical_std(keys_of(at))


def capped_row(at: Setting) -> float:
    """Return E Σp² of rows with that s."""
    return _row("inverse_participation")(replace_std(at, capped_std(at)))


def drawn_capped_row(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it from rows that are drawn."""
    return mean_over_rows(source, replace_std(at, capped_std(at)), concentration_of)


def critical_largest(at: Setting) -> float:
    """Return the largest of n times n scores with s = √(2 ln n), in the mean."""
    return critical_std(keys_of(at)) * expected_maximum(keys_of(at) ** 2)


def replace_std(at: Setting, std: float) -> Setting:
    """Return a setting with another s."""
    return msgspec.structs.replace(at, std=std)


def position_factor(at: Setting) -> float:
    """Return what Llama 4 multiplies scores of the n-th position by, where it does."""
    return PER_LOG * math.log(keys_of(at) // FLOOR_KEYS + 1) + 1.0


def sigmoid_norm(at: Setting, biased: float) -> float:
    """Return E Σσ(x + b)² over E Σp² of softmax, b = -ln n where it is biased."""
    squares = expit((at.std or 1.0) * GRID - biased * math.log(keys_of(at))) ** 2
    return keys_of(at) * float(DENSITY @ squares) / _row("inverse_participation")(at)


def drawn_sigmoid_norm(source: ModelRows, at: Setting, biased: float) -> Estimate:
    """Estimate it from rows that are drawn."""
    bias = biased * math.log(keys_of(at))

    def squares(scores: Array) -> Array:
        return np.asarray((expit(scores - bias) ** 2).sum(axis=1))

    found = mean_over_rows(source, at, squares)
    return found.times(1.0 / _row("inverse_participation")(at))


def softpick(scores: Array) -> Array:
    """Return (e^x - 1)₊/Σ|e^x - 1| of each row, whose largest score is positive."""
    largest = scores.max(axis=1, keepdims=True)
    above = np.exp(scores - largest) - np.exp(-largest)
    total = np.abs(above).sum(axis=1, keepdims=True)
    return np.asarray(np.maximum(above, 0.0) / total)


def softpick_sum(at: Setting) -> float:
    """Return the sum of softpick's weights in the mean.

    Notes
    -----
    With A = Σ|e^x - 1|, 1/A = ∫ exp(-t A) dt: n times the integral of
    E[(e^x - 1)₊ exp(-t|e^x - 1|)] (E exp(-t|e^x - 1|))^(n-1) over t.
    """
    t, above = np.exp(LOG_T), np.expm1((at.std or 1.0) * GRID)
    size = np.abs(above)
    lost = np.array([DENSITY @ -np.expm1(-one * size) for one in t])
    own = np.array([DENSITY[above > 0] @ _times(one, above[above > 0]) for one in t])
    terms = t * own * np.exp((keys_of(at) - 1) * log_complement(lost))
    return keys_of(at) * float(terms.sum() * (LOG_T[1] - LOG_T[0]))


def _times(t: float, above: Array) -> Array:
    return np.asarray(above * np.exp(-t * above))


def drawn_softpick_sum(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it from rows that are drawn."""
    return mean_over_rows(source, at, lambda scores: softpick(scores).sum(axis=1))


def softpick_zeros(at: Setting) -> float:
    """Return the share of softpick's weights that are 0: of negative scores."""
    return float(ndtr(-(at.gap or 0.0) / (at.std or 1.0)))


def drawn_softpick_zeros(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it from rows that are drawn."""
    return mean_over_rows(
        source, at, lambda scores: (softpick(scores) == 0.0).mean(axis=1)
    )


def below_one(at: Setting) -> float:
    """Return how far below the largest score an exponential still rounds to 1.

    Half of the step below 1 is 2^(-bits - 1); a tie goes to 1, whose last bit is 0.
    """
    bits = NUMBER_FORMATS[at.number_format].bits
    return -math.log1p(-(2.0 ** (-bits - 1))) / (at.std or 1.0)


def sink_is_one(at: Setting) -> float:
    """Return the probability that an exponential of the sink's keys rounds to 1."""
    lift, near = (at.gap or 0.0) / (at.std or 1.0), below_one(at)

    def part(g: float) -> float:
        density = math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)
        largest = SINK_KEYS * density * ndtr(g) ** (SINK_KEYS - 1)
        return float(largest * ndtr(g + lift + near) ** (keys_of(at) - SINK_KEYS))

    return float(quad(part, -REACH, REACH, epsabs=1e-13, limit=400)[0])


def sink_ones(at: Setting) -> float:
    """Return it over the probability without a sink."""
    return sink_is_one(at) / sink_is_one(without_sink(at))


def without_sink(at: Setting) -> Setting:
    """Return a setting where the keys of the sink are as the others."""
    return msgspec.structs.replace(at, gap=None)


def several_are_one(at: Setting) -> float:
    """Return the probability that more than one exponential of a row rounds to 1.

    Notes
    -----
    Less than that the largest score, of a key of the sink or of another, has none near.
    """
    lift, near = (at.gap or 0.0) / (at.std or 1.0), below_one(at)
    others = keys_of(at) - SINK_KEYS

    def alone(g: float) -> float:
        density = math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)
        own, far = ndtr(g - near), ndtr(g - lift - near)
        of_sink = SINK_KEYS * own ** (SINK_KEYS - 1) * ndtr(g + lift - near) ** others
        of_other = others * own ** (others - 1) * far**SINK_KEYS
        return float(density * (of_sink + of_other))

    return 1.0 - float(quad(alone, -REACH, REACH, epsabs=1e-13, limit=400)[0])


def _ones(source: ModelRows, at: Setting, *, rounded: bool = False) -> Iterator[Array]:
    """Yield which exponentials of rows round to 1, their scores rounded or not."""
    rounding = ROUNDINGS[at.number_format]
    for rows in source.normal(keys_of(at)):
        scores = (at.std or 1.0) * rows
        scores[:, :SINK_KEYS] += at.gap or 0.0
        scores = rounding(scores) if rounded else scores
        yield rounding(np.exp(scores - scores.max(axis=1, keepdims=True))) == 1.0


def drawn_sink_is_one(source: ModelRows, at: Setting) -> Estimate:
    """Estimate that a key of the sink has 1, from rows that are drawn and rounded."""
    found = [one[:, :SINK_KEYS].any(axis=1) for one in _ones(source, at)]
    return share_estimate(np.concatenate(found).astype(np.float64), 1)


def drawn_sink_ones(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it over the probability without a sink."""
    usual = sink_is_one(without_sink(at))
    return drawn_sink_is_one(source, at).times(1.0 / usual)


def drawn_several(source: ModelRows, at: Setting, *, rounded: bool) -> Estimate:
    """Estimate that more than one key has 1, likewise."""
    found = [one.sum(axis=1) > 1 for one in _ones(source, at, rounded=rounded)]
    return share_estimate(np.concatenate(found).astype(np.float64), 1)


# --- All of them ----------------------------------------------------------------------


def raised_weight(at: Setting) -> float:
    """Return the weight of a score that is higher than n - 1 equal ones by a gap."""
    n_keys, gap = keys_of(at), at.gap or 0.0
    times = 1.0 if at.growth is None else at.growth * math.log(n_keys)
    return 1.0 / (1.0 + (n_keys - 1) * math.exp(-gap * times))


def _row(name: str) -> Callable[[Setting], float]:
    """Return the exact expectation over a row of normal scores."""

    def exact(at: Setting) -> float:
        found = expected_row(keys_of(at), std=at.std, bias=at.gap or 0.0)
        return found[name].value

    return exact


def _over_usual(name: str, at: Setting, *, causal: bool) -> float:
    """Return an expectation under a mask, or with a sink, over that without."""
    bias = 0.0 if causal else at.gap or 0.0
    changed = expected_row(keys_of(at), std=at.std, bias=bias, causal=causal)
    return changed[name].value / expected_row(keys_of(at), std=at.std)[name].value


def _changed(name: str, value: RowValue, *, causal: bool) -> PaperMeasure:
    """Return what a mask or a sink makes of an expectation."""

    def draw(source: ModelRows, at: Setting) -> Estimate:
        usual = expected_row(keys_of(at), std=at.std)[name].value
        mean = mean_over_mask if causal else mean_over_rows
        return mean(source, at, value).times(1.0 / usual)

    return PaperMeasure(partial(_over_usual, name, causal=causal), draw)


def critical_std(n_keys: int) -> float:
    """Return sqrt(2 ln n), the s beyond which rows concentrate where n is large."""
    return math.sqrt(2.0 * math.log(n_keys))


def _frozen(at: Setting) -> float:
    """Return the limit of E Σp² beyond the critical s: 1 - sqrt(2 ln n)/s."""
    return 1.0 - critical_std(keys_of(at)) / (at.std or 1.0)


def frozen_share(at: Setting) -> float:
    """Return E Σp² over its limit for large n."""
    return _row("inverse_participation")(at) / _frozen(at)


def _draw_frozen_share(source: ModelRows, at: Setting) -> Estimate:
    found = mean_over_rows(source, at, concentration_of)
    return found.times(1.0 / _frozen(at))


def scaled_ceiling(at: Setting) -> float:
    """Return 1 over E Σp² with √d_k: the ratio of a row that has all on one key."""
    return 1.0 / expected_row(keys_of(at), d_k=at.d_k)["inverse_participation"].value


def beyond_critical(at: Setting) -> float:
    """Return sqrt(d_k), the s of unscaled scores, over the critical s."""
    return math.sqrt(dimension_of(at)) / critical_std(keys_of(at))


def _unscaled_over_scaled(name: str) -> Callable[[Setting], float]:
    def exact(at: Setting) -> float:
        none, sqrt = (
            expected_row(keys_of(at), d_k=at.d_k, divisor=divisor)[name].value
            for divisor in ("none", "sqrt")
        )
        return none / sqrt

    return exact


def extension_factor(at: Setting) -> float:
    """Return what YaRN multiplies scores by: (0.1 ln(n/n_0) + 1)²."""
    return float((0.1 * math.log(keys_of(at) / (at.from_keys or 1)) + 1.0) ** 2)


def growth_factor(at: Setting) -> float:
    """Return by what scores must grow so that rows stay as they are.

    With nothing held it is that of one score above equal ones, which keeps a weight of
    one half where its gap is ln(n - 1).
    """
    low, high = at.from_keys or 2, keys_of(at)
    if not at.holds:
        return math.log(high - 1) / math.log(low - 1)
    first, last = (std_that_holds(at.holds, at.level or 0.0, n) for n in (low, high))
    return last / first


def _exponent(at: Setting) -> float:
    return mean_exponent(at.holds, at.level or 0.0, at.from_keys or 0, keys_of(at))


def _draw_exponent(source: ModelRows, at: Setting) -> Estimate:
    return drawn_growth_exponent(
        source, at.holds, at.level or 0.0, at.from_keys or 0, keys_of(at)
    )


#: By the names that papers.toml has.
MEASURES = {
    "raised-weight": PaperMeasure(raised_weight),
    "raised-weight-limit": PaperMeasure(raised_weight_limit),
    "noisy-weight": PaperMeasure(
        _row("biased_weight"), partial(mean_over_rows, value=first_weight_of)
    ),
    "growth-exponent": PaperMeasure(_exponent, _draw_exponent),
    # of so many keys that drawing would take a minute
    "late-exponent": PaperMeasure(_exponent),
    "growth-exponent-limit": PaperMeasure(normal_exponent_limit),
    "gap-exponent": PaperMeasure(gap_exponent),
    "gap-exponent-limit": PaperMeasure(gap_exponent_limit),
    "extension-factor": PaperMeasure(extension_factor),
    "growth-factor": PaperMeasure(growth_factor),
    "row-concentration": PaperMeasure(
        _row("inverse_participation"), partial(mean_over_rows, value=concentration_of)
    ),
    "concentration-limit": PaperMeasure(concentration_limit),
    "frozen-share": PaperMeasure(frozen_share, _draw_frozen_share),
    "beyond-critical": PaperMeasure(beyond_critical),
    "concentration-ratio": PaperMeasure(
        _unscaled_over_scaled("inverse_participation"),
        partial(unscaled_over_scaled, value=concentration_of),
    ),
    "scaled-ceiling": PaperMeasure(scaled_ceiling),
    "jacobian-ratio": PaperMeasure(
        _unscaled_over_scaled("jacobian_frobenius_squared"),
        partial(unscaled_over_scaled, value=frobenius_of),
    ),
    "query-gradient-rest": PaperMeasure(draw=query_gradients),
    "mean-jacobian-limit": PaperMeasure(partial(jacobian_limit, summary="mean")),
    "median-jacobian-limit": PaperMeasure(partial(jacobian_limit, summary="median")),
    "small-jacobians": PaperMeasure(draw=small_jacobians),
    "spectral-bound": PaperMeasure(spectral_bound),
    "spectral-norm": PaperMeasure(spectral_norm),
    "searched-norm": PaperMeasure(searched_norm),
    "largest-entry": PaperMeasure(searched_entry),
    "mask-entropy": _changed("entropy", entropy_of, causal=True),
    "mask-concentration": _changed(
        "inverse_participation", concentration_of, causal=True
    ),
    "sink-entropy": _changed("entropy", entropy_of, causal=False),
    "sink-concentration": _changed(
        "inverse_participation", concentration_of, causal=False
    ),
    "sink-underflow": PaperMeasure(behind_sink, drawn_behind_sink),
    "over-leading-order": PaperMeasure(over_leading_order),
    "row-underflow": PaperMeasure(in_row, drawn_in_row),
    "normalised-underflow": PaperMeasure(draw=drawn_normalised),
    "score-exponent": PaperMeasure(score_exponent, drawn_score_exponent),
    "score-exponent-limit": PaperMeasure(score_exponent_limit),
    "cosine-variance": PaperMeasure(cosine_variance),
    "cosine-entropy": PaperMeasure(
        _cosine_row("entropy"), partial(drawn_cosine_row, value=entropy_of)
    ),
    # of so many keys, too, that drawing would take a minute
    "first-gain-entropy": PaperMeasure(_cosine_row("entropy")),
    "milder-cosines": PaperMeasure(milder_cosines, drawn_milder_cosines),
    "fixed-gain-weight": PaperMeasure(aligned_weight),
    "first-gain-weight": PaperMeasure(aligned_weight),
    "fixed-gain-limit": PaperMeasure(aligned_weight_limit),
    "first-gain-limit": PaperMeasure(aligned_weight_limit),
    "kept-weight": PaperMeasure(kept_weight, drawn_kept_weight),
    "cap-factor": PaperMeasure(cap_factor),
    "capped-over-critical": PaperMeasure(capped_over_critical),
    "capped-concentration": PaperMeasure(capped_row, drawn_capped_row),
    "critical-largest": PaperMeasure(critical_largest),
    "position-factor": PaperMeasure(position_factor),
    "sigmoid-norm": PaperMeasure(
        partial(sigmoid_norm, biased=0.0), partial(drawn_sigmoid_norm, biased=0.0)
    ),
    "biased-sigmoid-norm": PaperMeasure(
        partial(sigmoid_norm, biased=1.0), partial(drawn_sigmoid_norm, biased=1.0)
    ),
    "softpick-zeros": PaperMeasure(softpick_zeros, drawn_softpick_zeros),
    "softpick-sum": PaperMeasure(softpick_sum, drawn_softpick_sum),
    "sink-ones": PaperMeasure(sink_ones, drawn_sink_ones),
    "sink-is-one": PaperMeasure(sink_is_one, drawn_sink_is_one),
    "several-are-one": PaperMeasure(
        several_are_one, partial(drawn_several, rounded=False)
    ),
    "several-rounded": PaperMeasure(draw=partial(drawn_several, rounded=True)),
}
