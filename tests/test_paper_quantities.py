"""Quantities of papers, each by a second way that shares no code with it."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from montecarlo.attention.number_formats import FLOAT8, ROUNDINGS
from montecarlo.claims.papers import Setting
from montecarlo.sampling.streams import ModelRows
from montecarlo.theory import expected_row
from montecarlo.theory.row_integrals import ROW_NAMES, gaussian_profile, integrate_row
from studies import paper_quantities as pq

#: Standard errors that two ways may differ by: once in 500 million times.
FAR = 6.0


def local_exponent(holds, level, n_keys):
    """Return d ln s / d ln ln n at a number of keys: 1 where s grows like ln n."""
    ends = [n_keys ** math.exp(sign * 1e-3) for sign in (-1.0, 1.0)]
    low, high = (pq.std_that_holds(holds, level, one) for one in ends)
    return math.log(high / low) / 2e-3


@pytest.mark.parametrize(("n_keys", "factor"), [(10, None), (1000, None), (1000, 0.43)])
def test_raised_weight_is_that_of_the_row(n_keys, factor):
    """Softmax of the row itself: all -2, one 3, as in the paper."""
    scores = np.full(n_keys, -2.0)
    scores[-1] = 3.0
    if factor is not None:
        scores *= factor * math.log(n_keys)
    found = pq.raised_weight(Setting(n_keys=n_keys, gap=5.0, growth=factor))
    assert found == pytest.approx(special.softmax(scores)[-1], rel=1e-12)


@pytest.mark.parametrize("overlap", [0.2, 0.5, 0.8])
def test_one_half_stays_at_the_critical_growth(overlap):
    """n^γ of a token against n - 1 times n^(ργ): a weight of n/(2n - 1)."""
    gap, gamma = 1.0 - overlap, 1.0 / (1.0 - overlap)
    for n_keys in (10, 131072):
        found = pq.raised_weight(Setting(n_keys=n_keys, gap=gap, growth=gamma))
        assert found == pytest.approx(n_keys / (2 * n_keys - 1), rel=1e-9)


@pytest.mark.parametrize(
    ("holds", "level", "name"),
    [("entropy", 2.0, "entropy"), ("concentration", 0.5, "inverse_participation")],
)
def test_scale_that_holds_does(holds, level, name):
    """The public oracle gives the level back, and 30 of its values the same root."""
    for n_keys in (64, 4096, 131072):
        std = pq.std_that_holds(holds, level, n_keys)
        assert expected_row(n_keys, std=std)[name].value == pytest.approx(level)


def test_entropy_of_two_nats_is_held_where_it_was_found_before():
    """s(n) for n = 64 to 16384, as found by another program to three digits."""
    known = {64: 2.727, 256: 3.681, 1024: 4.483, 4096: 5.186, 16384: 5.818}
    for n_keys, std in known.items():
        found = pq.std_that_holds("entropy", 2.0, n_keys)
        assert found == pytest.approx(std, abs=6e-4)


def test_mean_exponent_is_the_mean_of_local_ones():
    """Of ln ln n, by a quadrature of the local exponent."""
    low, high = math.log(math.log(64)), math.log(math.log(4096))

    def local(x):
        return local_exponent("entropy", 1.0, math.exp(math.exp(x)))

    mean = integrate.quad(local, low, high, epsrel=1e-6)[0] / (high - low)
    found = pq.mean_exponent("entropy", 1.0, 64, 4096)
    assert found == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize("std", [1.0, 3.0])
@pytest.mark.parametrize("name", ["e4m3", "e5m2", "float16"])
def test_underflow_in_a_row_is_that_of_its_order_statistics(std, name):
    """By the distribution of the largest of n, and of another key below it."""
    n, gap = 16, pq.gap_of(Setting(number_format=name))

    def largest(g):
        return n * stats.norm.pdf(g) * stats.norm.cdf(g) ** (n - 1)

    def share(g):  # of n - 1 keys, each N(0, 1) cut off at g
        return (n - 1) / n * stats.norm.cdf(g - gap / std) / stats.norm.cdf(g)

    expected, _ = integrate.quad(lambda g: largest(g) * share(g), -9, 9, limit=400)
    found = pq.in_row(Setting(n_keys=n, std=std, number_format=name))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-15)


@pytest.mark.parametrize("gap", [2.0, 6.0])
def test_underflow_behind_a_sink_is_that_of_a_difference(gap):
    """P(x - m < Δ - 10 ln 2), by the density of m on a grid."""
    m = np.linspace(-8.0, 8.0, 20001)
    density = np.gradient(stats.norm.cdf(m) ** 4, m)
    lost = stats.norm.cdf(gap + m - 10 * math.log(2.0))
    expected = integrate.trapezoid(density * lost, m)
    at = Setting(std=1.0, gap=gap, scale=1.0, number_format="e4m3")
    assert pq.behind_sink(at) == pytest.approx(expected, rel=1e-5)


def eight_bits(name):
    """Every finite number of a format of eight bits, from its bits."""
    exponent_bits, fraction_bits, bias = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15)}[name]
    found = []
    for exponent, fraction in itertools.product(
        range(2**exponent_bits), range(2**fraction_bits)
    ):
        part = fraction / 2**fraction_bits
        if name == "e5m2" and exponent == 31:
            continue  # infinity and no numbers
        if name == "e4m3" and (exponent, fraction) == (15, 7):
            continue  # no number
        if exponent == 0:
            found.append(part * 2.0 ** (1 - bias))
        else:
            found.append((1.0 + part) * 2.0 ** (exponent - bias))
    return np.array(found)


@pytest.mark.parametrize("name", FLOAT8)
def test_rounding_to_eight_bits_finds_the_nearest_number(name):
    """Each number stays, ties go to an even fraction, and sign and zero are kept."""
    numbers = eight_bits(name)
    assert np.array_equal(ROUNDINGS[name](numbers.copy()), numbers)
    assert np.array_equal(ROUNDINGS[name](-numbers), -numbers)
    middles = 0.5 * (numbers[1:] + numbers[:-1])
    even = np.where(np.arange(len(middles)) % 2 == 0, numbers[:-1], numbers[1:])
    assert np.array_equal(ROUNDINGS[name](middles), even)
    low = middles * (1 - 1e-9)
    assert np.array_equal(ROUNDINGS[name](low), numbers[:-1])
    step = numbers[-1] - numbers[-2]
    beyond = ROUNDINGS[name](np.array([numbers[-1] + 0.51 * step]))
    assert np.isinf(beyond).all()


@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
def test_second_moment_is_that_of_gaussian_pairs(correlation):
    """E (Σ q_i k_i)² by moments of one pair: d Var + d² mean²."""
    q, weight = np.polynomial.hermite_e.hermegauss(12)
    weight = weight / weight.sum()
    across = math.sqrt(1.0 - correlation**2)
    product = q[:, None] * (correlation * q[:, None] + across * q[None, :])
    joint = weight[:, None] * weight[None, :]
    mean, square = (joint * product).sum(), (joint * product**2).sum()
    for d_k in (1, 64):
        expected = d_k * (square - mean**2) + (d_k * mean) ** 2
        assert pq.second_moment(d_k, correlation) == pytest.approx(expected, rel=1e-10)
    at = Setting(from_d_k=64, d_k=256, correlation=0.0)
    assert pq.score_exponent(at) == pytest.approx(0.5)


def test_gradient_by_the_query_is_that_of_keys_that_are_drawn():
    """Kᵀ (diag(p) - p pᵀ) v with all keys drawn; ratios within 6 standard errors."""
    n_keys, d_k, rows = 24, 8, 20000
    rng = np.random.default_rng(5)
    found = []
    for divisor in (1.0, math.sqrt(d_k)):
        q = rng.standard_normal((rows, d_k))
        keys = rng.standard_normal((rows, n_keys, d_k))
        v = rng.standard_normal((rows, n_keys))
        p = special.softmax(np.einsum("rnd,rd->rn", keys, q) / divisor, axis=1)
        moved = p * v - p * (p * v).sum(axis=1, keepdims=True)
        gradient = np.einsum("rnd,rn->rd", keys, moved) / divisor
        squares = (gradient**2).sum(axis=1)
        found.append((squares.mean(), squares.std() / math.sqrt(rows)))
    (none, none_error), (sqrt, sqrt_error) = found
    ratio = none / sqrt / d_k  # but for what the divisor itself makes of it
    error = ratio * math.hypot(none_error / none, sqrt_error / sqrt)
    ours = pq.query_gradients(ModelRows(1, "test"), Setting(n_keys=n_keys, d_k=d_k))
    assert abs(ours.value - ratio) < FAR * math.hypot(error, ours.std_error)


def test_small_jacobians_are_those_of_matrices():
    """In what part of rows ‖diag(p) - p pᵀ‖² is below its mean, with keys drawn."""
    n_keys, d_k, rows = 12, 8, 20000
    rng = np.random.default_rng(6)
    q = rng.standard_normal((rows, d_k))
    p = special.softmax(
        np.einsum("rnd,rd->rn", rng.standard_normal((rows, n_keys, d_k)), q), axis=1
    )
    matrices = p[:, :, None] * (np.eye(n_keys) - p[:, None, :])
    exact = expected_row(n_keys, d_k=d_k)["jacobian_frobenius_squared"].value
    share = ((matrices**2).sum(axis=(1, 2)) < exact).mean()
    ours = pq.small_jacobians(ModelRows(1, "test"), Setting(n_keys=n_keys, d_k=d_k))
    error = math.hypot(ours.std_error, math.sqrt(share * (1.0 - share) / rows))
    assert abs(ours.value - share) < FAR * error


def test_row_of_one_key_has_all_of_the_weight():
    """As the first row of a causal mask."""
    one = np.array([[3.0]])
    found = [
        float(of(one)[0])
        for of in (pq.entropy_of, pq.concentration_of, pq.frobenius_of)
    ]
    assert found == [0.0, 1.0, 0.0]


def test_search_finds_what_a_fine_grid_finds():
    """Of three weights: no spectral norm above one half, no entry above one quarter."""
    steps = np.linspace(0.0, 1.0, 101)
    norms, entries = [], []
    for a, b in itertools.product(steps, steps):
        if a + b <= 1.0:
            p = np.array([a, b, 1.0 - a - b])
            jacobian = np.diag(p) - np.outer(p, p)
            norms.append(np.linalg.eigvalsh(jacobian)[-1])
            entries.append(np.abs(jacobian).max())
    at = Setting(n_keys=3)
    assert pq.searched_norm(at) == pytest.approx(max(norms), abs=1e-6)
    assert pq.searched_entry(at) == pytest.approx(max(entries), abs=1e-6)
    assert pq.spectral_norm(at) == 0.5


def test_search_has_right_slopes():
    """What the search follows is the gradient of what it looks for."""
    for search in (pq.lost_norm, pq.lost_entry):
        scores = np.array([0.3, -0.7, 1.1, 0.2])
        off = optimize.check_grad(
            lambda x, s=search: s(x)[0], lambda x, s=search: s(x)[1], scores
        )
        assert off < 1e-6


@pytest.mark.parametrize("name", ["mask-entropy", "mask-concentration"])
def test_rows_of_a_mask_stand_for_all_of_them(name):
    """Weighted as they are, drawn rows give the mean over every length."""
    at = Setting(n_keys=200, std=1.0)
    drawn = pq.MEASURES[name].draw(ModelRows(2, name), at)
    assert abs(drawn.value - pq.MEASURES[name].exact(at)) < FAR * drawn.std_error


def test_that_nothing_was_lost_is_no_certainty():
    """No weight of the rows drawn became 0: the interval still has an upper end."""
    at = Setting(n_keys=4096, std=1.0, number_format="float16")
    found = pq.drawn_in_row(ModelRows(1, "none lost"), at)
    low, high = found.interval(0.001)
    assert found.value == 0.0
    assert low <= 0.0 < high < 0.01


@pytest.mark.parametrize("gap", [2.0, 4.0])
@pytest.mark.parametrize("growth_factor", [None, 0.3, 0.5, 1.0])
def test_weight_of_a_raised_score_tends_to_its_limit(gap, growth_factor):
    """At 10^6 keys it is nearer to it than at 10^3, or there already."""
    limit = pq.raised_weight_limit(Setting(gap=gap, growth=growth_factor))
    far, near = (
        abs(pq.raised_weight(Setting(n_keys=n, gap=gap, growth=growth_factor)) - limit)
        for n in (10**3, 10**6)
    )
    assert near < 0.7 * far
    assert near < 0.07


@pytest.mark.parametrize("times", [1.25, 2.0, 4.0])
def test_concentration_tends_to_its_limit(times):
    """Falling, by exact values to 10^12 keys."""
    limit = pq.concentration_limit(Setting(times=times))
    m = 1.0 / times
    assert limit == pytest.approx(stats.beta(1.0 - m, m).mean(), rel=1e-12)
    place = ROW_NAMES.index("inverse_participation")
    shares = []
    for n_keys in (1e3, 1e6, 1e9, 1e12):
        std = times * math.sqrt(2.0 * math.log(n_keys))
        row = integrate_row(gaussian_profile(np.array([std])), n_keys)
        shares.append(float(row.values[0, place]) / limit - 1.0)
    assert all(0.0 < later < earlier for earlier, later in itertools.pairwise(shares))
    assert shares[-1] < 0.45 * shares[0]


def test_concentration_below_the_critical_scale_tends_to_nothing():
    """At half of it E Σp² falls with n, as n^(-1/2) times a logarithm at most."""
    assert pq.concentration_limit(Setting(times=0.5)) == 0.0
    found = []
    for n_keys in (10**3, 10**6):
        std = 0.5 * math.sqrt(2.0 * math.log(n_keys))
        found.append(expected_row(n_keys, std=std)["inverse_participation"].value)
    assert found[1] < 0.1 * found[0]


@pytest.mark.parametrize("level", [1.0, 2.0, 3.0])
def test_gap_that_holds_an_entropy_does(level):
    """By softmax of the row itself; and the exponent nears 1 as ln n grows."""
    for n_keys in (64, 4096):
        scores = np.zeros(n_keys)
        scores[0] = pq.gap_that_holds(level, math.log(n_keys - 1))
        assert stats.entropy(special.softmax(scores)) == pytest.approx(level)
    at = Setting(holds="entropy", level=level)
    assert pq.gap_exponent_limit(at) == pytest.approx(1.0, abs=1e-6)
    early, late = (
        abs(math.log(last / first) / math.log(2.0) - 1.0)
        for first, last in (
            (pq.gap_that_holds(level, n), pq.gap_that_holds(level, 2.0 * n))
            for n in (1e2, 1e4)
        )
    )
    assert late < 0.1 * early


def test_exponent_of_normal_scores_tends_to_one_half():
    """As local ones fall towards it, at 10^6, 10^9 and 10^12 keys."""
    limit = pq.normal_exponent_limit(Setting(holds="entropy", level=1.0))
    assert limit == pytest.approx(0.5, abs=1e-9)
    local = [local_exponent("entropy", 1.0, n) for n in (1e6, 1e9, 1e12)]
    assert local[0] > local[1] > local[2] > limit


def test_exponent_of_correlated_scores_tends_to_its_limit():
    """Of exact ones at the largest d_k that there is."""
    for correlation in (0.0, 0.1, 0.5):
        limit = pq.score_exponent_limit(Setting(correlation=correlation))
        at = Setting(from_d_k=2**19, d_k=2**20, correlation=correlation)
        assert pq.score_exponent(at) == pytest.approx(limit, abs=1e-3)


@pytest.mark.parametrize("n_keys", [2, 16])
def test_no_row_is_beyond_the_proven_bound(n_keys):
    """Of rows and unit vectors that are drawn; the range of a vector bounds it."""
    rng = np.random.default_rng(3)
    most = pq.spectral_bound(Setting(n_keys=n_keys))
    assert most == pytest.approx(0.5)
    p = special.softmax(4.0 * rng.standard_normal((500, n_keys)), axis=1)
    u = rng.standard_normal((500, n_keys))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    variance = (p * u**2).sum(axis=1) - (p * u).sum(axis=1) ** 2
    assert np.all(variance <= np.ptp(u, axis=1) ** 2 / 4.0 + 1e-12)
    assert np.all(np.ptp(u, axis=1) ** 2 / 4.0 <= most + 1e-12)


def test_jacobian_without_a_divisor_tends_to_nothing():
    """In the mean and in the median, whatever it is at d_k = 64."""
    for summary in ("mean", "median"):
        assert pq.jacobian_limit(Setting(n_keys=128), summary) == 0.0
    with pytest.raises(ValueError, match="summary"):
        pq.jacobian_limit(Setting(n_keys=128), "mode")


def test_leading_order_is_the_formula():
    """Φ(Δ + 1.03 - 6.93 - ln S), and the exact share over it."""
    for gap, scale in ((4.0, 1.0), (8.0, 256.0)):
        at = Setting(std=1.0, gap=gap, scale=scale, number_format="e4m3")
        formula = stats.norm.cdf(gap + 1.03 - 6.93 - math.log(scale))
        assert pq.leading_order(at) == pytest.approx(formula, rel=0.02)
        ratio = pq.behind_sink(at) / pq.leading_order(at)
        assert pq.over_leading_order(at) == pytest.approx(ratio)


def test_underflow_after_division_is_that_of_a_normal_score():
    """Of many keys the sum is n exp(s²/2), so that x below ln(2^-10 n) + s²/2 is lost;
    to a percentage point.
    """
    n = 4096
    at = Setting(n_keys=n, std=1.0, number_format="e4m3")
    found = pq.drawn_normalised(ModelRows(1, "normalised"), at)
    expected = stats.norm.cdf(-10.0 * math.log(2.0) + math.log(n) + 0.5)
    assert found.value == pytest.approx(expected, abs=0.01)
    assert found.value > 0.96


# --- Attention as it is built today ---------------------------------------------------


def rows_of_cosines(rng, rows, n_keys, d_k):
    """Draw rows of cosines with every entry of queries and keys drawn."""
    q = rng.standard_normal((rows, d_k))
    keys = rng.standard_normal((rows, n_keys, d_k))
    lengths = np.linalg.norm(keys, axis=2) * np.linalg.norm(q, axis=1)[:, None]
    return np.einsum("rnd,rd->rn", keys, q) / lengths


def assert_mean(values, expected):
    """Values that are drawn have an expected mean."""
    error = values.std() / math.sqrt(len(values))
    assert abs(values.mean() - expected) < FAR * error


@pytest.mark.parametrize("d_k", [3, 64, 256])
def test_variance_of_a_cosine_is_that_of_a_beta_distribution(d_k):
    """Its square is Beta(1/2, (d - 1)/2)."""
    for gain in (1.0, math.sqrt(d_k)):
        found = pq.cosine_variance(Setting(d_k=d_k, gain=gain))
        square = stats.beta(0.5, 0.5 * (d_k - 1)).mean()
        assert found == pytest.approx(gain**2 * square, rel=1e-10)
    cosines = rows_of_cosines(np.random.default_rng(1), 4000, 1, d_k)[:, 0]
    assert_mean(d_k * cosines**2, 1.0)


def test_entropy_of_cosines_is_that_of_vectors():
    """With all entries drawn; and that of the rows that the record draws."""
    at = Setting(n_keys=12, d_k=5, gain=3.0)
    entropy = pq.MEASURES["cosine-entropy"]
    cosines = rows_of_cosines(np.random.default_rng(2), 20000, 12, 5)
    assert_mean(
        stats.entropy(special.softmax(3.0 * cosines, axis=1), axis=1),
        exact := entropy.exact(at),
    )
    drawn = entropy.draw(ModelRows(1, "cosines"), at)
    assert abs(drawn.value - exact) < FAR * drawn.std_error
    first = pq.MEASURES["first-gain-entropy"].exact(Setting(n_keys=12, d_k=5))
    gain = math.log2(12**2 - 12)
    assert_mean(stats.entropy(special.softmax(gain * cosines, axis=1), axis=1), first)


@pytest.mark.parametrize("gain", [1.0, 10.0])
def test_largest_weight_of_cosines_is_that_of_vectors(gain):
    """Over that of normal queries and keys, all entries drawn."""
    n_keys, d_k, rows = 16, 8, 5000
    rng = np.random.default_rng(3)
    largest = special.softmax(
        gain * rows_of_cosines(rng, rows, n_keys, d_k), axis=1
    ).max(axis=1)
    q = rng.standard_normal((rows, 1, d_k))
    scores = (q * rng.standard_normal((rows, n_keys, d_k))).sum(axis=2)
    usual = special.softmax(scores / math.sqrt(d_k), axis=1).max(axis=1)
    ratio = largest.mean() / usual.mean()
    off = [one.std() / one.mean() / math.sqrt(rows) for one in (largest, usual)]
    at = Setting(n_keys=n_keys, d_k=d_k, gain=gain)
    assert abs(pq.milder_cosines(at) / ratio - 1.0) < FAR * math.hypot(*off)
    drawn = pq.drawn_milder_cosines(ModelRows(1, "milder"), at)
    assert abs(drawn.value - pq.milder_cosines(at)) < FAR * drawn.std_error


@pytest.mark.parametrize(("gap", "gain"), [(2.0, 1.0), (1.0, None), (0.3, None)])
def test_weight_of_a_cosine_is_that_of_the_row(gap, gain):
    """Softmax of the cosines themselves, of which log2 counts the pairs of keys."""
    for n_keys in (10, 1000):
        pairs = np.count_nonzero(~np.eye(n_keys, dtype=bool))
        cosines = np.full(n_keys, 1.0 - gap)
        cosines[0] = 1.0
        times = np.log2(pairs) if gain is None else gain
        found = pq.aligned_weight(Setting(n_keys=n_keys, gap=gap, gain=gain))
        assert found == pytest.approx(special.softmax(times * cosines)[0], rel=1e-10)


@pytest.mark.parametrize(
    ("gap", "gain"), [(2.0, 1.0), (1.0, None), (0.5, None), (0.2, None)]
)
def test_weight_of_a_cosine_tends_to_its_limit(gap, gain):
    """At 10^6 keys it is nearer to it than at 10^3."""
    limit = pq.aligned_weight_limit(Setting(gap=gap, gain=gain))
    far, near = (
        abs(pq.aligned_weight(Setting(n_keys=n, gap=gap, gain=gain)) - limit)
        for n in (10**3, 10**6)
    )
    assert near < 0.3 * far


def mean_of_two(value):
    """Return the mean of a value of two standard normal scores, on a fine grid."""
    x = np.linspace(-8.0, 8.0, 801)
    density = stats.norm.pdf(x) * (x[1] - x[0])
    return float(density @ value(x[:, None], x[None, :]) @ density)


@pytest.mark.parametrize("gap", [0.0, 3.0])
def test_sum_beside_a_sink_is_that_of_two_scores(gap):
    """By a double integral; and of many by the rows that the record draws."""

    def kept(x, y):
        z = np.exp(x) + np.exp(y)
        return z / (z + math.exp(gap))

    found = pq.kept_weight(Setting(n_keys=2, std=1.0, gap=gap))
    assert found == pytest.approx(mean_of_two(kept), rel=1e-6)
    at = Setting(n_keys=40, std=2.0, gap=gap)
    drawn = pq.drawn_kept_weight(ModelRows(1, "kept"), at)
    assert abs(drawn.value - pq.kept_weight(at)) < FAR * drawn.std_error
    rows = np.exp(2.0 * np.random.default_rng(4).standard_normal((20000, 40))).sum(
        axis=1
    )
    assert_mean(rows / (rows + math.exp(gap)), pq.kept_weight(at))


def test_capped_scores_are_at_the_cap():
    """Of n times n scores that are drawn the largest is so in the mean."""
    n_keys = 32
    z = np.random.default_rng(5).standard_normal((5000, n_keys**2)).max(axis=1)
    at = Setting(n_keys=n_keys, holds="largest", level=100.0)
    assert_mean(pq.capped_std(at) * z, 100.0)
    critical = math.sqrt(2.0 * math.log(n_keys))
    assert_mean(critical * pq.capped_over_critical(at) * z, 100.0)
    assert_mean(critical * z, pq.critical_largest(at))
    weights = special.softmax(
        pq.capped_std(at) * np.random.default_rng(6).standard_normal((20000, n_keys)),
        axis=1,
    )
    assert_mean((weights**2).sum(axis=1), pq.capped_row(at))


def test_cap_multiplies_scores_as_the_rule_does():
    """Queries and keys by the root of it: the largest score is then at the cap."""
    rng = np.random.default_rng(7)
    q, k = 20.0 * rng.standard_normal((2, 50, 8))
    largest = (q @ k.T).max()
    root = math.sqrt(pq.cap_factor(Setting(holds="largest", level=largest)))
    assert ((root * q) @ (root * k).T).max() == pytest.approx(100.0)
    assert pq.cap_factor(Setting(holds="largest", level=50.0)) == 1.0


def test_factor_by_position_is_that_of_the_position():
    """log1p(floor((position + 1)/8192)) * 0.1 + 1, positions counted from 0."""
    for n_keys in (2, 8191, 8192, 131072, 1048576):
        position = n_keys - 1
        factor = np.log1p(np.floor((position + 1.0) / 8192)) * 0.1 + 1.0
        found = pq.position_factor(Setting(n_keys=n_keys))
        assert found == pytest.approx(float(factor), rel=1e-12)


@pytest.mark.parametrize("std", [1.0, 4.0])
@pytest.mark.parametrize("biased", [0.0, 1.0])
def test_norm_of_sigmoid_attention_is_that_of_outputs(std, biased):
    """Over that of softmax, with values of several entries drawn as well."""
    n_keys, rows = 24, 40000
    rng = np.random.default_rng(8)
    scores, values = rng.standard_normal((2, rows, n_keys))
    scores *= std
    weights = 1.0 / (1.0 + np.exp(biased * math.log(n_keys) - scores))
    squares = [
        ((one * values).sum(axis=1)) ** 2
        for one in (weights, special.softmax(scores, axis=1))
    ]
    ratio = squares[0].mean() / squares[1].mean()
    off = [one.std() / one.mean() / math.sqrt(rows) for one in squares]
    at = Setting(n_keys=n_keys, std=std)
    exact = pq.sigmoid_norm(at, biased)
    assert abs(exact / ratio - 1.0) < FAR * math.hypot(*off)
    drawn = pq.drawn_sigmoid_norm(ModelRows(1, "sigmoid"), at, biased)
    assert abs(drawn.value - exact) < FAR * drawn.std_error


def test_softpick_is_its_formula():
    """(e^x - 1)₊/Σ|e^x - 1|, as the paper defines it."""
    scores = np.random.default_rng(9).standard_normal((200, 12))
    plain = np.maximum(np.exp(scores) - 1.0, 0.0)
    plain /= np.abs(np.exp(scores) - 1.0).sum(axis=1, keepdims=True)
    assert np.allclose(pq.softpick(scores), plain, rtol=1e-12, atol=0.0)


def test_sum_of_softpick_is_that_of_two_scores():
    """By a double integral; and of many by rows that are drawn."""

    def total(x, y):
        x, y = np.expm1(x), np.expm1(y)
        return (np.maximum(x, 0.0) + np.maximum(y, 0.0)) / (abs(x) + abs(y) + 1e-300)

    found = pq.softpick_sum(Setting(n_keys=2, std=1.0))
    assert found == pytest.approx(mean_of_two(total), abs=1e-3)  # it has a corner
    at = Setting(n_keys=40, std=1.0)
    scores = np.random.default_rng(10).standard_normal((40000, 40))
    above = np.exp(scores) - 1.0
    sums = np.maximum(above, 0.0).sum(axis=1) / np.abs(above).sum(axis=1)
    assert_mean(sums, pq.softpick_sum(at))
    drawn = pq.drawn_softpick_sum(ModelRows(1, "softpick"), at)
    assert abs(drawn.value - pq.softpick_sum(at)) < FAR * drawn.std_error


@pytest.mark.parametrize("gap", [0.0, 1.0])
def test_zeros_of_softpick_are_negative_scores(gap):
    """Of scores with the mean that a gap gives all of them, counted."""
    scores = gap + np.random.default_rng(11).standard_normal((20000, 8))
    found = pq.softpick_zeros(Setting(n_keys=8, std=1.0, gap=gap))
    assert_mean((scores <= 0.0).mean(axis=1), found)


def to_bfloat16(values):
    """Round to bfloat16 by the bits of float32, ties to an even last bit."""
    bits = values.astype(np.float32).view(np.uint32)
    bits = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (bits & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("gap", [None, 0.02, 0.05])
def test_exponentials_that_are_one_are_those_of_rows(gap):
    """Of rows with small s, where many are, each rounded by its bits."""
    n_keys, std = 16, 0.02
    scores = std * np.random.default_rng(12).standard_normal((40000, n_keys))
    scores[:, :4] += gap or 0.0
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    ones = to_bfloat16(e) == 1.0
    at = Setting(n_keys=n_keys, std=std, gap=gap, number_format="bfloat16")
    sink = pq.sink_is_one(at)
    assert_mean(ones[:, :4].any(axis=1).astype(float), sink)
    assert_mean((ones.sum(axis=1) > 1).astype(float), pq.several_are_one(at))
    usual = pq.sink_is_one(Setting(n_keys=16, std=std, number_format="bfloat16"))
    assert pq.sink_ones(at) == pytest.approx(sink / usual)
    for name in ("sink-ones", "sink-is-one", "several-are-one"):
        measure = pq.MEASURES[name]
        drawn = measure.draw(ModelRows(1, name), at)
        assert abs(drawn.value - measure.exact(at)) < FAR * drawn.std_error


def test_an_exponential_rounds_to_one_from_the_middle_on():
    """1 - 2^-9 is a tie, and goes to 1; the number below it does not."""
    gap = pq.below_one(Setting(std=1.0, number_format="bfloat16"))
    assert math.exp(-gap) == pytest.approx(1.0 - 2.0**-9, rel=1e-15)
    middle = np.array([1.0 - 2.0**-9, np.nextafter(1.0 - 2.0**-9, 0.0)])
    assert ROUNDINGS["bfloat16"](middle).tolist() == [1.0, 1.0 - 2.0**-8]


def test_rounded_scores_have_more_equal_maxima():
    """Scores, and exponentials, rounded by their bits."""
    n_keys = 64
    scores = to_bfloat16(np.random.default_rng(13).standard_normal((40000, n_keys)))
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    share = ((to_bfloat16(e) == 1.0).sum(axis=1) > 1).mean()
    at = Setting(n_keys=n_keys, std=1.0, number_format="bfloat16")
    drawn = pq.MEASURES["several-rounded"].draw(ModelRows(1, "rounded"), at)
    error = math.hypot(drawn.std_error, math.sqrt(share * (1.0 - share) / len(scores)))
    assert abs(drawn.value - share) < FAR * error
    assert drawn.value > 2.0 * pq.several_are_one(at)
