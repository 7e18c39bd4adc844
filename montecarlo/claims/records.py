"""Outcomes as plain data for claims.json, and the curves over thresholds."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from montecarlo.claims.checks import Check, Level
from montecarlo.claims.judging import ClaimOutcome
from montecarlo.claims.outcomes import CaseOutcome, CheckOutcome, InterpretationOutcome
from montecarlo.claims.saying import Number, SentenceOutcome
from montecarlo.claims.schema import Catalogue, Claim
from montecarlo.claims.verdicts import Verdict, decide
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.theory.limits import Limit

Record = dict[str, object]
RowName = Callable[[DesignPoint, RowKey], str]
#: Points of a curve over thresholds.
THRESHOLDS = 31


def claim_records(
    catalogue: Catalogue,
    outcomes: list[ClaimOutcome],
    error_rates: Mapping[str, float],
    row_name: RowName,
) -> list[Record]:
    """Return one record per claim, in the order of the catalogue.

    Parameters
    ----------
    catalogue : Catalogue
    outcomes : list of ClaimOutcome
    error_rates : mapping
        Id of each claim to its own nominal rate.
    row_name : callable
    """
    return [
        _claim(claim, outcome, error_rates[claim.id], row_name)
        for claim, outcome in zip(catalogue.claim, outcomes, strict=True)
    ]


def _claim(
    claim: Claim, outcome: ClaimOutcome, error_rate: float, row_name: RowName
) -> Record:
    voting = claim.admitted()
    right, concedes = outcome.right, outcome.concedes
    return {
        "id": claim.id,
        "kind": claim.kind,
        "topic": claim.topic,
        "sources": [msgspec.to_builtins(source) for source in claim.source],
        "verdict": outcome.verdict.value,
        "error_rate": _short(error_rate),
        "texts": {key: verdict.value for key, verdict in outcome.texts.items()},
        "interpretations": [
            {
                **_interpretation(interpretation, row_name),
                "votes": interpretation.id in voting,
            }
            for interpretation in outcome.interpretations
        ],
        "findings": [sentence_record(one, row_name) for one in outcome.findings],
        "right": None if right is None else sentence_record(right, row_name),
        "concedes": None if concedes is None else sentence_record(concedes, row_name),
    }


def sentence_record(outcome: SentenceOutcome, row_name: RowName) -> Record:
    """Return whether a sentence holds, its numbers, and what it rests on."""
    return {
        "holds": outcome.holds,
        "numbers": {
            name: _number(number, row_name) for name, number in outcome.numbers.items()
        },
        "checks": [_check(check, row_name) for check in outcome.checks],
    }


def _number(number: Number, row_name: RowName) -> Record:
    row = ""
    if number.case is not None and len(number.case.case.points) == 1:
        row = row_name(number.case.case.points[0], number.case.key)
    return {
        "value": number.value,
        "std_error": None if number.std_error is None else _short(number.std_error),
        "row": row,
        "percent": number.percent,
    }


def self_check_records(outcomes: list[ClaimOutcome], row_name: RowName) -> list[Record]:
    """Return one record per self-check."""
    return [
        {
            "id": outcome.id,
            "verdict": outcome.verdict.value,
            "checks": [_check(c, row_name) for c in outcome.interpretations[0].checks],
        }
        for outcome in outcomes
    ]


def failed_self_checks(claims: Mapping[str, Any]) -> list[str]:
    """Return the ids of the refuted self-checks of claims.json, ``z-scores`` last."""
    failed = [c["id"] for c in claims["self_checks"] if c["verdict"] == Verdict.REFUTED]
    # an earlier version did not judge them
    if claims.get("z_scores", {}).get("verdict") == Verdict.REFUTED:
        failed.append("z-scores")
    return failed


def _interpretation(interpretation: InterpretationOutcome, row_name: RowName) -> Record:
    return {
        "id": interpretation.id,
        "quantifier": interpretation.interpretation.quantifier,
        "form": interpretation.interpretation.form,
        "share": interpretation.interpretation.share,
        "verdict": interpretation.verdict.value,
        "places": [
            {**place._asdict(), "outcome": verdict.value}
            for place, verdict in interpretation.places
        ],
        "borders": [
            {
                "distribution": border.distribution,
                "n_keys": border.n_keys,
                "context": border.context,
                "d_k": list(border.d_k),
                "outcomes": [verdict.value for verdict in border.outcomes],
            }
            for border in interpretation.borders
        ],
        "checks": [_check(check, row_name) for check in interpretation.checks],
    }


def _check(outcome: CheckOutcome, row_name: RowName) -> Record:
    cases = [_case(case, row_name) for case in outcome.cases]
    return {**said_check(outcome.check), "cases": cases}


def said_check(check: Check) -> Record:
    """Return what a catalogue says of a check."""
    return {
        "quantity": check.quantity,
        "summary": check.summary,
        "divisor": check.divisor,
        "number_format": check.number_format,
        "softmax": check.softmax,
        "relation": check.relation,
        "expected": _level(check.expected),
        "tolerance": check.tolerance,
        "low": _level(check.low),
        "high": _level(check.high),
        "to": check.to,
        "domain": {
            "d_k": list(check.domain.d_k),
            "n_keys": list(check.domain.n_keys),
            "distributions": list(check.domain.distributions),
            "dependence": list(check.domain.dependence),
            "initialisation": list(check.domain.initialisation),
        },
    }


def _case(case: CaseOutcome, row_name: RowName) -> Record:
    estimate, interval = case.estimate, case.interval
    return {
        **case.case.place._asdict(),
        "d_k_range": [c.d_k for c in (case.case.points[0], case.case.points[-1])],
        "rows": [row_name(point, case.key) for point in case.case.points],
        "estimate": None if estimate is None else _finite(estimate.value),
        "std_error": None if estimate is None else _short(estimate.std_error),
        "n_replicates": None if estimate is None else estimate.n_replicates,
        "simultaneous_low": None
        if interval is None
        else _end(interval.low, case.region),
        "simultaneous_high": None
        if interval is None
        else _end(interval.high, case.region),
        "region_low": _finite(case.region[0]),
        "region_high": _finite(case.region[1]),
        "exact": case.exact,
        "limit": None if case.limit is None else _limit(case.limit),
        "outcome": case.verdict.value,
        "replicates_needed": case.needed,
    }


def _limit(limit: Limit) -> Record:
    return {
        "tends_to": limit.tends_to,
        "kind": limit.kind,
        "exponent": limit.exponent,
        "constant": limit.constant,
    }


def _level(level: float | str | Level | None) -> object:
    if isinstance(level, Level):
        return {
            "times": level.times,
            "d_k_power": level.d_k_power,
            "n_keys_power": level.n_keys_power,
        }
    return level


def _finite(value: float) -> float | None:
    """JSON has no infinity: an open end is null."""
    return value if math.isfinite(value) else None


def _short(value: float) -> float | None:
    """Keep six digits of what is itself an estimate of an error."""
    return _finite(float(f"{value:.6g}"))


def _end(value: float, region: tuple[float, float]) -> float | None:
    """Keep six digits of an end of an interval, or as many as compare as it does."""
    kept = (float(f"{value:.{digits}g}") for digits in range(6, 17))
    sides = [(value > end) - (value < end) for end in region]
    for short in kept:
        if [(short > end) - (short < end) for end in region] == sides:
            return _finite(short)
    return _finite(value)


def threshold_curves(
    outcomes: list[ClaimOutcome],
) -> Iterator[tuple[str, float, float]]:
    """Yield (curve, threshold, share of cases) for every check with a vague word.

    Two curves a check, ``threshold/<claim>/<interpretation>/supported`` and
    ``…/refuted``; what is left between them is undecided.  ``…/used`` has one point,
    the threshold of the catalogue.
    """
    for claim in outcomes:
        for interpretation in claim.interpretations:
            for outcome in interpretation.checks:
                if outcome.check.threshold is None:
                    continue
                name = f"threshold/{claim.id}/{interpretation.id}"
                if outcome.cases:
                    yield f"{name}/used", _used(outcome.check), math.nan
                for x, supported, refuted in _shares(outcome):
                    yield f"{name}/supported", x, supported
                    yield f"{name}/refuted", x, refuted


def _used(check: Check) -> float:
    """Return the threshold that the catalogue sets, without its power of n."""
    on_low = check.threshold is not None and check.threshold.bound == "low"
    bound = check.low if on_low else check.high
    return bound.times if isinstance(bound, Level) else float(bound or 0.0)


def _shares(outcome: CheckOutcome) -> Iterator[tuple[float, float, float]]:
    threshold = outcome.check.threshold
    cases = [case for case in outcome.cases if case.interval is not None]
    if threshold is None or not cases:
        return
    for x in np.linspace(threshold.start, threshold.stop, THRESHOLDS):
        found = [
            decide(case.interval, _moved(outcome.check, case, float(x)))
            for case in cases
            if case.interval is not None
        ]
        yield (
            float(x),
            found.count(Verdict.SUPPORTED) / len(found),
            found.count(Verdict.REFUTED) / len(found),
        )


def _moved(check: Check, case: CaseOutcome, times: float) -> tuple[float, float]:
    """Return a case's region with the bound of the vague word put elsewhere."""
    assert check.threshold is not None  # noqa: S101 - asked for by `_shares` only
    low, high = case.region
    bound = check.low if check.threshold.bound == "low" else check.high
    place = case.case.place
    if isinstance(bound, Level):
        moved = Level(times, bound.d_k_power, bound.n_keys_power)
        end = moved.at(place.d_k, place.n_keys)
    else:
        end = times
    return (end, high) if check.threshold.bound == "low" else (low, end)
