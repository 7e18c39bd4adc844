"""Which case stands for a verdict: the one that a reader is shown first."""

import math
from collections.abc import Sequence

from montecarlo.claims.outcomes import CaseOutcome
from montecarlo.report.content.views import CheckView, InterpretationView


def find_counterexample(
    interpretations: Sequence[InterpretationView],
) -> tuple[CheckView, CaseOutcome] | None:
    """Return the smallest place that was measured to be otherwise than claimed.

    None where there is none; what theory says of a limit is not measured at a place.
    """
    found = _smallest(interpretations, "refuted")
    return None if found is None or found[1].limit is not None else found


def find_telling(
    verdict: str, interpretations: Sequence[InterpretationView]
) -> tuple[CheckView, CaseOutcome] | None:
    """Return the case that stands for a verdict.

    Of a claim that fails somewhere, the smallest counterexample; of one that is open,
    the smallest place that is; of one that holds, the place that it holds by the least
    among those that are known well; of a word of degree none.
    """
    if verdict == "degree":
        return None
    if verdict in ("refuted", "tally", "depends"):
        found = _smallest(interpretations, "refuted")
        if found is not None:
            return found
    if verdict in ("tally", "undecided"):
        found = _smallest(interpretations, "undecided")
        if found is not None:
            return found
    held = [pair for pair in _cases(interpretations) if pair[1].outcome == "supported"]
    return min(held, key=lambda p: (_is_vague(p[1]), _margin(p[1])), default=None)


def _smallest(
    interpretations: Sequence[InterpretationView], outcome: str
) -> tuple[CheckView, CaseOutcome] | None:
    """Return the case of an outcome with the smallest d_k and n, and its check."""
    return min(
        (
            (check, case)
            for check, case in _cases(interpretations)
            if case.outcome == outcome
        ),
        key=lambda found: ((found[1].d_k_range or (0, 0))[1], found[1].n_keys or 0),
        default=None,
    )


def _cases(
    interpretations: Sequence[InterpretationView],
) -> list[tuple[CheckView, CaseOutcome]]:
    return [
        (check, case)
        for one in interpretations
        for check in one.checks
        for case in check.cases
        if case.d_k_range is not None or case.distribution
    ]


def _is_vague(case: CaseOutcome) -> bool:
    """Tell whether the error of a positive quantity is over a third of its value."""
    low = case.region[0]
    if low <= 0.0 or not case.estimate or not case.std_error:
        return False
    return case.std_error > abs(case.estimate) / 3.0


def _margin(case: CaseOutcome) -> float:
    """Return how many standard errors an interval stays away from its region's ends."""
    gaps = [
        abs(end - limit)
        for end, limit in zip(case.interval, case.region, strict=True)
        if math.isfinite(end) and math.isfinite(limit)
    ]
    if not gaps or not case.std_error:
        return math.inf
    return min(gaps) / case.std_error
