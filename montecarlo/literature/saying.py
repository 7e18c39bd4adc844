"""Which findings and answers may be said, and the numbers in them."""

from collections.abc import Mapping

from montecarlo.claims.verdicts import Verdict
from montecarlo.literature.outcomes import StatementCase, StatementOutcome
from montecarlo.literature.schema import Answer, Finding, Question, Statement


def finding_of(statement: Statement, outcome: StatementOutcome) -> Finding | None:
    """Return what is said of a statement; None where nothing of it holds.

    Parameters
    ----------
    statement : Statement
    outcome : StatementOutcome
        Its own.
    """
    if not rests_on_what_holds(outcome):
        return None
    return next((f for f in statement.finding if f.verdict == outcome.verdict), None)


def answer_of(
    question: Question, outcomes: Mapping[str, StatementOutcome]
) -> Answer | None:
    """Return what is said to a question; None where no answer holds.

    Parameters
    ----------
    question : Question
    outcomes : mapping
        Those of the statements, by id.
    """
    for answer in question.answer:
        asserted = [outcomes[name] for name in answer.verdicts]
        as_said = all(outcomes[n].verdict == v for n, v in answer.verdicts.items())
        if as_said and all(map(rests_on_what_holds, asserted)):
            return answer
    return None


def rests_on_what_holds(outcome: StatementOutcome) -> bool:
    """Tell whether theory contradicts no case, and all that does not vote holds."""
    return all(_holds(case) for cases in outcome.checks for case in cases)


def _holds(case: StatementCase) -> bool:
    if case.outcome == Verdict.NOT_APPLICABLE:
        return True
    if case.exact is None:
        return case.votes or case.outcome == Verdict.SUPPORTED
    low, high = case.region_low, case.region_high
    within = (low is None or low <= case.exact) and (high is None or case.exact <= high)
    if case.outcome == (Verdict.REFUTED if within else Verdict.SUPPORTED):
        return False
    return case.votes or within
