"""Judging a catalogue on evidence of any kind, at one error rate for all.

In: a catalogue, and evidence.  Out: how everything came out, as claims.json has it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec

from montecarlo.claims.checks import Check
from montecarlo.claims.evidence import Evidence, Found
from montecarlo.claims.facts import with_facts
from montecarlo.claims.outcomes import (
    Border,
    CaseOutcome,
    CheckOutcome,
    ClaimOutcome,
    InterpretationOutcome,
    JointOutcome,
    Judgement,
    LimitOutcome,
    Located,
    PassageOutcome,
    SelfCheckOutcome,
    SentenceOutcome,
    locate,
)
from montecarlo.claims.rounding import ends, finite, shorten
from montecarlo.claims.saying import judge_sentence
from montecarlo.claims.schema import Catalogue, Claim, Interpretation
from montecarlo.claims.sentences import Sentence
from montecarlo.claims.verdicts import (
    DECIDED,
    Verdict,
    all_of,
    decide,
    interpretation_verdict,
    join_verdicts,
    replicates_needed,
)


@dataclass(frozen=True, slots=True)
class Judge:
    """What judges, and on what.

    Attributes
    ----------
    evidence : Evidence
    simultaneous_error : float
        One-sided error rate of each simultaneous interval.
    error_rates : mapping
        Id of each claim to its own nominal rate; 0 for one that has none.
    """

    evidence: Evidence
    simultaneous_error: float
    error_rates: Mapping[str, float] = field(default_factory=dict)

    def judge(self, catalogue: Catalogue) -> Judgement:
        """Judge all claims, passages and self-checks."""
        self_checks = []
        for entry in catalogue.self_check:
            one = self.judge_interpretation(Interpretation(entry.id, entry.check))
            self_checks.append(
                SelfCheckOutcome(id=entry.id, verdict=one.verdict, checks=one.checks)
            )
        return Judgement(
            claims=tuple(self.judge_claim(claim) for claim in catalogue.claim),
            passages=tuple(
                PassageOutcome(
                    id=passage.id, **msgspec.structs.asdict(self._say(passage.sentence))
                )
                for passage in catalogue.passage
            ),
            self_checks=tuple(self_checks),
        )

    def judge_claim(self, claim: Claim) -> ClaimOutcome:
        """Judge a claim: as all texts say it, and as each does."""
        asked, claim = claim, with_facts(claim)
        voting = claim.admitted()
        interpretations = self.judge_meanings(claim)
        verdicts = {one.id: one.verdict for one in interpretations}
        keys = dict.fromkeys(source.text for source in claim.source)

        def join_votes(names: Iterable[str]) -> Verdict:
            return verdict_of(claim, [verdicts[name] for name in names])

        verdict = join_votes(voting)

        def say(sentence: Sentence | None) -> SentenceOutcome | None:
            if sentence is None:
                return None
            return self._say(sentence, interpretations, verdict)

        right = claim.right
        return ClaimOutcome(
            id=claim.id,
            kind=claim.kind,
            topic=claim.topic,
            sources=claim.source,
            verdict=verdict,
            error_rate=shorten(self.error_rates.get(claim.id, 0.0)) or 0.0,
            texts={key: join_votes(claim.admitted(key)) for key in keys},
            tested=asked.tested,
            changed=asked.changed,
            interpretations=interpretations if asked.interpretation else (),
            findings=tuple(
                self._say(one, interpretations, verdict) for one in claim.finding
            ),
            right=say(None if right is None else right.as_sentence()),
            concedes=say(claim.concedes),
        )

    def judge_meanings(self, claim: Claim) -> tuple[InterpretationOutcome, ...]:
        """Judge the interpretations of a claim."""
        voting = claim.admitted()
        return tuple(
            self.judge_interpretation(one, votes=one.id in voting)
            for one in claim.interpretation
        )

    def judge_interpretation(
        self, interpretation: Interpretation, *, votes: bool = True
    ) -> InterpretationOutcome:
        """Judge an interpretation: its checks together, in each of their cases.

        Parameters
        ----------
        interpretation : Interpretation
        votes : bool
            Whether a text says it so.
        """
        checks = tuple(map(self.judge_check, interpretation.check))
        cases = tuple(join_cases(checks))
        outcomes = [case.outcome for case in cases]
        verdict = interpretation_verdict(
            interpretation.logic,
            outcomes,
            share=interpretation.share,
            reached=all(map(self.evidence.reaches, interpretation.check)),
        )
        if verdict != Verdict.REFUTED and not all(check.cases for check in checks):
            verdict = Verdict.NOT_MEASURED
        return InterpretationOutcome(
            id=interpretation.id,
            quantifier=interpretation.quantifier,
            form=interpretation.form,
            share=interpretation.share,
            votes=votes,
            tested=interpretation.tested,
            degree=interpretation.degree,
            verdict=verdict,
            cases=cases,
            borders=tuple(find_borders(cases)),
            checks=checks,
        )

    def judge_check(self, check: Check) -> CheckOutcome:
        """Judge a check in each of its cases."""
        asked = {name: getattr(check, name) for name in Check.__struct_fields__}
        cases = tuple(
            self._decide(check, case, self.evidence.find(check, case))
            for case in self.evidence.cases(check)
        )
        return CheckOutcome(**asked, cases=cases)

    def _say(
        self,
        sentence: Sentence,
        interpretations: Sequence[InterpretationOutcome] = (),
        verdict: Verdict | None = None,
    ) -> SentenceOutcome:
        return judge_sentence(sentence, self.judge_check, interpretations, verdict)

    def _decide(self, check: Check, case: Located, found: Found) -> CaseOutcome:
        estimate, region = found.estimate, found.region
        verdict, interval, needed = Verdict.NOT_APPLICABLE, None, None
        if check.relation == "tends_to":  # theory decides
            if found.limit is not None:
                agrees = found.limit.tends_to == check.to
                verdict = Verdict.SUPPORTED if agrees else Verdict.REFUTED
        elif estimate is not None:
            interval = estimate.interval(self.simultaneous_error)
            verdict = decide(interval, region)
            if verdict == Verdict.UNDECIDED and found.most is not None:
                needed = replicates_needed(
                    estimate, region, self.simultaneous_error, found.most
                )
        low, high = ends(interval, region)
        return CaseOutcome(
            **msgspec.structs.asdict(case),
            d_k_range=found.d_k,
            rows=found.rows,
            estimate=None if estimate is None else finite(estimate.value),
            std_error=None if estimate is None else shorten(estimate.std_error),
            n_replicates=None if estimate is None else estimate.n_replicates,
            simultaneous_low=low,
            simultaneous_high=high,
            region_low=finite(region[0]),
            region_high=finite(region[1]),
            exact=found.exact,
            limit=None if found.limit is None else LimitOutcome.of(found.limit),
            outcome=verdict,
            replicates_needed=needed,
        )


def verdict_of(claim: Claim, interpretations: Sequence[Verdict]) -> Verdict:
    """Join the interpretations of a claim, by its kind.

    What is held against the published record is documented, or contradicted by it.
    """
    if claim.kind == "assumption":
        return Verdict.PREMISE
    verdict = join_verdicts(interpretations)
    if claim.kind == "record":
        agrees = verdict == Verdict.SUPPORTED
        return Verdict.DOCUMENTED if agrees else Verdict.CONTRADICTED_BY_RECORD
    return verdict


def join_cases(checks: Sequence[CheckOutcome]) -> Iterator[JointOutcome]:
    """Yield each case of some checks, with how all of them came out there."""
    joined: dict[Located, list[Verdict]] = {}
    for check in checks:
        for found in check.cases:
            joined.setdefault(locate(found), []).append(found.outcome)

    # checks may differ in their domains, so the cases come in no order
    def order(case: Located) -> tuple[object, ...]:
        return case.distribution, case.context, case.n_keys or 0, case.d_k or 0

    for case in sorted(joined, key=order):
        yield JointOutcome(**msgspec.structs.asdict(case), outcome=all_of(joined[case]))


def find_borders(cases: Sequence[JointOutcome]) -> Iterator[Border]:
    """Yield neighbouring d_k between which the outcome changes, all else equal.

    Parameters
    ----------
    cases : sequence of JointOutcome
        By distribution, context, number of keys and d_k.
    """
    decided = [c for c in cases if c.outcome in DECIDED and c.d_k is not None]
    for before, after in pairwise(decided):
        where, other = (locate(case, d_k=None) for case in (before, after))
        if where == other and before.outcome != after.outcome:
            yield Border(
                **msgspec.structs.asdict(where),
                between=(before.d_k or 0, after.d_k or 0),
                outcomes=(before.outcome, after.outcome),
            )
