"""What claims.json keeps of numbers, what that still tells, and that it reads back."""

import math
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import Check
from montecarlo.claims.judging import Judge
from montecarlo.claims.outcomes import (
    CaseKey,
    ClaimsRecord,
    SelfCheckOutcome,
    decide_case,
)
from montecarlo.claims.running import exact_value
from montecarlo.claims.simulation import Evidence
from montecarlo.claims.verdicts import Outcome, decide
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval
from montecarlo.study.presets import PRESETS
from tests.samples import KNOWN

CHECK = Check("score_variance", "between", low=1.0, high=2.0)
CASE = CaseKey(distribution="gaussian", d_k=16)


def written(outcome):
    """What claims.json has of something, read back."""
    return msgspec.json.decode(msgspec.json.encode(outcome), type=type(outcome))


def case_of(interval, region):
    """The case of an interval and a region, as claims.json has it."""
    estimate = Estimate(1.5, 0.1, 9, bounds=lambda _: interval)
    return written(decide_case(CHECK, CASE, region, estimate, 0.01))


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.99999999, 2.0),
        (1.0, 1.99999999),
        (1.5, 2.000000001),
        (1.5, math.nextafter(2.0, 3.0)),
        (2.0000000001, 3.0),
        (0.5, math.nextafter(1.0, 0.0)),
        (0.5, 1.0),
        (-math.inf, 1.5),
        (1.25, math.inf),
    ],
)
def test_kept_ends_tell_the_outcome(low, high):
    """Fewer digits move no end of an interval to another side of its region's ends."""
    case = case_of(Interval(low, high), (1.0, 2.0))
    assert case.region == (1.0, 2.0)
    assert decide(Interval(low, high), (1.0, 2.0)) == case.outcome
    assert decide(Interval(*case.interval), (1.0, 2.0)) == case.outcome


def test_open_ends_are_null():
    """JSON has no infinity: an end that is open is null, and reads back as infinite."""
    case = case_of(Interval(-math.inf, 1.5), (-math.inf, 2.0))
    assert (case.simultaneous_low, case.region_low) == (None, None)
    assert case.interval == (-math.inf, 1.5)
    assert case.region == (-math.inf, 2.0)


def record_of(z_scores="supported", **parts):
    """A record of these parts, and of no others."""
    names = ("claims", "passages", "self_checks", "models", "records")
    found = ClaimsRecord(**(dict.fromkeys(names, ()) | parts), **KNOWN)
    return replace(found, z_scores=replace(found.z_scores, outcome=Outcome(z_scores)))


def test_failed_self_checks_are_named():
    """Those that are refuted, z scores among them; not what could not be decided."""
    checks = tuple(
        SelfCheckOutcome(id=v, outcome=Outcome(v), checks=())
        for v in ("supported", "refuted", "undecided")
    )
    for z_scores, failed in (
        ("not_applicable", ["refuted"]),
        ("supported", ["refuted"]),
        ("refuted", ["refuted", "z-scores"]),
    ):
        found = record_of(z_scores, self_checks=checks).failed_self_checks()
        assert found == failed
    assert record_of().failed_self_checks() == []


@pytest.fixture(scope="module")
def judged():
    """The catalogue on a grid of which nothing was sampled, but exactly known."""
    catalogue = read_catalogue()
    grid = PRESETS["quick"]
    budgets = dict.fromkeys(grid.points(), 1)

    def exactly(point):
        """Return estimates that are the exact value, where there is one."""

        def estimate(key):
            known = exact_value(point, key)
            return Estimate(1.0 if known is None else known, 0.01, 64)

        return SimpleNamespace(estimate=estimate)

    evidence = Evidence(budgets, grid.divisors, exact_value, exactly)
    judge = Judge(evidence, lambda _: 1e-4)
    return judge.judge(catalogue, **KNOWN)


def test_all_that_is_judged_reads_back(judged):
    """Whatever the judge writes, claims.json gives back: types, numbers and order."""
    catalogue = read_catalogue()
    back = written(judged)
    assert back == judged
    checks = [*back.judged_checks(), *back.sentence_checks()]
    assert {one.check for one in checks} == set(catalogue.checks())
    assert sum(len(check.cases) for check in checks) > 400
    outcomes = {case.outcome for check in checks for case in check.cases}
    assert outcomes >= {"supported", "refuted", "undecided", "not_applicable"}


@pytest.mark.parametrize(
    ("fields", "context"),
    [
        ({}, ""),
        ({"dependence": "planted(0.5)"}, "planted(0.5)"),
        ({"initialisation": "init(kind=he_normal)"}, "init(kind=he_normal)"),
        ({"arithmetic": "float16 naive"}, "float16 naive"),
        ({"part": "layer 0, head 3"}, "layer 0, head 3"),
        ({"dependence": "planted(0.5)", "arithmetic": "f naive"}, "f naive"),
    ],
)
def test_context_is_what_is_beside_distribution_and_sizes(fields, context):
    """One of them, as a sentence of the catalogue names it."""
    assert CaseKey(distribution="gaussian", **fields).context == context


def test_ends_keep_six_digits():
    """An interval is itself an estimate: more digits would say nothing; outwards."""
    case = case_of(Interval(0.123456789, 1234567.89), (0.0, math.inf))
    assert (case.simultaneous_low, case.simultaneous_high) == (0.123456, 1234570.0)
    assert case.outcome == Outcome.SUPPORTED
