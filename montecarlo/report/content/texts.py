"""The five texts: who says what and how, and what does not hold as a text says it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from montecarlo.claims.checks import Words
from montecarlo.claims.outcomes import ClaimOutcome
from montecarlo.claims.schema import Source, TextEntry
from montecarlo.claims.verdicts import Verdict
from montecarlo.report.content.findings import Findings

#: Sections that have no number.
INTRODUCTION, SUMMARY = ("0", "introduction"), ("summary",)
#: Sections of the Chinese post, which pages count as the others do.
_NUMERALS = {"一": "1", "二": "2", "三": "3", "四": "4", "五": "5"}


class Sayers(NamedTuple):
    """Texts that make a claim in the same sections and in the same way."""

    texts: tuple[tuple[Words, str], ...]  # their names and keys
    #: How they say it, each with the sections where they do.
    ways: tuple[tuple[str, tuple[str, ...]], ...]
    #: The verdict on what they say, empty where all texts have that of the claim.
    verdict: str


def sayers_of(claim: ClaimOutcome, names: Mapping[str, Words]) -> list[Sayers]:
    """Group the sources of a claim by text, and texts that say it alike.

    ``names`` are those of the texts, by key.
    """
    by_text: dict[str, dict[str, dict[str, None]]] = {}
    for source in claim.sources:
        ways = by_text.setdefault(source.text, {})
        ways.setdefault(source.quantifier, {})[section_number(source.section)] = None
    differ = len({ruling.verdict for ruling in claim.texts.values()}) > 1
    alike: dict[tuple[tuple[tuple[str, tuple[str, ...]], ...], str], list[str]] = {}
    for key, ways in by_text.items():
        shown = tuple((how, tuple(sections)) for how, sections in ways.items())
        verdict = claim.texts[key].verdict if differ else ""
        alike.setdefault((shown, verdict), []).append(key)
    return [
        Sayers(tuple((names[key], key) for key in keys), shown, verdict)
        for (shown, verdict), keys in alike.items()
    ]


def section_number(section: str) -> str:
    """Return a section's number as pages write it: Chinese numerals as digits."""
    return _NUMERALS.get(section, section)


def part_of(source: Source) -> str:
    """Return ``introduction``, ``summary``, or the section's number in our digits."""
    if source.section in INTRODUCTION:
        return "introduction"
    return "summary" if source.section in SUMMARY else section_number(source.section)


class Assertion(NamedTuple):
    """A claim as one text says it, and how that came out."""

    claim: ClaimOutcome
    verdict: Verdict  # of the interpretations that the text's words admit
    places: tuple[Source, ...]


class Erratum(NamedTuple):
    """The erratum of one text."""

    text: TextEntry
    #: What does not hold, in the order of the text, and so are the places of each.
    entries: tuple[Assertion, ...]
    #: What is vague, and what says it with numbers.
    improvements: tuple[Assertion, ...] = ()


def make_errata(findings: Findings, languages: Sequence[str]) -> list[Erratum]:
    """Return the errata of the texts whose languages are written; none of a user's.

    A text of which nothing is to be replaced has none.
    """
    errata = []
    for text in findings.catalogue.text:
        if text.language not in languages or findings.own:
            continue
        said = [one for c in findings.claims for one in _find_assertions(c, text.key)]
        entries = compose_entries(said)
        clearer = [one for one in said if findings.clearer(one.claim)]
        improvements = compose_entries(clearer, Verdict.VAGUE)
        if entries or improvements:
            errata.append(Erratum(text, entries, improvements))
    return errata


def compose_entries(
    said: Iterable[Assertion], verdict: Verdict = Verdict.FAILS
) -> tuple[Assertion, ...]:
    """Return the claims of a verdict, with their places, in the order of the text."""
    ordered = (
        one._replace(places=tuple(sorted(one.places, key=_position)))
        for one in said
        if one.verdict == verdict
    )
    return tuple(sorted(ordered, key=lambda one: [*map(_position, one.places)]))


def _find_assertions(claim: ClaimOutcome, key: str) -> Iterable[Assertion]:
    """Yield a claim as a text says it, once for each way in which that came out."""
    by_verdict: dict[Verdict, list[Source]] = {}
    for source in claim.sources:
        if source.text == key:
            for verdict in claim.verdicts_on(source):
                by_verdict.setdefault(verdict, []).append(source)
    for verdict, sources in by_verdict.items():
        yield Assertion(claim, verdict, tuple(sources))


def _position(place: Source) -> tuple[int, tuple[int, ...]]:
    return place.line, place.sentence
