"""Judging a catalogue on evidence of any kind, at one error rate for all.

In: a catalogue, and evidence.  Out: how everything came out, as claims.json has it, and
which sentences may be said.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from montecarlo.claims.checks import Check
from montecarlo.claims.facts import KINDS, rule_on_fact
from montecarlo.claims.outcomes import (
    Case,
    CheckOutcome,
    ClaimOutcome,
    ClaimsRecord,
    InterpretationOutcome,
    NumberOutcome,
    PassageOutcome,
    SelfCheckOutcome,
    SentenceOutcome,
    join_by_case,
    shorten,
)
from montecarlo.claims.schema import (
    OTHERS,
    Catalogue,
    Claim,
    Counted,
    Interpretation,
    Passage,
    SelfCheck,
    Sentence,
    Value,
)
from montecarlo.claims.simulation import Evidence
from montecarlo.claims.verdicts import (
    UNREACHED,
    Outcome,
    Reason,
    Ruling,
    Verdict,
    join_cases,
    join_checks,
    join_conditions,
    join_parts,
    join_texts,
)
from montecarlo.claims.words import without_measure


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
    found = {n: _number(v, checks, by_id) for n, v in sentence.value.items()}
    numbers = {name: number for name, number in found.items() if number is not None}
    holds = (
        sentence.verdict in (None, verdict)
        and all(by_id[n].verdict == v for n, v in sentence.interpretations.items())
        and all(map(check_holds, checks))
        and not any(
            contradicts_theory(case)
            for name in sentence.interpretations
            for check in by_id[name].checks
            for case in check.cases
        )
        and len(numbers) == len(found)
    )
    return SentenceOutcome(holds=holds, numbers=numbers if holds else {}, checks=checks)


def check_holds(check: CheckOutcome) -> bool:
    """Tell whether a check holds at every point of its domain that can be judged."""
    judged = [c for c in check.cases if c.outcome != Outcome.NOT_APPLICABLE]
    return bool(judged) and all(map(_case_holds, judged))


def _case_holds(case: Case) -> bool:
    """Tell whether a case came out as asserted.

    By exact theory, if the sample does not say otherwise; else by the sample.
    """
    if case.exact is None:
        return case.outcome == Outcome.SUPPORTED
    return _exact_agrees(case) and case.outcome != Outcome.REFUTED


def contradicts_theory(case: Case) -> bool:
    """Tell whether a decided case came out against its exact value."""
    if case.exact is None:
        return False
    against = Outcome.REFUTED if _exact_agrees(case) else Outcome.SUPPORTED
    return case.outcome == against


def _exact_agrees(case: Case) -> bool:
    low, high = case.region
    return case.exact is not None and low <= case.exact <= high


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


def _read(case: Case, value: Value) -> Iterator[NumberOutcome]:
    """Yield what a number is of: nothing where the case has no such thing."""
    known = case.estimate if case.exact is None else case.exact
    of: dict[str, tuple[float | None, ...]] = {
        "estimate": (case.estimate,),
        "known": (known,),
        "d_k": (case.d_k,) if case.d_k is not None else case.d_k_range or (),
        "n_keys": (case.n_keys,),
    }
    sampled = value.of == "estimate" or (value.of == "known" and case.exact is None)
    row = "" if value.of in ("d_k", "n_keys") else case.row
    for number in of[value.of]:
        if number is not None:
            yield NumberOutcome(
                value=float(number),
                std_error=case.std_error if sampled else None,
                row=row,
                percent=value.percent,
                digits=value.digits,
            )


def _is_at(case: Case, value: Value) -> bool:
    """Tell whether a case was judged, and is one that a number may be of."""
    wanted = value.distribution in ("", case.distribution)
    if value.distribution == OTHERS:
        wanted = case.distribution != "gaussian"
    return (
        wanted
        and case.outcome != Outcome.NOT_APPLICABLE
        and value.d_k in (None, case.d_k)
        and value.n_keys in (None, case.n_keys)
    )


def _count(cases: Sequence[Case], which: Counted) -> int:
    return {
        "supported": sum(case.outcome == Outcome.SUPPORTED for case in cases),
        "all": len(cases),
        "distributions": len({case.distribution for case in cases}),
        "contexts": len({case.context for case in cases}),
    }[which]


@dataclass(frozen=True, slots=True)
class Judge:
    """What judges, and on what.

    Attributes
    ----------
    evidence : Evidence
    stated : callable
        Check -> the one-sided error rate that its simultaneous intervals state.
    error_rates : mapping
        Id of each claim to its own nominal rate; 0 for one that has none.
    """

    evidence: Evidence
    stated: Callable[[Check], float]
    error_rates: Mapping[str, float] = field(default_factory=dict)

    def judge(
        self,
        catalogue: Catalogue,
        **known: Any,  # noqa: ANN401 - fields of the record
    ) -> ClaimsRecord:
        """Judge all claims, passages and self-checks.

        ``known`` are the error rates and z scores that stand beside them.
        """
        return ClaimsRecord(
            claims=tuple(self.judge_claim(one, catalogue) for one in catalogue.claim),
            passages=tuple(map(self._judge_passage, catalogue.passage)),
            self_checks=tuple(map(self._judge_self_check, catalogue.self_check)),
            models=catalogue.model,
            records=catalogue.record,
            **known,
        )

    def _judge_passage(self, passage: Passage) -> PassageOutcome:
        said = judge_sentence(passage.sentence, self.judge_check)
        return PassageOutcome(id=passage.id, **msgspec.structs.asdict(said))

    def _judge_self_check(self, entry: SelfCheck) -> SelfCheckOutcome:
        """Judge a self-check: whether the sample agrees is not for theory to say."""
        checks = tuple(self.judge_check(one, by_theory=False) for one in entry.check)
        outcomes = [case.outcome for check in checks for case in check.cases]
        judged = [one for one in outcomes if one != Outcome.NOT_APPLICABLE]
        outcome = join_checks(judged)
        is_whole = judged and all(check.cases for check in checks)
        if outcome != Outcome.REFUTED and not is_whole:
            outcome = Outcome.NOT_APPLICABLE
        return SelfCheckOutcome(id=entry.id, outcome=outcome, checks=checks)

    def judge_claim(self, claim: Claim, catalogue: Catalogue) -> ClaimOutcome:
        """Judge a claim of a catalogue: as all texts say it, and as each does."""
        voting = claim.admitted()
        interpretations = tuple(
            self.judge_interpretation(one, votes=one.id in voting)
            for one in claim.interpretation
        )

        def rule(text: str | None = None) -> Ruling:
            if claim.kind in KINDS:
                return rule_on_fact(claim, catalogue)
            return rule_on(claim, interpretations, text)

        texts = {text: rule(text) for text in {s.text: s for s in claim.source}}
        ruling = join_texts(texts.values()) if texts else rule()

        def say(sentence: Sentence) -> SentenceOutcome:
            return judge_sentence(
                sentence, self.judge_check, interpretations, ruling.verdict
            )

        right, concedes = claim.right, claim.concedes
        return ClaimOutcome(
            id=claim.id,
            kind=claim.kind,
            topic=claim.topic,
            sources=claim.source,
            verdict=ruling.verdict,
            reason=ruling.reason,
            error_rate=shorten(self.error_rates.get(claim.id, 0.0)) or 0.0,
            texts=texts,
            tested=claim.tested,
            changed=claim.changed,
            interpretations=interpretations,
            findings=tuple(map(say, claim.finding)),
            right=None if right is None else say(right),
            concedes=None if concedes is None else say(concedes),
        )

    def judge_interpretation(
        self, interpretation: Interpretation, *, votes: bool = True
    ) -> InterpretationOutcome:
        """Judge an interpretation: its checks together, in each of their cases.

        ``votes``: whether a text says it so.
        """
        checks = tuple(map(self.judge_check, interpretation.check))
        cases = join_by_case(checks)
        reached = all(map(self.evidence.reaches, interpretation.check))
        ruling = rule_on_cases(interpretation, cases, reached=reached)
        if ruling.verdict != Verdict.FAILS and not all(check.cases for check in checks):
            ruling = UNREACHED
        return InterpretationOutcome(
            id=interpretation.id,
            quantifier=interpretation.quantifier,
            form=interpretation.form,
            omits=interpretation.omits,
            votes=votes,
            tested=interpretation.tested,
            words=without_measure(interpretation.words),
            verdict=ruling.verdict,
            reason=ruling.reason,
            checks=checks,
        )

    def judge_check(self, check: Check, *, by_theory: bool = True) -> CheckOutcome:
        """Judge a check in each of its cases.

        ``by_theory``: whether exact values decide what the sample leaves undecided.
        """
        rate = self.stated(check)
        cases = (
            self.evidence.find(check, where, rate, by_theory=by_theory)
            for where in self.evidence.cases(check)
        )
        return CheckOutcome(**msgspec.structs.asdict(check), cases=tuple(cases))


def rule_on(
    claim: Claim,
    interpretations: Sequence[InterpretationOutcome],
    text: str | None = None,
) -> Ruling:
    """Rule on a claim as a text says it, or as all do, by its interpretations."""
    if claim.kind == "assumption":
        return Ruling(Verdict.ASSUMED, Reason.PREMISE)
    by_id = {one.id: one for one in interpretations}
    admitted = [by_id[name] for name in claim.admitted(text)]
    return join_parts(Ruling(one.verdict, one.reason) for one in admitted)


def rule_on_cases(
    interpretation: Interpretation, cases: Sequence[Case], *, reached: bool
) -> Ruling:
    """Rule on an interpretation, by how it is said.

    Parameters
    ----------
    interpretation : Interpretation
    cases : sequence of Case
        With how all checks came out in each.
    reached : bool
        Whether they reach the whole scope.
    """
    judged = [case for case in cases if case.outcome != Outcome.NOT_APPLICABLE]
    if not judged:
        return UNREACHED
    if without_measure(interpretation.words):
        return Ruling(Verdict.VAGUE, Reason.WORD)
    if interpretation.quantifier == "usually":  # cases of ours are no published list
        return Ruling(Verdict.VAGUE, Reason.LIST)
    groups: dict[str, list[Outcome]] = {}
    for case in judged:
        value = getattr(case, interpretation.omits) if interpretation.omits else ""
        groups.setdefault(value, []).append(case.outcome)
    verdict = join_conditions(
        join_cases(interpretation.quantifier, outcomes, reached=reached)
        for outcomes in groups.values()
    )
    if verdict == Verdict.HOLDS and interpretation.form == "equality":
        return Ruling(Verdict.PARTLY, Reason.NEARLY)
    if verdict == Verdict.PARTLY:
        reason = Reason.DEPENDS
    elif verdict == Verdict.OPEN:
        undecided = any(case.outcome == Outcome.UNDECIDED for case in judged)
        reason = Reason.SAMPLE if undecided else Reason.REACH
    else:
        by_theory = all(case.by_theory for case in judged)
        reason = Reason.THEORY if by_theory else Reason.MEASURED
    return Ruling(verdict, reason)
