"""What a page shows, as typed records: no words, no HTML."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from montecarlo.claims.outcomes import (
    CaseOutcome,
    ClaimOutcome,
    InterpretationOutcome,
    JointOutcome,
    Located,
    NumberOutcome,
    locate,
)
from montecarlo.claims.verdicts import Verdict
from montecarlo.report.content.record import ReportRecord
from montecarlo.report.language.own_words import Shown

#: Verdicts in the order in which a page counts them.
VERDICTS = (
    "supported",
    "approximate",
    "depends",
    "refuted",
    "tally",
    "degree",
    "undecided",
    "documented",
    "contradicted_by_record",
    "premise",
    "not_applicable",
    "not_measured",
)
#: Worst news first.
BY_WEIGHT = (
    "refuted",
    "contradicted_by_record",
    "tally",
    "depends",
    "approximate",
    "degree",
    "undecided",
    "supported",
    "documented",
    "premise",
    "not_applicable",
    "not_measured",
)
#: Verdicts of claims that a right sentence is set beside.
FAILING = ("refuted", "contradicted_by_record")
TOPICS = ("premise", "variance", "weights", "gradients", "arithmetic", "practice")


@dataclass(frozen=True, slots=True)
class CheckView:
    """One check: what is compared, as a formula, and its cases."""

    formula: str
    cases: tuple[CaseOutcome, ...]

    def columns(self) -> list[tuple[int, int] | None]:
        """Return the d_k, or ranges of d_k, that its table has columns for.

        None alone: its cases have none.
        """
        return [*sorted({c.d_k_range for c in self.cases if c.d_k_range})] or [None]

    def lines(self) -> list[tuple[CaseOutcome, list[CaseOutcome | None]]]:
        """Return the lines of its table; the first case of each names it."""
        lines: dict[Located, dict[tuple[int, int] | None, CaseOutcome]] = {}
        for case in self.cases:
            lines.setdefault(locate(case, d_k=None), {})[case.d_k_range] = case
        columns = self.columns()
        return [
            (next(iter(line.values())), [line.get(column) for column in columns])
            for line in lines.values()
        ]

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
class Said:
    """A sentence that holds, its numbers, and the checks that it rests on."""

    text: Shown
    numbers: Mapping[str, NumberOutcome]
    checks: tuple[CheckView, ...]


@dataclass(frozen=True, slots=True)
class InterpretationView:
    """One interpretation; ``label`` is None where ``symbol`` names it."""

    label: Shown | None
    symbol: str
    outcome: InterpretationOutcome
    checks: tuple[CheckView, ...]

    @property
    def id(self) -> str:
        """Its id in the catalogue."""
        return self.outcome.id

    @property
    def votes(self) -> bool:
        """Whether a text says it, so that it counts."""
        return self.outcome.votes

    @property
    def verdict(self) -> Verdict:
        """How it came out."""
        return self.outcome.verdict

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How many of its cases came out how."""
        return Counter(case.outcome for case in self.outcome.cases)

    @property
    def exceptions(self) -> list[JointOutcome]:
        """The series that are against it, where others are for it."""
        if not self.outcomes.get(Verdict.SUPPORTED):
            return []
        return [
            case
            for case in self.outcome.cases
            if case.d_k is None and case.outcome == Verdict.REFUTED
        ]


@dataclass(frozen=True, slots=True)
class RightView:
    """The sentence that would be right, and a line to redo by hand."""

    sentence: Said
    arithmetic: Said


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim, with the sentences that its results choose."""

    number: int  # its place in the catalogue, from 1
    statement: Shown
    names: Mapping[str, Shown]  # key of each text to its name
    outcome: ClaimOutcome
    finding: Said | None = None  # None where no sentence of the catalogue holds
    interpretations: tuple[InterpretationView, ...] = ()
    right: RightView | None = None  # of a claim that fails, where the sentence holds
    concedes: Said | None = None  # what is right in a claim that fails
    #: The case that stands for its verdict.
    telling: tuple[CheckView, CaseOutcome] | None = None

    @property
    def id(self) -> str:
        """Its id in the catalogue."""
        return self.outcome.id

    @property
    def verdict(self) -> Verdict:
        """How it came out."""
        return self.outcome.verdict

    @property
    def voting(self) -> list[InterpretationView]:
        """Those interpretations that a text says."""
        return [one for one in self.interpretations if one.votes]

    @property
    def beyond(self) -> list[InterpretationView]:
        """Those that go beyond what is said."""
        return [one for one in self.interpretations if not one.votes]

    @property
    def is_question(self) -> bool:
        """Whether no text says it: readers ask, and it is counted apart."""
        return not self.outcome.sources

    def count(self, outcome: str) -> int:
        """Count the places of voting interpretations that came out so."""
        return sum(one.outcomes.get(outcome, 0) for one in self.voting)


@dataclass(frozen=True, slots=True)
class SelfCheckView:
    """One check of the simulator itself."""

    id: str
    statement: Shown
    verdict: Verdict
    checks: tuple[CheckView, ...]

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How many of its cases came out how."""
        return Counter(case.outcome for check in self.checks for case in check.cases)


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that the pages of all languages show; ``own``: a user's claims."""

    record: ReportRecord
    run: Mapping[str, Any]
    claims: tuple[ClaimView, ...]
    passages: Mapping[str, tuple[Said, ...]]  # those that hold, by place
    self_checks: tuple[SelfCheckView, ...]
    own: bool = False

    @property
    def of_texts(self) -> list[ClaimView]:
        """The claims that texts make; of a user's own all, as these name no texts."""
        return [one for one in self.claims if self.own or not one.is_question]

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many claims of texts have each verdict that any has."""
        found = Counter(claim.verdict for claim in self.of_texts)
        return [(str(v), found[Verdict(v)]) for v in VERDICTS if found[Verdict(v)]]

    def claim(self, name: str) -> ClaimView | None:
        """Return a claim of the five texts by id, None where it was left out.

        A user's claim is none of them, whatever its id.
        """
        found = (claim for claim in self.claims if claim.id == name and not self.own)
        return next(found, None)

    def texts(self) -> list[tuple[Shown, str]]:
        """Return names and keys of the texts that claims are from."""
        keys = (source.text for one in self.claims for source in one.outcome.sources)
        return [(self.claims[0].names[key], key) for key in dict.fromkeys(keys)]

    def by_topic(self, topic: str) -> list[ClaimView]:
        """Return the claims of a topic, in the order of the catalogue."""
        return [claim for claim in self.claims if claim.outcome.topic == topic]

    def by_weight(self) -> list[ClaimView]:
        """Return all claims, worst news first."""
        return sorted(self.claims, key=lambda claim: BY_WEIGHT.index(claim.verdict))
