"""Who makes a claim and how: texts that say it alike stand together."""

from dataclasses import dataclass

from montecarlo.report.content.views import ClaimView
from montecarlo.report.language.own_words import Shown

#: Sections of the Chinese post, which pages count as the others do.
_NUMERALS = {"一": "1", "二": "2", "三": "3", "四": "4", "五": "5"}


@dataclass(frozen=True, slots=True)
class Sayers:
    """Texts that make a claim in the same sections and in the same way."""

    texts: tuple[tuple[Shown, str], ...]  # their names and keys
    #: How they say it, each with the sections where they do.
    ways: tuple[tuple[str, tuple[str, ...]], ...]
    #: The verdict on what they say, empty where all texts have that of the claim.
    verdict: str


def sayers_of(claim: ClaimView) -> list[Sayers]:
    """Group the sources of a claim by text, and texts that say it alike."""
    by_text: dict[str, dict[str, dict[str, None]]] = {}
    for source in claim.outcome.sources:
        ways = by_text.setdefault(source.text, {})
        ways.setdefault(source.quantifier, {})[section_number(source.section)] = None
    differ = len({claim.verdict, *claim.outcome.texts.values()}) > 1
    alike: dict[tuple[object, ...], list[str]] = {}
    for key, ways in by_text.items():
        shown = tuple((how, tuple(sections)) for how, sections in ways.items())
        verdict = claim.outcome.texts.get(key, claim.verdict)
        alike.setdefault((shown, verdict if differ else ""), []).append(key)
    return [
        Sayers(tuple((claim.names[key], key) for key in keys), ways, verdict)  # type: ignore[arg-type]
        for (ways, verdict), keys in alike.items()
    ]


def section_number(section: str) -> str:
    """Return a section's number as pages write it: Chinese numerals as digits."""
    return _NUMERALS.get(section, section)
