"""The five texts: which of them make a claim, and the corrections of each.

A source of a claim is one place in a text, with its quantifier (always, usually, can,
or in the limit).  The erratum of a text lists what is wrong or vague in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from montecarlo.claims.checks import Words
from montecarlo.claims.outcomes import ClaimOutcome
from montecarlo.claims.schema import Source, TextEntry
from montecarlo.claims.verdicts import Verdict
from montecarlo.report.content.findings import Findings

#: Names of sections without a number, as the catalogue writes them.
INTRODUCTION, SUMMARY = ("0", "introduction"), ("summary",)
#: Chinese numerals of sections to digits.
_NUMERALS = {"一": "1", "二": "2", "三": "3", "四": "4", "五": "5"}


class TextGroup(NamedTuple):
    """Texts that make a claim in the same sections and with the same quantifiers."""

    texts: tuple[tuple[Words, str], ...]  # their names and keys
    #: Quantifiers, each with the sections that use it.
    ways: tuple[tuple[str, tuple[str, ...]], ...]
    #: The verdict for these texts; empty where it is the same for all texts.
    verdict: str


def group_texts(claim: ClaimOutcome, names: Mapping[str, Words]) -> list[TextGroup]:
    """Return the texts that make a claim, in groups that make it in the same way.

    The texts of a group make it in the same sections, with the same quantifiers, and
    have the same verdict.

    Parameters
    ----------
    claim : ClaimOutcome
    names : mapping
        Key of each text -> its name.
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
        TextGroup(tuple((names[key], key) for key in keys), shown, verdict)
        for (shown, verdict), keys in alike.items()
    ]


def section_number(section: str) -> str:
    """Return the name of a section, with a Chinese numeral from 1 to 5 as a digit.

    ``三`` becomes ``3``.  Other names, such as ``2.1``, are unchanged.
    """
    return _NUMERALS.get(section, section)


def part_of(source: Source) -> str:
    """Return the part of its text in which a claim is made.

    It is ``introduction``, ``summary``, or the number or name of the section.
    """
    if source.section in INTRODUCTION:
        return "introduction"
    return "summary" if source.section in SUMMARY else section_number(source.section)


class Assertion(NamedTuple):
    """A claim as one text makes it, in all places there that have the same verdict."""

    claim: ClaimOutcome
    verdict: Verdict  # over the interpretations that the text's words admit
    places: tuple[Source, ...]


class Erratum(NamedTuple):
    """What is wrong or vague in one text, with corrections."""

    text: TextEntry
    #: Assertions that fail, in the order of the text, as are the places of each.
    entries: tuple[Assertion, ...]
    #: Vague assertions for which the catalogue has a sentence with numbers.
    improvements: tuple[Assertion, ...] = ()


def make_errata(findings: Findings, languages: Sequence[str]) -> list[Erratum]:
    """Return an erratum for each text that needs corrections.

    Only for texts in one of ``languages``, which are codes, and in the order of the
    catalogue.  The list is empty for a user's own claims.
    """
    errata = []
    for text in findings.catalogue.text:
        if text.language not in languages or findings.own:
            continue
        said = [one for c in findings.claims for one in _find_assertions(c, text.key)]
        entries = compose_entries(said)
        clearer = [one for one in said if findings.clarification(one.claim)]
        improvements = compose_entries(clearer, Verdict.VAGUE)
        if entries or improvements:
            errata.append(Erratum(text, entries, improvements))
    return errata


def compose_entries(
    assertions: Iterable[Assertion], verdict: Verdict = Verdict.FAILS
) -> tuple[Assertion, ...]:
    """Return the assertions that have a given verdict, in the order of their text."""
    ordered = (
        one._replace(places=tuple(sorted(one.places, key=_position)))
        for one in assertions
        if one.verdict == verdict
    )
    return tuple(sorted(ordered, key=lambda one: [*map(_position, one.places)]))


def _find_assertions(claim: ClaimOutcome, key: str) -> Iterable[Assertion]:
    """Yield the assertions by which one text makes a claim.

    ``key`` is that of the text.  There is an assertion for each verdict, with all
    places in the text that have this verdict.
    """
    by_verdict: dict[Verdict, list[Source]] = {}
    for source in claim.sources:
        if source.text == key:
            for verdict in claim.verdicts_on(source):
                by_verdict.setdefault(verdict, []).append(source)
    for verdict, sources in by_verdict.items():
        yield Assertion(claim, verdict, tuple(sources))


def _position(place: Source) -> tuple[int, tuple[int, ...]]:
    """Return the sort key of a place in a text: (line, numbers of sentences)."""
    return place.line, place.sentence
