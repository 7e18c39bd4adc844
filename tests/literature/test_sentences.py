"""What findings say in words, and numbers of papers, held against what is computed."""

import math

import pytest
from scipy.stats import norm

from montecarlo.literature.correlation import exact_exponent
from montecarlo.literature.quantities import critical_std
from montecarlo.literature.record import read_literature_record
from montecarlo.literature.schema import read_literature
from montecarlo.literature.settings import Setting
from montecarlo.theory import expected_row

RECORD = {one.id: one for one in read_literature_record().outcome.statements}
STATEMENTS = {one.id: one for one in read_literature().statement}


def values(statement, check):
    """Return the values of the cases of a check, as its finding prints them."""
    return [case.value for case in RECORD[statement].checks[check]]


def settings(statement, check):
    """Return where a check looks."""
    return [case.at for case in STATEMENTS[statement].check[check].case]


def test_numbers_of_lau_are_those_of_the_formula():
    """Φ(Δ + 1.03 - 6.93 - ln S), to the three digits that stand in the file."""
    for case in STATEMENTS["sink-underflow"].check[1].case:
        formula = norm.cdf(case.at.gap + 1.03 - 6.93 - math.log(case.at.scale))
        assert case.paper == pytest.approx(formula, rel=3e-3)


def test_mean_of_the_largest_of_four_is_that_of_the_model():
    """δ = 1.03, by the formula for the largest of four normal numbers."""
    mean = 3.0 / math.sqrt(math.pi) * (1.0 / 2.0 + math.asin(1.0 / 3.0) / math.pi)
    assert rf"$\delta = {mean:.2f}$" in STATEMENTS["sink-underflow"].model


def test_sink_underflow_is_right_in_the_middle_only():
    """To 3 % at Δ = 6 and 8; a multiple where little is lost, and not supported."""
    ratios = [case.exact for case in RECORD["sink-underflow"].checks[0]]
    papers = [case.paper for case in STATEMENTS["sink-underflow"].check[1].case]
    assert [at.gap for at in settings("sink-underflow", 1)] == [4, 6, 8, 8]
    for ratio, exact, paper in zip(
        ratios, values("sink-underflow", 1), papers, strict=True
    ):
        assert ratio == pytest.approx(exact / paper, rel=0.02)  # of three digits
    assert 2.0 < ratios[0] < 3.0
    assert 9.0 < ratios[3] < 11.0
    assert all(abs(ratio - 1.0) < 0.03 for ratio in ratios[1:3])


def test_rule_of_extension_is_held_to_five_per_cent():
    """Of the factor that its formula gives."""
    factor = (0.1 * math.log(32) + 1.0) ** 2
    growth, extension = STATEMENTS["extension-for-simple-rows"].check
    for name, check in (("extension-for-simple-rows", 1), ("extension-factor", 0)):
        assert RECORD[name].checks[check][0].value == pytest.approx(factor)
    for case in (*growth.case, *extension.case):
        assert case.at.n_keys / case.at.from_keys == 32
    ends = pytest.approx((0.95 * factor, 1.05 * factor), abs=5e-5)
    assert (growth.low, growth.high) == ends


def test_exponents_fall_towards_one_half():
    """Those of many keys are below those of fewer, at each level that has both."""
    early, late = (
        {at.level: value for at, value in zip(settings(*of), values(*of), strict=True)}
        for of in (
            ("logarithm-for-normal-scores", 0),
            ("logarithm-for-normal-scores", 2),
        )
    )
    assert late.keys() <= early.keys()
    for level, value in late.items():
        assert 0.5 < value < early[level]


def test_search_comes_within_a_millionth_of_one_half():
    """And not beyond: the verdict is about that."""
    for found in values("one-half", 1):
        assert 0.5 - 1e-6 < found <= 0.5


def test_scales_stand_where_the_model_says():
    """A quarter of the critical s, twice, and once, to their two digits."""
    wanted = (0.25, 0.25, 1.0, 1.0, 2.0, 2.0)
    for times, at in zip(wanted, settings("critical-scale", 2), strict=True):
        assert at.std == pytest.approx(times * critical_std(at.keys), abs=0.006)


def test_the_limit_law_is_near_several_times_beyond():
    """Within 5 % where s is more than three times the critical s, and only there."""
    near = {True: [], False: []}
    where, found = settings("frozen-law", 1), values("frozen-law", 1)
    for at, value in zip(where, found, strict=True):
        near[abs(value - 1.0) <= 0.05].append(at.std / critical_std(at.keys))
    assert max(near[False]) < min(near[True])
    assert min(near[True]) > 3.0


def test_mean_jacobian_falls_like_the_root():
    """‖J‖_F² without a divisor, at four times as large a d_k, is halved."""
    less, more = (
        expected_row(512, d_k=d_k, divisor="none")["jacobian_frobenius_squared"].value
        for d_k in (2**14, 2**16)
    )
    assert less / more == pytest.approx(2.0, rel=0.02)


def test_sink_takes_half_of_scaled_rows():
    """And that of queries and keys has eight times the gap without the divisor."""
    scaled, fixed, grown = (
        settings("sink-changes-scaled-rows", check)[0] for check in (2, 3, 4)
    )
    assert values("sink-changes-scaled-rows", 2)[0] == pytest.approx(0.5, abs=0.005)
    assert (fixed.gap, grown.gap) == (scaled.gap, pytest.approx(8 * scaled.gap))


def test_bfloat16_loses_next_to_none():
    """Of the weights of unscaled rows."""
    (at,) = settings("scaled-rows-keep-weights", 4)
    assert (at.std, at.number_format) == (8, "bfloat16")
    assert values("scaled-rows-keep-weights", 4)[0] < 1e-4


def test_at_most_one_in_a_hundred_is_said_of_exponentials():
    """Not yet divided by their sum: of the weights e4m3 loses nearly all."""
    statement = STATEMENTS["scaled-rows-keep-weights"]
    assert "of the exponentials" in statement.statement
    assert "not yet divided by their sum" in statement.tested
    (lost,) = values("scaled-rows-keep-weights", 2)
    assert lost == pytest.approx(0.97, abs=0.005)
    assert "%(n)s" in statement.finding[0].text
    assert statement.finding[0].value["n"] == (2, 0)


def test_what_is_bounded_is_said_to_be():
    """The ratio of squared norms of rows of weights ends where all is on one key, and
    the divisor's own factor of the gradient by the query is named.
    """
    for found, most in zip(
        (values("norm-grows", 0)[0], values("norm-grows", 0)[2]),
        values("norm-grows", 1),
        strict=True,
    ):
        assert 1.0 < found < most
    explode = STATEMENTS["gradients-explode"]
    for i, at in enumerate(settings("gradients-explode", 0)[:2]):
        name = "ab"[i]
        assert f"${at.d_k}$ times %({name})s times" in explode.finding[0].text
        assert explode.finding[0].value[name] == (0, i)


def test_growth_with_any_correlation_tends_to_the_dimension():
    """To an exponent of 1; where ρ√d is near 1 it is on its way."""
    for correlation in (0.01, 0.1, 0.5):
        at = Setting(from_d_k=2**19, d_k=2**20, correlation=correlation)
        assert exact_exponent(at) > 0.99
        turn = round(1.0 / correlation**2)
        at = Setting(from_d_k=turn, d_k=2 * turn, correlation=correlation)
        assert 0.6 < exact_exponent(at) < 0.9


def test_gap_below_the_border_is_below_it():
    """Gaps of 5 and 2 stand on both sides of 1/γ."""
    above, below = (settings("logarithm-keeps-weight", i)[0] for i in (1, 2))
    assert settings("logarithm-keeps-weight", 3)[0].gap == below.gap
    assert below.gap < 1.0 / below.growth < above.gap
