"""Judging a whole catalogue on what has been sampled, at one error rate for all."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from montecarlo.claims.cells import (
    Cell,
    Place,
    cells_of,
    estimate_in,
    exact_in,
    is_applicable,
    row_key,
    window_in,
)
from montecarlo.claims.checks import Check
from montecarlo.claims.facts import FACT_CHECKS
from montecarlo.claims.outcomes import CellOutcome, CheckOutcome, ReadingOutcome
from montecarlo.claims.saying import SentenceOutcome, judge_sentence
from montecarlo.claims.schema import Catalogue, Claim, Reading
from montecarlo.claims.sentences import Sentence
from montecarlo.claims.verdicts import (
    Verdict,
    all_of,
    claim_verdict,
    decide,
    find_borders,
    reading_verdict,
    replicates_needed,
)
from montecarlo.estimation.summaries import RowKey, Summaries
from montecarlo.sampling.conditions import Condition
from montecarlo.theory.limits import limit_of


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """A claim, or a self-check, with its verdict.

    Attributes
    ----------
    id : str
    verdict : Verdict
    readings : tuple of ReadingOutcome
    texts : mapping
        Key of each text that makes the claim to the verdict on what it says.
    findings : tuple of SentenceOutcome
        One for each that the catalogue has.
    right, concedes : SentenceOutcome or None
    """

    id: str
    verdict: Verdict
    readings: tuple[ReadingOutcome, ...]
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
        Condition to the most replicates it may get: the grid.
    divisors : tuple of str
        Those that are sampled.
    reference : callable
        (condition, row) -> exact value or None.
    decision_error : float
        One-sided error rate of each decision interval.
    """

    catalogue: Catalogue
    budgets: Mapping[Condition, int]
    divisors: tuple[str, ...]
    reference: Callable[[Condition, RowKey], float | None]
    decision_error: float

    def judge(self, summaries: Callable[[Condition], Summaries]) -> Judgement:
        """Judge all claims, passages and self-checks.

        Parameters
        ----------
        summaries : callable
            Condition -> its estimates.
        """

        def check(one: Check) -> CheckOutcome:
            return self._check(one, summaries)

        claims = [self._claim(claim, check) for claim in self.catalogue.claim]
        passages = [judge_sentence(p.sentence, check) for p in self.catalogue.passage]
        self_checks = []
        for entry in self.catalogue.self_check:
            reading = self._reading(Reading(entry.id, entry.check), check)
            self_checks.append(ClaimOutcome(entry.id, reading.verdict, (reading,)))
        return Judgement(claims, passages, self_checks)

    def _claim(
        self, claim: Claim, check: Callable[[Check], CheckOutcome]
    ) -> ClaimOutcome:
        readings = tuple(self._reading(reading, check) for reading in claim.reading)
        verdicts = {reading.id: reading.verdict for reading in readings}
        verdict = self._verdict(claim, [verdicts[name] for name in claim.admitted()])
        keys = dict.fromkeys(source.text for source in claim.source)
        texts = {
            key: self._verdict(claim, [verdicts[name] for name in claim.admitted(key)])
            for key in keys
        }

        def say(sentence: Sentence) -> SentenceOutcome:
            return judge_sentence(sentence, check, readings, verdict)

        right = claim.right
        return ClaimOutcome(
            claim.id,
            verdict,
            readings,
            texts,
            tuple(map(say, claim.finding)),
            None if right is None else say(right.as_sentence()),
            None if claim.concedes is None else say(claim.concedes),
        )

    def _verdict(self, claim: Claim, readings: list[Verdict]) -> Verdict:
        """Join readings; what is not sampled is judged on arrays and on records."""
        if claim.kind == "assumption":
            return Verdict.NOT_APPLICABLE
        if claim.kind in ("shape", "record"):
            return FACT_CHECKS[claim.id](self.catalogue)
        return claim_verdict(readings) if readings else Verdict.NOT_MEASURED

    def _reading(
        self, reading: Reading, judge_check: Callable[[Check], CheckOutcome]
    ) -> ReadingOutcome:
        checks = tuple(map(judge_check, reading.check))
        joined: dict[Place, list[Verdict]] = {}
        for check in checks:
            for cell in check.cells:
                joined.setdefault(cell.cell.place, []).append(cell.verdict)
        # checks may differ in their domains, so the places come in no order
        ordered = sorted(
            joined, key=lambda p: (p.law, p.context, p.n_keys or 0, p.d_k or 0)
        )
        places = tuple((place, all_of(joined[place])) for place in ordered)
        outcomes = [verdict for _, verdict in places]
        verdict = reading_verdict(reading.quantifier, outcomes, reading.share)
        if verdict == Verdict.SUPPORTED and not all(check.cells for check in checks):
            verdict = Verdict.INCONCLUSIVE  # a check that the grid has no place for
        borders = tuple(find_borders(places))
        return ReadingOutcome(reading, verdict, checks, places, borders)

    def _check(
        self, check: Check, summaries: Callable[[Condition], Summaries]
    ) -> CheckOutcome:
        outcomes = []
        for cell in cells_of(check, self.budgets, self.divisors):
            window = window_in(check, cell, self.reference)
            if window is not None:
                outcomes.append(self._cell(check, cell, window, summaries))
        return CheckOutcome(check, tuple(outcomes))

    def _cell(
        self,
        check: Check,
        cell: Cell,
        window: tuple[float, float],
        summaries: Callable[[Condition], Summaries],
    ) -> CellOutcome:
        key = row_key(check)
        if not is_applicable(check, cell):
            return CellOutcome(cell, key, None, None, window, Verdict.NOT_APPLICABLE)
        estimate = estimate_in(check, cell, summaries)
        if check.relation == "tends_to":
            limit = limit_of(check.quantity, check.summary, cell.place.n_keys or 0)
            verdict = Verdict.NOT_APPLICABLE
            if limit is not None:
                agrees = limit.tends_to == check.to
                verdict = Verdict.SUPPORTED if agrees else Verdict.REFUTED
            return CellOutcome(cell, key, estimate, None, window, verdict, limit=limit)
        exact = exact_in(check, cell, self.reference)
        interval = estimate.interval(self.decision_error)
        verdict = decide(interval, window)
        needed = None
        if verdict == Verdict.INCONCLUSIVE:
            budget = min(self.budgets[c] for c in cell.conditions)
            needed = replicates_needed(estimate, window, self.decision_error, budget)
        return CellOutcome(
            cell, key, estimate, interval, window, verdict, exact, needed=needed
        )
