"""Which sentences hold, and the numbers in them.

A sentence is said only if everything that it asserts came out so, in the sample and in
exact theory.  Where theory knows the answer it decides: a sentence that contradicts it
is never said, and one that agrees with it need not wait for the sample.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import (
    CaseOutcome,
    CheckOutcome,
    InterpretationOutcome,
    JointOutcome,
    NumberOutcome,
    SentenceOutcome,
)
from montecarlo.claims.sentences import OTHERS, Counted, Sentence, Value
from montecarlo.claims.verdicts import Verdict


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
    return SentenceOutcome(holds=holds, numbers=numbers if holds else {}, checks=checks)


def check_holds(check: CheckOutcome) -> bool:
    """Tell whether a check holds at every point of its domain that can be judged."""
    judged = [c for c in check.cases if c.outcome != Verdict.NOT_APPLICABLE]
    return bool(judged) and all(map(_case_holds, judged))


def _case_holds(case: CaseOutcome) -> bool:
    """Tell whether a case came out as asserted.

    By exact theory, if the sample does not say otherwise; else by the sample.
    """
    if case.exact is None:
        return case.outcome == Verdict.SUPPORTED
    within = case.region[0] <= case.exact <= case.region[1]
    return within and case.outcome != Verdict.REFUTED


def contradicts_theory(case: CaseOutcome) -> bool:
    """Tell whether a decided case came out against its exact value."""
    if case.exact is None:
        return False
    within = case.region[0] <= case.exact <= case.region[1]
    return case.outcome == (Verdict.REFUTED if within else Verdict.SUPPORTED)


def _number(
    value: Value,
    checks: Sequence[CheckOutcome],
    interpretations: Mapping[str, InterpretationOutcome],
) -> NumberOutcome | None:
    """Find a number; None where the sample has no such case."""
    joint = None
    if value.interpretation is not None:
        one = interpretations[value.interpretation]
        joint, checks = one.cases, one.checks
        if value.of in ("before", "after"):
            return _border(one, value)
    cases = checks[value.check].cases if value.check < len(checks) else ()
    if value.count is not None:
        judged = [c for c in (cases if joint is None else joint) if _is_at(c, value)]
        count = float(_count(judged, value.count))
        return NumberOutcome(value=count, std_error=None, row="", percent=False)
    there = [number for c in cases if _is_at(c, value) for number in _read(c, value)]
    if value.pick == "only":
        return there[0] if len(there) == 1 else None
    pick = min if value.pick == "lowest" else max
    return pick(there, key=lambda number: number.value, default=None)


def _border(one: InterpretationOutcome, value: Value) -> NumberOutcome | None:
    """Return a d_k next to which the outcome changes, where it changes once."""
    found = [
        border
        for border in one.borders
        if (border.n_keys, border.distribution) == (value.n_keys, value.distribution)
    ]
    if len(found) != 1:
        return None
    d_k = found[0].between[value.of == "after"]
    return NumberOutcome(value=float(d_k), std_error=None, row="", percent=False)


def _read(case: CaseOutcome, value: Value) -> Iterator[NumberOutcome]:
    """Yield what a number is of: nothing where the case has no such thing."""
    of: dict[str, tuple[float | None, ...]] = {
        "estimate": (case.estimate,),
        "exact": (case.exact,),
        "limit": (None if case.limit is None else case.limit.constant,),
        "d_k": (case.d_k,) if case.d_k is not None else case.d_k_range or (),
        "n_keys": (case.n_keys,),
    }
    error = case.std_error if value.of == "estimate" else None
    row = "" if value.of in ("d_k", "n_keys") else case.row
    for number in of[value.of]:
        if number is not None:
            yield NumberOutcome(
                value=float(number), std_error=error, row=row, percent=value.percent
            )


def _is_at(case: CaseOutcome | JointOutcome, value: Value) -> bool:
    """Tell whether a case was judged, and is one that a number may be of."""
    wanted = value.distribution in ("", case.distribution)
    if value.distribution == OTHERS:
        wanted = case.distribution != "gaussian"
    return (
        wanted
        and case.outcome != Verdict.NOT_APPLICABLE
        and value.d_k in (None, case.d_k)
        and value.n_keys in (None, case.n_keys)
        and value.context in ("", case.context)
    )


def _count(cases: Sequence[CaseOutcome | JointOutcome], which: Counted) -> int:
    if which == "all":
        return len(cases)
    if which == "distributions":
        return len({case.distribution for case in cases})
    if which == "contexts":
        return len({case.context for case in cases})
    return sum(case.outcome == Verdict(which) for case in cases)
