"""Figures as files: SVG for pages, and SVG, PDF or PNG for documents.

A figure is drawn once, shapes alone; words of a language are put in as text.  In the
SVG each look of matplotlib's is a class, to which a style sheet inside the file gives
its colours, light and dark.  It is made small, since a page holds many: points are
rounded far below a pixel, and names are short.
"""

import io
import re
import string
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from matplotlib.colors import to_hex
from matplotlib.font_manager import get_font_names
from pandas import DataFrame

from montecarlo.errors import InputError
from montecarlo.report.figures.drawing import (
    SIZE,
    Layout,
    Picture,
    Placed,
    Words,
    draw_key,
    house_style,
)
from montecarlo.report.figures.labels import FONT, SHIFT, SMALL, width_of
from montecarlo.report.figures.palette import DARK, LIGHT, PAGE
from montecarlo.report.figures.specs import FigureSpec
from montecarlo.report.language.catalogues import Language

#: What a file says of itself: neither a clock nor a version, so that bytes are equal.
_METADATA: dict[str, dict[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    "png": {"Software": None},
}
FORMATS = tuple(_METADATA)
#: Decimals of coordinates, in points: a tenth is a fifth of a pixel at 720 pixels.
DIGITS = 1
#: How many coordinates each command of a path takes; all are absolute.
ARITY = {"M": 2, "L": 2, "Q": 4, "C": 6, "z": 0}
#: What a group of shapes that moves with the words of a legend is marked by.
TAG = "key-"
#: Fonts of a system; signs of formulas are those of the first ones in any language.
FONTS = {
    "": '"Segoe UI",Roboto,"Helvetica Neue","Noto Sans",Arial,"DejaVu Sans"',
    "zh": '"PingFang SC","Microsoft YaHei","Noto Sans SC","Noto Sans CJK SC"',
    "ja": '"Hiragino Sans","Yu Gothic","Noto Sans JP","Noto Sans CJK JP"',
}
#: Fonts that PDF and PNG are drawn with, the first that is there, and its package.
DRAWN_FONTS = {
    "zh": ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "SimHei"),
    "ja": ("Noto Sans CJK JP", "Noto Sans JP", "Source Han Sans JP", "IPAexGothic"),
}
ANY_CJK, CJK_PACKAGE = "Noto Sans CJK JP", "fonts-noto-cjk"
_COMMAND = re.compile(r"\s*([A-Za-z])([^A-Za-z]*)")
_NAME = re.compile(r'((?<= id=")|href="#|url\(#)([\w-]+)')
_LOOK = re.compile(r'(?:clip-path|style)="[^"]*"(?: style="[^"]*")?')
_PLACED = re.compile(r'(?<= )(?:x|y|width|height)="[\d.-]+"|translate\([^)]*\)')
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_COUNTERPARTS = {LIGHT[name]: DARK[name] for name in LIGHT}


class Drawing(NamedTuple):
    """A figure without words, and where they are to stand."""

    shapes: str
    layout: Layout

    def written(self, language: Language | None) -> str:
        """Return the SVG with words of a language, or with symbols alone."""
        placed, origin = self.layout.place(language), self.layout.place(None).keys
        svg = self.shapes
        for place, (x, y) in enumerate(placed.keys):
            moved = f"translate({_short(x - origin[place][0])} "
            moved += f"{_short(y - origin[place][1])})"
            svg = svg.replace(f'"{TAG}{place}"', f'"{moved}"')
        text = "".join(_text_element(words) for words in placed.words)
        fonts = ",".join(FONTS.get(one, "") for one in {"": 0, _code(language): 0})
        fonts = fonts.rstrip(",")
        style = f"text{{font:{SIZE:g}px {fonts},sans-serif}}"
        svg = svg.replace("*{", style.replace('"', "'") + "*{", 1)
        tag = f' lang="{language.tag}"' if language else ""
        return svg.replace("<svg", f"<svg{tag}", 1).replace("</svg>", f"{text}</svg>")


def draw(
    spec: FigureSpec, measurements: DataFrame, curves: DataFrame
) -> Drawing | None:
    """Draw a figure for light and dark pages, or return None without its data.

    Its ground is transparent; equal tables give equal bytes.
    """
    with house_style():
        picture = spec.build(measurements, curves)
        if picture is None:
            return None
        return _draw(picture)


def _draw(picture: Picture, *, ground: str = "none", dark: bool = True) -> Drawing:
    layout = picture.lay_out()
    for place, (key, (x, y)) in enumerate(
        zip(layout.keys, layout.place(None).keys, strict=True)
    ):
        draw_key(picture.figure, key, x, y, f"{TAG}{place}")
    svg = _save(picture, "svg", ground).decode()
    colours = sorted({to_hex(block.colour) for block in layout.blocks})
    return Drawing(compact(svg, colours, dark=dark), layout)


def render_svg(
    spec: FigureSpec,
    measurements: DataFrame,
    curves: DataFrame,
    language: Language | None = None,
) -> str | None:
    """Return a figure as SVG in a language, or None without its data."""
    drawing = draw(spec, measurements, curves)
    return drawing and drawing.written(language)


def draw_files(  # noqa: PLR0913 - what, in which words, and as what
    spec: FigureSpec,
    tables: tuple[DataFrame, DataFrame],
    formats: Sequence[str],
    languages: Sequence[Language | None] = (None,),
    theme: str | None = None,
    *,
    dpi: int = 200,
) -> dict[tuple[str, str], bytes]:
    """Draw a figure in some formats and languages.

    Parameters
    ----------
    spec : FigureSpec
    tables : (DataFrame, DataFrame)
        Measurements and curves.
    formats : sequence of str
        Of `FORMATS`.
    languages : sequence of Language or None
        None: symbols alone.
    theme : str, optional
        Of `palette.THEMES`, on a ground of its own.  By default an SVG is transparent
        and suits itself to light and dark pages; the others are light.
    dpi : int
        Pixels an inch of a PNG; a figure is 5 inches wide.

    Returns
    -------
    dict
        Format and code of the language, or nothing, to the file's content; empty where
        the tables lack what it shows.

    Raises
    ------
    InputError
        If a PDF or PNG needs a font that the machine lacks.
    """
    files: dict[tuple[str, str], bytes] = {}
    with house_style(theme or "light"):
        picture = spec.build(*tables)
        if picture is None:
            return {}
        if "svg" in formats:
            ground = "none" if theme is None else PAGE
            drawing = _draw(picture, ground=ground, dark=theme is None)
            for language in languages:
                files["svg", _code(language)] = drawing.written(language).encode()
            picture = spec.build(*tables)
        pixels = [name for name in FORMATS if name in formats and name != "svg"]
        if picture is None or not pixels:
            return files
        layout = picture.lay_out()
        for language in languages:
            before = len(picture.figure.artists), len(picture.figure.texts)
            _write(picture, layout, layout.place(language), language)
            for name in pixels:
                files[name, _code(language)] = _save(picture, name, PAGE, dpi)
            for artist in (
                *picture.figure.artists[before[0] :],
                *picture.figure.texts[before[1] :],
            ):
                artist.remove()
    return files


def _write(
    picture: Picture, layout: Layout, placed: Placed, language: Language | None
) -> None:
    """Write words of a language, and draw the legend beside them, by matplotlib."""
    fonts = [FONT, *drawn_fonts(language)]
    for key, (x, y) in zip(layout.keys, placed.keys, strict=True):
        draw_key(picture.figure, key, x, y)
    for words in placed.words:
        width = width_of(words.runs, SIZE, bold=words.bold)
        x = words.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[words.anchor] * width
        for run in words.runs:
            picture.figure.text(
                x / layout.width,
                1.0 - (words.y + SHIFT[run.level] * SIZE) / layout.height,
                run.text,
                color=words.colour,
                fontfamily=fonts,
                fontsize=SIZE * (SMALL if run.level else 1.0),
                fontstyle="italic" if run.italic else "normal",
                fontweight="bold" if words.bold else "normal",
                va="baseline",
                parse_math=False,
            )
            x += width_of([run], SIZE, bold=words.bold)


def drawn_fonts(language: Language | None) -> list[str]:
    """Return the font that a language needs in a PDF or PNG beside the usual one.

    Raises
    ------
    InputError
        If the machine has none.
    """
    wanted = DRAWN_FONTS.get(_code(language), ())
    if not wanted or language is None:
        return []
    there = set(get_font_names())
    for name in (*wanted, ANY_CJK):
        if name in there:
            return [name]
    raise InputError(
        f"PDF and PNG in {language.name} must have a font for it, got none of "
        f"{', '.join(wanted)}: install {CJK_PACKAGE}, or draw SVG"
    )


def _code(language: Language | None) -> str:
    return language.code if language else ""


def _save(picture: Picture, name: str, ground: str, dpi: int = 200) -> bytes:
    """Return the file that matplotlib writes."""
    file = io.BytesIO()
    picture.figure.savefig(
        file, format=name, dpi=dpi, facecolor=ground, metadata=_METADATA[name]
    )
    return file.getvalue()


def _text_element(words: Words) -> str:
    """Return a line of text as an element of SVG."""
    anchor = "" if words.anchor == "start" else f' text-anchor="{words.anchor}"'
    pieces, moved = [], 0.0
    for run in words.runs:
        shift = SHIFT[run.level] * SIZE - moved
        moved += shift
        style = " ".join(
            name for name, there in (("i-", run.italic), ("s-", run.level)) if there
        )
        style = f' class="{style}"' if style else ""
        dy = f' dy="{_short(shift)}"' if shift else ""
        text = escape(run.text, quote=False)
        plain = not style and not dy
        pieces.append(text if plain else f"<tspan{style}{dy}>{text}</tspan>")
    x, y = _short(words.x), _short(words.y)
    look = text_class(to_hex(words.colour)) + (" b-" if words.bold else "")
    place = f'class="{look}" x="{x}" y="{y}"{anchor}'
    return f"<text {place}>{''.join(pieces)}</text>"


def text_class(colour: str) -> str:
    """Return the class of text of a colour."""
    return f"t{colour[1:]}"


def _short(value: float) -> str:
    return _written(round(10**DIGITS * value))


def compact(svg: str, colours: Sequence[str] = (), *, dark: bool = True) -> str:
    """Return the SVG that matplotlib writes made small, with its style sheet inside.

    One line, which suits dark pages as well unless it is told not to; text may have
    some ``colours``.

    Raises
    ------
    ValueError
        If a path is not as matplotlib writes it, or a colour has no dark counterpart.
    """
    names: dict[str, str] = {}
    looks: dict[str, str] = {}

    def shorten(found: re.Match[str]) -> str:
        return found[1] + names.setdefault(found[2], _letters(len(names)))

    def classify(found: re.Match[str]) -> str:
        look = found[0].replace('clip-path="', "clip-path:").replace('style="', "")
        parts = look.replace(": ", ":").replace("; ", ";").rstrip('"').split('" ')
        classes = [looks.setdefault(one, _letters(len(looks))) for one in parts]
        return f'class="{" ".join(classes)}"'

    svg = svg[svg.index("<svg") :].replace("xlink:", "").replace("\n", " ")
    svg = svg.replace(f'<g id="{TAG}', f'<g transform="{TAG}')
    svg = re.sub(r'<!--.*?-->|(?<=<g) id="[^"]*"| xmlns:xlink="[^"]*"', "", svg)
    svg = svg.replace("<g/>", "")
    svg = _NAME.sub(shorten, svg)
    svg = _LOOK.sub(classify, svg)
    svg = re.sub(r'(?<= d=")[^"]*', lambda path: short_path(path[0]), svg)
    svg = _PLACED.sub(lambda one: re.sub(r"-?\d+\.\d+", _round, one[0]), svg)
    moved = r'(<use [^>]*)transform="translate\((\S+) (\S+)\)"'
    svg = re.sub(moved, r'\1x="\2" y="\3"', svg)
    svg = re.sub(r"(?<=>)\s+|\s+(?=/?>|<)", "", svg)
    svg = _unwrap(svg)
    looks |= {f"fill:{colour}": text_class(colour) for colour in colours}
    sheet = f".i-{{font-style:italic}}.s-{{font-size:{SMALL:.0%}}}"
    sheet += ".b-{font-weight:bold}"
    sheet += style_sheet(looks, dark=dark)
    return svg.replace("</style>", f"{sheet}</style>", 1) + "\n"


def _unwrap(svg: str) -> str:
    """Put what stands in a group that says nothing in the group's place."""
    kept, bare = [], []
    for piece in re.split(r"(</?g\b[^>]*>)", svg):
        if piece.startswith("<g"):
            bare.append(piece == "<g>")
        is_group = piece.startswith(("<g", "</g"))
        if not is_group or not bare[-1]:
            kept.append(piece)
        if piece == "</g>":
            bare.pop()
    return "".join(kept)


def style_sheet(looks: Mapping[str, str], *, dark: bool) -> str:
    """Return the style sheet of a figure, from declarations and their classes.

    Raises
    ------
    ValueError
        If a colour has no dark counterpart, but dark pages are to be suited.
    """
    rules = "".join(f".{name}{{{look}}}" for look, name in looks.items())
    if not dark:
        return rules
    if unknown := sorted(set(_COLOUR.findall(rules)) - set(_COUNTERPARTS)):
        known = ", ".join(_COUNTERPARTS)
        raise ValueError(f"colours must be among {known}; got {', '.join(unknown)}")
    exchanged = ""
    for look, name in looks.items():
        coloured = [part for part in look.split(";") if _COLOUR.search(part)]
        exchanged += f".{name}{{{';'.join(coloured)}}}" if coloured else ""
    exchanged = _COLOUR.sub(lambda colour: _COUNTERPARTS[colour[0]], exchanged)
    return f"{rules}@media (prefers-color-scheme:dark){{{exchanged}}}"


def on_light_ground(svg: str) -> str:
    """Return a figure that suits light and dark pages as one that is always light.

    An image follows its reader's system, not the page that it stands on.
    """
    ground = f'<rect width="100%" height="100%" fill="{LIGHT[PAGE]}"/>'
    light = re.sub(r"@media .*?(?=</style>)", "", svg, count=1)
    return light.replace("</defs>", f"</defs>{ground}", 1)


def short_path(path: str) -> str:
    """Return a path in relative coordinates, each point rounded where it stands.

    Raises
    ------
    ValueError
        If a command is none of `ARITY`, each with its letter.
    """
    here = start = (0, 0)
    text = ""
    for letter, numbers in _COMMAND.findall(path):
        values = [round(10**DIGITS * float(number)) for number in numbers.split()]
        if len(values) != ARITY.get(letter):
            known = ", ".join(ARITY)
            raise ValueError(f"path commands must be among {known}, got {letter!r}")
        moved = [value - here[place % 2] for place, value in enumerate(values)]
        here = (values[-2], values[-1]) if values else start
        if letter == "M":
            start = here
        short, shown = letter.lower(), moved
        if letter == "L" and 0 in moved:
            short, shown = ("h", moved[:1]) if moved[1] == 0 else ("v", moved[1:])
        text += short + " ".join(map(_written, shown)).replace(" -", "-")
    return text


def _round(number: re.Match[str]) -> str:
    return _written(round(10**DIGITS * float(number[0])))


def _written(value: int) -> str:
    """Write a number that is given in units of its last digit."""
    return f"{value / 10**DIGITS:.{DIGITS}f}".removesuffix(".0")


def _letters(number: int) -> str:
    """Name the first things a to Z, later ones aa and so on."""
    more, last = divmod(number, len(string.ascii_letters))
    return (_letters(more - 1) if more else "") + string.ascii_letters[last]
