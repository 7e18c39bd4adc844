"""Judging a whole catalogue on what has been sampled, at one error rate for all."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from montecarlo.claims.cases import (
    Case,
    Place,
    cases_of,
    estimate_in,
    exact_in,
    is_applicable,
    region_in,
    row_key,
)
from montecarlo.claims.checks import Check
from montecarlo.claims.facts import FACT_CHECKS
from montecarlo.claims.outcomes import CaseOutcome, CheckOutcome, InterpretationOutcome
from montecarlo.claims.saying import SentenceOutcome, judge_sentence
from montecarlo.claims.schema import Catalogue, Claim, Interpretation
from montecarlo.claims.sentences import Sentence
from montecarlo.claims.verdicts import (
    Verdict,
    all_of,
    claim_verdict,
    decide,
    find_borders,
    interpretation_verdict,
    replicates_needed,
)
from montecarlo.estimation.summaries import RowKey, Summaries
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.theory.limits import limit_of


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """A claim, or a self-check, with its verdict.

    Attributes
    ----------
    id : str
    verdict : Verdict
    interpretations : tuple of InterpretationOutcome
    texts : mapping
        Key of each text that makes the claim to the verdict on what it says.
    findings : tuple of SentenceOutcome
        One for each that the catalogue has.
    right, concedes : SentenceOutcome or None
    """

    id: str
    verdict: Verdict
    interpretations: tuple[InterpretationOutcome, ...]
    texts: Mapping[str, Verdict] = field(default_factory=dict)
    findings: tuple[SentenceOutcome, ...] = ()
    right: SentenceOutcome | None = None
    concedes: SentenceOutcome | None = None

    def sentences(self) -> Iterator[SentenceOutcome]:
        """Yield all that a page may say of it."""
        yield from self.findings
        yield from (one for one in (self.right, self.concedes) if one is not None)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How everything in a catalogue came out, in its order."""

    claims: list[ClaimOutcome]
    passages: list[SentenceOutcome]
    self_checks: list[ClaimOutcome]


@dataclass(frozen=True, slots=True)
class Judge:
    """Everything that judging needs beside the samples.

    Attributes
    ----------
    catalogue : Catalogue
    budgets : mapping
        Point to the most replicates it may get: the grid.
    divisors : tuple of str
        Those that are sampled.
    reference : callable
        (point, row) -> exact value or None.
    simultaneous_error : float
        One-sided error rate of each simultaneous interval.
    """

    catalogue: Catalogue
    budgets: Mapping[DesignPoint, int]
    divisors: tuple[str, ...]
    reference: Callable[[DesignPoint, RowKey], float | None]
    simultaneous_error: float

    def judge(self, summaries: Callable[[DesignPoint], Summaries]) -> Judgement:
        """Judge all claims, passages and self-checks.

        Parameters
        ----------
        summaries : callable
            Point -> its estimates.
        """

        def check(one: Check) -> CheckOutcome:
            return self._check(one, summaries)

        claims = [self._claim(claim, check) for claim in self.catalogue.claim]
        passages = [judge_sentence(p.sentence, check) for p in self.catalogue.passage]
        self_checks = []
        for entry in self.catalogue.self_check:
            interpretation = self._interpretation(
                Interpretation(entry.id, entry.check), check
            )
            self_checks.append(
                ClaimOutcome(entry.id, interpretation.verdict, (interpretation,))
            )
        return Judgement(claims, passages, self_checks)

    def _claim(
        self, claim: Claim, check: Callable[[Check], CheckOutcome]
    ) -> ClaimOutcome:
        interpretations = tuple(
            self._interpretation(interpretation, check)
            for interpretation in claim.interpretation
        )
        verdicts = {
            interpretation.id: interpretation.verdict
            for interpretation in interpretations
        }
        verdict = self._verdict(claim, [verdicts[name] for name in claim.admitted()])
        keys = dict.fromkeys(source.text for source in claim.source)
        texts = {
            key: self._verdict(claim, [verdicts[name] for name in claim.admitted(key)])
            for key in keys
        }

        def say(sentence: Sentence) -> SentenceOutcome:
            return judge_sentence(sentence, check, interpretations, verdict)

        right = claim.right
        return ClaimOutcome(
            claim.id,
            verdict,
            interpretations,
            texts,
            tuple(map(say, claim.finding)),
            None if right is None else say(right.as_sentence()),
            None if claim.concedes is None else say(claim.concedes),
        )

    def _verdict(self, claim: Claim, interpretations: list[Verdict]) -> Verdict:
        """Join interpretations; the rest is judged on arrays and on records."""
        if claim.kind == "assumption":
            return Verdict.NOT_APPLICABLE
        if claim.kind in ("shape", "record"):
            return FACT_CHECKS[claim.id](self.catalogue)
        return (
            claim_verdict(interpretations) if interpretations else Verdict.NOT_MEASURED
        )

    def _interpretation(
        self,
        interpretation: Interpretation,
        judge_check: Callable[[Check], CheckOutcome],
    ) -> InterpretationOutcome:
        checks = tuple(map(judge_check, interpretation.check))
        joined: dict[Place, list[Verdict]] = {}
        for check in checks:
            for case in check.cases:
                joined.setdefault(case.case.place, []).append(case.verdict)
        # checks may differ in their domains, so the places come in no order
        ordered = sorted(
            joined, key=lambda p: (p.distribution, p.context, p.n_keys or 0, p.d_k or 0)
        )
        places = tuple((place, all_of(joined[place])) for place in ordered)
        outcomes = [verdict for _, verdict in places]
        verdict = interpretation_verdict(
            interpretation.quantifier, outcomes, interpretation.share
        )
        if verdict == Verdict.SUPPORTED and not all(check.cases for check in checks):
            verdict = Verdict.INCONCLUSIVE  # a check that the grid has no place for
        borders = tuple(find_borders(places))
        return InterpretationOutcome(interpretation, verdict, checks, places, borders)

    def _check(
        self, check: Check, summaries: Callable[[DesignPoint], Summaries]
    ) -> CheckOutcome:
        outcomes = []
        for case in cases_of(check, self.budgets, self.divisors):
            region = region_in(check, case, self.reference)
            if region is not None:
                outcomes.append(self._case(check, case, region, summaries))
        return CheckOutcome(check, tuple(outcomes))

    def _case(
        self,
        check: Check,
        case: Case,
        region: tuple[float, float],
        summaries: Callable[[DesignPoint], Summaries],
    ) -> CaseOutcome:
        key = row_key(check)
        if not is_applicable(check, case):
            return CaseOutcome(case, key, None, None, region, Verdict.NOT_APPLICABLE)
        estimate = estimate_in(check, case, summaries)
        if check.relation == "tends_to":
            limit = limit_of(check.quantity, check.summary, case.place.n_keys or 0)
            verdict = Verdict.NOT_APPLICABLE
            if limit is not None:
                agrees = limit.tends_to == check.to
                verdict = Verdict.SUPPORTED if agrees else Verdict.REFUTED
            return CaseOutcome(case, key, estimate, None, region, verdict, limit=limit)
        exact = exact_in(check, case, self.reference)
        interval = estimate.interval(self.simultaneous_error)
        verdict = decide(interval, region)
        needed = None
        if verdict == Verdict.INCONCLUSIVE:
            budget = min(self.budgets[c] for c in case.points)
            needed = replicates_needed(
                estimate, region, self.simultaneous_error, budget
            )
        return CaseOutcome(
            case, key, estimate, interval, region, verdict, exact, needed=needed
        )
