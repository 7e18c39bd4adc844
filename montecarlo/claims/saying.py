"""Which sentences hold, and the numbers in them.

A sentence is said only if everything that it asserts came out so, in the sample and in
exact theory.  Where theory knows the answer it decides: a sentence that contradicts it
is never said, and one that agrees with it need not wait for the sample.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import CellOutcome, CheckOutcome, ReadingOutcome
from montecarlo.claims.sentences import Sentence, Value
from montecarlo.claims.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a sentence.

    Attributes
    ----------
    value : float
    std_error : float or None
        None for a count and for an exact value.
    cell : CellOutcome or None
        Where it comes from; None for a count.
    percent : bool
        Whether to show it in per cent.
    """

    value: float
    std_error: float | None
    cell: CellOutcome | None
    percent: bool = False


@dataclass(frozen=True, slots=True)
class SentenceOutcome:
    """Whether a sentence holds; if it does, its numbers."""

    holds: bool
    numbers: Mapping[str, Number]
    checks: tuple[CheckOutcome, ...]


def judge_sentence(
    sentence: Sentence,
    judge_check: Callable[[Check], CheckOutcome],
    readings: Sequence[ReadingOutcome] = (),
    verdict: Verdict | None = None,
) -> SentenceOutcome:
    """Tell whether a sentence may be said.

    Parameters
    ----------
    sentence : Sentence
    judge_check : callable
        Check -> its outcome.
    readings : sequence of ReadingOutcome
        Those of its claim.
    verdict : Verdict, optional
        That of its claim.
    """
    by_id = {reading.id: reading for reading in readings}
    checks = tuple(judge_check(check) for check in sentence.check)
    asserted = [by_id[name] for name in sentence.readings]
    holds = sentence.verdict is None or sentence.verdict == verdict
    holds = holds and all(by_id[n].verdict == v for n, v in sentence.readings.items())
    holds = holds and all(map(check_holds, checks))
    holds = holds and not any(
        contradicts_theory(cell)
        for reading in asserted
        for check in reading.checks
        for cell in check.cells
    )
    found = {n: _number(v, checks, by_id) for n, v in sentence.value.items()}
    numbers = {name: number for name, number in found.items() if number is not None}
    holds = holds and len(numbers) == len(found)
    return SentenceOutcome(holds, numbers if holds else {}, checks)


def check_holds(check: CheckOutcome) -> bool:
    """Tell whether a check holds at every point of its domain that can be judged."""
    judged = [c for c in check.cells if c.verdict != Verdict.NOT_APPLICABLE]
    return bool(judged) and all(map(_cell_holds, judged))


def _cell_holds(cell: CellOutcome) -> bool:
    """Tell whether a cell came out as asserted.

    By exact theory, if the sample does not say otherwise; else by the sample.
    """
    if cell.exact is None:
        return cell.verdict == Verdict.SUPPORTED
    within = cell.window[0] <= cell.exact <= cell.window[1]
    return within and cell.verdict != Verdict.REFUTED


def contradicts_theory(cell: CellOutcome) -> bool:
    """Tell whether a decided cell came out against its exact value."""
    if cell.exact is None:
        return False
    within = cell.window[0] <= cell.exact <= cell.window[1]
    return cell.verdict == (Verdict.REFUTED if within else Verdict.SUPPORTED)


def _number(
    value: Value,
    checks: Sequence[CheckOutcome],
    readings: Mapping[str, ReadingOutcome],
) -> Number | None:
    """Find a number; None where the sample has no such place."""
    if value.count is not None:
        outcomes = [verdict for _, verdict in readings[value.reading or ""].places]
        return Number(float(_count(outcomes, value.count)), None, None)
    found = checks if value.reading is None else readings[value.reading].checks
    cells = found[value.check].cells if value.check < len(found) else ()
    numbers = [_read(cell, value) for cell in cells if _is_at(cell, value)]
    there = [number for number in numbers if number is not None]
    if value.pick == "only":
        return there[0] if len(there) == 1 else None
    pick = min if value.pick == "lowest" else max
    return pick(there, key=lambda number: number.value, default=None)


def _read(cell: CellOutcome, value: Value) -> Number | None:
    """Read what a number is of; None where the cell has no such thing."""
    if value.of == "limit":
        limit = None if cell.limit is None else cell.limit.constant
        return None if limit is None else Number(limit, None, cell, value.percent)
    if value.of == "exact":
        exact = cell.exact
        return None if exact is None else Number(exact, None, cell, value.percent)
    estimate = cell.estimate
    if estimate is None or math.isnan(estimate.value):
        return None
    return Number(estimate.value, estimate.std_error, cell, value.percent)


def _is_at(cell: CellOutcome, value: Value) -> bool:
    place = cell.cell.place
    return (
        value.d_k in (None, place.d_k)
        and value.n_keys in (None, place.n_keys)
        and value.law in ("", place.law)
        and value.context in ("", place.context)
    )


def _count(outcomes: Sequence[Verdict], which: str) -> int:
    judged: list[Verdict] = [v for v in outcomes if v != Verdict.NOT_APPLICABLE]
    if which == "all":
        return len(judged)
    wanted = Verdict.INCONCLUSIVE if which == "undecided" else Verdict(which)
    return judged.count(wanted)
