"""What is worth sampling on: the points of cases that are still open."""

from collections.abc import Iterator

from montecarlo.claims.outcomes import CaseOutcome, CheckOutcome, Judgement, locate
from montecarlo.claims.simulation import Simulation
from montecarlo.claims.verdicts import Verdict
from montecarlo.sampling.design_points import DesignPoint

#: A case that seems to need more budgets than this is not sampled further.
HOPELESS = 4


def undecided_points(judged: Judgement, simulation: Simulation) -> set[DesignPoint]:
    """Return the points of all undecided cases that the budget may still decide.

    Parameters
    ----------
    judged : Judgement
    simulation : Simulation
        On which it was judged.

    Notes
    -----
    A case that seems to need many times its budget is given up: that leaves it
    undecided, which it would end as anyhow, and makes no decision wrong.  What a
    sentence asserts and theory knows does not wait for the sample.
    """
    found: set[DesignPoint] = set()
    for check, case in _open_cases(judged):
        points = simulation.points(check.asked, locate(case))
        budget = min(simulation.budgets[point] for point in points)
        if (case.replicates_needed or 0) <= HOPELESS * budget:
            found.update(points)
    return found


def _open_cases(judged: Judgement) -> Iterator[tuple[CheckOutcome, CaseOutcome]]:
    """Yield what more replicates would decide, with its check."""
    for check in judged.judged_checks():
        yield from ((check, case) for case in check.cases if _is_open(case))
    for check in judged.said_checks():
        for case in check.cases:
            if _is_open(case) and case.exact is None:
                yield check, case


def _is_open(case: CaseOutcome) -> bool:
    return case.outcome == Verdict.UNDECIDED and case.replicates_needed is not None
