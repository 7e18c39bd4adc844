"""Errata: for each text, in its own language, what does not hold as it is said.

In: each claim as one text says it, with the verdict of what that text's words admit.
Out: entries in the order of the text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from montecarlo.claims.outcomes import CaseOutcome
from montecarlo.claims.schema import Catalogue, Source
from montecarlo.claims.verdicts import Verdict
from montecarlo.report.content.telling import find_counterexample
from montecarlo.report.content.texts.sources import section_number
from montecarlo.report.content.views import FAILING, CheckView, ClaimView, Findings

#: Verdicts of what is right as it is said.
HOLDING = ("supported", "documented")
#: Sections that have no number.
INTRODUCTION, SUMMARY = ("0", "introduction"), ("summary",)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text says something."""

    section: str  # its number, or a name of `INTRODUCTION` or `SUMMARY`
    point: int = 0  # within the section; 0 for none
    line: int = 0  # of the text's file, from 1; 0 where it is not known
    sentences: tuple[int, ...] = ()  # within the line, from 1

    @property
    def part(self) -> str:
        """``introduction``, ``summary``, or the section's number in our digits."""
        if self.section in INTRODUCTION:
            return "introduction"
        if self.section in SUMMARY:
            return "summary"
        return section_number(self.section)


@dataclass(frozen=True, slots=True)
class Assertion:
    """A claim as one text says it, and how that came out."""

    claim: ClaimView
    verdict: str  # of the interpretations that the text's words admit
    places: tuple[Place, ...]
    #: What it gives at the smallest telling case, and what was measured there.
    telling: tuple[CheckView, CaseOutcome] | None = None


@dataclass(frozen=True, slots=True)
class Erratum:
    """The erratum of one text."""

    key: str
    text: str  # its name, a message
    language: str
    #: What does not hold, in the order of the text, and so are the places of each.
    entries: tuple[Assertion, ...]
    #: Parts of the text with those of their points, if they have any, of which all that
    #: was judged is right as it is said.
    right: tuple[tuple[str, tuple[int, ...]], ...] = ()


def compose_entries(said: Iterable[Assertion]) -> tuple[Assertion, ...]:
    """Return the claims that fail, each with its places, in the order of the text."""
    ordered = (
        replace(one, places=tuple(sorted(one.places, key=_position)))
        for one in said
        if one.verdict in FAILING
    )
    return tuple(sorted(ordered, key=lambda one: [*map(_position, one.places)]))


def places_right(said: Iterable[Assertion]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the parts of a text, with points, whose claims all hold as they are said.

    A point that has an entry as well is left out: it would be called right and wrong.
    So is one whose claim fails as another text says it: what is only hedged here is
    not to be called right.
    """
    outcomes: dict[tuple[str, int], set[str]] = {}
    by_verdict = [
        (place, {one.verdict, one.claim.verdict})
        for one in said
        for place in one.places
    ]
    for place, verdicts in sorted(by_verdict, key=lambda pair: _position(pair[0])):
        outcomes.setdefault((place.part, place.point), set()).update(verdicts)
    failing = {key for key, verdicts in outcomes.items() if verdicts & set(FAILING)}
    parts: dict[str, list[int]] = {}
    for (part, point), verdicts in outcomes.items():
        # a part as a whole is not right while one of its points is wrong
        if point == 0 and any(name == part for name, _ in failing):
            continue
        if verdicts <= set(HOLDING):
            parts.setdefault(part, []).extend([point] * (point > 0))
    return tuple((part, tuple(sorted(points))) for part, points in parts.items())


def make_errata(
    findings: Findings, catalogue: Catalogue, languages: Sequence[str]
) -> list[Erratum]:
    """Return the errata of the texts whose languages are written; none of a user's."""
    errata = []
    for text in catalogue.text:
        if text.language not in languages or findings.own:
            continue
        said = [one for c in findings.claims for one in _find_assertions(c, text.key)]
        entries, right = compose_entries(said), places_right(said)
        name = str(text.name)
        errata.append(Erratum(text.key, name, text.language, entries, right))
    return errata


def _find_assertions(claim: ClaimView, key: str) -> Iterable[Assertion]:
    """Yield a claim as a text says it, once for each way in which that came out."""
    by_verdict: dict[Verdict, list[Source]] = {}
    for source in claim.outcome.sources:
        if source.text == key:
            for verdict in claim.outcome.verdicts_on(source):
                by_verdict.setdefault(verdict, []).append(source)
    for verdict, sources in by_verdict.items():
        places = tuple(Place(s.section, s.point, s.line, s.sentence) for s in sources)
        admitted = {name for source in sources for name in source.admits}
        against = [
            one
            for one in claim.voting
            if one.verdict == verdict and (not admitted or one.id in admitted)
        ]
        yield Assertion(claim, verdict, places, find_counterexample(against))


def _position(place: Place) -> tuple[int, tuple[int, ...]]:
    return place.line, place.sentences
