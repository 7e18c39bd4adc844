"""What is worth sampling on: the points of cases that are still open."""

from collections.abc import Mapping

from montecarlo.claims.judging import Judgement
from montecarlo.claims.outcomes import CaseOutcome
from montecarlo.claims.verdicts import Verdict
from montecarlo.sampling.design_points import DesignPoint

#: A case that seems to need more budgets than this is not sampled further.
HOPELESS = 4


def undecided_points(
    judged: Judgement, budgets: Mapping[DesignPoint, int]
) -> set[DesignPoint]:
    """Return the points of all undecided cases that the budget may still decide.

    Parameters
    ----------
    judged : Judgement
    budgets : mapping
        Point to the most replicates it may get.

    Notes
    -----
    A case that seems to need many times its budget is given up: that leaves it
    inconclusive, which it would end as anyhow, and makes no decision wrong.  What a
    sentence asserts and theory knows does not wait for the sample.
    """
    checks = [
        check
        for outcome in (*judged.claims, *judged.self_checks)
        for interpretation in outcome.interpretations
        for check in interpretation.checks
    ]
    said = [one for claim in judged.claims for one in claim.sentences()]
    cases = [case for check in checks for case in check.cases]
    cases += [
        case
        for sentence in (*said, *judged.passages)
        for check in sentence.checks
        for case in check.cases
        if case.exact is None
    ]
    return {
        point
        for case in cases
        if case.verdict == Verdict.INCONCLUSIVE and _has_hope(case, budgets)
        for point in case.case.points
    }


def _has_hope(case: CaseOutcome, budgets: Mapping[DesignPoint, int]) -> bool:
    budget = min(budgets[point] for point in case.case.points)
    return case.needed is not None and case.needed <= HOPELESS * budget
