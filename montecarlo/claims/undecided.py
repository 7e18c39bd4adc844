"""What is worth sampling on: the conditions of cells that are still open."""

from collections.abc import Mapping

from montecarlo.claims.judging import Judgement
from montecarlo.claims.outcomes import CellOutcome
from montecarlo.claims.verdicts import Verdict
from montecarlo.sampling.conditions import Condition

#: A cell that seems to need more budgets than this is not sampled further.
HOPELESS = 4


def undecided_conditions(
    judged: Judgement, budgets: Mapping[Condition, int]
) -> set[Condition]:
    """Return the conditions of all undecided cells that the budget may still decide.

    Parameters
    ----------
    judged : Judgement
    budgets : mapping
        Condition to the most replicates it may get.

    Notes
    -----
    A cell that seems to need many times its budget is given up: that leaves it
    inconclusive, which it would end as anyhow, and makes no decision wrong.  What a
    sentence asserts and theory knows does not wait for the sample.
    """
    checks = [
        check
        for outcome in (*judged.claims, *judged.self_checks)
        for reading in outcome.readings
        for check in reading.checks
    ]
    said = [one for claim in judged.claims for one in claim.sentences()]
    cells = [cell for check in checks for cell in check.cells]
    cells += [
        cell
        for sentence in (*said, *judged.passages)
        for check in sentence.checks
        for cell in check.cells
        if cell.exact is None
    ]
    return {
        condition
        for cell in cells
        if cell.verdict == Verdict.INCONCLUSIVE and _has_hope(cell, budgets)
        for condition in cell.cell.conditions
    }


def _has_hope(cell: CellOutcome, budgets: Mapping[Condition, int]) -> bool:
    budget = min(budgets[condition] for condition in cell.cell.conditions)
    return cell.needed is not None and cell.needed <= HOPELESS * budget
