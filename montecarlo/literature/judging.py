"""Statements of papers: drawn, held against exact theory, and judged.

In: literature.toml, a seed, workers.  Out: a `LiteratureOutcome`.
"""

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from functools import lru_cache

import numpy as np

from montecarlo.claims.rounding import finite, shorten
from montecarlo.claims.verdicts import Verdict, decide, interpretation_verdict
from montecarlo.errors import UnfinishedError
from montecarlo.estimation.estimates import POINTWISE
from montecarlo.estimation.intervals import Interval
from montecarlo.literature.outcomes import (
    LiteratureOutcome,
    StatementCase,
    StatementOutcome,
)
from montecarlo.literature.quantities import QUANTITIES
from montecarlo.literature.schema import (
    Case,
    Literature,
    LiteratureCheck,
    Statement,
    read_literature,
)
from montecarlo.sampling.streams import ModelRows
from montecarlo.study.tasks import Task, finish

#: Of a case: the exact value, and what was drawn: value, standard error, rows, ends of
#: its interval.  None for what there is not.
Drawn = tuple[float, float, int, float, float] | None
Found = tuple[float | None, Drawn]
CaseKey = tuple[str, int, int]


def judge_literature(
    seed: int, error_rate: float, executor: Executor
) -> LiteratureOutcome:
    """Draw and judge all the statements.

    Parameters
    ----------
    seed : int
        Each estimate has a stream of its own, so none depends on the others.
    error_rate : float
        Nominal probability that any decided case is wrong.
    executor : concurrent.futures.Executor
        The workers.

    Raises
    ------
    UnfinishedError
        If drawing failed somewhere; names the statement.
    """
    literature = read_literature()
    cases = dict(_cases(literature))
    voting = sum(
        check.region(case) is not None
        for check, case in cases.values()
        if QUANTITIES[check.quantity].draw is not None
    )
    one_sided = error_rate / (2.0 * voting)  # an interval misses on either side
    tasks: dict[Task, CaseKey] = {(*key, seed, one_sided): key for key in cases}
    found: dict[CaseKey, Found] = {}
    for task, future in finish(executor, find_case, tasks):
        key = tasks[task]
        if error := future.exception():
            raise UnfinishedError(f"the statement {key[0]} failed: {error}")
        found[key] = future.result()
    return LiteratureOutcome(
        error_rate, tuple(judge_statement(one, found) for one in literature.statement)
    )


def find_case(
    statement: str, check: int, case: int, seed: int, one_sided: float
) -> Found:
    """Find the exact value of a case and draw it; a worker is sent this."""
    asked = _by_id()[statement].check[check]
    quantity, at = QUANTITIES[asked.quantity], asked.case[case].at
    exact = None if quantity.exact is None else quantity.exact(at)
    if quantity.draw is None:
        return exact, None
    source = ModelRows(seed, f"literature {statement} {check} {case}")
    one = quantity.draw(source, at)
    low, high = one.interval(min(one_sided, POINTWISE))
    return exact, (one.value, one.std_error, one.n_replicates, low, high)


@lru_cache(maxsize=1)
def _by_id() -> dict[str, Statement]:
    return {one.id: one for one in read_literature().statement}


def _cases(
    literature: Literature,
) -> Iterator[tuple[CaseKey, tuple[LiteratureCheck, Case]]]:
    """Yield every case with its key."""
    for statement in literature.statement:
        for i, check in enumerate(statement.check):
            for j, case in enumerate(check.case):
                yield (statement.id, i, j), (check, case)


def judge_statement(
    statement: Statement, found: Mapping[CaseKey, Found]
) -> StatementOutcome:
    """Judge a statement on what was found in its cases."""
    checks = tuple(
        tuple(
            _decide(check, case, *found[statement.id, i, j])
            for j, case in enumerate(check.case)
        )
        for i, check in enumerate(statement.check)
    )
    votes = [case.outcome for cases in checks for case in cases if case.votes]
    verdict = interpretation_verdict(statement.logic, votes)
    return StatementOutcome(
        id=statement.id,
        logic=statement.logic,
        tested=statement.tested,
        degree=statement.degree,
        verdict=verdict,
        checks=checks,
    )


def region_of(check: LiteratureCheck, case: Case) -> tuple[float, float] | None:
    """Return what agrees in a case, of the values that its quantity can have."""
    if (region := check.region(case)) is None:
        return None
    least, most = QUANTITIES[check.quantity].possible
    low, high = region
    # an end that is open stays open
    return (
        low if math.isinf(low) else max(low, least),
        high if math.isinf(high) else min(high, most),
    )


def _decide(
    check: LiteratureCheck, case: Case, exact: float | None, drawn: Drawn
) -> StatementCase:
    """Decide a case on what was drawn; where nothing is random, on the exact value."""
    region, outcome = region_of(check, case), Verdict.NOT_APPLICABLE
    if region is not None:
        ends = (exact, exact) if drawn is None else drawn[3:]
        low, high = (math.nan if end is None else end for end in ends)
        possible = QUANTITIES[check.quantity].possible
        outcome = decide(Interval(*np.clip((low, high), *possible).tolist()), region)
    least, most = (-math.inf, math.inf) if region is None else region
    return StatementCase(
        quantity=check.quantity,
        at=case.at,
        outcome=outcome,
        votes=check.votes and region is not None,
        paper=case.paper,
        exact=None if exact is None else finite(exact),
        estimate=None if drawn is None else finite(drawn[0]),
        std_error=None if drawn is None else shorten(drawn[1]),
        n_replicates=None if drawn is None else drawn[2],
        region_low=finite(least),
        region_high=finite(most),
    )
