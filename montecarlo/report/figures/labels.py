"""Text in figures: words of a language and symbols, measured, broken into lines.

A drawing knows where texts stand and how wide they may be, and leaves room for the
longest of all languages; which words these are is settled when a page is made.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import LoadFlags

from montecarlo.report.language.catalogues import LANGUAGES, Language, localise
from montecarlo.report.language.catalogues import read_language as _read_language


def message(text: str) -> str:
    """Return words as they are: by this name the catalogues of languages find them."""
    return text


class Label(NamedTuple):
    """What a figure says at a place.

    Attributes
    ----------
    words : str
        A `message`, which may hold formulas between dollar signs.
    symbol : str
        LaTeX; behind the words, and alone where a figure has no words.
    told : bool
        Whether the words hold the symbol, which is then not written behind them.
    """

    words: str = ""
    symbol: str = ""
    told: bool = False

    def written(self, language: Language | None) -> str:
        """Return the text in a language, or without words where there is none."""
        parts = []
        if language and self.words:
            parts.append(language.translate(self.words).replace("%%", "%"))
        if self.symbol and not (parts and self.told):
            parts.append(f"${self.symbol}$")
        text = "\N{EM SPACE}".join(parts)
        if language is None:
            return text
        halves = text.split("$")
        halves[1::2] = (localise(language, formula) for formula in halves[1::2])
        return "$".join(halves)


class Run(NamedTuple):
    """A piece of text in one style."""

    text: str
    italic: bool = False
    level: int = 0  # -1 below the line, 1 above it


#: Of the size of a line: small letters below or above it, and how far these move.
SMALL, SHIFT = 0.75, {-1: 0.24, 0: 0.0, 1: -0.38}
#: The font that texts are measured in: wider than those of most systems.
FONT = "DejaVu Sans"

# --- Formulas as runs ---------------------------------------------------------------

_SIGNS = {
    "dots": "…",
    "cdot": "·",
    "times": "×",
    "pm": "±",
    "to": " → ",
    "infty": "∞",
    "sum": "Σ",
    "le": " ≤ ",
    "leq": " ≤ ",
    "ge": " ≥ ",
    "geq": " ≥ ",
    "ne": " ≠ ",
    "ast": "*",
    "lVert": "‖",
    "rVert": "‖",
    "|": "‖",
    "lvert": "|",
    "rvert": "|",
    "top": "T",
    "lambda": "λ",
    "kappa": "κ",
    "rho": "ρ",
    "eta": "η",
    "alpha": "α",
    "tau": "τ",
    "delta": "δ",
    "Delta": "Δ",
    "sigma": "σ",
    "mu": "μ",
    "Sigma": "Σ",
    "Phi": "Φ",
    ",": "\N{THIN SPACE}",
    ";": " ",
    "%": "%",
    " ": " ",
}
_SPACED = {"=": " = ", "<": " < ", ">": " > ", "-": "\N{MINUS SIGN}"}
_UPRIGHT = {"mathrm", "operatorname", "mathdefault", "text", "mathcal", "mathbb"}
_TOKEN = re.compile(r"\\([A-Za-z]+|.)|(.)", re.DOTALL)


def formula_runs(latex: str) -> list[Run]:
    """Return a formula as text: the part of LaTeX that symbols of figures need.

    Raises
    ------
    ValueError
        If a command is not known.
    """
    return _merge(_parse(_tokens(latex), 0))


def _tokens(latex: str) -> list[str]:
    """Return commands with their backslash, and single signs, the last one first."""
    return [found[0] for found in _TOKEN.finditer(latex)][::-1]


def _parse(tokens: list[str], level: int, *, upright: bool = False) -> Iterator[Run]:
    """Yield what stands up to the end of a group."""
    while tokens and tokens[-1] != "}":
        yield from _atom(tokens, level, upright=upright)
    if tokens:
        tokens.pop()


def _atom(tokens: list[str], level: int, *, upright: bool) -> Iterator[Run]:
    sign = tokens.pop()
    if sign == "{":
        yield from _parse(tokens, level, upright=upright)
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
    if name in _UPRIGHT:
        yield from _atom(tokens, level, upright=True)
    elif name in _SIGNS:
        yield Run(_SIGNS[name], level=level)
    elif name in {"ln", "max", "min", "cosh", "tr", "exp"}:
        near = tokens and tokens[-1] not in "_^})("
        yield Run(f"{name}\N{THIN SPACE}" if near and not level else name, level=level)
    elif name == "sqrt":
        below = _merge(_atom(tokens, level, upright=False))
        short = sum(len(run.text) for run in below) <= len("d_k") - 1
        yield Run("√" if short else "√(", level=level)
        yield from below
        yield from () if short else (Run(")", level=level),)
    elif name == "hat":
        yield from (
            run._replace(text=run.text + "\N{COMBINING CIRCUMFLEX ACCENT}")
            for run in _atom(tokens, level, upright=False)
        )
    elif name in {"{", "}", "#"}:
        yield Run(name, level=level)
    elif name in {"left", "right"}:
        yield Run(tokens.pop(), level=level)
    else:
        raise ValueError(f"a formula of a figure must be known, got \\{name}")


def _merge(runs: Iterable[Run]) -> list[Run]:
    """Join what is in one style."""
    merged: list[Run] = []
    for run in runs:
        if merged and merged[-1][1:] == run[1:]:
            merged[-1] = run._replace(text=merged[-1].text + run.text)
        else:
            merged.append(run)
    return merged


# --- Lines --------------------------------------------------------------------------

#: What must not begin a line, and what must not end one.
_NOT_FIRST = frozenset(
    "、。，；：？！）」』】％・…ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々,;:.)%"
)
_NOT_LAST = frozenset("（「『【(")


def _is_wide(sign: str) -> bool:
    return bool(sign) and unicodedata.east_asian_width(sign) in {"W", "F"}


@lru_cache(maxsize=4096)
def _advance(sign: str, *, bold: bool, italic: bool) -> float:
    """Return the width of a sign, in sizes of the font; wide ones are square."""
    if _is_wide(sign):
        return 1.0
    if unicodedata.combining(sign):
        return 0.0
    wanted = FontProperties(family=FONT, weight="bold" if bold else "normal")
    wanted.set_style("oblique" if italic else "normal")
    font = get_font(findfont(wanted))
    font.set_size(100.0, 72.0)
    glyph = font.load_char(ord(sign), LoadFlags.NO_HINTING)
    return float(glyph.linearHoriAdvance) / 65536.0 / 100.0


def width_of(runs: Iterable[Run], size: float, *, bold: bool = False) -> float:
    """Return the width of a line in points."""
    return size * sum(
        (SMALL if run.level else 1.0)
        * sum(_advance(sign, bold=bold, italic=run.italic) for sign in run.text)
        for run in runs
    )


def text_runs(text: str) -> list[Run]:
    """Return a text as runs, with its formulas between dollar signs."""
    runs: list[Run] = []
    for place, part in enumerate(text.split("$")):
        runs += formula_runs(part) if place % 2 else [Run(part)] if part else []
    return runs


def _pieces(text: str) -> Iterator[list[Run]]:
    """Yield what no line parts: words with the space before them, wide signs."""
    piece: list[Run] = []
    last = ""
    for place, part in enumerate(text.split("$")):
        if place % 2:
            if piece and _is_wide(last) and last not in _NOT_LAST:
                yield _merge(piece)
                piece = []
            piece += formula_runs(part)
            last = "x"
            continue
        for sign in part:
            wide, was_wide = _is_wide(sign), _is_wide(last)
            may = sign in " \N{EM SPACE}" or (
                (wide or was_wide) and sign not in _NOT_FIRST and last not in _NOT_LAST
            )
            if may and piece:
                yield _merge(piece)
                piece = []
            piece.append(Run(sign))
            last = sign
    if piece:
        yield _merge(piece)


def break_lines(
    text: str, size: float, width: float, *, bold: bool = False
) -> list[list[Run]]:
    """Break a text into lines of at most a width, where its language lets it."""
    lines: list[list[Run]] = []
    line: list[Run] = []
    for piece in _pieces(text):
        if line and width_of([*line, *piece], size, bold=bold) > width:
            lines.append(line)
            first = piece[0]._replace(text=piece[0].text.lstrip())
            line = [first, *piece[1:]]
        else:
            line = _merge([*line, *piece])
    return [*lines, line] if line else lines


# --- All languages ------------------------------------------------------------------


@lru_cache(maxsize=1)
def every_language() -> tuple[Language, ...]:
    """Return all languages that a figure has to leave room for."""
    return tuple(_read_language(code) for code in LANGUAGES)


def most_lines(label: Label, size: float, width: float, *, bold: bool = False) -> int:
    """Return how many lines a label takes in the language that needs the most."""
    return max(
        len(break_lines(label.written(language), size, width, bold=bold))
        for language in every_language()
    )


def widest(labels: Sequence[Label], size: float) -> float:
    """Return the width of the widest of some labels, in any language."""
    return max(
        (
            width_of(text_runs(label.written(language)), size)
            for label in labels
            for language in every_language()
        ),
        default=0.0,
    )
