"""A simulation's cases: where on a grid a check is decided, and what it looks at."""

import math
from types import SimpleNamespace

import msgspec
import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import Check, Domain, Level, region_of
from montecarlo.claims.outcomes import CaseKey
from montecarlo.claims.recorded import RECORDED
from montecarlo.claims.running import exact_value
from montecarlo.claims.simulation import (
    Evidence,
    cases_of,
    estimate_of_case,
    exact_of_case,
    is_applicable,
    statistic_key,
)
from montecarlo.estimation.estimates import Estimate
from montecarlo.sampling.design_points import parse_point
from montecarlo.study.presets import PRESETS, Block, Grid

ALL = tuple(DIVISORS)
GRID = Grid(
    d_k=(1, 64, 256, 2048),
    n_keys=(8, 128, 512),
    distributions=("laplace", "student_t3"),
    distribution_d_k=(64, 256),
    distribution_n_keys=(128,),
).points()
ROWS = Check("effective_keys", "at_least", low=0.0)
PAIRS = Check("score_variance", "at_least", "value", low=0.0)


def places(check, divisors=ALL, grid=GRID):
    """Where a check is decided."""
    return list(cases_of(check, grid, divisors))


def case_at(distribution="gaussian", n_keys=None, d_k=None, **more):
    """A case of these distributions and sizes."""
    return CaseKey(distribution=distribution, n_keys=n_keys, d_k=d_k, **more)


def test_default_domain():
    """d_k 64 to 256 and n 128 to 16384, and all distributions."""
    assert set(places(ROWS)) == {
        *(case_at(n_keys=n, d_k=d) for n in (128, 512) for d in (64, 256)),
        *(
            case_at(distribution, 128, d)
            for distribution in ("laplace", "student_t3")
            for d in (64, 256)
        ),
    }
    assert {place.d_k for place in places(PAIRS)} == {64, 256}
    edges = [
        parse_point("gaussian", "gaussian", 64, n) for n in (127, 128, 16384, 16385)
    ]
    assert [place.n_keys for place in places(ROWS, grid=edges)] == [128, 16384]
    assert {place.n_keys for place in places(PAIRS)} == {None}


def test_series_run_along_d_k():
    """One case for each distribution and n, with rising d_k; none of one d_k."""
    check = Check("entropy", "slope_between", low=0.0)
    cases = cases_of(check, GRID[::-1], ALL)

    assert len(cases) == 4
    for case, points in cases.items():
        assert case.d_k is None
        assert [c.d_k for c in points] == [64, 256]
    narrow = Check("entropy", "slope_between", low=0.0, domain=Domain((64, 255)))
    assert cases_of(narrow, GRID, ALL) == {}


def test_divisors_that_are_not_sampled_have_no_cases():
    """A check under a divisor, or a pair of them, needs all of it sampled."""
    ratio = Check("effective_keys", "at_most", divisor="none/sqrt", high=1.0)

    assert places(ratio)
    assert places(ratio, ("sqrt", "linear")) == []
    assert places(ratio, ("none", "sqrt")) == places(ratio)


@pytest.mark.parametrize(
    ("distribution", "quantity", "expected"),
    [
        ("student_t3", "score_distribution_gap", True),
        ("student_t3", "score_abs", False),
        ("student_t5", "score_abs", True),
        ("student_t5", "score_variance", False),
        ("student_t5", "weight_max", False),
        ("student_t10", "weight_max", True),
        ("student_t10", "score_variance", True),
        ("student_t10", "score_excess_kurtosis", False),
        ("gaussian", "score_excess_kurtosis", True),
    ],
)
def test_moments_that_an_interval_needs(distribution, quantity, expected):
    """Whether an interval is valid depends on distribution and quantity together."""
    summary = "value" if quantity.startswith("score") else "mean"
    check = Check(quantity, "at_least", summary, low=0.0)
    grid = [
        parse_point(distribution, distribution, 64),
        parse_point(distribution, distribution, 64, 128),
    ]
    (points,) = cases_of(check, grid, ALL).values()

    assert is_applicable(check, points) is expected


def statistics(*checks):
    """The different statistics that checks look at on the grid."""
    return {
        statistic_key(check, points)
        for check in checks
        for points in cases_of(check, GRID, ALL).values()
    }


def test_relations_along_d_k_have_budgets_of_their_own():
    """None is paid for by the share of another."""
    domain = Domain(d_k=(64, 256), n_keys=(128, 128), distributions=("gaussian",))
    checks = [
        Check("jacobian_trace", "at_most", high=1.0, domain=domain),
        Check("jacobian_trace", "slope_between", high=0.0, domain=domain),
        Check("jacobian_trace", "tends_to", to="zero", domain=domain),
    ]
    assert [len(statistics(check)) for check in checks] == [2, 1, 1]
    assert len(statistics(*checks)) == 2 + 1 + 1


def test_exact_values_along_d_k_are_those_of_estimates():
    """The slope: for a power of d_k it is known."""
    domain = Domain(d_k=(64, 256), distributions=("gaussian",))
    check = Check("score_variance", "slope_between", "value", low=0.0, domain=domain)
    (points,) = cases_of(check, GRID, ALL).values()
    assert [point.d_k for point in points] == [64, 256]
    found = exact_of_case(check, points, lambda point, _: float(point.d_k) ** 1.5)
    assert found == pytest.approx(1.5)

    def estimates(point):
        value = Estimate(float(point.d_k) ** 1.5, 0.0, 2)
        return SimpleNamespace(estimate=lambda _: value)

    assert estimate_of_case(check, points, estimates).value == pytest.approx(1.5)


def test_rows_under_another_divisor_are_another_statistic():
    """Softmax is not linear: each divisor, summary and relation counts."""
    others = [
        Check("effective_keys", "at_least", divisor="none", low=0.0),
        Check("effective_keys", "at_least", "median", low=0.0),
        Check("entropy", "at_least", low=0.0),
        Check("effective_keys", "slope_between", low=0.0),
    ]
    for other in others:
        assert not statistics(other) & statistics(ROWS)
    bounds = Check("effective_keys", "between", low=0.0, high=3.0)
    assert statistics(bounds) == statistics(ROWS)  # another region, the same estimate


def exact(point, key):
    """Exact values as theory would give them: none for d_k = 256."""
    del key
    return None if point.d_k == 256 else 3.0


@pytest.mark.parametrize(
    ("check", "region"),
    [
        (Check("entropy", "at_least", low=0.5), (0.5, math.inf)),
        (Check("entropy", "at_most", high=0.5), (-math.inf, 0.5)),
        (
            Check("entropy", "between", low=1.0, high=Level(2.0, 0.5, 1.0)),
            (1.0, 2048.0),
        ),
        (Check("entropy", "equals", expected=2.0, tolerance=0.05), (1.9, 2.1)),
        (Check("entropy", "equals", expected=-2.0, tolerance=0.05), (-2.1, -1.9)),
        (Check("entropy", "equals", expected=0.0, tolerance=0.05), (-0.05, 0.05)),
        (Check("entropy", "equals", expected="reference", tolerance=0.1), (2.7, 3.3)),
        (Check("entropy", "slope_between", low=0.5), (0.5, math.inf)),
    ],
)
def test_regions(check, region):
    """Bounds, or an expected value with a tolerance, relative unless it is 0."""
    case, points = next(iter(cases_of(check, GRID, ALL).items()))
    assert points[0].d_k == 64
    assert case.n_keys == 128

    known = exact_of_case(check, points, exact)
    found = region_of(check, case.d_k, case.n_keys, known)
    assert found == pytest.approx(region)


def test_no_reference_no_region():
    """Where there is no exact value a check against it has no case."""
    check = Check("entropy", "equals", expected="reference", tolerance=0.1)
    cases = cases_of(check, GRID, ALL)
    found = Evidence(dict.fromkeys(GRID, 0), ALL, exact).cases(check)

    assert found == [case for case in cases if case.d_k == 64]
    assert len(found) == len(cases) / 2
    with pytest.raises(LookupError, match="entropy"):
        region_of(check, 256, 8)


#: Checks that need what the small quick preset leaves to the others: scores at other
#: d_k and n, under other distributions, and number formats of long rows.
LEFT_OUT_OF_QUICK = {
    ("product-variance", "score_row_variance"),
    ("score-reaches-dimension", "score_max"),
    ("scaled-score-twenty-two", "score_max"),
    ("underscaled-one-hot", "saturated"),
    ("underscaled-one-hot", "weight_max"),
    ("root-keeps-arithmetic-safe", "format_overflow"),
    ("root-keeps-arithmetic-safe", "format_error"),
}


@pytest.mark.parametrize("preset", PRESETS)
def test_interpretations_and_self_checks_have_cases(preset):
    """No preset leaves a check out but those named above."""
    catalogue = read_catalogue()
    points = PRESETS[preset].points()
    owners = {
        **{one.id: one.check for one in catalogue.self_check},
        **{
            claim.id: [check for one in claim.interpretation for check in one.check]
            for claim in catalogue.claim
        },
    }
    left_out = {
        (owner, check.quantity)
        for owner, checks in owners.items()
        for check in checks
        if check.quantity not in RECORDED and not cases_of(check, points, ALL)
    }
    assert left_out == (LEFT_OUT_OF_QUICK if preset == "quick" else set())


@pytest.mark.parametrize("preset", PRESETS)
def test_every_comparison_with_theory_has_a_reference(preset):
    """Where a check compares with an exact value, theory has it in some cases."""
    points = PRESETS[preset].points()
    evidence = Evidence(dict.fromkeys(points, 0), ALL, exact_value)
    for check in read_catalogue().checks():
        if check.expected == "reference" and cases_of(check, points, ALL):
            assert evidence.cases(check), check


#: What breaks the texts' premise: shifted distributions, a planted key, pairs, a
#: projection.
PROJECTED = "init(kind=lecun_normal,norm=rms,shape=full,width=64)"
SHIFTED = "gaussian(mean=0.5)"
BROKEN = Grid(
    d_k=(64, 256),
    n_keys=(128,),
    distributions=("gaussian(std=2.0)",),
    distribution_d_k=(64, 256),
    distribution_n_keys=(128,),
    blocks=(
        Block((64, 256), (128,), distribution_q=SHIFTED, distribution_k="gaussian"),
        Block((64, 256), (128,), distribution_k=SHIFTED),
        Block((64, 256), (128,), pairs=False, dependence="planted(0.5)"),
        Block((256,), dependence="pairs(1.0)"),
        Block((64, 256), initialisation=PROJECTED),
        Block((128,), (256,), pairs=False, formats=True),
    ),
).points()
SHIFTED_Q = f"{SHIFTED} * gaussian"


def test_the_premise_is_what_no_domain_says():
    """Without a word a check looks at none of what breaks it."""
    for check in (ROWS, PAIRS):
        found = {(p.distribution, p.context) for p in places(check, grid=BROKEN)}
        assert found == {("gaussian", "")}


@pytest.mark.parametrize("check", [ROWS, PAIRS])
def test_pairs_of_distributions(check):
    """``q * k`` names a pair of distributions, in this order."""
    domain = Domain(distributions=(SHIFTED_Q, "gaussian(std=2.0)"))
    found = places(msgspec.structs.replace(check, domain=domain), grid=BROKEN)

    assert {place.distribution for place in found} == {SHIFTED_Q, "gaussian(std=2.0)"}
    check = msgspec.structs.replace(check, domain=domain)
    for case, (point,) in cases_of(check, BROKEN, ALL).items():
        if case.distribution == SHIFTED_Q:
            assert point.distribution_q.name == SHIFTED
            assert point.distribution_k.name == "gaussian"


def test_dependence_and_initialisation():
    """A domain names them, its places say so, series do not cross them."""
    planted = Domain(dependence=("planted(0.5)",))
    check = Check("planted_weight", "at_least", low=0.0, domain=planted)
    assert places(check, grid=BROKEN) == [
        case_at(n_keys=128, d_k=d, dependence="planted(0.5)") for d in (64, 256)
    ]
    pairs = Domain(dependence=("none", "pairs(1.0)"))
    check = Check("score_mean", "at_least", "value", low=0.0, domain=pairs)
    assert places(check, grid=BROKEN) == [
        *(case_at(d_k=d) for d in (64, 256)),
        case_at(d_k=256, dependence="pairs(1.0)"),
    ]
    both = Domain(initialisation=("", PROJECTED))
    check = Check("score_variance", "slope_between", "value", low=0.0, domain=both)
    cases = cases_of(check, BROKEN, ALL)
    assert list(cases) == [case_at(), case_at(initialisation=PROJECTED)]
    for points in cases.values():
        assert [c.d_k for c in points] == [64, 256]


def test_formats_are_decided_where_they_are_computed():
    """A place says its format; rows have theirs as well."""
    check = Check(
        "format_error", "at_most", high=1.0, number_format="float16", softmax="naive"
    )
    assert places(check, grid=BROKEN) == [
        case_at(n_keys=256, d_k=128, arithmetic="float16 naive")
    ]
    wide = msgspec.structs.replace(check, softmax="shifted_wide")
    assert [p.context for p in places(wide, grid=BROKEN)] == ["float16 shifted_wide"]
    assert case_at(n_keys=256, d_k=128) in places(ROWS, grid=BROKEN)
