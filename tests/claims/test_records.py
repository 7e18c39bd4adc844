"""Records of claims.json: what they keep of numbers, and what that still tells."""

import math

import pytest

from montecarlo.claims.checks import Check
from montecarlo.claims.judging import ClaimOutcome
from montecarlo.claims.outcomes import CaseOutcome, CheckOutcome, InterpretationOutcome
from montecarlo.claims.schema import Interpretation
from montecarlo.claims.verdicts import Verdict, decide
from montecarlo.estimation.intervals import Interval
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.design_points import parse_point


def record_of(interval, region):
    """Return the record of a case with an interval and a region."""
    point = parse_point("gaussian", "gaussian", 16)
    key = RowKey("none", "score_variance", "value")
    verdict = decide(interval, region)
    place = Place("gaussian", None, 16)
    case = CaseOutcome(Case(place, (point,)), key, None, interval, region, verdict)
    check = CheckOutcome(Check("score_variance", "between"), (case,))
    entry = Interpretation("r", (check.check,))
    interpretation = InterpretationOutcome(entry, verdict, (check,), (), ())
    outcome = ClaimOutcome("c", verdict, (interpretation,))
    (record,) = self_check_records([outcome], lambda *_: "row")
    return record["checks"][0]["cases"][0]


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
    record = record_of(Interval(low, high), (1.0, 2.0))
    low = (
        -math.inf if record["simultaneous_low"] is None else record["simultaneous_low"]
    )
    high = (
        math.inf if record["simultaneous_high"] is None else record["simultaneous_high"]
    )
    kept = Interval(low, high)
    assert decide(kept, (1.0, 2.0)) == Verdict(record["outcome"])


def test_ends_keep_six_digits():
    """An interval is itself an estimate: more digits would say nothing."""
    record = record_of(Interval(0.123456789, 1234567.89), (0.0, math.inf))
    assert (record["simultaneous_low"], record["simultaneous_high"]) == (
        0.123457,
        1234570.0,
    )
    assert record["outcome"] == Verdict.SUPPORTED


def test_failed_self_checks_are_named():
    """Those that are refuted, z scores among them; not what could not be decided."""
    checks = [{"id": v, "verdict": v} for v in ("supported", "refuted", "inconclusive")]
    record = {"self_checks": checks}
    assert failed_self_checks(record) == ["refuted"]  # of an earlier version
    assert failed_self_checks({**record, "z_scores": {"verdict": "supported"}}) == [
        "refuted"
    ]
    assert failed_self_checks({**record, "z_scores": {"verdict": "refuted"}}) == [
        "refuted",
        "z-scores",
    ]
