"""Judges a catalogue on evidence of any kind, at one error rate for all decisions.

Returns the outcomes of all claims, passages and self-checks, as in claims.json, with
the sentences that hold.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
    six_digits,
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
    """Return the outcome of a sentence of a page: whether it is true, and its numbers.

    A sentence is true if all of these are:

    - verdicts on its claim and on the claim's interpretations are as it asserts;
    - no case of those interpretations was decided against the case's exact value;
    - all checks of the sentence hold;
    - each number in it exists.

    Unless it is true, the outcome has no numbers.

    Parameters
    ----------
    sentence : Sentence
    judge_check : callable
        Check -> its outcome.
    interpretations : sequence of InterpretationOutcome
        The interpretations of its claim.
    verdict : Verdict, optional
        Verdict on its claim.

    Returns
    -------
    SentenceOutcome
    """
    by_id = {interpretation.id: interpretation for interpretation in interpretations}
    checks = tuple(judge_check(check) for check in sentence.check)
    candidates = {n: _find_number(v, checks, by_id) for n, v in sentence.value.items()}
    numbers = {name: one for name, one in candidates.items() if one is not None}
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
        and len(numbers) == len(candidates)
    )
    return SentenceOutcome(holds=holds, numbers=numbers if holds else {}, checks=checks)


def check_holds(check: CheckOutcome) -> bool:
    """Return whether a check holds in every case that can be judged.

    A case is a design point, or a series of points over d_k.  False if no case can be
    judged.
    """
    judged = [c for c in check.cases if c.outcome != Outcome.NOT_APPLICABLE]
    return bool(judged) and all(map(_case_holds, judged))


def _case_holds(case: Case) -> bool:
    """Return whether a check holds in one case that was judged.

    If the case has an exact value, this value must lie in the equivalence region, and
    the sample must not refute the check.  Otherwise the sample must support the check.
    """
    if case.exact is None:
        return case.outcome == Outcome.SUPPORTED
    return _exact_agrees(case) and case.outcome != Outcome.REFUTED


def contradicts_theory(case: Case) -> bool:
    """Return whether the outcome of a case contradicts its exact value.

    It does if the case is supported and the value lies outside of the equivalence
    region, or if it is refuted and the value lies inside.  False without an exact
    value.
    """
    if case.exact is None:
        return False
    against = Outcome.REFUTED if _exact_agrees(case) else Outcome.SUPPORTED
    return case.outcome == against


def _exact_agrees(case: Case) -> bool:
    """Return whether the exact value of a case lies in the equivalence region.

    False without an exact value.
    """
    low, high = case.region
    return case.exact is not None and low <= case.exact <= high


def _find_number(
    value: Value,
    checks: Sequence[CheckOutcome],
    interpretations: Mapping[str, InterpretationOutcome],
) -> NumberOutcome | None:
    """Return the number that a sentence shows; None if no case has such a number.

    With ``value.pick`` ``only``, also None if several cases have such a number.  If
    ``value`` is a count, the result is never None; the count may be 0.

    Parameters
    ----------
    value : Value
        Describes where the number comes from.
    checks : sequence of CheckOutcome
        The checks of the sentence.  Not used if ``value`` names an interpretation.
    interpretations : mapping
        Id -> interpretation of the claim.
    """
    joint_cases = None
    if value.interpretation is not None:
        interpretation = interpretations[value.interpretation]
        joint_cases, checks = interpretation.cases, interpretation.checks
    cases = checks[value.check].cases
    if value.count is not None:
        counted = cases if joint_cases is None else joint_cases
        matching = [case for case in counted if _case_matches(case, value)]
        count = float(_count_cases(matching, value.count))
        return NumberOutcome(value=count, std_error=None, row="", percent=False)
    matching = [case for case in cases if _case_matches(case, value)]
    numbers = [number for case in matching for number in _numbers_of(case, value)]
    if value.pick == "only":
        return numbers[0] if len(numbers) == 1 else None
    pick = min if value.pick == "lowest" else max
    return pick(numbers, key=lambda number: number.value, default=None)


def _numbers_of(case: Case, value: Value) -> Iterator[NumberOutcome]:
    """Yield the numbers of one case that ``value`` describes.

    This is a single number, or none if the case lacks it.  The d_k of a series over d_k
    are two numbers: its ends, ascending.
    """
    values = case.exact, case.better_simulated, case.estimate
    known = next((one for one in values if one is not None), None)
    numbers = {"estimate": case.estimate, "known": known, "n_keys": case.n_keys}
    of_size = value.of in ("d_k", "n_keys")
    matching: tuple[float | None, ...] = (numbers.get(value.of, case.d_k),)
    if matching == (None,) and value.of == "d_k":
        matching = case.d_k_range or ()
    std_error = None if of_size or matching[0] != case.estimate else case.std_error
    for number in matching:
        if number is not None:
            yield NumberOutcome(
                value=float(number),
                std_error=std_error,
                row="" if of_size else case.row,
                percent=value.percent,
                digits=value.digits,
            )


def _case_matches(case: Case, value: Value) -> bool:
    """Return whether a case was judged and has the sizes and distribution of ``value``.

    What ``value`` does not give may be anything.  The distribution `OTHERS` matches all
    but the Gaussian.
    """
    matches = value.distribution in ("", case.distribution)
    if value.distribution == OTHERS:
        matches = case.distribution != "gaussian"
    return (
        matches
        and case.outcome != Outcome.NOT_APPLICABLE
        and value.d_k in (None, case.d_k)
        and value.n_keys in (None, case.n_keys)
    )


def _count_cases(cases: Sequence[Case], counted: Counted) -> int:
    """Return the count over cases that ``counted`` names.

    ``supported`` is the number of supported cases, and ``all`` that of all cases.
    ``distributions`` and ``contexts`` are how many different ones the cases have.
    """
    if counted in ("distributions", "contexts"):
        return len({getattr(case, counted.removesuffix("s")) for case in cases})
    return sum(counted == "all" or one.outcome == Outcome.SUPPORTED for one in cases)


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the claims of a catalogue on evidence: samples, records and theory.

    Attributes
    ----------
    evidence : Evidence
    stated : callable
        Check -> one-sided error rate that its simultaneous intervals state.
    error_rates : mapping
        Id of a claim -> nominal error rate of its checks.  A claim that is missing has
        0.
    """

    evidence: Evidence
    stated: Callable[[Check], float]
    error_rates: Mapping[str, float] = field(default_factory=dict)

    def judge(
        self,
        catalogue: Catalogue,
        **known: Any,  # noqa: ANN401 - fields of the record
    ) -> ClaimsRecord:
        """Return the outcomes of all claims, passages and self-checks of a catalogue.

        ``known`` are the remaining fields of the result, all of them, such as
        ``error_rate``, ``calibration`` and ``z_scores``.
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
        """Return the outcome of a passage: a sentence of the report outside claims."""
        outcome = judge_sentence(passage.sentence, self.judge_check)
        return PassageOutcome(id=passage.id, **msgspec.structs.asdict(outcome))

    def _judge_self_check(self, entry: SelfCheck) -> SelfCheckOutcome:
        """Return the outcome of a self-check of the simulator, from samples alone.

        It is refuted if a check is refuted in any case.  Otherwise it is not applicable
        if a check has no case, or if no case could be judged.  Otherwise it is
        undecided if any case is undecided, else supported.
        """
        checks = tuple(self.judge_check(one, by_theory=False) for one in entry.check)
        outcomes = [case.outcome for check in checks for case in check.cases]
        judged = [one for one in outcomes if one != Outcome.NOT_APPLICABLE]
        outcome = join_checks(judged)
        is_whole = judged and all(check.cases for check in checks)
        if outcome != Outcome.REFUTED and not is_whole:
            outcome = Outcome.NOT_APPLICABLE
        return SelfCheckOutcome(id=entry.id, outcome=outcome, checks=checks)

    def judge_claim(self, claim: Claim, catalogue: Catalogue) -> ClaimOutcome:
        """Return the outcome of a claim: its joint verdict, and one for each text.

        It contains the outcomes of the claim's interpretations and sentences.
        """
        voting = claim.admitted()
        interpretations = tuple(
            self.judge_interpretation(one, votes=one.id in voting)
            for one in claim.interpretation
        )

        rule = partial(rule_on_claim, claim, catalogue, interpretations)
        texts = {source.text: rule(source.text) for source in claim.source}
        ruling = join_texts(texts.values()) if texts else rule(None)

        def judge(sentence: Sentence) -> SentenceOutcome:
            """Return the outcome of a sentence about the claim, by `judge_sentence`."""
            return judge_sentence(
                sentence, self.judge_check, interpretations, ruling.verdict
            )

        return ClaimOutcome(
            **_fields_of(claim, "id", "kind", "topic", "tested", "changed"),
            **_fields_of(ruling, "verdict", "reason"),
            sources=claim.source,
            error_rate=six_digits(self.error_rates.get(claim.id, 0.0)) or 0.0,
            texts=texts,
            interpretations=interpretations,
            findings=tuple(map(judge, claim.finding)),
            right=None if claim.right is None else judge(claim.right),
            concedes=None if claim.concedes is None else judge(claim.concedes),
        )

    def judge_interpretation(
        self, interpretation: Interpretation, *, votes: bool = True
    ) -> InterpretationOutcome:
        """Return the verdict on one meaning of a claim, by the outcomes of its checks.

        A case is a design point, or a series of points over d_k.  It is supported if
        all checks are supported there.  The quantifier of the interpretation says how
        cases are combined.  If a check has no case, the verdict is open; a verdict that
        the meaning fails stays.  ``votes`` is stored in the result: whether the verdict
        counts for the claim, as a text states this meaning.
        """
        checks = tuple(map(self.judge_check, interpretation.check))
        cases = join_by_case(checks)
        reached = all(map(self.evidence.covers_domain, interpretation.check))
        ruling = rule_on_cases(interpretation, cases, reached=reached)
        if ruling.verdict != Verdict.FAILS and not all(check.cases for check in checks):
            ruling = UNREACHED
        stated = "id", "quantifier", "form", "omits", "tested"
        return InterpretationOutcome(
            **_fields_of(interpretation, *stated),
            **_fields_of(ruling, "verdict", "reason"),
            votes=votes,
            words=without_measure(interpretation.words),
            checks=checks,
        )

    def judge_check(self, check: Check, *, by_theory: bool = True) -> CheckOutcome:
        """Return a check with its cases, each with an estimate and an outcome.

        A case is a design point, a series of points over d_k, or a part of a record.
        ``by_theory`` says whether exact values decide if the sample does not.
        """
        cases = (
            self.evidence.decide(check, where, self.stated(check), by_theory=by_theory)
            for where in self.evidence.cases(check)
        )
        return CheckOutcome(**msgspec.structs.asdict(check), cases=tuple(cases))


def _fields_of(struct: msgspec.Struct, *names: str) -> dict[str, Any]:
    """Return some fields of a structure as a dict: name -> value."""
    return {name: getattr(struct, name) for name in names}


def rule_on_claim(
    claim: Claim,
    catalogue: Catalogue,
    interpretations: Sequence[InterpretationOutcome],
    text: str | None,
) -> Ruling:
    """Return the verdict on a claim as one text states it, with its reason.

    The verdicts on the interpretations that the text admits are joined.  ``text`` is
    its key; with None all interpretations that vote are joined.  Claims of other kinds
    than ``measured`` have no interpretations: `rule_on_fact` judges shapes and records,
    and an assumption is ``assumed``.
    """
    if claim.kind in KINDS:
        return rule_on_fact(claim, catalogue)
    if claim.kind == "assumption":
        return Ruling(Verdict.ASSUMED, Reason.PREMISE)
    admitted = claim.admitted(text)
    return join_parts(
        Ruling(one.verdict, one.reason) for one in interpretations if one.id in admitted
    )


def rule_on_cases(
    interpretation: Interpretation, cases: Sequence[Case], *, reached: bool
) -> Ruling:
    """Return the verdict on an interpretation from its cases, with its reason.

    The first of these that applies::

        no case was judged                                       open
        a word has no measure, or the quantifier is ``usually``  vague
        it holds for one value of the premise that the sentence
        omits, and fails for another                             partly
        verdicts otherwise differ by the value of that premise   open
        it holds, but is an equality in distribution             partly
        otherwise                                                as `join_cases` says

    Parameters
    ----------
    interpretation : Interpretation
    cases : sequence of Case
        Each with the joint outcome of all checks.
    reached : bool
        Whether the cases cover the whole domain.
    """
    judged = [case for case in cases if case.outcome != Outcome.NOT_APPLICABLE]
    if not judged:
        return UNREACHED
    if without_measure(interpretation.words):
        return Ruling(Verdict.VAGUE, Reason.WORD)
    if interpretation.quantifier == "usually":  # sampled cases are no published list
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
