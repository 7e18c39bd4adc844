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
    (check,) = STATEMENTS["sink-underflow"].check
    for case in check.case:
        formula = norm.cdf(case.at.gap + 1.03 - 6.93 - math.log(case.at.scale))
        assert case.paper == pytest.approx(formula, rel=3e-3)


def test_mean_of_the_largest_of_four_is_that_of_the_model():
    """δ = 1.03, by the formula for the largest of four normal numbers."""
    mean = 3.0 / math.sqrt(math.pi) * (1.0 / 2.0 + math.asin(1.0 / 3.0) / math.pi)
    assert rf"$\delta = {mean:.2f}$" in STATEMENTS["sink-underflow"].model


def test_sink_underflow_is_right_in_the_middle_only():
    """To a hundredth at Δ = 6; more than twice, and ten times as much, in the tails."""
    found, papers = (
        values("sink-underflow", 0),
        [case.paper for case in STATEMENTS["sink-underflow"].check[0].case],
    )
    assert [at.gap for at in settings("sink-underflow", 0)] == [4, 6, 8, 8]
    assert abs(found[1] - papers[1]) < 0.015
    assert 2.0 < found[0] / papers[0] < 3.0
    assert found[2] < papers[2]
    assert 9.0 < found[3] / papers[3] < 11.0
    assert abs(found[3] - papers[3]) < 0.02


def test_rule_of_extension_is_held_to_five_per_cent():
    """Of the factor that its formula gives."""
    factor = (0.1 * math.log(32) + 1.0) ** 2
    growth, extension = STATEMENTS["extension-factor"].check
    assert RECORD["extension-factor"].checks[1][0].value == pytest.approx(factor)
    for case in (*growth.case, *extension.case):
        assert case.at.n_keys / case.at.from_keys == 32
    for case in growth.case:
        assert case.paper == pytest.approx(factor, abs=5e-5)
        assert case.reach == pytest.approx(0.05 * factor, abs=5e-5)


def test_exponents_fall_towards_one_half():
    """Those of many keys are below those of fewer, at each level that has both."""
    early, late = (
        {at.level: value for at, value in zip(settings(*of), values(*of), strict=True)}
        for of in (("logarithm-keeps-entropy", 0), ("logarithm-keeps-entropy", 2))
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
    for check, times in enumerate((0.25, 2.0, 1.0)):
        for at in settings("critical-scale", check):
            assert at.std == pytest.approx(times * critical_std(at.keys), abs=0.006)


def test_the_limit_law_is_near_several_times_beyond():
    """Within 5 % where s is more than three times the critical s, and only there."""
    near = {True: [], False: []}
    for check in (0, 1):
        where, found = settings("frozen-law", check), values("frozen-law", check)
        for at, value in zip(where, found, strict=True):
            times = at.std / critical_std(at.keys)
            near[abs(value - 1.0) <= 0.05].append(times)
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
    scaled, fixed, grown = settings("sink-changes-scaled-rows", 2)
    assert values("sink-changes-scaled-rows", 2)[0] == pytest.approx(0.5, abs=0.005)
    assert (fixed.gap, grown.gap) == (scaled.gap, pytest.approx(8 * scaled.gap))


def test_bfloat16_loses_next_to_none():
    """Of the weights of unscaled rows."""
    *_, at = settings("scaled-rows-keep-weights", 1)
    assert at.number_format == "bfloat16"
    assert values("scaled-rows-keep-weights", 1)[-1] < 1e-4


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
    assert below.gap < 1.0 / below.growth < above.gap
