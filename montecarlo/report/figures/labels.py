"""Text in figures: labels, their formulas, their widths, and line breaks.

The layout of a figure leaves room for its labels in the longest language; the words of
one language are put in when a page is made.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from montecarlo.report.language.catalogues import (
    LANGUAGES,
    Language,
    localise,
    read_language,
)


def message(text: str) -> str:
    """Return ``text`` unchanged; the call marks a message for translation."""
    return text


class Label(NamedTuple):
    """A label of a figure: words, a formula, or both.

    Attributes
    ----------
    words : str
        A `message`, which may hold formulas between dollar signs.
    symbol : str
        LaTeX.  It replaces ``%(symbol)s`` in the words, or else follows them.
    """

    words: str = ""
    symbol: str = ""

    def text_in(self, language: Language) -> str:
        r"""Return the label as text in a language, formulas between dollar signs.

        Such as ``divided by $\sqrt{d_k}$``.
        """
        words = language.translate(self.words) if self.words else ""
        words, symbol = words.replace("%%", "%"), f"${self.symbol}$"
        if "%(symbol)s" in words:
            words, symbol = words.replace("%(symbol)s", symbol), "$$"
        parts = [words, symbol.removeprefix("$$")]
        halves = "\N{EM SPACE}".join(filter(None, parts)).split("$")
        halves[1::2] = (localise(language, formula) for formula in halves[1::2])
        return "$".join(halves)


class Run(NamedTuple):
    """A piece of text in one style: on the line, or as a subscript or superscript."""

    text: str
    italic: bool = False
    level: int = 0  # -1 below the line, 1 above it


#: Size of subscripts and superscripts, and their shift downwards, relative to the font.
SMALL, SHIFT = 0.75, {-1: 0.24, 0: 0.0, 1: -0.38}
#: The font that widths are measured in; it is wider than most system fonts.
FONT = "DejaVu Sans"

# --- Formulas as runs ---------------------------------------------------------------

_NAMES = (
    "dots cdot times pm infty sum ast top lVert rVert | lvert rvert lambda kappa rho "
    "eta alpha tau delta Delta sigma mu Sigma Phi nabla % { } #"
)
_SIGNS = dict(zip(_NAMES.split(), "…·×±∞Σ*T‖‖‖||λκρηατδΔσμΣΦ∇%{}#", strict=True))
_SIGNS |= {"to": " → ", "le": " ≤ ", "leq": " ≤ ", "ge": " ≥ ", "geq": " ≥ "}
_SIGNS |= {"ne": " ≠ ", ",": "\N{THIN SPACE}", ";": " ", " ": " "}
_SIGNS |= {"left": "", "right": ""}
# an italic letter may reach out to the left of its place
_SIGNS |= {"lVert": "‖\N{THIN SPACE}", "rVert": "\N{THIN SPACE}‖"}
_SPACED = {"=": " = ", "<": " < ", ">": " > ", "-": "\N{MINUS SIGN}"}
_UPRIGHT = {"mathrm", "operatorname", "mathdefault", "text", "mathcal", "mathbb"}
_FUNCTIONS = {"ln", "log", "max", "min", "cosh", "tr", "exp"}
_TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|.", re.DOTALL)


def formula_runs(latex: str) -> list[Run]:
    """Return a LaTeX formula as pieces of text of one style each.

    ``d_k`` gives an italic d on the line and an italic k below it.  Only the LaTeX that
    the symbols of figures use is known.

    Raises
    ------
    ValueError
        If a command is unknown.
    """
    return _merge(_group(_TOKEN.findall(latex)[::-1], 0))


def _group(tokens: list[str], level: int, *, upright: bool = False) -> Iterator[Run]:
    """Yield the pieces of text of a group in a formula, up to its closing brace.

    ``tokens`` are the rest of the formula in reverse order.  Those of the group and its
    brace are removed.  ``level`` is -1 below the line, 0 on it, and 1 above it.
    Letters are italic unless ``upright``.
    """
    while tokens and tokens[-1] != "}":
        yield from _atom(tokens, level, upright=upright)
    if tokens:
        tokens.pop()


def _atom(tokens: list[str], level: int, *, upright: bool = False) -> Iterator[Run]:
    """Yield the pieces of text of the next sign, group, script or command of a formula.

    ``tokens`` are the rest of the formula in reverse order.  Those that are used are
    removed.  ``level`` is -1 in a subscript, 1 in a superscript, else 0.  Letters are
    italic unless ``upright``.
    """
    sign = tokens.pop()
    if sign == "{":
        yield from _group(tokens, level, upright=upright)
    elif sign in "_^":
        if tokens:
            yield from _atom(tokens, -1 if sign == "_" else 1, upright=upright)
    elif sign.startswith("\\"):
        yield from _command(sign[1:], tokens, level)
    elif sign.isalpha():
        yield Run(sign, not upright, level)
    elif upright or not sign.isspace():
        yield Run(sign if level else _SPACED.get(sign, sign), level=level)


def _command(name: str, tokens: list[str], level: int) -> Iterator[Run]:
    """Yield the pieces of text of a LaTeX command and its argument in a formula.

    ``name`` is that of the command, without the backslash.  ``tokens`` are the rest of
    the formula in reverse order.  Those that are used are removed.  ``level`` is -1 in
    a subscript, 1 in a superscript, else 0.
    """
    if name in _UPRIGHT:
        yield from _atom(tokens, level, upright=True)
    elif name in _FUNCTIONS:
        near = tokens and tokens[-1] not in "_^})(" and not level
        yield Run(f"{name}\N{THIN SPACE}" if near else name, level=level)
    elif name == "sqrt":
        below = _merge(_atom(tokens, level))
        short = sum(len(run.text) for run in below) <= len("dk")
        yield from (Run("√" if short else "√(", level=level), *below)
        yield from () if short else (Run(")", level=level),)
    elif name == "hat":
        for run in _atom(tokens, level):
            yield run._replace(text=run.text + "\N{COMBINING CIRCUMFLEX ACCENT}")
    elif name in _SIGNS:
        yield Run(_SIGNS[name], level=level)
    else:
        raise ValueError(f"a formula of a figure has the unknown command \\{name}")


def _merge(runs: Iterable[Run]) -> list[Run]:
    """Return pieces of text, with adjacent ones of the same style joined."""
    return [
        Run("".join(run.text for run in same), *style)
        for style, same in groupby(runs, lambda run: run[1:])
    ]


def text_runs(text: str) -> list[Run]:
    """Return a text as pieces of one style each; formulas are between dollar signs.

    ``size $d_k$`` has three: ``size``, an italic d, and an italic k below the line.
    """
    runs: list[Run] = []
    for place, part in enumerate(text.split("$")):
        runs += formula_runs(part) if place % 2 else [Run(part)] if part else []
    return _merge(runs)


# --- Lines --------------------------------------------------------------------------

_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60"
#: A piece that is never broken: a word with its formulas and the space before it, or a
#: single wide character; opening brackets before it, and closing marks after it.
_PIECE = re.compile(
    rf"\s*[（「『【]*(?:[{_WIDE}]|(?:\$[^$]*\$|[^\s${_WIDE}])+|$)"
    r"[、。，；：？！）」』】％・…ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々]*"
)


@lru_cache(maxsize=4096)
def _advance(sign: str, *, bold: bool, italic: bool) -> float:
    """Return the width of a character as a multiple of the font's size, in `FONT`."""
    if unicodedata.east_asian_width(sign) in {"W", "F"}:
        return 1.0
    if unicodedata.combining(sign):
        return 0.0
    from matplotlib.font_manager import FontProperties, findfont, get_font

    wanted = FontProperties(family=FONT, weight="bold" if bold else "normal")
    wanted.set_style("oblique" if italic else "normal")
    font = get_font(findfont(wanted))
    font.set_size(100.0, 72.0)
    return float(font.load_char(ord(sign)).linearHoriAdvance) / 65536.0 / 100.0


def width_of(runs: Iterable[Run], size: float, *, bold: bool = False) -> float:
    """Return the width in points of pieces of text in one line, at a font size."""
    return size * sum(
        (SMALL if run.level else 1.0)
        * sum(_advance(sign, bold=bold, italic=run.italic) for sign in run.text)
        for run in runs
    )


def break_lines(
    text: str, size: float, width: float, *, bold: bool = False
) -> list[list[Run]]:
    """Return a text as lines of at most ``width`` points, each a list of `Run`.

    ``size`` is the font size in points.  A word that is wider than ``width`` has a line
    of its own.
    """
    lines = [""]
    for piece in _PIECE.findall(text):
        longer = lines[-1] + piece
        if lines[-1] and width_of(text_runs(longer), size, bold=bold) > width:
            lines.append(piece.lstrip())
        else:
            lines[-1] = longer
    return [text_runs(line) for line in lines if line]


@lru_cache(maxsize=1)
def every_language() -> tuple[Language, ...]:
    """Return all languages of reports, cached; a figure leaves room for each."""
    return tuple(read_language(code) for code in LANGUAGES)


def most_lines(label: Label, size: float, width: float, *, bold: bool = False) -> int:
    """Return the number of lines that a label takes in the language that needs most.

    Lines are at most ``width`` points long, at the font size ``size``.
    """
    return max(
        len(break_lines(label.text_in(language), size, width, bold=bold))
        for language in every_language()
    )


def widest(label: Label, size: float) -> float:
    """Return the largest width in points that a label has in any language."""
    return max(
        width_of(text_runs(label.text_in(language)), size)
        for language in every_language()
    )
