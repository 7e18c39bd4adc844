"""Quantities that papers state something of, of models of scores: exact, or drawn.

Each function returns an exact value, or an `Estimate` where theory has none.  Scores of
a row are independent N(0, s²), if nothing else is said; ``n`` is the number of keys,
``std`` is s, ``gap`` by how much one score, or those of a sink, lie above the others.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.random import Generator
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.special import digamma, expit, gamma, log_softmax, ndtr, softmax

from montecarlo.attention.number_formats import ALL_FORMATS, NUMBER_FORMATS
from montecarlo.estimation.estimates import Estimate, mean_estimate, share_estimate
from montecarlo.sampling.streams import named_stream
from montecarlo.theory import expected_row, query_gradient_squared
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
from studies.cosine_scores import cosine_nodes, expect_cosines

SEED = 1
#: Scores drawn for an estimate, and scores held at once.
SCORES, AT_ONCE = 2**25, 2**20


# --- One score above equal ones -------------------------------------------------------


def raised_weight(n: int, gap: float, growth: float | None = None) -> float:
    """Return the weight of a score above n - 1 equal ones, multiplied by γ ln n."""
    times = 1.0 if growth is None else growth * math.log(n)
    return 1.0 / (1.0 + (n - 1) * math.exp(-gap * times))


def raised_weight_limit(gap: float, growth: float = 0.0) -> float:
    """Return it for n without bound: 1/(1 + (n - 1)/n^(γΔ)); γ = 0: not multiplied."""
    return float(np.heaviside(growth * gap - 1.0, 0.5))


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


def gap_exponent(entropy: float, fewer: int, n: int) -> float:
    """Return the exponent with which that gap grows with ln n between two n."""
    first, last = (gap_that_holds(entropy, math.log(one - 1)) for one in (fewer, n))
    return math.log(last / first) / math.log(math.log(n) / math.log(fewer))


def gap_exponent_limit(entropy: float) -> float:
    """Return it for n without bound: to nine digits, of ln n = 10^12 and 10^13."""
    return math.log10(gap_that_holds(entropy, 1e13) / gap_that_holds(entropy, 1e12))


# --- Normal scores --------------------------------------------------------------------


def critical_std(n: int) -> float:
    """Return √(2 ln n), the s beyond which rows concentrate where n is large."""
    return math.sqrt(2.0 * math.log(n))


def concentration(n: int, std: float = 0.0, times: float = 0.0) -> float:
    """Return E Σp² at a standard deviation, or at so many times √(2 ln n)."""
    row = expected_row(n, std=std or times * critical_std(n))
    return row["inverse_participation"].value


def concentration_limit(times: float) -> float:
    """Return E Σp² for n without bound, at a fixed s/√(2 ln n).

    Notes
    -----
    With m = √(2 ln n)/s below 1, the largest exponentials tend to the points w of a
    Poisson process of intensity w^(-m-1).  From 1/Z² = ∫ t exp(-t Z) dt and the
    process's Laplace functional it is::

        Γ(2 - m) ∫ t^(m-1) exp(-Γ(1 - m)/m t^m) dt = Γ(2 - m)/Γ(1 - m)

    With m from 1 on no weight keeps a part of the sum.
    """
    m = 1.0 / times
    return float(gamma(2.0 - m) / gamma(1.0 - m)) if m < 1.0 else 0.0


def over_limit(n: int, std: float) -> float:
    """Return E Σp² over its limit for large n, 1 - √(2 ln n)/s."""
    return concentration(n, std) / (1.0 - critical_std(n) / std)


def over_critical(d_k: int, n: int) -> float:
    """Return √d_k, the s of unscaled scores, over the critical s."""
    return math.sqrt(d_k) / critical_std(n)


@lru_cache(maxsize=1024)
def std_that_holds(name: str, level: float, n: float) -> float:
    """Return the s at which an expectation over a row, monotone in s, has a level."""
    place = ROW_NAMES.index(name)

    def off(log_std: float) -> float:
        profile = gaussian_profile(np.array([math.exp(log_std)]))
        return float(integrate_row(profile, n).values[0, place]) - level

    return math.exp(brentq(off, math.log(1e-3), math.log(200.0), xtol=1e-12))


def growth_exponent(name: str, level: float, fewer: int, n: int) -> float:
    """Return the exponent of ln n with which that s grows, between two n."""
    factor = growth_factor(fewer, n, name, level)
    return math.log(factor) / math.log(math.log(n) / math.log(fewer))


def growth_exponent_limit(level: float) -> float:
    """Return it for n without bound, where the entropy is held.

    Notes
    -----
    In the limit of `concentration_limit` the entropy is ψ(1) - ψ(1 - m), a function of
    m = √(2 ln n)/s alone.
    """

    def off(m: float) -> float:
        return float(digamma(1.0) - digamma(1.0 - m)) - level

    m = brentq(off, 1e-12, 1.0 - 1e-12)
    first, last = (math.sqrt(2.0 * log_n) / m for log_n in (1e12, 1e13))
    return math.log10(last / first)


def growth_factor(fewer: int, n: int, name: str = "", level: float = 0.0) -> float:
    """Return by what scores must grow so that a row stays as it is.

    Without a name: one score above equal ones, which keeps a weight of one half where
    its gap is ln(n - 1).
    """
    if not name:
        return math.log(n - 1) / math.log(fewer - 1)
    return std_that_holds(name, level, n) / std_that_holds(name, level, fewer)


def extension_factor(fewer: int, n: int) -> float:
    """Return what YaRN multiplies scores by: (0.1 ln(n/n_0) + 1)²."""
    return (0.1 * math.log(n / fewer) + 1.0) ** 2


def position_factor(n: int) -> float:
    """Return what Llama 4 multiplies scores of the n-th position by, where it does."""
    return 0.1 * math.log(n // 8192 + 1) + 1.0


def over_plain(
    name: str, n: int, std: float, gap: float = 0.0, *, mask: str = "none"
) -> float:
    """Return an expectation with a sink, or under a mask, over that without."""
    changed = expected_row(n, std=std, bias=gap, mask=mask)
    return changed[name].value / expected_row(n, std=std)[name].value


def unit_scaling_std(n: int, d_k: int, mask: str, mult: float) -> float:
    """Return the standard deviation of outputs as u-μP's formula has it.

    Scores are divided by ``d_k / mult``; ``mask`` is ``none`` or ``causal``.
    """
    sharp = mult**2 / (mult**2 + 4.0 * d_k)
    flat = (math.log(n) if mask == "causal" else 1.0) / n
    return math.pow(flat, 0.5 * (1.0 - sharp))


def unit_scaling_output(n: int, d_k: int, mask: str, mult: float = 1.0) -> float:
    """Return what the standard deviation of outputs is over that of the formula.

    Values are independent with variance 1.  Over all entries it is that of the
    gradients by the values, too, for gradients by the output of variance 1.
    """
    row = expected_row(n, d_k=d_k, divisor=d_k / mult, mask=mask)
    exact = math.sqrt(row["inverse_participation"].value)
    return exact / unit_scaling_std(n, d_k, mask, mult)


def unit_scaling_query(n: int, d_k: int, mult: float = 1.0) -> float:
    """Return what that of gradients by the queries is over the formula, without mask.

    Gradients by the output have variance 1, so that those by a weight have d_k.
    """
    passed = query_gradient_squared(n, d_k=d_k, divisor=d_k / mult).value
    return math.sqrt(passed) * mult / d_k / unit_scaling_std(n, d_k, "none", mult)


def sink_weight(n: int, std: float, gap: float) -> float:
    """Return the mean weight of a score that is N(Δ, s²)."""
    return expected_row(n, std=std, bias=gap)["biased_weight"].value


def capped_std(n: int, largest: float) -> float:
    """Return the s at which the largest of n² scores is so in the mean."""
    return largest / expected_maximum(n**2)


def capped_over_critical(n: int, largest: float) -> float:
    """Return that s over √(2 ln n)."""
    return capped_std(n, largest) / critical_std(n)


def capped_concentration(n: int, largest: float) -> float:
    """Return E Σp² of rows with that s."""
    return concentration(n, capped_std(n, largest))


def critical_largest(n: int) -> float:
    """Return the largest of n times n scores with s = √(2 ln n), in the mean."""
    return critical_std(n) * expected_maximum(n**2)


def cap_factor(largest: float) -> float:
    """Return what scores are multiplied by where they are capped at 100."""
    return min(1.0, 100.0 / largest)


# --- Queries and keys, undivided and divided by √d_k ----------------------------------


def undivided_over_scaled(name: str, n: int, d_k: int) -> float:
    """Return an expectation over rows of q·k over that of rows of q·k/√d_k."""
    none = expected_row(n, d_k=d_k, divisor="none")[name].value
    return none / expected_row(n, d_k=d_k, divisor="sqrt")[name].value


def scaled_ceiling(n: int, d_k: int) -> float:
    """Return 1 over E Σp² with √d_k: the ratio of a row that has all on one key."""
    return 1.0 / expected_row(n, d_k=d_k)["inverse_participation"].value


def query_gradient_ratio(n: int, d_k: int) -> float:
    """Return E |Kᵀ J v|² undivided over that with √d_k, the divisor itself left out."""
    none, sqrt = (
        query_gradient_squared(n, d_k=d_k, divisor=divisor).value
        for divisor in ("none", "sqrt")
    )
    return none / sqrt


def jacobian_limit(summary: str, n: int) -> float:
    """Return what ‖J‖_F of unscaled rows tends to for d_k without bound."""
    found = limit_of("jacobian_frobenius", summary, n)
    if found is None:
        raise ValueError(f"summary must have a limit, got {summary!r}")
    ends = {"zero": 0.0, "constant": found.constant, "infinity": math.inf}
    return ends[found.tends_to]


def small_jacobians(n: int, d_k: int) -> Estimate:
    """Estimate in what part of unscaled rows ‖J‖_F² is below its mean under √d_k.

    Rows of q·k are normal given |q|, so that no key need be drawn.
    """
    exact = expected_row(n, d_k=d_k)["jacobian_frobenius_squared"].value

    def below(rng: Generator, rows: Array) -> Array:
        p = softmax(np.sqrt(rng.chisquare(d_k, (len(rows), 1))) * rows, axis=1)
        squares = (p**2).sum(axis=1)
        return np.asarray(squares - 2.0 * (p**3).sum(axis=1) + squares**2 < exact)

    return _share(f"small_jacobians {n} {d_k}", n, below)


def score_exponent(correlation: float, smaller: int, d_k: int) -> float:
    """Return the exponent of √E (q·k)², E (q·k)² = d (1 + ρ²) + d² ρ², for two d_k."""
    square = correlation**2
    low, high = (d * (1.0 + square) + d * d * square for d in (smaller, d_k))
    return 0.5 * math.log(high / low) / math.log(d_k / smaller)


def score_exponent_limit(correlation: float) -> float:
    """Return it for d_k without bound: half of the degree of that polynomial."""
    return 1.0 if correlation else 0.5


# --- Bounds of the Jacobian -----------------------------------------------------------


def jacobian(weights: Array) -> Array:
    """Return diag(p) - p pᵀ."""
    return np.diag(weights) - np.outer(weights, weights)


def spectral_bound(n: int) -> float:
    """Return the largest (max u - min u)²/4 of a unit vector u, at least ‖J‖_2.

    Notes
    -----
    uᵀ J u is the variance of u under the weights, at most a quarter of the square of
    its range; the range of a unit vector is largest at (1, -1, 0, ...)/√2.
    """
    ends = np.zeros(n)
    ends[:2] = 1.0, -1.0
    return float(np.ptp(ends / np.linalg.norm(ends)) ** 2 / 4.0)


def two_halves_norm() -> float:
    """Return ‖J‖_2 where two keys have all of the weight, one half each."""
    return float(np.linalg.norm(jacobian(np.array([0.5, 0.5])), 2))


def searched_norm(n: int) -> float:
    """Return the largest ‖J‖_2 that a search over rows of scores finds."""
    return _search(lambda p: float(np.linalg.norm(jacobian(p), 2)), n)


def searched_entry(n: int) -> float:
    """Return the largest |J_ij| that a search over rows of scores finds."""
    return _search(lambda p: float(np.abs(jacobian(p)).max()), n)


def _search(value: Callable[[Array], float], n: int) -> float:
    def lost(scores: Array) -> float:
        return -value(softmax(scores))

    # eight rows that differ, without drawing any; Powell, since what is sought lies
    # where scores go to infinity and slopes vanish
    starts = 2.0 * np.sin(np.outer(np.arange(1, 9), np.arange(n) ** 2))
    least = min(minimize(lost, one, method="Powell").fun for one in starts)
    return round(-float(least), 12)  # what is beyond is rounding's, also above 1/2


# --- Short number formats -------------------------------------------------------------

#: Exponent of the least number of each format: what is at most half of it becomes 0.
LEAST_POWER = {"e4m3": -9, "e5m2": -16, "float16": -24, "bfloat16": -133}
#: Keys of the sink: the first of a sequence.
SINK_KEYS = 4


def lost_below(number_format: str, scale: float = 1.0) -> float:
    """Return how far below the largest score an exponential becomes 0."""
    return math.log(scale) + (1 - LEAST_POWER[number_format]) * math.log(2.0)


def sink_underflow(gap: float, scale: float) -> float:
    """Return the expected share of the other keys whose exponential becomes 0 in e4m3.

    Scores are N(0, 1), those of the sink N(Δ, 1), and the largest is that of a block of
    the sink alone, as where blocks are taken in their order.
    """
    lost = lost_below("e4m3", scale)
    return _over_largest(SINK_KEYS, lambda g: float(ndtr(gap + g - lost)))


def sink_formula(gap: float, scale: float) -> float:
    """Return it where the largest score of the sink is replaced by its mean."""
    lost = lost_below("e4m3", scale)
    return float(ndtr(gap + expected_maximum(SINK_KEYS) - lost))


def sink_over_formula(gap: float, scale: float) -> float:
    """Return the exact share over that."""
    return sink_underflow(gap, scale) / sink_formula(gap, scale)


def row_underflow(n: int, std: float, number_format: str) -> float:
    """Return the expected share of a row's exponentials that become 0."""
    lost = lost_below(number_format) / std
    # each of the other n - 1 keys, where one of n is the largest
    return _over_largest(n, lambda g: float((1 - 1 / n) * ndtr(g - lost) / ndtr(g)))


def _over_largest(n: int, value: Callable[[float], float]) -> float:
    """Return the mean of a function of the largest of n standard normal numbers."""

    def part(g: float) -> float:
        density = n * math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)
        return density * float(ndtr(g)) ** (n - 1) * value(g)

    return float(quad(part, -REACH, REACH, epsabs=1e-14, limit=400)[0])


def normalised_underflow(n: int, std: float, number_format: str) -> Estimate:
    """Estimate the share of a row's weights, divided by their sum, that become 0."""

    def lost(_: Generator, rows: Array) -> Array:
        weights = np.exp(log_softmax(std * rows, axis=1))
        rounded = ALL_FORMATS[number_format].round(weights)
        return np.asarray((rounded == 0.0).mean(axis=1))

    return _mean(f"normalised_underflow {n} {std} {number_format}", n, lost)


def below_one(std: float = 1.0) -> float:
    """Return how far below the largest score an exponential still rounds to 1.

    Half of the step below 1 is 2^(-bits - 1); a tie goes to 1, whose last bit is 0.
    """
    return -math.log1p(-(2.0 ** (-NUMBER_FORMATS["bfloat16"].bits - 1))) / std


def sink_is_one(n: int, std: float, gap: float) -> float:
    """Return the probability that an exponential of the sink's keys rounds to 1."""
    lift, near, others = gap / std, below_one(std), n - SINK_KEYS
    return _over_largest(SINK_KEYS, lambda g: float(ndtr(g + lift + near)) ** others)


def sink_is_one_ratio(n: int, std: float, gap: float) -> float:
    """Return it over the probability without a sink."""
    return sink_is_one(n, std, gap) / sink_is_one(n, std, 0.0)


def several_are_one(n: int, std: float, gap: float) -> float:
    """Return the probability that more than one exponential of a row rounds to 1.

    Notes
    -----
    Less than that the largest score, of a key of the sink or of another, has none near.
    """
    lift, near, others = gap / std, below_one(std), n - SINK_KEYS

    def alone(g: float) -> float:
        density = math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)
        own, far = ndtr(g - near), ndtr(g - lift - near)
        of_sink = SINK_KEYS * own ** (SINK_KEYS - 1) * ndtr(g + lift - near) ** others
        of_other = others * own ** (others - 1) * far**SINK_KEYS
        return float(density * (of_sink + of_other))

    return 1.0 - float(quad(alone, -REACH, REACH, epsabs=1e-13, limit=400)[0])


def several_rounded(n: int, std: float, gap: float) -> Estimate:
    """Estimate it where scores are rounded to bfloat16 as well."""
    rounding = ALL_FORMATS["bfloat16"].round

    def several(_: Generator, rows: Array) -> Array:
        scores = std * rows
        scores[:, :SINK_KEYS] += gap
        scores = rounding(scores)
        ones = rounding(np.exp(scores - scores.max(axis=1, keepdims=True))) == 1.0
        return np.asarray(ones.sum(axis=1) > 1)

    return _share(f"several_rounded {n} {std} {gap}", n, several)


# --- Cosines --------------------------------------------------------------------------


def first_gain(n: int) -> float:
    """Return log2(n² - n), where Henry et al. let the gain begin: of pairs of keys."""
    return math.log2(n * (n - 1))


def cosine_variance(d_k: int, gain: float) -> float:
    """Return the variance of a cosine, multiplied by the gain."""
    scores, probability = cosine_nodes(d_k, gain)
    return float((scores**2) @ probability)


def cosine_entropy(n: int, d_k: int, gain: float = 0.0) -> float:
    """Return the mean entropy of a row of cosines; without a gain, with the first."""
    return expect_cosines(d_k, n, gain or first_gain(n))["entropy"]


def cosine_over_scaled(n: int, d_k: int, gain: float) -> float:
    """Return the largest weight of rows of cosines over that of normal q·k/√d_k."""
    usual = expected_row(n, d_k=d_k)["weight_max"].value
    return expect_cosines(d_k, n, gain)["weight_max"] / usual


def aligned_weight(n: int, gap: float, gain: float = 0.0) -> float:
    """Return the weight of a key whose cosine is above that of the others by a gap."""
    return raised_weight(n, gap * (gain or first_gain(n)))


def aligned_weight_limit(gap: float, gain: float = 0.0) -> float:
    """Return it for n without bound.

    A fixed gain loses against n - 1 keys; log2(n² - n) is 2 log2 n in the limit, and n
    to the power of 2 Δ/ln 2 wins against them where Δ is above ln(2)/2.
    """
    return raised_weight_limit(gap, 0.0 if gain else 2.0 / math.log(2.0))


# --- Other normalisations than softmax ------------------------------------------------

#: Standard normal scores on an even grid, and their probabilities.
GRID = np.linspace(-REACH, REACH, 4001)
DENSITY = np.exp(-0.5 * GRID**2) / math.sqrt(2.0 * math.pi) * (GRID[1] - GRID[0])
#: An even grid of ln t, t the variable of a Laplace transform: both ends are nothing.
LOG_T = np.linspace(-60.0, 6.0, 6001)


def kept_weight(n: int, std: float, gap: float) -> float:
    """Return the sum of the weights beside a sink of a fixed score, in the mean.

    Notes
    -----
    That of the sink is the gap.  With Z the sum of exponentials less the gap,
    1 - E 1/(1 + Z), and 1/(1 + Z) = ∫ exp(-t - t Z) dt.
    """
    t, exponentials = np.exp(LOG_T), np.exp(std * GRID - gap)
    lost = np.array([DENSITY @ -np.expm1(-one * exponentials) for one in t])
    terms = t * np.exp(-t) * np.exp(n * log_complement(lost))
    return 1.0 - float(terms.sum() * (LOG_T[1] - LOG_T[0]))


def sigmoid_norm(n: int, std: float, biased: float) -> float:
    """Return E Σσ(x + b)² over E Σp² of softmax, b = -ln n where it is biased."""
    squares = expit(std * GRID - biased * math.log(n)) ** 2
    return n * float(DENSITY @ squares) / concentration(n, std)


def softpick_zeros(std: float, mean: float = 0.0) -> float:
    """Return the share of softpick's weights that are 0: of negative scores."""
    return float(ndtr(-mean / std))


def softpick_sum(n: int, std: float) -> float:
    """Return the sum of softpick's weights (e^x - 1)₊/Σ|e^x - 1| in the mean.

    Notes
    -----
    With A = Σ|e^x - 1|, 1/A = ∫ exp(-t A) dt: n times the integral of
    E[(e^x - 1)₊ exp(-t|e^x - 1|)] (E exp(-t|e^x - 1|))^(n-1) over t.
    """
    t, above = np.exp(LOG_T), np.expm1(std * GRID)
    size, own = np.abs(above), np.maximum(above, 0.0)
    lost = np.array([DENSITY @ -np.expm1(-one * size) for one in t])
    taken = np.array([DENSITY @ (own * np.exp(-one * size)) for one in t])
    terms = t * taken * np.exp((n - 1) * log_complement(lost))
    return n * float(terms.sum() * (LOG_T[1] - LOG_T[0]))


# --- What is drawn --------------------------------------------------------------------

#: A generator and standard normal rows -> a value of each row.
RowValue = Callable[[Generator, Array], Array]


def _values(name: str, n: int, value: RowValue) -> Iterator[Array]:
    """Yield a value of rows of n standard normal scores, until there are enough."""
    rng, rows = named_stream(SEED, f"papers {name}"), AT_ONCE // n
    for _ in range(SCORES // AT_ONCE):
        yield value(rng, rng.standard_normal((rows, n)))


def _mean(name: str, n: int, value: RowValue) -> Estimate:
    return mean_estimate(np.concatenate([*_values(name, n, value)]))


def _share(name: str, n: int, value: RowValue) -> Estimate:
    shares = np.concatenate([*_values(name, n, value)]).astype(np.float64)
    return share_estimate(shares, 1)


#: By their names, which papers.toml has.
QUANTITIES: dict[str, Callable[..., float | Estimate]] = {
    one.__name__: one
    for one in (
        *(raised_weight, raised_weight_limit, gap_exponent, gap_exponent_limit),
        *(concentration, concentration_limit, over_limit, over_critical),
        *(growth_exponent, growth_exponent_limit, growth_factor),
        *(extension_factor, position_factor, over_plain, sink_weight),
        *(unit_scaling_output, unit_scaling_query),
        *(capped_over_critical, capped_concentration, critical_largest, cap_factor),
        *(undivided_over_scaled, scaled_ceiling, query_gradient_ratio),
        *(jacobian_limit, small_jacobians, score_exponent, score_exponent_limit),
        *(spectral_bound, two_halves_norm, searched_norm, searched_entry),
        *(sink_underflow, sink_over_formula, row_underflow, normalised_underflow),
        *(sink_is_one, sink_is_one_ratio, several_are_one, several_rounded),
        *(cosine_variance, cosine_entropy, cosine_over_scaled),
        *(aligned_weight, aligned_weight_limit),
        *(kept_weight, sigmoid_norm, softpick_zeros, softpick_sum),
    )
}
