"""What comes of the checks with a vague word, over the thresholds it may stand for."""

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec.structs import replace

from montecarlo.claims.checks import Check, Level
from montecarlo.claims.outcomes import CaseOutcome, CheckOutcome, ClaimOutcome
from montecarlo.claims.verdicts import Verdict, decide
from montecarlo.estimation.intervals import Interval
from montecarlo.study.columns import CurveLine

#: Points of a curve over thresholds.
THRESHOLDS = 31
#: Names of the curves.
SHARE, USED = "threshold", "threshold_used"


def threshold_curves(claims: Iterable[ClaimOutcome]) -> Iterator[CurveLine]:
    """Yield shares of cases over thresholds, for every check with a vague word.

    Two curves a check: cases supported, and refuted; what is left between them is
    undecided.  `USED` has one point, the threshold of the catalogue.
    """
    for claim in claims:
        for interpretation in claim.interpretations:
            for outcome in interpretation.checks:
                if outcome.threshold is None:
                    continue
                line = CurveLine(
                    curve=USED,
                    claim=claim.id,
                    interpretation=interpretation.id,
                    x=_read_threshold(outcome),
                )
                if outcome.cases:
                    yield line
                for x, found in _outcomes(outcome):
                    for verdict in (Verdict.SUPPORTED, Verdict.REFUTED):
                        share = found.count(verdict) / len(found)
                        yield replace(
                            line,
                            curve=SHARE,
                            outcome=verdict.value,
                            x=x,
                            estimate=share,
                        )


def _read_threshold(check: Check) -> float:
    """Return the threshold that the catalogue sets, without its power of n."""
    on_low = check.threshold is not None and check.threshold.bound == "low"
    bound = check.low if on_low else check.high
    return bound.times if isinstance(bound, Level) else float(bound or 0.0)


def _outcomes(outcome: CheckOutcome) -> Iterator[tuple[float, list[Verdict]]]:
    """Yield what comes of the cases that are judged at each threshold."""
    threshold = outcome.threshold
    cases = [c for c in outcome.cases if c.outcome != Verdict.NOT_APPLICABLE]
    if threshold is None or not cases:
        return
    for x in np.linspace(threshold.start, threshold.stop, THRESHOLDS):
        yield (
            float(x),
            [
                decide(Interval(*case.interval), _move_bound(outcome, case, float(x)))
                for case in cases
            ],
        )


def _move_bound(check: Check, case: CaseOutcome, times: float) -> tuple[float, float]:
    """Return a case's region with the bound of the vague word put elsewhere."""
    assert check.threshold is not None  # noqa: S101 - asked for by `_shares` only
    low, high = case.region
    bound = check.low if check.threshold.bound == "low" else check.high
    if isinstance(bound, Level):
        moved = Level(times, bound.d_k_power, bound.n_keys_power)
        end = moved.at(case.d_k, case.n_keys)
    else:
        end = times
    return (end, high) if check.threshold.bound == "low" else (low, end)
