"""Figures as files: SVG for pages, and SVG, PDF or PNG for documents.

matplotlib draws the shapes of a figure once; the words of a language are added as text.
In an SVG, the styles that matplotlib writes become classes of a style sheet, which has
colours for light and for dark pages.
"""

import io
import re
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from typing import NamedTuple

from pandas import DataFrame

from montecarlo.errors import InputError
from montecarlo.report.content.curves import CurveTables
from montecarlo.report.figures.drawing import SIZE, Layout, Picture, Text, house_style
from montecarlo.report.figures.labels import FONT, SHIFT, SMALL, width_of
from montecarlo.report.figures.palette import DARK, LIGHT, PAGE, hex_of
from montecarlo.report.figures.specs import FigureSpec
from montecarlo.report.language.catalogues import Language

#: Metadata of files: no time and no version, so that equal figures are equal bytes.
_METADATA: dict[str, dict[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    "png": {"Software": None},
}
FORMATS = tuple(_METADATA)
#: Resolution of a PNG in pixels per inch; a figure is 5 inches wide.
DPI = 200
#: Fonts of systems by code of the language, "" for the Latin ones, which set the signs
#: of formulas in any language.  PDF and PNG are drawn with the first that is installed.
FONTS = {
    "": "Segoe UI,Roboto,Helvetica Neue,Noto Sans,Liberation Sans,Arial,DejaVu Sans",
    "zh": "PingFang SC,Microsoft YaHei,Noto Sans SC,Noto Sans CJK SC,"
    "Source Han Sans SC",
    "ja": "Hiragino Sans,Yu Gothic,Noto Sans JP,Noto Sans CJK JP,"
    "Source Han Sans JP,IPAexGothic",
}
ANY_CJK, CJK_PACKAGE = "Noto Sans CJK JP", "fonts-noto-cjk"
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_COUNTERPARTS = {LIGHT[name]: DARK[name] for name in LIGHT}


class Drawing(NamedTuple):
    """A figure without words, as SVG in ``shapes``, and the layout of its words."""

    shapes: str
    layout: Layout

    def svg_in(self, language: Language) -> str:
        """Return the figure as the text of an SVG, with its words in a language."""
        text = "".join(map(_text_element, self.layout.text_lines(language)))
        fonts = ",".join(FONTS[one] for one in ("", language.code) if one in FONTS)
        style = f"text{{font:{SIZE:g}px {fonts},sans-serif}}"
        svg = self.shapes.replace("*{", style + "*{", 1)
        svg = svg.replace("<svg", f'<svg lang="{language.tag}"', 1)
        return svg.replace("</svg>", f"{text}</svg>")


def draw(spec: FigureSpec, rows: DataFrame, curves: CurveTables) -> Drawing | None:
    """Return a figure without words for light and dark pages; None if data are missing.

    ``rows`` are the rows of measurements.csv that the figure reads.  The background is
    transparent, and equal tables give equal bytes.
    """
    with house_style():
        picture = spec.build(rows, curves)
        return _to_drawing(picture, picture.lay_out()) if picture else None


def _to_drawing(
    picture: Picture, layout: Layout, ground: str = "none", *, dark: bool = True
) -> Drawing:
    """Return the `Drawing` of a picture, with its layout of text, on a background.

    ``ground`` is the colour of the background.  ``dark`` says whether there are colours
    for dark pages, too.
    """
    parts = (part for block in layout.blocks for part in block.parts)
    colours = sorted({hex_of(part.colour) for part in parts})
    svg = _save(picture, "svg", ground).decode()
    return Drawing(compact(svg, colours, dark=dark), layout)


def draw_files(
    spec: FigureSpec,
    tables: tuple[DataFrame, CurveTables],
    formats: Sequence[str],
    languages: Sequence[Language],
    theme: str | None = None,
) -> dict[tuple[str, str], bytes]:
    """Return the files of a figure, as bytes, in several formats and languages.

    Parameters
    ----------
    spec : FigureSpec
    tables : (DataFrame, CurveTables)
        Rows of measurements.csv that the figure reads, and all curves.
    formats : sequence of str
        Names of formats, of `FORMATS`.
    languages : sequence of Language
    theme : str, optional
        A theme of `palette.THEMES`, with its background.  By default an SVG is
        transparent and follows the colour scheme of its reader, and other formats are
        light.

    Returns
    -------
    dict
        (format, code of the language) -> content of the file.  Empty if the tables lack
        the figure's data.

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
        layout = picture.lay_out()
        pixels = [name for name in FORMATS if name in formats and name != "svg"]
        if "svg" in formats:
            ground = PAGE if theme else "none"
            drawing = _to_drawing(picture, layout, ground, dark=theme is None)
        for language in languages:
            if "svg" in formats:
                files["svg", language.code] = drawing.svg_in(language).encode()
            if pixels:
                _write_texts(picture, layout, language)
            for name in pixels:
                files[name, language.code] = _save(picture, name, PAGE)
    return files


def _write_texts(picture: Picture, layout: Layout, language: Language) -> None:
    """Replace the text in a matplotlib figure by a layout's labels, in a language."""
    for text in [*picture.figure.texts]:
        text.remove()
    fonts = [FONT, *drawn_fonts(language)]
    for line in layout.text_lines(language):
        width = width_of(line.runs, SIZE, bold=line.bold)
        x = line.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[line.anchor] * width
        for run in line.runs:
            picture.figure.text(
                x / layout.width,
                1.0 - (line.y + SHIFT[run.level] * SIZE) / layout.height,
                run.text,
                color=line.colour,
                fontfamily=fonts,
                fontsize=SIZE * (SMALL if run.level else 1.0),
                fontstyle="italic" if run.italic else "normal",
                fontweight="bold" if line.bold else "normal",
                va="baseline",
                parse_math=False,
            )
            x += width_of([run], SIZE, bold=line.bold)


def drawn_fonts(language: Language) -> list[str]:
    """Return the font that a language needs in PDF and PNG, as a list of one name.

    It is empty for languages with Latin letters.

    Raises
    ------
    InputError
        If the language needs a font and none of those is installed.
    """
    if language.code not in FONTS:
        return []
    from matplotlib.font_manager import fontManager

    wanted = FONTS[language.code].split(",")
    for look_again in (False, True):
        if look_again:
            _read_new_fonts()
        installed = set(fontManager.get_font_names())
        for name in (*wanted, ANY_CJK):
            if name in installed:
                return [name]
    raise InputError(
        f"PDF and PNG in {language.name} must have a font for it, got none of "
        f"{', '.join(wanted)}: install {CJK_PACKAGE}, or draw SVG"
    )


def _read_new_fonts() -> None:
    """Let matplotlib find fonts that were installed after it listed all fonts."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    listed = {font.fname for font in fontManager.ttflist}
    for path in sorted({*findSystemFonts()} - listed):
        with suppress(OSError, RuntimeError):  # a file that FreeType cannot read
            fontManager.addfont(path)


def _save(picture: Picture, name: str, ground: str) -> bytes:
    """Return a figure as the bytes of a file, with the background ``ground``.

    ``name`` is the format, such as ``svg``.
    """
    file = io.BytesIO()
    picture.figure.savefig(
        file, format=name, dpi=DPI, facecolor=ground, metadata=_METADATA[name]
    )
    return file.getvalue()


def _text_element(line: Text) -> str:
    """Return a line of text as an SVG ``text`` element, with a ``tspan`` for each run.

    Such as ``<text class="t6b7280" x="3" y="14">d</text>``.
    """
    pieces, moved = [], 0.0
    for run in line.runs:
        shift = SHIFT[run.level] * SIZE - moved
        moved += shift
        style = " ".join(["i-"] * run.italic + ["s-"] * bool(run.level))
        style = f' class="{style}"' if style else ""
        style += f' dy="{_rounded(shift)}"' if shift else ""
        text = escape(run.text, quote=False)
        pieces.append(f"<tspan{style}>{text}</tspan>" if style else text)
    anchor = "" if line.anchor == "start" else f' text-anchor="{line.anchor}"'
    look = f"t{hex_of(line.colour)[1:]}" + (" b-" if line.bold else "")
    place = f'class="{look}" x="{_rounded(line.x)}" y="{_rounded(line.y)}"{anchor}'
    return f"<text {place}>{''.join(pieces)}</text>"


def compact(svg: str, colours: Sequence[str] = (), *, dark: bool = True) -> str:
    """Return a smaller SVG with the same picture, in one line, from a matplotlib SVG.

    Parameters
    ----------
    svg : str
    colours : sequence of str
        Colours of the text that will be added, ``#rrggbb``.
    dark : bool
        Whether the style sheet has colours for dark pages, too.
    """
    looks: dict[str, str] = {}
    names: dict[str, str] = {}

    def as_class(match: re.Match[str]) -> str:
        """Return a class attribute in place of the matched style attribute.

        The name of the class is in ``looks``, to which new styles are added.
        """
        look = match[1].replace(": ", ":").replace("; ", ";")
        return f' class="{looks.setdefault(look, _letters(len(looks)))}"'

    def rename(match: re.Match[str]) -> str:
        """Return the matched id, or reference to an id, with a short name.

        The short names are in ``names``, to which new ids are added.
        """
        return match[1] + names.setdefault(match[2], _letters(len(names)))

    def round_places(match: re.Match[str]) -> str:
        """Return the matched attribute with coordinates rounded to 0.1 points."""
        places = re.sub(r"-?\d+\.\d+", lambda n: _rounded(float(n[0])), match[2])
        return match[1] + re.sub(r"\s*([A-Za-z])\s*", r"\1", places).strip()

    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    text = text[text.index("<svg") :]
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    text = re.sub(r' xmlns:xlink="[^"]*"', "", text).replace("xlink:href", "href")
    text = re.sub(r'clip-path="([^"]*)" style="', r'style="clip-path:\1; ', text)
    text = re.sub(r'(id="|#)([mpC]\w{9,})', rename, text)
    text = re.sub(r' style="([^"]*)"', as_class, text).replace(' class=""', "")
    text = re.sub(r'(\b(?:d|x|y|width|height)=")([^"]*)', round_places, text)
    text = re.sub(r">\s+<", "><", text)
    looks |= {f"fill:{colour}": f"t{colour[1:]}" for colour in colours}
    sheet = ".i-{font-style:italic}.b-{font-weight:bold}"
    sheet += f".s-{{font-size:{SMALL:.0%}}}{style_sheet(looks, dark=dark)}"
    return text.replace("</style>", f"{sheet}</style>", 1).strip() + "\n"


def _letters(number: int) -> str:
    """Return a number from 0 on as text, in base 26 with the digits a to z.

    0 is ``a``, 25 is ``z``, 26 is ``ba``.
    """
    more, last = divmod(number, 26)
    return (_letters(more) if more else "") + chr(ord("a") + last)


def style_sheet(looks: dict[str, str], *, dark: bool) -> str:
    """Return the CSS rules of a figure as text, such as ``.a{fill:#ffffff}``.

    ``looks`` maps CSS declarations to names of classes.  With ``dark``, colours are
    exchanged for their dark counterparts on dark pages.

    Raises
    ------
    KeyError
        With ``dark``, if a colour has no dark counterpart.
    """
    rules = "".join(f".{name}{{{look}}}" for look, name in looks.items())
    if not dark:
        return rules
    exchanged = ""
    for look, name in looks.items():
        coloured = [part for part in look.split(";") if _COLOUR.search(part)]
        exchanged += f".{name}{{{';'.join(coloured)}}}" if coloured else ""
    exchanged = _COLOUR.sub(lambda colour: _COUNTERPARTS[colour[0]], exchanged)
    return f"{rules}@media (prefers-color-scheme:dark){{{exchanged}}}"


def on_light_ground(svg: str) -> str:
    """Return an SVG of `Drawing` that is light in every reader, with a background.

    The colour scheme of an image follows the reader's system, not the page around it.
    """
    ground = f'<rect width="100%" height="100%" fill="{LIGHT[PAGE]}"/>'
    light = re.sub(r"@media .*?(?=</style>)", "", svg, count=1)
    return light.replace("</defs>", f"</defs>{ground}", 1)


def _rounded(value: float) -> str:
    """Return a length in points as text, rounded to a tenth of a point: ``3.1``.

    That is a fifth of a pixel at a width of 720 pixels.
    """
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")
