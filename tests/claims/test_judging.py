"""Judging: the error rate is split over statistics, and the judge can say no.

The studies here are small, and what they must find lies at least 20 standard errors
from the nearest bound, so they fail by chance less than once in 10⁹ seeds each; where
the report's own error rate is what protects, it is set to 1e-6.
"""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict

from montecarlo.attention.divisors import DIVISORS as DIVISOR_TABLE
from montecarlo.attention.quantities import PAIR_QUANTITIES
from montecarlo.claims.calibration import nominal_rate
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import Check, Domain, region_of
from montecarlo.claims.judging import Judge
from montecarlo.claims.outcomes import (
    Case,
    CaseKey,
    CheckOutcome,
    decide_case,
    find_thresholds,
    join_by_case,
    round_interval,
)
from montecarlo.claims.running import Study, exact_value, run_study
from montecarlo.claims.schema import (
    Catalogue,
    Claim,
    Interpretation,
    Passage,
    Right,
    SelfCheck,
    Sentence,
    Source,
)
from montecarlo.claims.simulation import (
    UNREACHABLE,
    Evidence,
    cases_of,
    row_key,
    split_error_rate,
    statistic_key,
    undecided_points,
)
from montecarlo.claims.verdicts import Outcome, Reason, Ruling, Verdict, decide
from montecarlo.estimation.engine import SampleStore
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.batches import join, pack
from montecarlo.sampling.design_points import parse_point
from montecarlo.study.presets import PRESETS, Grid
from montecarlo.study.table import find_reference
from tests.samples import KNOWN, sample_all, summarise

DIVISORS = ("none", "sqrt")
RATE = 1e-6
PAIRS = Grid(
    d_k=(64, 256), n_keys=(), distributions=(), divisors=DIVISORS, first=32, most=64
)
FINDING = Sentence("x", basis="definition")


def catalogue_of(*interpretations):
    """A catalogue of one claim with these interpretations, each a tuple of checks."""
    entries = tuple(
        Interpretation(f"r{i}", tuple(r)) for i, r in enumerate(interpretations)
    )
    claim = Claim("c", "variance", "s", (Source("a", "1"),), (FINDING,), entries)
    return Catalogue((), (claim,))


def study_claims(catalogue, grid, seed=1):
    """The record of the claims of a small study."""
    with ThreadPoolExecutor(1) as executor:
        return run_study(Study(catalogue, grid, seed, RATE), executor).claims


def variance(divisor="none", quantity="score_variance", **more):
    """A check of a variance that anything satisfies, if nothing else is said."""
    return Check(quantity, "at_least", "value", divisor, **{"low": 0.0, **more})


def split(checks, analyses, rate=0.01):
    """How many intervals an error rate is split over."""
    catalogue = catalogue_of(*((check,) for check in checks))
    evidence = Evidence(analyses, DIVISORS, exact_value)
    found = split_error_rate(catalogue, evidence, rate)
    assert found.analyses == pytest.approx(rate / (2.0 * found.share)) or (
        found.analyses == 0
    )
    return rate / (2.0 * found.share)


ONE = {parse_point("gaussian", "gaussian", 64): 1}


def test_only_known_factors_share_their_error():
    """A variance under any divisor is one statistic; its root is another."""
    same = [variance(divisor) for divisor in DIVISORS]
    roots = [variance(divisor, "score_std") for divisor in DIVISORS]
    assert split(same, ONE) == pytest.approx(1.0)
    assert split(roots, ONE) == pytest.approx(1.0)
    assert split([*same, *roots], ONE) == pytest.approx(2.0)
    assert split([*same, variance(quantity="score_abs")], ONE) == pytest.approx(2.0)


@pytest.mark.parametrize("quantity", PAIR_QUANTITIES)
def test_what_shares_its_error_misses_together(quantity):
    """Intervals of one statistic are the same but for a factor."""
    point = parse_point("gaussian", "gaussian", 64)
    store = SampleStore()
    store.add(point, 0, 24, pack(sample_all(point, 3, 0, 24, tuple(DIVISOR_TABLE))))
    summaries = summarise(point, join(store.packed(point)), tuple(DIVISOR_TABLE))
    shared = {}
    for name in PAIR_QUANTITIES:
        divided = PAIR_QUANTITIES[name].divided
        for divisor in DIVISOR_TABLE if divided else ("none",):
            check = variance(divisor, name)
            (points,) = cases_of(check, [point], DIVISOR_TABLE).values()
            found = statistic_key(check, points)
            shared.setdefault(found, []).append(summaries.estimate(row_key(check)))
    mine = [statistic for statistic in shared if statistic[1].quantity == quantity]
    for statistic in mine:
        first, *others = shared[statistic]
        low, high = first.interval(1e-4)
        for other in others:
            ends = other.interval(1e-4)
            factor = other.value / first.value
            assert ends == pytest.approx((low * factor, high * factor), rel=1e-9)
    assert len(mine) == 1


def test_error_is_split_over_cases_and_analyses():
    """Every case counts, as often as it, or a point of its series, is seen."""
    analyses = {
        parse_point("gaussian", "gaussian", d): n for d, n in ((64, 3), (256, 4))
    }
    slope = Check("score_variance", "slope_between", "value", low=0.0)

    assert split([variance()], analyses) == pytest.approx(7.0)
    assert split([slope], analyses) == pytest.approx(4.0)
    assert split([variance(), slope, variance("sqrt")], analyses) == pytest.approx(11.0)


def test_what_is_not_decided_costs_nothing():
    """Cases outside the domain, without moments or without reference have no share."""
    analyses = {
        **ONE,
        parse_point("gaussian", "gaussian", 4): 9,
        parse_point("student_t3", "student_t3", 64): 9,
        parse_point("laplace", "laplace", 64, 128): 9,
    }
    to_reference = Check("entropy", "equals", expected="reference", tolerance=0.1)

    assert split([variance(), to_reference], analyses) == pytest.approx(1.0)
    assert split([], analyses) == pytest.approx(1.0)  # and not a division by zero


def test_each_interval_pays_by_its_kind():
    """Its share, less what intervals of its kind miss more; exact ones pay nothing."""
    evidence = Evidence(ONE, ("none",), unknown)
    rates = split_error_rate(catalogue_of((variance(),)), evidence, 0.01)

    assert rates.stated(variance()) == nominal_rate(rates.share, "pairs") < rates.share
    recorded = Check("training_steps", "at_least", "median", "none/sqrt", low=1.0)
    assert rates.stated(recorded) == rates.share


def test_sentences_cost_their_share():
    """Checks of all that may be said, of claims and passages, are paid for as well."""
    checks = [
        variance(quantity=quantity)
        for quantity in ("score_variance", "score_abs", "score_mean")
    ]
    finding, right, concedes = (Sentence("s", check=(check,)) for check in checks)
    claim = msgspec.structs.replace(
        catalogue_of((variance(),)).claim[0],
        finding=(finding,),
        right=Right(text="s", arithmetic="a", check=right.check),
        concedes=concedes,
    )
    kurtosis = variance(quantity="score_excess_kurtosis")
    passage = Passage("p", "answer", Sentence("s", check=(kurtosis,)))
    for passages, statistics in (((), 3), ((passage,), 4)):
        catalogue = Catalogue((), (claim,), passages)
        evidence = Evidence(ONE, DIVISORS, exact_value)
        found = split_error_rate(catalogue, evidence, 0.01)
        assert found.analyses == statistics
        assert found.share == pytest.approx(0.01 / (2.0 * statistics))


def equals_one(divisor, tolerance=0.05, **more):
    """The claim that scores under a divisor have variance 1."""
    return Check(
        "score_variance",
        "equals",
        "value",
        divisor,
        expected=1.0,
        tolerance=tolerance,
        **more,
    )


def test_distribution_without_moments_does_not_vote():
    """t3 beside a Gaussian changes nothing; alone, the claim is open."""
    t3 = Grid(
        d_k=(64, 256),
        n_keys=(),
        distributions=("student_t3",),
        distribution_d_k=(64, 256),
        divisors=DIVISORS,
        first=32,
        most=32,
    )
    claim = study_claims(catalogue_of((equals_one("sqrt", 0.3),)), t3).claims[0]
    outcomes = {
        case.distribution: (case.outcome, case.estimate)
        for case in claim.interpretations[0].checks[0].cases
    }
    assert claim.verdict == Verdict.HOLDS
    assert outcomes["student_t3"] == ("not_applicable", None)
    assert outcomes["gaussian"][0] == "supported"

    alone = equals_one("sqrt", 0.3, domain=Domain(distributions=("student_t3",)))
    claim = study_claims(catalogue_of((alone,)), t3).claims[0]
    assert (claim.verdict, claim.reason) == (Verdict.OPEN, Reason.REACH)


def fixed(values):
    """Return estimates that are what they are told to be, by d_k and quantity."""
    return lambda point: SimpleNamespace(
        estimate=lambda key: Estimate(*values[point.d_k, key.quantity], 64)
    )


def judged(interpretations, values, budget=128, reference=exact_value, **said):
    """The one claim of a catalogue, judged on these values, with its undecided."""
    catalogue = catalogue_of(*interpretations)
    claim = msgspec.structs.replace(catalogue.claim[0], **said)
    points = [parse_point("gaussian", "gaussian", d, 128) for d in (64, 128, 256)]
    budgets = dict.fromkeys(points, budget)
    catalogue = msgspec.structs.replace(catalogue, claim=(claim,))
    evidence = Evidence(budgets, DIVISORS, reference, fixed(values))
    record = Judge(evidence, lambda _: 1e-4).judge(catalogue, **KNOWN)
    undecided = undecided_points(record, evidence)
    return record.claims[0], {c.d_k for c in undecided}


def values_of(entropy, error=0.01, weight=0.5):
    """Entropies along d_k = 64, 128 and 256, and the same largest weight everywhere."""
    found = dict(zip((64, 128, 256), entropy, strict=True))
    return {
        **{(d, "entropy"): (value, error) for d, value in found.items()},
        **{(d, "weight_max"): (weight, error) for d in found},
    }


def unknown(*_):
    """Theory that knows nothing: what the sample leaves open stays so."""


HIGH = Check("entropy", "at_least", low=1.0)
SMALL_WEIGHT = Check("weight_max", "at_most", high=0.9)


def test_places_need_all_checks_of_a_interpretation():
    """A place is supported where each check is, and refuted where one fails."""
    outcome, undecided = judged([(HIGH, SMALL_WEIGHT)], values_of((2.0, 2.0, 0.5)))
    (interpretation,) = outcome.interpretations

    assert [case.outcome for case in interpretation.cases] == [
        Outcome.SUPPORTED,
        Outcome.SUPPORTED,
        Outcome.REFUTED,
    ]
    assert outcome.verdict == Verdict.FAILS
    ((before, after),) = find_thresholds(interpretation.cases)
    assert (before.d_k, after.d_k) == (128, 256)
    assert undecided == set()
    outcome, _ = judged([(HIGH, SMALL_WEIGHT)], values_of((2.0, 2.0, 2.0), weight=0.95))
    assert outcome.verdict == Verdict.FAILS


def test_undecided_places_are_asked_for():
    """Where an interval crosses a bound more is wanted, and how many."""
    values = values_of((1.02, 2.0, 1.0))
    outcome, undecided = judged([(HIGH,)], values, reference=unknown)
    needed = [
        case.replicates_needed for case in outcome.interpretations[0].checks[0].cases
    ]

    assert outcome.verdict == Verdict.OPEN
    assert undecided == {64}
    assert needed[0] > 64
    assert needed[1:] == [None, None]


def test_series_are_undecided_as_a_whole():
    """A slope that is not decided wants more of each of its places."""
    slope = Check("entropy", "slope_between", low=-0.01, high=0.01)
    values = values_of((1.0, 1.0, 1.0), error=0.01)
    _, undecided = judged([(slope,)], values, budget=512, reference=unknown)
    assert undecided == {64, 128, 256}
    _, undecided = judged([(slope,)], values, budget=64, reference=unknown)
    assert undecided == set()  # all of them too few


def test_nobody_waits_for_what_theory_decides_or_no_text_says():
    """Open cases are sampled on only where the sample decides, and a verdict with it.

    What the interval leaves open theory decides; beyond a text one look is enough.
    """
    values = values_of((1.02, 2.0, 2.0))
    outcome, undecided = judged([(HIGH,)], values, reference=lambda *_: 1.02)
    (case, *_) = outcome.interpretations[0].checks[0].cases
    assert (case.outcome, case.by_theory) == (Outcome.SUPPORTED, True)
    assert case.replicates_needed is not None
    assert undecided == set()

    sides = [
        Interpretation(name, (HIGH,), beyond=beyond)
        for name, beyond in (("said", False), ("further", True))
    ]
    for some, asked in ((sides[1:], set()), (sides, {64})):
        said = {"interpretation": tuple(some), "reference": unknown}
        assert judged([(HIGH,)], values, **said)[1] == asked


@pytest.mark.parametrize(("budgets", "hope"), [(0.9, True), (1.1, False)])
def test_hopeless_places_are_given_up(budgets, hope):
    """A place that needs more than four budgets keeps its number, and is left."""
    values = values_of((1.02, 2.0, 2.0))
    outcome, _ = judged([(HIGH,)], values, reference=unknown)
    needed = outcome.interpretations[0].checks[0].cases[0].replicates_needed
    budget = math.ceil(needed / (UNREACHABLE * budgets))
    outcome, undecided = judged([(HIGH,)], values, budget, reference=unknown)

    assert undecided == ({64} if hope else set())
    assert outcome.interpretations[0].checks[0].cases[0].replicates_needed == needed
    assert outcome.verdict == Verdict.OPEN


def test_self_checks_are_judged_like_claims():
    """A self-check has an outcome of its own and its share of the error rate."""
    wrong = SelfCheck("wrong", "s", (equals_one("none", 0.2),))
    right = SelfCheck("right", "s", (equals_one("sqrt", 0.2),))
    record = study_claims(Catalogue(self_check=(wrong, right)), PAIRS)

    assert [check.outcome for check in record.self_checks] == ["refuted", "supported"]
    share = RATE / (2 * 2 * 2)  # cases · analyses
    assert record.simultaneous_error == pytest.approx(share)


FAR = Sentence("s", check=(Check("entropy", "at_least", low=2.0),))


@pytest.mark.parametrize(
    "said",
    [
        {"finding": (FAR,)},
        {"right": Right(text="s", arithmetic="a", check=FAR.check)},
        {"concedes": FAR},
    ],
    ids=lambda said: next(iter(said)),
)
def test_undecided_sentences_ask_for_more(said):
    """Points of open sentences are sampled on, unless theory knows."""
    values = values_of((3.0, 2.02, 3.0))
    plain = {"budget": 512, "reference": lambda *_: None, **said}
    outcome, undecided = judged([(HIGH,)], values, **plain)

    assert outcome.verdict == Verdict.HOLDS
    assert not next(iter(outcome.sentences())).holds or "finding" not in said
    assert undecided == {128}
    known = plain | {"reference": lambda *_: 2.02}
    outcome, undecided = judged([(HIGH,)], values, **known)
    assert all(one.holds for one in outcome.sentences())
    assert undecided == set()


def test_passages_are_judged_too():
    """A passage is judged on its checks alone, and asks for more where it is open."""
    catalogue = Catalogue(passage=(Passage("p", "answer", FAR),))
    points = [parse_point("gaussian", "gaussian", d, 128) for d in (64, 128, 256)]
    budgets = dict.fromkeys(points, 512)
    for entropy, holds, undecided in (
        ((3.0, 3.0, 3.0), True, set()),
        ((3.0, 1.0, 3.0), False, set()),
        ((3.0, 2.02, 3.0), False, {128}),
    ):
        values = fixed(values_of(entropy))
        evidence = Evidence(budgets, DIVISORS, lambda *_: None, values)
        record = Judge(evidence, lambda _: 1e-4).judge(catalogue, **KNOWN)
        (passage,) = record.passages
        assert passage.holds is holds
        found = undecided_points(record, evidence)
        assert {c.d_k for c in found} == undecided


def test_texts_have_verdicts_of_their_own():
    """A text by what its words admit, the claim by all that votes."""
    entropy = [Check("entropy", "at_least", low=low) for low in (1.0, 3.0, 1.0)]
    interpretations = tuple(
        Interpretation(name, (check,), beyond=beyond)
        for name, check, beyond in zip(
            "xyz", entropy, (False, False, True), strict=True
        )
    )
    sources = (
        Source("a", "1", admits=("x",)),
        Source("b", "1", admits=("y",)),
        Source("d", "1"),
    )
    said = {"interpretation": interpretations, "source": sources}
    outcome, _ = judged([(HIGH,)], values_of((2.0, 2.0, 2.0)), **said)
    assert outcome.texts == {
        "a": Ruling(Verdict.HOLDS, Reason.MEASURED),
        "b": Ruling(Verdict.FAILS, Reason.MEASURED),
        "d": Ruling(Verdict.PARTLY, Reason.HALF),
    }
    assert (outcome.verdict, outcome.reason) == (Verdict.PARTLY, Reason.TEXTS)
    beyond = msgspec.structs.replace(interpretations[1], beyond=True)
    said = {"interpretation": (interpretations[0], beyond), "source": sources[:1]}
    outcome, _ = judged([(HIGH,)], values_of((2.0, 2.0, 2.0)), **said)
    assert [r.verdict for r in outcome.interpretations] == ["holds", "fails"]
    assert outcome.verdict == outcome.texts["a"].verdict == Verdict.HOLDS


def test_limits_are_judged_by_theory():
    """Theory decides, whatever was sampled; if it is silent, nothing does."""
    gaussian = Domain(distributions=("gaussian",))
    rising = {(d, "jacobian_trace"): (float(d), 0.01) for d in (64, 128, 256)}
    rising |= {(d, "score_max"): (1.0, 0.01) for d in (64, 128, 256)}
    for quantity, to, verdict in (
        ("jacobian_trace", "zero", Verdict.HOLDS),
        ("jacobian_trace", "constant", Verdict.FAILS),
        ("score_max", "infinity", Verdict.HOLDS),
        ("score_max", "zero", Verdict.FAILS),
    ):
        check = Check(quantity, "tends_to", to=to, domain=gaussian)
        outcome, undecided = judged([(check,)], rising)
        (case,) = outcome.interpretations[0].checks[0].cases
        assert outcome.verdict == verdict
        assert outcome.reason == Reason.THEORY
        assert case.limit.tends_to != to or verdict == Verdict.HOLDS
        assert (case.simultaneous_low, case.simultaneous_high) == (None, None)
        assert undecided == set()
    spread = Check("score_max", "tends_to", "spread", to="zero", domain=gaussian)
    outcome, _ = judged([(spread,)], rising)
    assert (outcome.verdict, outcome.reason) == (Verdict.OPEN, Reason.REACH)


def test_check_without_a_place_leaves_its_interpretation_open():
    """Where the grid has no place for one of the checks, nothing is measured."""
    far = equals_one("sqrt", domain=Domain(d_k=(512, 1024)))
    claim = study_claims(catalogue_of((variance(), far)), PAIRS).claims[0]
    assert (claim.verdict, claim.reason) == (Verdict.OPEN, Reason.REACH)
    wrong = equals_one("none", 0.2)
    claim = study_claims(catalogue_of((wrong, far)), PAIRS).claims[0]
    assert claim.verdict == "fails"  # one place is enough for that


S, R, I = Outcome.SUPPORTED, Outcome.REFUTED, Outcome.UNDECIDED  # noqa: E741


def along_d_k(*outcomes, distribution="gaussian", n_keys=32, dependence="none"):
    """Cases along d_k = 16, 32, 64, … with these outcomes."""
    where = {"distribution": distribution, "n_keys": n_keys, "dependence": dependence}
    return [
        Case(**where, d_k=16 * 2**i, outcome=outcome)
        for i, outcome in enumerate(outcomes)
    ]


def borders(cases):
    """The borders between some cases: d_k and outcome before and after."""
    return [
        (before.d_k, before.outcome, after.d_k, after.outcome)
        for before, after in find_thresholds(cases)
    ]


def test_borders():
    """Between decided neighbours that differ, within one distribution and n."""
    assert borders(along_d_k(S, S, R, R)) == [(32, S, 64, R)]
    assert borders(along_d_k(S, S)) == []
    assert len(borders(along_d_k(S, R, S))) == 2
    across = along_d_k(S) + along_d_k(R, n_keys=64)
    assert borders(across + along_d_k(S, distribution="laplace")) == []
    assert borders(along_d_k(S) + along_d_k(R, R, dependence="planted(0.5)")) == []
    # between decided cases an open one widens the border, and NA is no outcome
    assert borders(along_d_k(S, I, Outcome.NOT_APPLICABLE, R)) == [(16, S, 128, R)]


def test_borders_lie_within_their_context():
    """Cases of one dependence come together and by rising d_k, so that borders are
    found, in whatever order they were decided.
    """
    cases = along_d_k(S, S, R, dependence="pairs(0.5)")
    cases += along_d_k(S, R, R, dependence="pairs(1.0)")
    for order in itertools.permutations(cases):
        check = CheckOutcome(**asdict(variance()), cases=order)
        assert borders(join_by_case([check])) == [(32, S, 64, R), (16, S, 32, R)]


EQUALS = [
    (claim.id, check)
    for claim in read_catalogue().claim
    for check in (claim.right.check if claim.right else ())
    if check.relation == "equals"
]


@pytest.mark.parametrize(("claim", "check"), EQUALS, ids=[c for c, _ in EQUALS])
def test_right_numbers_are_those_of_theory(claim, check):
    """The number of each right sentence is the exact one in every case of the standard
    preset, to a hundredth of the tolerance; two tolerances further it would be refuted.
    """
    budgets = PRESETS["standard"].budgets()
    cases = cases_of(check, budgets, tuple(DIVISOR_TABLE))
    assert cases, claim
    for case, points in cases.items():
        low, high = region_of(check, case.d_k, case.n_keys)
        truth = find_reference(points[0], row_key(check)).value
        half = 0.5 * (high - low)
        assert abs(0.5 * (low + high) - truth) <= 0.01 * half
        for sign in (-2.0, 2.0):
            moved = (low + sign * half, high + sign * half)
            sharp = Interval(truth - 0.01 * half, truth + 0.01 * half)
            assert decide(sharp, (low, high)) == Outcome.SUPPORTED
            assert decide(sharp, moved) == Outcome.REFUTED


def test_theory_costs_nothing():
    """What theory decides has no share; a slope of the same series has one."""
    analyses = {parse_point("gaussian", "gaussian", d, 128): 5 for d in (64, 256)}
    gaussian = Domain(distributions=("gaussian",))
    limit = Check("jacobian_trace", "tends_to", to="zero", domain=gaussian)
    slope = Check("jacobian_trace", "slope_between", high=0.0, domain=gaussian)
    mean = Check("jacobian_trace", "at_most", high=1.0, domain=gaussian)

    assert split([limit, mean], analyses) == pytest.approx(10.0)
    assert split([slope, mean], analyses) == pytest.approx(15.0)


def test_each_claim_has_a_rate_of_its_own():
    """It is that of its statistics at all their analyses, on both sides: of
    interpretations and sentences alike, and of those it shares with another claim as
    well.
    """
    analyses = {parse_point("gaussian", "gaussian", d): 3 for d in (64, 256)}
    plain = catalogue_of((variance(),)).claim[0]
    said = Sentence("s", check=(variance(quantity="score_abs"),))
    wide = msgspec.structs.replace(plain, id="wide", finding=(said,))
    empty = msgspec.structs.replace(plain, id="empty", interpretation=())
    catalogue = Catalogue((), (plain, wide, empty))
    evidence = Evidence(analyses, DIVISORS, exact_value)
    found = split_error_rate(catalogue, evidence, 0.01)

    assert found.analyses == 12  # two cases, two statistics, three analyses
    assert found.claims == pytest.approx({"c": 0.005, "wide": 0.01, "empty": 0.0})


@given(
    value=st.floats(-1e6, 1e6),
    width=st.floats(0.0, 1.0) | st.floats(0.0, 1e-9),
    region=st.tuples(st.floats(-1e6, 1e6), st.floats(0.0, 1e6)),
)
@settings(deadline=None)
def test_ends_are_rounded_outwards(value, width, region):
    """What is kept of an interval holds it, and lies on the same side of a region."""
    interval = Interval(value, value + width)
    least, most = region[0], region[0] + region[1]
    low, high = round_interval(interval, (least, most))
    assert low <= interval.low <= interval.high <= high
    for kept, end in ((low, interval.low), (high, interval.high)):
        for bound in (least, most):
            assert (kept > bound, kept < bound) == (end > bound, end < bound)
    assert round_interval(Interval(0.12345678, 0.12345678), (0.0, 1.0)) == (
        0.123456,
        0.123457,
    )


NEAR_EXACT = exact_value(
    parse_point("gaussian", "gaussian", 16, 8), RowKey("sqrt", "jacobian_trace", "mean")
)


@pytest.mark.parametrize(
    ("low", "outcome"),
    [(NEAR_EXACT - 1e-5, "supported"), (NEAR_EXACT + 1e-5, "refuted")],
)
def test_theory_decides_what_the_sample_leaves_open(low, outcome):
    """Of a claim, and it says so; not of a self-check, which is of the sample, nor of
    what is held against the exact value itself.
    """
    place = Domain((16, 16), (8, 8), ("gaussian",))
    close = Check("jacobian_trace", "at_least", divisor="sqrt", low=low, domain=place)
    itself = Check(
        "jacobian_trace",
        "equals",
        divisor="sqrt",
        expected="reference",
        tolerance=1e-4,
        domain=place,
    )
    catalogue = msgspec.structs.replace(
        catalogue_of((close,), (itself,)), self_check=(SelfCheck("s", "t", (close,)),)
    )
    grid = Grid(d_k=(16,), n_keys=(8,), distributions=(), first=64, most=64)
    found = study_claims(catalogue, grid)
    (claim,), (self_check,) = found.claims, found.self_checks
    ((one,), (other,)) = (i.checks[0].cases for i in claim.interpretations)
    assert (one.outcome, one.by_theory) == (outcome, True)
    assert one.simultaneous_low < low < one.simultaneous_high
    ruled = {"supported": Verdict.HOLDS, "refuted": Verdict.FAILS}
    assert claim.interpretations[0].verdict == ruled[outcome]
    assert claim.interpretations[0].reason == Reason.THEORY
    assert (other.outcome, other.by_theory) == ("undecided", False)
    (case,) = self_check.checks[0].cases
    assert (case.outcome, case.by_theory) == ("undecided", False)


def test_what_the_sample_decides_theory_leaves():
    """A case that comes out against its exact value stays so, to be seen."""
    estimate = Estimate(0.5, 0.01, 64)
    check = Check("jacobian_trace", "at_most", low=0.0, high=1.0)
    case = decide_case(check, CaseKey(), (0.0, 1.0), estimate, 1e-3, exact=1.5)
    assert (case.outcome, case.by_theory) == ("supported", False)
