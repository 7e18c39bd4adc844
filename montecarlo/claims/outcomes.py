"""How everything came out: what the judge writes, claims.json holds and pages read."""

import math
from collections.abc import Iterator
from typing import Annotated

from msgspec import Struct

from montecarlo.claims.checks import Check, Limiting
from montecarlo.claims.schema import Form, Quantifier, Source, Topic, logic_of
from montecarlo.claims.verdicts import Logic, Verdict
from montecarlo.estimation.intervals import factor_of
from montecarlo.study.columns import Error, Finite
from montecarlo.study.validating import about

Size = Annotated[int, about("", ge=1, le=2**24)]
Outcome = Annotated[Verdict, about("how it came out")]


class _Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of claims.json."""


class Located(_Record, frozen=True, kw_only=True):
    """Where something was decided; a field that has no meaning there is empty."""

    distribution: Annotated[str, about("of Q and K, or `q * k`")] = ""
    dependence: Annotated[str, about("how K is drawn given Q")] = "none"
    initialisation: Annotated[
        str, about("what stands before q and k; empty: nothing")
    ] = ""
    normalisation: Annotated[str, about("what is done to each query and key")] = "none"
    arithmetic: Annotated[
        str, about("number format and softmax, where these are compared")
    ] = ""
    part: Annotated[str, about("an array, a model, an optimiser; empty: simulated")] = (
        ""
    )
    n_keys: Annotated[Size | None, about("keys of a row; null: pairs")] = None
    d_k: Annotated[Size | None, about("null: a series over all of them")] = None

    @property
    def context(self) -> str:
        """What there is beside distribution and sizes; empty: nothing."""
        dependence = "" if self.dependence == "none" else self.dependence
        if self.part:
            return f"{self.part} {self.initialisation}".strip()
        found = self.arithmetic or dependence or self.initialisation
        normalisation = "" if self.normalisation == "none" else self.normalisation
        return f"{found} {normalisation}".strip()


def locate(case: Located, **changed: None) -> Located:
    """Return where something was decided, without how it came out."""
    fields = {name: getattr(case, name) for name in Located.__struct_fields__}
    return Located(**(fields | changed))


class JointOutcome(Located, frozen=True, kw_only=True):
    """A case that an interpretation looks at, and how all its checks came out there."""

    outcome: Outcome


class Border(Located, frozen=True, kw_only=True):
    """Two neighbouring d_k between which the outcome changes, all else equal."""

    between: Annotated[tuple[Size, Size], about("d_k before and after")]
    outcomes: Annotated[tuple[Verdict, Verdict], about("likewise")]


class LimitOutcome(_Record, frozen=True, kw_only=True):
    """What becomes of a row as d_k grows without bound, exactly."""

    tends_to: Annotated[Limiting, about("what it tends to")]
    kind: Annotated[str, about("how fast: a power, or an exponential")]
    exponent: Annotated[Finite | None, about("of that power")]
    constant: Annotated[Finite | None, about("what stands before it, or the limit")]


class CaseOutcome(Located, frozen=True, kw_only=True):
    """A check in one case: an estimate, its interval, the region, the outcome."""

    d_k_range: Annotated[
        tuple[Size, Size] | None, about("smallest and largest d_k; null: has none")
    ] = None
    rows: Annotated[
        tuple[str, ...], about("row_id of its lines in measurements.csv")
    ] = ()
    estimate: Annotated[Finite | None, about("null: none", "the quantity's")] = None
    std_error: Annotated[
        Error | None, about("its standard error", "the quantity's")
    ] = None
    n_replicates: Annotated[int | None, about("replicates it is made of")] = None
    simultaneous_low: Annotated[
        Finite | None, about("lower end; null: none or infinite")
    ] = None
    simultaneous_high: Annotated[Finite | None, about("upper end; null likewise")] = (
        None
    )
    region_low: Annotated[
        Finite | None, about("of the equivalence region; null: open")
    ] = None
    region_high: Annotated[Finite | None, about("likewise")] = None
    exact: Annotated[Finite | None, about("exact value; null: none known")] = None
    limit: Annotated[LimitOutcome | None, about("null: none known")] = None
    outcome: Outcome
    by_theory: Annotated[
        bool, about("whether the exact value decided what the sample left undecided")
    ] = False
    replicates_needed: Annotated[
        int | None,
        about("for the sample to decide it, about; null: it did, or is too close to"),
    ] = None

    @property
    def row(self) -> str:
        """Name of its line; empty where it is made of several: a slope, a ratio."""
        return self.rows[0] if len(self.rows) == 1 else ""

    @property
    def is_binned(self) -> bool:
        """Whether a row is known to a bin of a histogram, and has no own error."""
        sampled = bool(self.rows) and self.estimate is not None
        ends = self.simultaneous_low, self.simultaneous_high
        return sampled and self.std_error is None and None not in ends

    @property
    def is_wide(self) -> bool:
        """Whether its interval, not an error on either side, says how well it is known.

        So of a share that may be 0 or 1, and of what is known to a factor.
        """
        low, high = self.interval
        is_end = low == 0.0 or (high == 1.0 and low >= 0.0)
        return is_end or factor_of(low, high) is not None

    @property
    def region(self) -> tuple[float, float]:
        """The values that count as agreement, both ends included."""
        low, high = self.region_low, self.region_high
        return (-math.inf if low is None else low, math.inf if high is None else high)

    @property
    def interval(self) -> tuple[float, float]:
        """The simultaneous interval; without bounds where there is none."""
        low, high = self.simultaneous_low, self.simultaneous_high
        return (-math.inf if low is None else low, math.inf if high is None else high)


class CheckOutcome(Check, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A check, as the catalogue has it, and its cases."""

    cases: Annotated[tuple[CaseOutcome, ...], about("where it was decided")] = ()

    @property
    def asked(self) -> Check:
        """The check alone."""
        return Check(*(getattr(self, name) for name in Check.__struct_fields__))

    def count(self, outcome: str) -> int:
        """Count the cases that came out so."""
        return sum(case.outcome == outcome for case in self.cases)


class InterpretationOutcome(_Record, frozen=True, kw_only=True):
    """One precise meaning of a claim, and how it came out."""

    id: Annotated[str, about("of the catalogue")]
    quantifier: Annotated[Quantifier, about("how it is said")]
    form: Annotated[Form, about("outright, or as an implication")]
    share: Annotated[Finite, about("of the cases, that `usually` asks for")]
    votes: Annotated[bool, about("whether a text says it so")]
    tested: Annotated[str, about("the tested proposition, in English; empty: none")] = (
        ""
    )
    degree: Annotated[
        str, about("the text's word that has no border there; empty: none")
    ] = ""
    verdict: Outcome
    cases: Annotated[tuple[JointOutcome, ...], about("where it was looked at")]
    borders: Annotated[tuple[Border, ...], about("where the outcome changes")]
    checks: Annotated[tuple[CheckOutcome, ...], about("what must hold", min_length=1)]

    @property
    def logic(self) -> Logic:
        """What it needs of its cases."""
        return logic_of(self.quantifier, self.form, self.degree)


class NumberOutcome(_Record, frozen=True, kw_only=True):
    """A number of a sentence."""

    value: Annotated[Finite, about("the number", "the quantity's")]
    std_error: Annotated[Error | None, about("null: a count, size or exact value")]
    row: Annotated[str, about("row_id of its line; empty: of none, or of several")]
    percent: Annotated[bool, about("whether it is shown in per cent")]


class SentenceOutcome(_Record, frozen=True, kw_only=True):
    """Whether a sentence of the catalogue may be said, and its numbers."""

    holds: Annotated[bool, about("whether all that it asserts came out so")]
    numbers: Annotated[dict[str, NumberOutcome], about("by name; none unless it holds")]
    checks: Annotated[tuple[CheckOutcome, ...], about("what it rests on")]


class PassageOutcome(SentenceOutcome, frozen=True, kw_only=True):
    """The same, of a sentence that belongs to no claim."""

    id: Annotated[str, about("of the catalogue")]


class ClaimOutcome(_Record, frozen=True, kw_only=True):
    """A claim, and how it came out."""

    id: Annotated[str, about("of the catalogue")]
    kind: Annotated[str, about("`measured`, or why not")]
    topic: Annotated[Topic, about("what it is about")]
    sources: Annotated[tuple[Source, ...], about("where texts say it, and how")]
    verdict: Outcome
    error_rate: Annotated[float, about("nominal, of all its checks", ge=0.0, lt=1.0)]
    tested: Annotated[
        str, about("the tested proposition where interpretations have none")
    ] = ""
    changed: Annotated[
        bool, about("whether its rule was changed after results had been seen")
    ] = False
    texts: Annotated[dict[str, Verdict], about("by key: as each text says it")]
    interpretations: Annotated[tuple[InterpretationOutcome, ...], about("its meanings")]
    findings: Annotated[tuple[SentenceOutcome, ...], about("what may be said of it")]
    right: Annotated[SentenceOutcome | None, about("what would be right; null: none")]
    concedes: Annotated[SentenceOutcome | None, about("what is right in it")]

    @property
    def verdicts(self) -> set[Verdict]:
        """Its verdict, and of a tally those of what texts say."""
        if self.verdict != Verdict.TALLY:
            return {self.verdict}
        return {
            self.verdict,
            *(one.verdict for one in self.interpretations if one.votes),
        }

    def verdicts_on(self, source: Source) -> set[Verdict]:
        """Return the verdicts on what is said in one place."""
        said = {
            one.verdict
            for one in self.interpretations
            if one.votes and (not source.admits or one.id in source.admits)
        }
        return said or {self.verdict}

    def sentences(self) -> Iterator[SentenceOutcome]:
        """Yield all that a page may say of it."""
        yield from self.findings
        yield from (one for one in (self.right, self.concedes) if one is not None)


class SelfCheckOutcome(_Record, frozen=True, kw_only=True):
    """A self-check, and how it came out."""

    id: Annotated[str, about("of the catalogue")]
    verdict: Outcome
    checks: Annotated[tuple[CheckOutcome, ...], about("what must hold")]


class Judgement(_Record, frozen=True, kw_only=True):
    """How everything in a catalogue came out, in its order."""

    claims: Annotated[tuple[ClaimOutcome, ...], about("in the catalogue's order")]
    passages: Annotated[tuple[PassageOutcome, ...], about("likewise")]
    self_checks: Annotated[tuple[SelfCheckOutcome, ...], about("likewise")]

    def judged_checks(self) -> Iterator[CheckOutcome]:
        """Yield every check that a verdict is made of."""
        for claim in self.claims:
            for interpretation in claim.interpretations:
                yield from interpretation.checks
        for self_check in self.self_checks:
            yield from self_check.checks

    def said_checks(self) -> Iterator[CheckOutcome]:
        """Yield every check that a sentence rests on."""
        for claim in self.claims:
            for sentence in claim.sentences():
                yield from sentence.checks
        for passage in self.passages:
            yield from passage.checks
