"""Errata: for each text, in its own language, what does not hold as it stands."""

from collections.abc import Sequence
from dataclasses import dataclass

from montecarlo.claims.schema import Catalogue
from montecarlo.report.language import Language, decimals_in_formulas
from montecarlo.report.own_words import Shown
from montecarlo.report.views import CellView, CheckView, ClaimView, Findings

FAILING = ("refuted", "conditional")


@dataclass(frozen=True, slots=True)
class Erratum:
    """The erratum of one text: its claims that fail, with their sections."""

    key: str
    text: str  # a message
    language: str
    entries: tuple[tuple[ClaimView, tuple[str, ...]], ...]


def make_errata(
    findings: Findings, catalogue: Catalogue, languages: Sequence[str]
) -> list[Erratum]:
    """Return the errata of the texts whose languages are written; none of a user's.

    Parameters
    ----------
    findings : Findings
    catalogue : Catalogue
        Its texts.
    languages : sequence of str
        Codes of languages.
    """
    return [
        Erratum(
            text.key,
            str(text.name),
            text.language,
            tuple(
                (claim, sections)
                for claim in findings.by_weight()
                if claim.verdict in FAILING
                and (sections := tuple(s for _, k, s in claim.sources if k == text.key))
            ),
        )
        for text in catalogue.text
        if text.language in languages and not findings.own
    ]


def erratum_markdown(erratum: Erratum, language: Language) -> str:
    """Return an erratum as Markdown, formulas between dollars.

    Parameters
    ----------
    erratum : Erratum
    language : Language
        That of the text.
    """

    def say(words: Shown) -> str:
        return language.translate(str(words))  # of the five texts: a message

    lines = [f"# {say('Erratum')}{say(': ')}{say(erratum.text)}", ""]
    for claim, sections in erratum.entries:
        named = [say("summary") if s == "summary" else f"§ {s}" for s in sections]
        lines += [f"## {say(claim.statement)}", "", say(", ").join(named), ""]
        if claim.sentence:
            lines += [say(claim.sentence), ""]
        if claim.counterexample is not None:
            line = str(language.say(COUNTEREXAMPLE, place=""))
            lines += [f"{line.rstrip()} {_place(*claim.counterexample, language)}", ""]
        if claim.right is not None:
            sentence = say(claim.right.sentence)
            lines += [f"> {language.say(RIGHT, sentence=sentence)}", ""]
            arithmetic = say(claim.right.arithmetic)
            lines += [str(language.say(REDO, line=arithmetic)), ""]
    if not erratum.entries:
        lines += [say("No claim of this text failed."), ""]
    return decimals_in_formulas(language, "\n".join(lines))


#: Messages that the pages have as well.
RIGHT = "Right would be: %(sentence)s"
REDO = "To redo by hand: %(line)s"
COUNTEREXAMPLE = "Smallest counterexample: %(place)s"


def _place(check: CheckView, cell: CellView, language: Language) -> str:
    """Return a cell as one line of plain text."""
    parts = [f"${check.formula}$", f"`{cell.context or cell.law}`"]
    if cell.n_keys is not None:
        parts.append(f"$n = {cell.n_keys}$")
    low, high = cell.d_k_range
    parts.append(f"$d_k = {low}$" if low == high else f"$d_k$ {low}–{high}")
    estimate = ""
    if cell.estimate is not None:
        estimate = language.numbers.plain_with_error(cell.estimate, cell.std_error)
    window = language.numbers.plain_window(cell.window)
    place = language.translate(", ").join(parts)
    colon, semicolon, word = map(language.translate, (": ", "; ", "window"))
    return f"{place}{colon}{estimate}{semicolon}{word} {window}"
