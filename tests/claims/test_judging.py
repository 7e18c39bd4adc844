"""Judging: the error rate is split over statistics, and the judge can say no.

The studies here are small, and what they must find lies at least 20 standard errors
from the nearest bound, so they fail by chance less than once in 10⁹ seeds each; where
the report's own error rate is what protects, it is set to 1e-6.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from montecarlo.attention.divisors import DIVISORS as DIVISOR_TABLE
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.cells import cells_of, row_key, window_in
from montecarlo.claims.checks import Check, Domain
from montecarlo.claims.judging import (
    HOPELESS,
    Judge,
    decision_error,
    undecided_conditions,
)
from montecarlo.claims.schema import (
    Catalogue,
    Claim,
    Reading,
    Right,
    SelfCheck,
    Sentences,
    Source,
)
from montecarlo.claims.verdicts import Verdict, decide
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval
from montecarlo.presets import PRESETS, Block, Grid
from montecarlo.sampling.conditions import Condition
from montecarlo.study import Study, find_reference, run_study

DIVISORS = ("none", "sqrt")
RATE = 1e-6
PAIRS = Grid(d_k=(16, 64), n_keys=(), laws=(), divisors=DIVISORS, first=32, most=64)
SENTENCES = Sentences("s", "r", "c", "i")


def catalogue_of(*readings, checks=()):
    """A catalogue of one claim with these readings, each a tuple of checks."""
    if not readings:
        readings = ((c,) for c in checks)
    entries = tuple(Reading(f"r{i}", tuple(r)) for i, r in enumerate(readings))
    claim = Claim("c", "variance", "s", (Source("a", "1"),), SENTENCES, entries)
    return Catalogue((), (claim,))


def study_claims(catalogue, grid, seed=1):
    """The record of the claims of a small study."""
    with ThreadPoolExecutor(1) as executor:
        return run_study(Study(catalogue, grid, seed, RATE), executor).claims


def exact(condition, key):
    """The exact value of a row, as the study knows it."""
    found = find_reference(condition, key)
    return None if found is None else found.value


def variance(divisor="none", quantity="score_variance", **more):
    """A check of a variance that anything satisfies, if nothing else is said."""
    return Check(quantity, "at_least", "value", divisor, **{"low": 0.0, **more})


def split(checks, looks, rate=0.01):
    """How many intervals an error rate is split over."""
    alpha = decision_error(catalogue_of(checks=checks), looks, DIVISORS, exact, rate)
    return rate / (2.0 * alpha)


ONE = {Condition("gaussian", "gaussian", 16): 1}


def test_variance_and_its_root_share_their_error():
    """A variance, its root and both under any divisor are one statistic; the mean
    size of a score is another.
    """
    same = [
        variance(divisor, quantity)
        for divisor in DIVISORS
        for quantity in ("score_variance", "score_std")
    ]
    assert split(same, ONE) == pytest.approx(1.0)
    assert split([*same, variance(quantity="score_abs")], ONE) == pytest.approx(2.0)


def test_error_is_split_over_cells_and_looks():
    """Every cell counts, and as often as it may be looked at; a series as often as the
    one of its conditions that is looked at most.
    """
    looks = {Condition("gaussian", "gaussian", d): n for d, n in ((16, 3), (64, 4))}
    slope = Check("score_variance", "slope_between", "value", low=0.0)

    assert split([variance()], looks) == pytest.approx(7.0)
    assert split([slope], looks) == pytest.approx(4.0)
    assert split([variance(), slope, variance("sqrt")], looks) == pytest.approx(11.0)


def test_what_is_not_decided_costs_nothing():
    """Cells outside the domain, without moments or without reference have no share."""
    looks = {
        **ONE,
        Condition("gaussian", "gaussian", 4): 9,
        Condition("student_t3", "student_t3", 16): 9,
        Condition("laplace", "laplace", 16, 32): 9,
    }
    to_reference = Check("entropy", "equals", expected="reference", tolerance=0.1)

    assert split([variance(), to_reference], looks) == pytest.approx(1.0)
    assert split([], looks) == pytest.approx(1.0)  # and not a division by zero


#: Quantities of the seven claims on the size of scores.
SIZES = {"score_variance", "score_std", "score_abs"}


def test_catalogue_of_the_package_counts_each_statistic_once():
    """The seven claims on the size of scores, which are five times the same variance,
    use one interval a cell for it, one for E|q·k| and one slope each.
    """
    catalogue = read_catalogue()
    claims = [claim for claim in catalogue.claim if claim.topic == "variance"]
    checks = [
        check
        for claim in claims
        for reading in claim.reading
        for check in reading.check
        if check.quantity in SIZES and not check.domain.laws
    ]
    rights = [
        check
        for claim in claims
        for check in (claim.right.check if claim.right else ())
        if check.quantity in SIZES and "gaussian" in check.domain.laws
    ]
    looks = {Condition("gaussian", "gaussian", d): 1 for d in (16, 64)}

    assert len(checks) >= 9
    assert {check.quantity for check in checks} == SIZES
    # two cells of the variance, its slope, and the slope of E|q·k|
    assert split(checks, looks) == pytest.approx(4.0)
    # the sentence that would be right is about the same slope
    assert rights
    assert split([*checks, *rights], looks) == pytest.approx(4.0)


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


def test_unscaled_scores_are_refuted():
    """Judged by the claim of the scaled ones, unscaled scores are refuted everywhere;
    judged by it, scaled ones are supported.
    """
    right, wrong = (catalogue_of((equals_one(d, 0.2),)) for d in ("sqrt", "none"))

    assert study_claims(right, PAIRS)["claims"][0]["verdict"] == "supported"
    record = study_claims(wrong, PAIRS)["claims"][0]
    assert record["verdict"] == "refuted"
    cells = record["readings"][0]["checks"][0]["cells"]
    assert [cell["outcome"] for cell in cells] == ["refuted", "refuted"]


def test_wrong_expectation_just_outside_the_window_is_refuted():
    """A law whose variance is 1.5 times what the claim says is refuted, also where the
    tolerance is 20 %.
    """
    grid = msgspec.structs.replace(
        PAIRS, laws=("gaussian(std=1.25)",), law_d_k=(16, 64)
    )
    wide = Domain(laws=("gaussian(std=1.25)",))
    record = study_claims(catalogue_of((equals_one("sqrt", 0.2, domain=wide),)), grid)

    assert record["claims"][0]["verdict"] == "refuted"  # 1.25⁴ = 2.44


#: The quick preset with so few replicates that no interval means anything.
TWO = msgspec.structs.replace(
    PRESETS["quick"], first=2, most=2, first_large=2, most_large=2, tails=()
)


@pytest.fixture(scope="module")
def two():
    """What two replicates say of the package's own catalogue."""
    return study_claims(read_catalogue(), TWO)


def cells_of_record(record):
    """Every cell of every claim, of its readings and of its right sentence."""
    for claim in record["claims"]:
        for reading in (*claim["readings"], claim["right"]):
            for check in reading["checks"] if reading else ():
                for cell in check["cells"]:
                    yield claim["id"], check, cell


DECIDED = {"supported", "refuted"}


def test_two_replicates_decide_nothing_that_varies(two):
    """A run of two replicates leaves every cell open whose replicates differ at all,
    all self-checks, and every claim but those that rest on cells without any spread.
    """
    decided = [
        (id_, check["quantity"], cell["std_error"])
        for id_, check, cell in cells_of_record(two)
        if cell["outcome"] in DECIDED
    ]
    assert {error for _, _, error in decided} == {0.0}
    assert {quantity for _, quantity, _ in decided} == {
        "format_distinct_share",
        "planted_rank_first",
    }
    flat = {id_ for id_, _, _ in decided}
    for claim in two["claims"]:
        if claim["kind"] == "measured" and claim["id"] not in flat:
            assert claim["verdict"] == "inconclusive", claim["id"]
    checks = {check["id"]: check["verdict"] for check in two["self_checks"]}
    assert set(checks.values()) == {"inconclusive"}, checks


def test_two_replicates_decide_nothing(two):
    """Two replicates that agree are no proof, at an error rate of one in a million: a
    share that is 0 in both of them may well be 0.3.
    """
    assert not [
        (id_, check["quantity"])
        for id_, check, cell in cells_of_record(two)
        if cell["outcome"] in DECIDED and check["quantity"] == "format_overflow"
    ]


def test_what_is_not_measured(two):
    """A claim on practice or on a citation has no verdict, and one on shapes has one
    without any replicate.
    """
    verdicts = {}
    for claim in two["claims"]:
        verdicts.setdefault(claim["kind"], set()).add(claim["verdict"])

    assert verdicts["practice"] == verdicts["citation"] == {"not_measured"}
    assert verdicts["shape"] == {"refuted"}


def test_law_without_moments_does_not_vote():
    """Student's t with three degrees of freedom has no fourth moment: beside a Gaussian
    it is not applicable and changes nothing; alone, so is the claim.
    """
    t3 = Grid(
        d_k=(16, 64),
        n_keys=(),
        laws=("student_t3",),
        law_d_k=(16, 64),
        divisors=DIVISORS,
        first=32,
        most=32,
    )
    record = study_claims(catalogue_of((equals_one("sqrt", 0.3),)), t3)["claims"][0]
    outcomes = {
        cell["law"]: (cell["outcome"], cell["estimate"])
        for cell in record["readings"][0]["checks"][0]["cells"]
    }
    assert record["verdict"] == "supported"
    assert outcomes["student_t3"] == ("not_applicable", None)
    assert outcomes["gaussian"][0] == "supported"

    alone = equals_one("sqrt", 0.3, domain=Domain(laws=("student_t3",)))
    record = study_claims(catalogue_of((alone,)), t3)["claims"][0]
    assert record["verdict"] == "not_applicable"


def test_what_the_grid_lacks_is_not_measured():
    """A claim that has no cell in the grid is not measured."""
    far = equals_one("sqrt", domain=Domain(d_k=(512, 1024)))

    assert study_claims(catalogue_of((far,)), PAIRS)["claims"][0]["verdict"] == (
        "not_measured"
    )


class Fixed:
    """Estimates that are what they are told to be, by d_k, quantity and divisor."""

    def __init__(self, values):
        self.values = values

    def __call__(self, condition):
        """Return the summaries of a condition."""
        values = self.values

        class Summaries:
            def estimate(self, key):
                """Return the estimate of a row."""
                value, error = values[condition.d_k, key.quantity]
                return Estimate(value, error, 64)

        return Summaries()


def judged(readings, values, budget=128):
    """The one claim of a catalogue, judged on these values, with its undecided."""
    catalogue = catalogue_of(*readings)
    conditions = [Condition("gaussian", "gaussian", d, 32) for d in (16, 64, 256)]
    budgets = dict.fromkeys(conditions, budget)
    judge = Judge(catalogue, budgets, DIVISORS, exact, 1e-4)
    ((outcome,), _) = judge.judge(Fixed(values))
    return outcome, {c.d_k for c in undecided_conditions([outcome], budgets)}


def values_of(entropy, error=0.01, weight=0.5):
    """Entropies along d_k = 16, 64 and 256, and the same largest weight everywhere."""
    found = dict(zip((16, 64, 256), entropy, strict=True))
    return {
        **{(d, "entropy"): (value, error) for d, value in found.items()},
        **{(d, "weight_max"): (weight, error) for d in found},
    }


HIGH = Check("entropy", "at_least", low=1.0)
SMALL_WEIGHT = Check("weight_max", "at_most", high=0.9)


def test_places_need_all_checks_of_a_reading():
    """A place is supported where each check is, and refuted where one fails."""
    outcome, undecided = judged([(HIGH, SMALL_WEIGHT)], values_of((2.0, 2.0, 0.5)))
    (reading,) = outcome.readings

    assert [verdict for _, verdict in reading.places] == [
        Verdict.SUPPORTED,
        Verdict.SUPPORTED,
        Verdict.REFUTED,
    ]
    assert outcome.verdict == Verdict.CONDITIONAL
    assert [border.d_k for border in reading.borders] == [(64, 256)]
    assert undecided == set()
    outcome, _ = judged([(HIGH, SMALL_WEIGHT)], values_of((2.0, 2.0, 2.0), weight=0.95))
    assert outcome.verdict == Verdict.REFUTED


def test_undecided_places_are_asked_for():
    """Only where an interval crosses a bound more is wanted, with the number that would
    decide it; a place too close to the bound has none, and is given up.
    """
    outcome, undecided = judged([(HIGH,)], values_of((1.02, 2.0, 1.0)))
    needed = [cell.needed for cell in outcome.readings[0].checks[0].cells]

    assert outcome.verdict == Verdict.INCONCLUSIVE
    assert undecided == {16}
    assert needed[0] > 64
    assert needed[1:] == [None, None]


def test_readings_make_the_claim():
    """Readings that differ make it conditional, and each keeps its own verdict."""
    lower = Check("entropy", "at_least", low=3.0)
    outcome, _ = judged([(HIGH,), (lower,)], values_of((2.0, 2.0, 2.0)))

    assert [reading.verdict for reading in outcome.readings] == [
        Verdict.SUPPORTED,
        Verdict.REFUTED,
    ]
    assert outcome.verdict == Verdict.CONDITIONAL


def test_borders_lie_between_neighbours():
    """Where the checks of a reading have different domains, borders still lie between
    neighbouring d_k, from the smaller to the larger.
    """
    far = msgspec.structs.replace(HIGH, domain=Domain(d_k=(64, 256)))
    outcome, _ = judged([(far, SMALL_WEIGHT)], values_of((2.0, 2.0, 0.5)))
    (reading,) = outcome.readings

    assert [place.d_k for place, _ in reading.places] == [16, 64, 256]
    assert [border.d_k for border in reading.borders] == [(64, 256)]


def test_series_are_undecided_as_a_whole():
    """A slope that is not decided wants more of each of its places."""
    slope = Check("entropy", "slope_between", low=-0.01, high=0.01)
    values = values_of((1.0, 1.0, 1.0), error=0.02)
    _, undecided = judged([(slope,)], values, budget=512)
    assert undecided == {16, 64, 256}
    _, undecided = judged([(slope,)], values, budget=64)
    assert undecided == set()  # all of them too few


@pytest.mark.parametrize(("budgets", "hope"), [(0.9, True), (1.1, False)])
def test_hopeless_places_are_given_up(budgets, hope):
    """A place that needs more than four budgets keeps its number, and is left open
    without any further replicates.
    """
    values = values_of((1.02, 2.0, 2.0))
    outcome, _ = judged([(HIGH,)], values)
    needed = outcome.readings[0].checks[0].cells[0].needed
    budget = math.ceil(needed / (HOPELESS * budgets))
    outcome, undecided = judged([(HIGH,)], values, budget)

    assert undecided == ({16} if hope else set())
    assert outcome.readings[0].checks[0].cells[0].needed == needed
    assert outcome.verdict == Verdict.INCONCLUSIVE


def test_estimates_without_error_decide_nothing():
    """An estimate with no interval leaves its place open and asks for nothing."""
    outcome, undecided = judged([(HIGH,)], values_of((2.0, 2.0, 2.0), error=math.nan))

    assert outcome.verdict == Verdict.INCONCLUSIVE
    assert undecided == set()
    assert {cell.needed for cell in outcome.readings[0].checks[0].cells} == {None}


def test_self_checks_are_judged_like_claims():
    """A self-check has a verdict of its own and its share of the error rate."""
    wrong = SelfCheck("wrong", "s", (equals_one("none", 0.2),))
    right = SelfCheck("right", "s", (equals_one("sqrt", 0.2),))
    record = study_claims(Catalogue((), (), (wrong, right)), PAIRS)

    assert [check["verdict"] for check in record["self_checks"]] == [
        "refuted",
        "supported",
    ]
    assert record["decision_error"] == pytest.approx(
        RATE / (2 * 2 * 2)
    )  # cells · looks


def right_record(checks):
    """The record of a claim whose right sentence has these checks."""
    catalogue = catalogue_of((variance(),))  # a variance of at least 0: supported
    right = Right("s", "a", tuple(checks))
    claim = msgspec.structs.replace(catalogue.claim[0], right=right)
    return study_claims(Catalogue((), (claim,)), PAIRS)


def test_right_sentence_has_a_verdict_of_its_own():
    """What would be right is judged beside the claim, does not vote on it, and has its
    share of the error rate.
    """
    record = right_record([equals_one("none", 0.2)])
    claim = record["claims"][0]

    assert claim["verdict"] == "supported"
    assert claim["right"]["verdict"] == "refuted"
    assert [c["outcome"] for c in claim["right"]["checks"][0]["cells"]] == (
        ["refuted", "refuted"]
    )
    other = Check("score_abs", "at_least", "value", low=0.0)
    found = right_record([other])
    assert found["claims"][0]["right"]["verdict"] == "supported"
    assert found["decision_error"] == pytest.approx(RATE / (2 * 2 * 2 * 2))


def test_undecided_right_sentence_asks_for_more():
    """Where the right sentence is open its conditions are sampled on."""
    catalogue = catalogue_of((HIGH,))
    far = Check("entropy", "at_least", low=2.0)
    claim = msgspec.structs.replace(catalogue.claim[0], right=Right("s", "a", (far,)))
    conditions = [Condition("gaussian", "gaussian", d, 32) for d in (16, 64, 256)]
    budgets = dict.fromkeys(conditions, 512)
    judge = Judge(Catalogue((), (claim,)), budgets, DIVISORS, exact, 1e-4)
    ((outcome,), _) = judge.judge(Fixed(values_of((3.0, 2.02, 3.0))))

    assert outcome.verdict == Verdict.SUPPORTED
    assert outcome.right.verdict == Verdict.INCONCLUSIVE
    assert {c.d_k for c in undecided_conditions([outcome], budgets)} == {64}


def test_check_without_a_place_leaves_its_reading_open():
    """Where the grid has no place for one of the checks, the others cannot support."""
    far = equals_one("sqrt", domain=Domain(d_k=(512, 1024)))
    record = study_claims(catalogue_of((variance(), far)), PAIRS)["claims"][0]
    assert record["verdict"] == "inconclusive"
    wrong = equals_one("none", 0.2)
    record = study_claims(catalogue_of((wrong, far)), PAIRS)["claims"][0]
    assert record["verdict"] == "refuted"  # one place is enough for that


def test_borders_lie_within_their_context():
    """Places of several dependences come one dependence after the other, so that the
    borders within each are found.
    """
    grid = Grid(
        d_k=(),
        n_keys=(),
        laws=(),
        divisors=DIVISORS,
        first=32,
        most=32,
        blocks=tuple(
            Block((16, 64, 256), dependence=f"pairs({rho!r})") for rho in (0.5, 1.0)
        ),
    )
    domain = Domain(dependence=("pairs(0.5)", "pairs(1.0)"))
    # E q·k = rho d: below 20 at 8 and 16, far above it at 32 and more
    check = Check("score_mean", "at_most", "value", high=20.0, domain=domain)
    (reading,) = study_claims(catalogue_of((check,)), grid)["claims"][0]["readings"]

    assert [place["outcome"] for place in reading["places"]] == (
        ["supported", "refuted", "refuted"] * 2
    )
    assert [(border["context"], border["d_k"]) for border in reading["borders"]] == [
        ("pairs(0.5)", [16, 64]),
        ("pairs(1.0)", [16, 64]),
    ]


EQUALS = [
    (claim.id, check)
    for claim in read_catalogue().claim
    for check in (claim.right.check if claim.right else ())
    if check.relation == "equals"
]


@pytest.mark.parametrize(("claim", "check"), EQUALS, ids=[c for c, _ in EQUALS])
def test_right_numbers_are_those_of_theory(claim, check):
    """The number of each right sentence is the exact one in every cell of the standard
    preset, to a hundredth of the tolerance; two tolerances further it would be refuted.
    """
    budgets = PRESETS["standard"].budgets()
    cells = cells_of(check, budgets, tuple(DIVISOR_TABLE))
    assert cells, claim
    for cell in cells:
        low, high = window_in(check, cell, exact)
        truth = find_reference(cell.conditions[0], row_key(check)).value
        half = 0.5 * (high - low)
        assert abs(0.5 * (low + high) - truth) <= 0.01 * half
        for sign in (-2.0, 2.0):
            moved = (low + sign * half, high + sign * half)
            sharp = Interval(truth - 0.01 * half, truth + 0.01 * half)
            assert decide(sharp, (low, high)) == Verdict.SUPPORTED
            assert decide(sharp, moved) == Verdict.REFUTED
