"""What comes of the checks with a vague word, over the thresholds it may stand for."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from montecarlo.claims.checks import Check, Level
from montecarlo.claims.outcomes import CaseOutcome, CheckOutcome, ClaimOutcome
from montecarlo.claims.verdicts import Verdict, decide
from montecarlo.estimation.intervals import Interval

#: Points of a curve over thresholds.
THRESHOLDS = 31


def threshold_curves(
    claims: Iterable[ClaimOutcome],
) -> Iterator[tuple[str, float, float]]:
    """Yield (curve, threshold, share of cases) for every check with a vague word.

    Two curves a check, ``threshold/<claim>/<interpretation>/supported`` and
    ``…/refuted``; what is left between them is undecided.  ``…/used`` has one point,
    the threshold of the catalogue.
    """
    for claim in claims:
        for interpretation in claim.interpretations:
            for outcome in interpretation.checks:
                if outcome.threshold is None:
                    continue
                name = f"threshold/{claim.id}/{interpretation.id}"
                if outcome.cases:
                    yield f"{name}/used", _used(outcome), math.nan
                for x, supported, refuted in _shares(outcome):
                    yield f"{name}/supported", x, supported
                    yield f"{name}/refuted", x, refuted


def _used(check: Check) -> float:
    """Return the threshold that the catalogue sets, without its power of n."""
    on_low = check.threshold is not None and check.threshold.bound == "low"
    bound = check.low if on_low else check.high
    return bound.times if isinstance(bound, Level) else float(bound or 0.0)


def _shares(outcome: CheckOutcome) -> Iterator[tuple[float, float, float]]:
    threshold = outcome.threshold
    cases = [c for c in outcome.cases if c.outcome != Verdict.NOT_APPLICABLE]
    if threshold is None or not cases:
        return
    for x in np.linspace(threshold.start, threshold.stop, THRESHOLDS):
        found = [
            decide(Interval(*case.interval), _moved(outcome, case, float(x)))
            for case in cases
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
    if isinstance(bound, Level):
        moved = Level(times, bound.d_k_power, bound.n_keys_power)
        end = moved.at(case.d_k, case.n_keys)
    else:
        end = times
    return (end, high) if check.threshold.bound == "low" else (low, end)
