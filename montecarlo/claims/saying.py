"""Which sentences hold, and the numbers in them.

A sentence is said only if everything that it asserts came out so, in the sample and in
exact theory.  Where theory knows the answer it decides: a sentence that contradicts it
is never said, and one that agrees with it need not wait for the sample.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import CaseOutcome, CheckOutcome, InterpretationOutcome
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
    case : CaseOutcome or None
        Where it comes from; None for a count.
    percent : bool
        Whether to show it in per cent.
    """

    value: float
    std_error: float | None
    case: CaseOutcome | None
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
    interpretations: Sequence[InterpretationOutcome] = (),
    verdict: Verdict | None = None,
) -> SentenceOutcome:
    """Tell whether a sentence may be said.

    Parameters
    ----------
    sentence : Sentence
    judge_check : callable
        Check -> its outcome.
    interpretations : sequence of InterpretationOutcome
        Those of its claim.
    verdict : Verdict, optional
        That of its claim.
    """
    by_id = {interpretation.id: interpretation for interpretation in interpretations}
    checks = tuple(judge_check(check) for check in sentence.check)
    asserted = [by_id[name] for name in sentence.interpretations]
    holds = sentence.verdict is None or sentence.verdict == verdict
    holds = holds and all(
        by_id[n].verdict == v for n, v in sentence.interpretations.items()
    )
    holds = holds and all(map(check_holds, checks))
    holds = holds and not any(
        contradicts_theory(case)
        for interpretation in asserted
        for check in interpretation.checks
        for case in check.cases
    )
    found = {n: _number(v, checks, by_id) for n, v in sentence.value.items()}
    numbers = {name: number for name, number in found.items() if number is not None}
    holds = holds and len(numbers) == len(found)
    return SentenceOutcome(holds, numbers if holds else {}, checks)


def check_holds(check: CheckOutcome) -> bool:
    """Tell whether a check holds at every point of its domain that can be judged."""
    judged = [c for c in check.cases if c.verdict != Verdict.NOT_APPLICABLE]
    return bool(judged) and all(map(_case_holds, judged))


def _case_holds(case: CaseOutcome) -> bool:
    """Tell whether a case came out as asserted.

    By exact theory, if the sample does not say otherwise; else by the sample.
    """
    if case.exact is None:
        return case.verdict == Verdict.SUPPORTED
    within = case.region[0] <= case.exact <= case.region[1]
    return within and case.verdict != Verdict.REFUTED


def contradicts_theory(case: CaseOutcome) -> bool:
    """Tell whether a decided case came out against its exact value."""
    if case.exact is None:
        return False
    within = case.region[0] <= case.exact <= case.region[1]
    return case.verdict == (Verdict.REFUTED if within else Verdict.SUPPORTED)


def _number(
    value: Value,
    checks: Sequence[CheckOutcome],
    interpretations: Mapping[str, InterpretationOutcome],
) -> Number | None:
    """Find a number; None where the sample has no such place."""
    if value.count is not None:
        outcomes = [
            verdict for _, verdict in interpretations[value.interpretation or ""].places
        ]
        return Number(float(_count(outcomes, value.count)), None, None)
    found = (
        checks
        if value.interpretation is None
        else interpretations[value.interpretation].checks
    )
    cases = found[value.check].cases if value.check < len(found) else ()
    numbers = [_read(case, value) for case in cases if _is_at(case, value)]
    there = [number for number in numbers if number is not None]
    if value.pick == "only":
        return there[0] if len(there) == 1 else None
    pick = min if value.pick == "lowest" else max
    return pick(there, key=lambda number: number.value, default=None)


def _read(case: CaseOutcome, value: Value) -> Number | None:
    """Read what a number is of; None where the case has no such thing."""
    if value.of == "limit":
        limit = None if case.limit is None else case.limit.constant
        return None if limit is None else Number(limit, None, case, value.percent)
    if value.of == "exact":
        exact = case.exact
        return None if exact is None else Number(exact, None, case, value.percent)
    estimate = case.estimate
    if estimate is None or math.isnan(estimate.value):
        return None
    return Number(estimate.value, estimate.std_error, case, value.percent)


def _is_at(case: CaseOutcome, value: Value) -> bool:
    place = case.case.place
    return (
        value.d_k in (None, place.d_k)
        and value.n_keys in (None, place.n_keys)
        and value.distribution in ("", place.distribution)
        and value.context in ("", place.context)
    )


def _count(outcomes: Sequence[Verdict], which: str) -> int:
    judged: list[Verdict] = [v for v in outcomes if v != Verdict.NOT_APPLICABLE]
    if which == "all":
        return len(judged)
    wanted = Verdict.INCONCLUSIVE if which == "undecided" else Verdict(which)
    return judged.count(wanted)
