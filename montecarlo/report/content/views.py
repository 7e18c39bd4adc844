"""What a page shows, as typed records: no words, no HTML."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from montecarlo.report.content.z_scores import ZScoresView
from montecarlo.report.language.own_words import Shown

#: Verdicts in the order in which a page counts them.
VERDICTS = (
    "supported",
    "conditional",
    "refuted",
    "inconclusive",
    "documented",
    "contradicted_by_record",
    "premise_not_met",
    "not_applicable",
    "not_measured",
)
#: Worst news first.
BY_WEIGHT = (
    "refuted",
    "contradicted_by_record",
    "conditional",
    "inconclusive",
    "supported",
    "documented",
    "premise_not_met",
    "not_applicable",
    "not_measured",
)
#: Verdicts of claims that a right sentence is set beside.
FAILING = ("refuted", "contradicted_by_record", "conditional")
TOPICS = ("premise", "variance", "weights", "gradients", "arithmetic", "practice")


@dataclass(frozen=True, slots=True)
class CaseView:
    """One case of a check."""

    distribution: str
    context: str
    n_keys: int | None
    d_k: int | None
    d_k_range: tuple[int, int]
    row: str  # empty where the estimate is of several rows: a slope, a ratio of ends
    estimate: float | None
    std_error: float | None
    decision: tuple[float | None, float | None]
    region: tuple[float | None, float | None]
    outcome: str
    needed: int | None
    exact: float | None
    limit: Mapping[str, Any] | None  # where theory decides: what it tends to, and how


@dataclass(frozen=True, slots=True)
class NumberView:
    """A number of a sentence; one without an error is a count or exact."""

    value: float
    error: float | None
    row: str
    percent: bool


@dataclass(frozen=True, slots=True)
class CheckView:
    """One check: what is compared, as a formula, and its cases."""

    formula: str
    cases: tuple[CaseView, ...]

    def columns(self) -> list[tuple[int, int]]:
        """Return the d_k, or ranges of d_k, that its table has columns for."""
        return sorted({case.d_k_range for case in self.cases})

    def lines(self) -> list[tuple[CaseView, list[CaseView | None]]]:
        """Return the lines of its table; the first case of each names it."""
        lines: dict[tuple[str, str, int | None], dict[tuple[int, int], CaseView]] = {}
        for case in self.cases:
            place = (case.distribution, case.context, case.n_keys)
            lines.setdefault(place, {})[case.d_k_range] = case
        columns = self.columns()
        return [
            (next(iter(line.values())), [line.get(column) for column in columns])
            for line in lines.values()
        ]

    def count(self, outcome: str) -> int:
        """Count the cases that came out so."""
        return sum(case.outcome == outcome for case in self.cases)

    @property
    def name(self) -> str:
        """Name its table: the same check of the same cases has the same name."""
        places = [
            f"{c.distribution} {c.context} {c.n_keys} {c.d_k_range} {c.row}"
            for c in self.cases
        ]
        text = ";".join([self.formula, *places])
        return f"check-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


@dataclass(frozen=True, slots=True)
class BorderView:
    """Where an outcome changes along d_k."""

    distribution: str
    context: str
    n_keys: int | None
    d_k: tuple[int, int]
    outcomes: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence that holds, its numbers, and the checks that it rests on."""

    text: Shown
    numbers: Mapping[str, NumberView]
    checks: tuple[CheckView, ...]


@dataclass(frozen=True, slots=True)
class InterpretationView:
    """One interpretation; ``label`` is None where ``symbol`` names it."""

    id: str
    label: Shown | None
    symbol: str
    quantifier: str
    form: str
    share: float
    votes: bool  # whether a text says it, so that it counts
    verdict: str
    outcomes: Mapping[str, int]
    checks: tuple[CheckView, ...]
    borders: tuple[BorderView, ...]
    exceptions: tuple[tuple[str, str, int | None], ...]  # distribution, context and n


@dataclass(frozen=True, slots=True)
class SourceView:
    """Where a text says it, and how."""

    name: Shown
    key: str
    section: str
    point: int
    line: int
    sentence: tuple[int, ...]
    quantifier: str
    form: str
    premises: tuple[str, ...]
    admits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RightView:
    """The sentence that would be right, and a line to redo by hand."""

    sentence: Said
    arithmetic: Said


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim, with the sentences that its results choose.

    Attributes
    ----------
    number : int
        Its place in the catalogue, from 1.
    texts : mapping
        Key of each text that makes it to the verdict on what that text says.
    finding : Said or None
        None where no sentence of the catalogue holds.
    right : RightView or None
        Of a claim that fails, where the sentence holds.
    concedes : Said or None
        What is right in a claim that fails.
    telling : (CheckView, CaseView) or None
        The case that stands for its verdict.
    error_rate : float or None
        The claim's own nominal one: that of all its checks, at all interim analyses.
    """

    number: int
    id: str
    topic: str
    kind: str
    statement: Shown
    sources: tuple[SourceView, ...]
    verdict: str
    texts: Mapping[str, str]
    finding: Said | None
    interpretations: tuple[InterpretationView, ...]
    right: RightView | None
    concedes: Said | None
    telling: tuple[CheckView, CaseView] | None
    error_rate: float | None = None  # None: an earlier version did not count it

    @property
    def voting(self) -> list[InterpretationView]:
        """Those interpretations that a text says."""
        return [
            interpretation
            for interpretation in self.interpretations
            if interpretation.votes
        ]

    @property
    def beyond(self) -> list[InterpretationView]:
        """Those that go beyond what is said."""
        return [
            interpretation
            for interpretation in self.interpretations
            if not interpretation.votes
        ]

    def count(self, outcome: str) -> int:
        """Count the places of voting interpretations that came out so."""
        return sum(
            interpretation.outcomes.get(outcome, 0) for interpretation in self.voting
        )


@dataclass(frozen=True, slots=True)
class SelfCheckView:
    """One check of the simulator itself."""

    id: str
    statement: Shown
    verdict: str
    outcomes: Mapping[str, int]
    checks: tuple[CheckView, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that the pages of all languages show; ``own``: a user's claims."""

    claims: tuple[ClaimView, ...]
    passages: Mapping[str, tuple[Said, ...]]  # those that hold, by place
    self_checks: tuple[SelfCheckView, ...]
    counts: tuple[tuple[str, int], ...]
    error_rate: float
    simultaneous_error: float
    run: Mapping[str, Any]
    models: tuple[Mapping[str, Any], ...]
    records: tuple[Mapping[str, Any], ...]
    own: bool = False
    z_scores: ZScoresView | None = None  # None: an earlier version did not judge them
    failed_self_checks: tuple[str, ...] = ()  # ids of those that are refuted

    def claim(self, name: str) -> ClaimView | None:
        """Return a claim of the five texts by id, None where it was left out.

        A user's claim is none of them, whatever its id.
        """
        found = (claim for claim in self.claims if claim.id == name and not self.own)
        return next(found, None)

    def texts(self) -> list[tuple[Shown, str]]:
        """Return names and keys of the texts that claims are from."""
        return list(
            dict.fromkeys(
                (source.name, source.key) for c in self.claims for source in c.sources
            )
        )

    def by_topic(self, topic: str) -> list[ClaimView]:
        """Return the claims of a topic, in the order of the catalogue."""
        return [claim for claim in self.claims if claim.topic == topic]

    def by_weight(self) -> list[ClaimView]:
        """Return all claims, worst news first."""
        return sorted(self.claims, key=lambda claim: BY_WEIGHT.index(claim.verdict))
