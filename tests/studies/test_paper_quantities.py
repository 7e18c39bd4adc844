"""Quantities of papers, each by a second way that shares no code with it."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from montecarlo.attention.number_formats import ALL_FORMATS
from montecarlo.estimation.estimates import Estimate
from montecarlo.theory import expected_row
from montecarlo.theory.row_integrals import ROW_NAMES, gaussian_profile, integrate_row
from studies import paper_quantities as pq

#: Standard errors that two ways may differ by: once in 500 million times.
FAR = 6.0


def assert_mean(values, expected):
    """Values that are drawn have an expected mean."""
    error = values.std() / math.sqrt(len(values))
    assert abs(values.mean() - expected) < FAR * error


def assert_ratio(over, under, expected):
    """Means of two samples have an expected ratio."""
    off = [one.std() / one.mean() / math.sqrt(len(one)) for one in (over, under)]
    ratio = over.mean() / under.mean()
    assert abs(expected / ratio - 1.0) < FAR * math.hypot(*off)


def weights_of(seed, shape, std=1.0, gap=0.0):
    """Weights of rows that are drawn, the first score raised."""
    scores = std * np.random.default_rng(seed).standard_normal(shape)
    scores[:, 0] += gap
    return special.softmax(scores, axis=1)


def attention(seed, rows, n, d_k, divisor):
    """Weights, keys and v of rows with every entry of queries and keys drawn."""
    rng = np.random.default_rng(seed)
    q, keys = rng.standard_normal((rows, d_k)), rng.standard_normal((rows, n, d_k))
    scores = np.einsum("rnd,rd->rn", keys, q) / divisor
    return special.softmax(scores, axis=1), keys, rng.standard_normal((rows, n))


def jacobians(p):
    """diag(p) - p pᵀ of each row."""
    return p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])


def local_exponent(name, level, n):
    """Return d ln s / d ln ln n at a number of keys: 1 where s grows like ln n."""
    ends = [n ** math.exp(sign * 1e-3) for sign in (-1.0, 1.0)]
    low, high = (pq.std_that_holds(name, level, one) for one in ends)
    return math.log(high / low) / 2e-3


# --- One score above equal ones -------------------------------------------------------


@pytest.mark.parametrize(("n", "factor"), [(10, None), (1000, None), (1000, 0.43)])
def test_raised_weight_is_that_of_the_row(n, factor):
    """Softmax of the row itself: all -2, one 3, as in the paper."""
    scores = np.full(n, -2.0)
    scores[-1] = 3.0
    if factor is not None:
        scores *= factor * math.log(n)
    found = pq.raised_weight(n, 5.0, factor)
    assert found == pytest.approx(special.softmax(scores)[-1], rel=1e-12)


@pytest.mark.parametrize("overlap", [0.2, 0.5, 0.8])
def test_one_half_stays_at_the_critical_growth(overlap):
    """n^γ of a token against n - 1 times n^(ργ): a weight of n/(2n - 1)."""
    for n in (10, 131072):
        found = pq.raised_weight(n, 1.0 - overlap, 1.0 / (1.0 - overlap))
        assert found == pytest.approx(n / (2 * n - 1), rel=1e-9)


@pytest.mark.parametrize("gap", [2.0, 4.0])
@pytest.mark.parametrize("growth", [0.0, 0.3, 0.5, 1.0])
def test_weight_of_a_raised_score_tends_to_its_limit(gap, growth):
    """At 10^6 keys it is nearer to it than at 10^3, or there already."""
    limit = pq.raised_weight_limit(gap, growth)
    far, near = (
        abs(pq.raised_weight(n, gap, growth or None) - limit) for n in (10**3, 10**6)
    )
    assert near < 0.7 * far
    assert near < 0.07


@pytest.mark.parametrize("level", [1.0, 2.0, 3.0])
def test_gap_that_holds_an_entropy_does(level):
    """By softmax of the row itself; and the exponent nears 1 as ln n grows."""
    for n in (64, 4096):
        scores = np.zeros(n)
        scores[0] = pq.gap_that_holds(level, math.log(n - 1))
        assert stats.entropy(special.softmax(scores)) == pytest.approx(level)
    assert pq.gap_exponent_limit(level) == pytest.approx(1.0, abs=1e-6)
    first, last = (pq.gap_that_holds(level, math.log(n - 1)) for n in (64, 4096))
    exponent = math.log(last / first) / math.log(2.0)  # ln 4096 is twice ln 64
    assert pq.gap_exponent(level, 64, 4096) == pytest.approx(exponent)
    early, late = (
        abs(math.log2(pq.gap_that_holds(level, 2.0 * n) / pq.gap_that_holds(level, n)))
        for n in (1e2, 1e4)
    )
    assert abs(late - 1.0) < 0.1 * abs(early - 1.0)


# --- Normal scores --------------------------------------------------------------------


def test_concentration_is_that_of_rows():
    """Drawn at an s, and at so many times the critical one; over the law as well."""
    for std, found in (
        (1.5, pq.concentration(32, 1.5)),
        (2.0 * pq.critical_std(32), pq.concentration(32, times=2.0)),
    ):
        squares = (weights_of(1, (20000, 32), std) ** 2).sum(axis=1)
        assert_mean(squares, found)
    critical = math.sqrt(2.0 * math.log(32))
    assert pq.over_critical(64, 32) == pytest.approx(8.0 / critical)
    law = pq.concentration(32, 8.0) / (1.0 - critical / 8.0)
    assert pq.over_limit(32, 8.0) == pytest.approx(law)


@pytest.mark.parametrize("times", [1.25, 2.0, 4.0])
def test_concentration_tends_to_its_limit(times):
    """Falling, by exact values to 10^12 keys."""
    limit = pq.concentration_limit(times)
    m = 1.0 / times
    assert limit == pytest.approx(stats.beta(1.0 - m, m).mean(), rel=1e-12)
    place = ROW_NAMES.index("inverse_participation")
    shares = []
    for n in (1e3, 1e6, 1e9, 1e12):
        std = times * math.sqrt(2.0 * math.log(n))
        row = integrate_row(gaussian_profile(np.array([std])), n)
        shares.append(float(row.values[0, place]) / limit - 1.0)
    assert all(0.0 < later < earlier for earlier, later in itertools.pairwise(shares))
    assert shares[-1] < 0.45 * shares[0]


@pytest.mark.parametrize(
    ("name", "level"), [("entropy", 2.0), ("inverse_participation", 0.5)]
)
def test_scale_that_holds_does(name, level):
    """The public oracle gives the level back."""
    for n in (64, 4096, 131072):
        std = pq.std_that_holds(name, level, n)
        assert expected_row(n, std=std)[name].value == pytest.approx(level)


def test_exponent_is_the_mean_of_local_ones():
    """Of ln ln n, by a quadrature of the local exponent; they fall towards 1/2."""
    low, high = math.log(math.log(64)), math.log(math.log(4096))

    def local(x):
        return local_exponent("entropy", 1.0, math.exp(math.exp(x)))

    mean = integrate.quad(local, low, high, epsrel=1e-6)[0] / (high - low)
    found = pq.growth_exponent("entropy", 1.0, 64, 4096)
    assert found == pytest.approx(mean, rel=1e-4)
    limit = pq.growth_exponent_limit(1.0)
    assert limit == pytest.approx(0.5, abs=1e-9)
    late = [local_exponent("entropy", 1.0, n) for n in (1e6, 1e9, 1e12)]
    assert late[0] > late[1] > late[2] > limit


def test_factors_of_models_are_those_of_their_code():
    """log1p(floor((position + 1)/8192)) * 0.1 + 1, from 0; (0.1 ln 32 + 1)² of YaRN."""
    for n in (2, 8191, 8192, 131072, 1048576):
        factor = np.log1p(np.floor(((n - 1) + 1.0) / 8192)) * 0.1 + 1.0
        assert pq.position_factor(n) == pytest.approx(float(factor), rel=1e-12)
    yarn = (0.1 * np.log(131072 / 4096) + 1.0) ** 2
    assert pq.extension_factor(4096, 131072) == pytest.approx(float(yarn))


@pytest.mark.parametrize("name", ["entropy", "inverse_participation"])
def test_a_sink_and_a_mask_are_those_of_rows(name):
    """Over rows without them, all drawn; under a mask row i has i keys."""
    n, rows, std = 24, 20000, 1.5

    def value(p):
        return stats.entropy(p, axis=1) if name == "entropy" else (p**2).sum(axis=1)

    plain, behind = weights_of(2, (rows, n), std), weights_of(3, (rows, n), std, 3.0)
    assert_ratio(value(behind), value(plain), pq.over_plain(name, n, std, 3.0))
    assert_mean(behind[:, 0], pq.sink_weight(n, std, 3.0))
    masked = [value(weights_of(4 + i, (rows, i), std)) for i in range(1, n + 1)]
    found = pq.over_plain(name, n, std, mask="causal")
    assert_ratio(np.mean(masked, axis=0), value(plain), found)


@pytest.mark.parametrize("mult", [1.0, 3.0])
def test_outputs_and_query_gradients_beside_a_form(mult):
    """Entries of both, drawn with values and a gradient by the output; the form's
    logarithm lies between those of its two ends.
    """
    n, d_k, rows = 24, 8, 20000
    p, keys, _ = attention(7, rows, n, d_k, d_k / mult)
    rng = np.random.default_rng(8)
    values, by_output = (
        rng.standard_normal((rows, n, d_k)),
        rng.standard_normal((rows, d_k)),
    )
    part = mult**2 / (4 * d_k + mult**2)
    form = math.exp((1 - part) * math.log(math.sqrt(1 / n)))
    outputs = np.einsum("rn,rnd->rd", p, values)
    squared = (pq.unit_scaling_output(n, d_k, "none", mult) * form) ** 2
    assert_mean((outputs**2).mean(axis=1), squared)
    by_weights = np.einsum("rnd,rd->rn", values, by_output)
    by_scores = np.einsum("rij,rj->ri", jacobians(p), by_weights)
    by_query = np.einsum("rnd,rn->rd", keys, by_scores) * mult / d_k
    expected = (pq.unit_scaling_query(n, d_k, mult) * form) ** 2
    assert_mean((by_query**2).mean(axis=1), expected)
    log_form = math.log(pq.unit_scaling_std(n, d_k, "causal", mult))
    assert log_form == pytest.approx((1 - part) * math.log(math.log(n) / n) / 2)


def test_capped_scores_are_at_the_cap():
    """Of n times n scores that are drawn the largest is so in the mean."""
    n = 32
    z = np.random.default_rng(5).standard_normal((5000, n**2)).max(axis=1)
    std, critical = pq.capped_std(n, 100.0), math.sqrt(2.0 * math.log(n))
    assert_mean(std * z, 100.0)
    assert_mean(critical * pq.capped_over_critical(n, 100.0) * z, 100.0)
    assert_mean(critical * z, pq.critical_largest(n))
    squares = (weights_of(6, (20000, n), std) ** 2).sum(axis=1)
    assert_mean(squares, pq.capped_concentration(n, 100.0))


def test_cap_multiplies_scores_as_the_rule_does():
    """Queries and keys by the root of it: the largest score is then at the cap."""
    rng = np.random.default_rng(7)
    q, k = 20.0 * rng.standard_normal((2, 50, 8))
    root = math.sqrt(pq.cap_factor((q @ k.T).max()))
    assert ((root * q) @ (root * k).T).max() == pytest.approx(100.0)
    assert pq.cap_factor(50.0) == 1.0


# --- Queries and keys, and the Jacobian -----------------------------------------------


def test_ratios_are_those_of_queries_and_keys():
    """Undivided over divided, of Σp², of ‖J‖_F² and of the gradient by the query."""
    n, d_k, rows = 16, 8, 20000
    found = []
    for seed, divisor in ((8, 1.0), (9, math.sqrt(d_k))):
        p, keys, v = attention(seed, rows, n, d_k, divisor)
        moved = p * v - p * (p * v).sum(axis=1, keepdims=True)
        gradient = (np.einsum("rnd,rn->rd", keys, moved) ** 2).sum(axis=1)
        jacobian = (jacobians(p) ** 2).sum(axis=(1, 2))
        found.append(((p**2).sum(axis=1), jacobian, gradient))
    for over, under, expected in zip(
        *found,
        (
            pq.undivided_over_scaled("inverse_participation", n, d_k),
            pq.undivided_over_scaled("jacobian_frobenius_squared", n, d_k),
            pq.query_gradient_ratio(n, d_k),
        ),
        strict=True,
    ):
        assert_ratio(over, under, expected)
    assert_mean(found[1][0], 1.0 / pq.scaled_ceiling(n, d_k))


def test_small_jacobians_are_those_of_matrices(monkeypatch):
    """In what part of rows ‖diag(p) - p pᵀ‖² is below its mean, with keys drawn."""
    monkeypatch.setattr(pq, "SCORES", 2 * pq.AT_ONCE)
    n, d_k = 12, 8
    p, _, _ = attention(6, 20000, n, d_k, 1.0)
    exact = expected_row(n, d_k=d_k)["jacobian_frobenius_squared"].value
    below = (jacobians(p) ** 2).sum(axis=(1, 2)) < exact
    ours = pq.small_jacobians(n, d_k)
    error = math.hypot(ours.std_error, below.std() / math.sqrt(len(below)))
    assert abs(ours.value - below.mean()) < FAR * error


def test_jacobian_without_a_divisor_tends_to_nothing():
    """In the mean and in the median, whatever it is at d_k = 64."""
    for summary in ("mean", "median"):
        assert pq.jacobian_limit(summary, 128) == 0.0
    with pytest.raises(ValueError, match="summary"):
        pq.jacobian_limit("mode", 128)


@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.5])
def test_scores_grow_as_pairs_that_are_drawn_do(correlation):
    """E (Σ q_i k_i)² by moments of one pair, d Var + d² mean²; and in the limit."""
    q, weight = np.polynomial.hermite_e.hermegauss(12)
    weight = weight / weight.sum()
    across = math.sqrt(1.0 - correlation**2)
    product = q[:, None] * (correlation * q[:, None] + across * q[None, :])
    joint = weight[:, None] * weight[None, :]
    mean, square = (joint * product).sum(), (joint * product**2).sum()
    low, high = (d * (square - mean**2) + (d * mean) ** 2 for d in (64, 256))
    found = pq.score_exponent(correlation, 64, 256)
    assert found == pytest.approx(0.5 * math.log(high / low) / math.log(4.0), rel=1e-9)
    late = pq.score_exponent(correlation, 2**19, 2**20)
    assert pq.score_exponent_limit(correlation) == pytest.approx(late, abs=1e-3)


def test_search_finds_what_a_fine_grid_finds():
    """Of three weights: no spectral norm above one half, no entry above one quarter."""
    steps = np.linspace(0.0, 1.0, 101)
    pairs = np.array([(a, b) for a in steps for b in steps if a + b <= 1.0])
    matrices = jacobians(np.column_stack([pairs, 1.0 - pairs.sum(axis=1)]))
    norm = np.linalg.eigvalsh(matrices)[:, -1].max()
    assert pq.searched_norm(3) == pytest.approx(norm, abs=1e-6)
    assert pq.searched_entry(3) == pytest.approx(np.abs(matrices).max(), abs=1e-6)
    assert pq.two_halves_norm() == 0.5


@pytest.mark.parametrize("n", [2, 16])
def test_no_row_is_beyond_the_proven_bound(n):
    """Of rows and unit vectors that are drawn; the range of a vector bounds it."""
    rng = np.random.default_rng(3)
    most = pq.spectral_bound(n)
    assert most == pytest.approx(0.5)
    p, u = weights_of(4, (500, n), 4.0), rng.standard_normal((500, n))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    variance = (p * u**2).sum(axis=1) - (p * u).sum(axis=1) ** 2
    assert np.all(variance <= np.ptp(u, axis=1) ** 2 / 4.0 + 1e-12)
    assert np.all(np.ptp(u, axis=1) ** 2 / 4.0 <= most + 1e-12)


# --- Short number formats -------------------------------------------------------------


@pytest.mark.parametrize("std", [1.0, 3.0])
@pytest.mark.parametrize("name", ["e4m3", "e5m2", "float16"])
def test_underflow_in_a_row_is_that_of_its_order_statistics(std, name):
    """By the distribution of the largest of n, and of another key below it."""
    n, gap = 16, pq.lost_below(name)

    def part(g):  # of n - 1 keys, each N(0, 1) cut off at g
        largest = n * stats.norm.pdf(g) * stats.norm.cdf(g) ** (n - 1)
        share = (n - 1) / n * stats.norm.cdf(g - gap / std) / stats.norm.cdf(g)
        return largest * share

    expected, _ = integrate.quad(part, -9, 9, limit=400)
    found = pq.row_underflow(n, std, name)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-15)


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "float16", "bfloat16"])
def test_what_is_lost_is_what_rounding_makes_zero(name):
    """Just below that distance, and not just above it; a factor S moves it by ln S."""
    for scale in (1.0, 256.0):
        far = pq.lost_below(name, scale)
        below, above = scale * np.exp([-far * (1 + 1e-9), -far * (1 - 1e-9)])
        rounded = ALL_FORMATS[name].round(np.array([below, above]))
        assert rounded.astype(bool).tolist() == [False, True]


@pytest.mark.parametrize(("gap", "scale"), [(2.0, 1.0), (6.0, 1.0), (8.0, 256.0)])
def test_underflow_behind_a_sink_is_that_of_a_difference(gap, scale):
    """P(x - m < Δ - 10 ln 2 - ln S), by the density of m on a grid."""
    m = np.linspace(-8.0, 8.0, 20001)
    density = np.gradient(stats.norm.cdf(m) ** 4, m)
    lost = stats.norm.cdf(gap + m - 10 * math.log(2.0) - math.log(scale))
    expected = integrate.trapezoid(density * lost, m)
    assert pq.sink_underflow(gap, scale) == pytest.approx(expected, rel=1e-5)
    formula = stats.norm.cdf(gap + 1.0294 - 6.9315 - math.log(scale))
    found = pq.sink_over_formula(gap, scale)
    assert found == pytest.approx(expected / formula, rel=1e-3)


def test_underflow_after_division_is_that_of_a_normal_score(monkeypatch):
    """Of many keys the sum is n exp(s²/2), so that x below ln(2^-10 n) + s²/2 is lost;
    to a percentage point.
    """
    monkeypatch.setattr(pq, "SCORES", 2 * pq.AT_ONCE)
    found = pq.normalised_underflow(4096, 1.0, "e4m3")
    expected = stats.norm.cdf(-10.0 * math.log(2.0) + math.log(4096) + 0.5)
    assert found.value == pytest.approx(expected, abs=0.01)
    assert found.value > 0.96


def to_bfloat16(values):
    """Round to bfloat16 by the bits of float32, ties to an even last bit."""
    bits = values.astype(np.float32).view(np.uint32)
    bits = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (bits & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("gap", [0.0, 0.02, 0.05])
def test_exponentials_that_are_one_are_those_of_rows(gap):
    """Of rows with small s, where many are, each rounded by its bits."""
    n, std = 16, 0.02
    scores = std * np.random.default_rng(12).standard_normal((40000, n))
    scores[:, :4] += gap
    ones = to_bfloat16(np.exp(scores - scores.max(axis=1, keepdims=True))) == 1.0
    sink = pq.sink_is_one(n, std, gap)
    assert_mean(ones[:, :4].any(axis=1).astype(float), sink)
    assert_mean((ones.sum(axis=1) > 1).astype(float), pq.several_are_one(n, std, gap))
    usual = pq.sink_is_one(n, std, 0.0)
    assert pq.sink_is_one_ratio(n, std, gap) == pytest.approx(sink / usual)


def test_an_exponential_rounds_to_one_from_the_middle_on():
    """1 - 2^-9 is a tie, and goes to 1; the number below it does not."""
    assert math.exp(-pq.below_one()) == pytest.approx(1.0 - 2.0**-9, rel=1e-15)
    middle = np.array([1.0 - 2.0**-9, np.nextafter(1.0 - 2.0**-9, 0.0)])
    assert ALL_FORMATS["bfloat16"].round(middle).tolist() == [1.0, 1.0 - 2.0**-8]


def test_rounded_scores_have_more_equal_maxima(monkeypatch):
    """Scores, and exponentials, rounded by their bits; behind a sink, too."""
    monkeypatch.setattr(pq, "SCORES", 2 * pq.AT_ONCE)
    n = 64
    for gap in (0.0, 3.0):
        scores = np.random.default_rng(13).standard_normal((40000, n))
        scores[:, :4] += gap
        scores = to_bfloat16(scores)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        share = ((to_bfloat16(e) == 1.0).sum(axis=1) > 1).mean()
        drawn = pq.several_rounded(n, 1.0, gap)
        noise = math.sqrt(share * (1.0 - share) / len(scores))
        assert abs(drawn.value - share) < FAR * math.hypot(drawn.std_error, noise)
        assert drawn.value > 2.0 * pq.several_are_one(n, 1.0, gap)


# --- Cosines, and other normalisations than softmax -----------------------------------


def rows_of_cosines(seed, rows, n, d_k):
    """Draw rows of cosines with every entry of queries and keys drawn."""
    rng = np.random.default_rng(seed)
    q, keys = rng.standard_normal((rows, d_k)), rng.standard_normal((rows, n, d_k))
    lengths = np.linalg.norm(keys, axis=2) * np.linalg.norm(q, axis=1)[:, None]
    return np.einsum("rnd,rd->rn", keys, q) / lengths


@pytest.mark.parametrize("d_k", [3, 64, 256])
def test_variance_of_a_cosine_is_that_of_a_beta_distribution(d_k):
    """Its square is Beta(1/2, (d - 1)/2)."""
    for gain in (1.0, math.sqrt(d_k)):
        square = stats.beta(0.5, 0.5 * (d_k - 1)).mean()
        found = pq.cosine_variance(d_k, gain)
        assert found == pytest.approx(gain**2 * square, rel=1e-10)


def test_rows_of_cosines_are_those_of_vectors():
    """Entropy at two gains, and the largest weight over that of q·k/√d_k."""
    n, d_k = 12, 5
    cosines = rows_of_cosines(2, 20000, n, d_k)
    for gain, told in ((3.0, 3.0), (math.log2(n**2 - n), 0.0)):
        entropy = stats.entropy(special.softmax(gain * cosines, axis=1), axis=1)
        assert_mean(entropy, pq.cosine_entropy(n, d_k, told))
    usual, _, _ = attention(3, 20000, n, d_k, math.sqrt(d_k))
    for gain in (1.0, 10.0):
        largest = special.softmax(gain * cosines, axis=1).max(axis=1)
        found = pq.cosine_over_scaled(n, d_k, gain)
        assert_ratio(largest, usual.max(axis=1), found)


@pytest.mark.parametrize(("gap", "gain"), [(2.0, 1.0), (1.0, 0.0), (0.3, 0.0)])
def test_weight_of_a_cosine_is_that_of_the_row(gap, gain):
    """Softmax of the cosines themselves, of which log2 counts the pairs of keys."""
    for n in (10, 1000):
        pairs = np.count_nonzero(~np.eye(n, dtype=bool))
        cosines = np.full(n, 1.0 - gap)
        cosines[0] = 1.0
        weight = special.softmax((gain or np.log2(pairs)) * cosines)[0]
        assert pq.aligned_weight(n, gap, gain) == pytest.approx(weight, rel=1e-10)


@pytest.mark.parametrize(
    ("gap", "gain"), [(2.0, 1.0), (1.0, 0.0), (0.5, 0.0), (0.2, 0.0)]
)
def test_weight_of_a_cosine_tends_to_its_limit(gap, gain):
    """At 10^6 keys it is nearer to it than at 10^3."""
    limit = pq.aligned_weight_limit(gap, gain)
    far, near = (abs(pq.aligned_weight(n, gap, gain) - limit) for n in (10**3, 10**6))
    assert near < 0.3 * far


def mean_of_two(value):
    """Return the mean of a value of two standard normal scores, on a fine grid."""
    x = np.linspace(-8.0, 8.0, 801)
    density = stats.norm.pdf(x) * (x[1] - x[0])
    return float(density @ value(x[:, None], x[None, :]) @ density)


@pytest.mark.parametrize("gap", [0.0, 3.0])
def test_sum_beside_a_sink_is_that_of_two_scores(gap):
    """By a double integral; and of many by rows that are drawn."""

    def kept(x, y):
        z = np.exp(x) + np.exp(y)
        return z / (z + math.exp(gap))

    found = pq.kept_weight(2, 1.0, gap)
    assert found == pytest.approx(mean_of_two(kept), rel=1e-6)
    z = np.exp(2.0 * np.random.default_rng(4).standard_normal((20000, 40))).sum(axis=1)
    assert_mean(z / (z + math.exp(gap)), pq.kept_weight(40, 2.0, gap))


@pytest.mark.parametrize("std", [1.0, 4.0])
@pytest.mark.parametrize("biased", [0.0, 1.0])
def test_norm_of_sigmoid_attention_is_that_of_outputs(std, biased):
    """Over that of softmax, with values of several entries drawn as well."""
    n, rows = 24, 40000
    scores, values = np.random.default_rng(8).standard_normal((2, rows, n))
    scores *= std
    weights = 1.0 / (1.0 + np.exp(biased * math.log(n) - scores))
    sigmoid, softmax = (
        ((one * values).sum(axis=1)) ** 2
        for one in (weights, special.softmax(scores, axis=1))
    )
    assert_ratio(sigmoid, softmax, pq.sigmoid_norm(n, std, biased))


def test_softpick_is_that_of_its_formula():
    """(e^x - 1)₊/Σ|e^x - 1|: its sum by a double integral and of rows, its zeros."""

    def total(x, y):
        x, y = np.expm1(x), np.expm1(y)
        return (np.maximum(x, 0.0) + np.maximum(y, 0.0)) / (abs(x) + abs(y) + 1e-300)

    found = pq.softpick_sum(2, 1.0)
    assert found == pytest.approx(mean_of_two(total), abs=1e-3)  # it has a corner
    scores = np.random.default_rng(10).standard_normal((40000, 40))
    above = np.exp(scores) - 1.0
    sums = np.maximum(above, 0.0).sum(axis=1) / np.abs(above).sum(axis=1)
    assert_mean(sums, pq.softpick_sum(40, 1.0))
    for mean in (0.0, 1.0):
        zeros = np.maximum(np.exp(scores + mean) - 1.0, 0.0) == 0.0
        assert_mean(zeros.mean(axis=1), pq.softpick_zeros(1.0, mean))


def test_that_nothing_was_lost_is_no_certainty(monkeypatch):
    """What no row has is bounded from above: a share of rows has binomial intervals."""
    monkeypatch.setattr(pq, "SCORES", pq.AT_ONCE)
    found = pq._share("never", 64, lambda _, rows: rows[:, 0] > 99.0)
    assert isinstance(found, Estimate)
    assert found.value == 0.0
    assert 0.0 < found.interval(0.001)[1] < 0.01
