"""Figures as files: SVG for pages, and SVG, PDF or PNG for documents.

In the SVG of a page each look of matplotlib's is a class, to which a style sheet inside
the file gives its colours, light and dark.  It is made small, since a page holds many:
points are rounded far below a pixel, and names are short.
"""

import io
import re
import string
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FixedLocator
from pandas import DataFrame

from montecarlo.report.figures.drawing import house_style
from montecarlo.report.figures.palette import DARK, LIGHT, PAGE
from montecarlo.report.figures.specs import FigureSpec

#: What a file says of itself: neither a clock nor a version, so that bytes are equal.
_METADATA: dict[str, dict[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    "png": {"Software": None},
}
FORMATS = tuple(_METADATA)
#: Decimals of coordinates, in points: a tenth is a quarter of a pixel at 1600 pixels.
DIGITS = 1
#: How many coordinates each command of a path takes; all are absolute.
ARITY = {"M": 2, "L": 2, "Q": 4, "C": 6, "z": 0}
_COMMAND = re.compile(r"\s*([A-Za-z])([^A-Za-z]*)")
_NAME = re.compile(r'((?<= id=")|href="#|url\(#)([\w-]+)')
_LOOK = re.compile(r'(?:clip-path|style)="[^"]*"(?: style="[^"]*")?')
_PLACED = re.compile(r'(?<= )(?:x|y|width|height)="[\d.-]+"|translate\([^)]*\)')
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_COUNTERPARTS = {LIGHT[name]: DARK[name] for name in LIGHT}
_POINT = re.compile(r"(?<=\d)\.(?=\d)")


def render_svg(
    spec: FigureSpec, measurements: DataFrame, curves: DataFrame
) -> str | None:
    """Return a figure as SVG for light and dark pages, or None without its data.

    Its text is paths, its ground transparent; equal tables give equal bytes.
    """
    return next(iter(render_svgs(spec, measurements, curves)), None)


def render_svgs(
    spec: FigureSpec, measurements: DataFrame, curves: DataFrame, *, comma: bool = False
) -> list[str]:
    """Return a figure as SVG: with decimal points, and with commas if it has any.

    Parameters
    ----------
    spec : FigureSpec
    measurements, curves : DataFrame
    comma : bool
        Whether a page needs numbers with decimal commas.

    Returns
    -------
    list of str
        As of `render_svg`; empty without data, a second one if ``comma`` and it differs
        from the first.
    """
    with house_style():
        figure = spec.build(measurements, curves)
        if figure is None:
            return []
        svgs = [compact(_save(figure, "svg", "none").decode())]
        if comma and write_commas(figure):
            svgs.append(compact(_save(figure, "svg", "none").decode()))
    return svgs


def draw_files(  # noqa: PLR0913 - what, and as what
    spec: FigureSpec,
    tables: tuple[DataFrame, DataFrame],
    formats: Sequence[str],
    theme: str | None = None,
    *,
    dpi: int = 200,
    comma: bool = False,
) -> dict[str, bytes]:
    """Draw a figure in some formats.

    Parameters
    ----------
    spec : FigureSpec
    tables : (DataFrame, DataFrame)
        Measurements and curves.
    formats : sequence of str
        Of `FORMATS`.
    theme : str, optional
        Of `palette.THEMES`, on a ground of its own.  By default an SVG is transparent
        and suits itself to light and dark pages; the others are light.
    dpi : int
        Pixels an inch of a PNG; a figure is 6 inches wide.
    comma : bool
        Whether numbers have commas for decimal points.

    Returns
    -------
    dict
        Format to the file's content; empty where the tables lack what it shows.
    """
    files = {}
    with house_style(theme or "light"):
        figure = spec.build(*tables)
        if figure is None:
            return {}
        if comma:
            figure.draw_without_rendering()
            write_commas(figure)
        for name in (f for f in FORMATS if f in formats):
            suits_itself = name == "svg" and theme is None
            files[name] = _save(figure, name, "none" if suits_itself else PAGE, dpi)
    if "svg" in files:
        files["svg"] = compact(files["svg"].decode(), dark=theme is None).encode()
    return files


def _save(figure: Figure, name: str, ground: str, dpi: int = 200) -> bytes:
    """Return the file that matplotlib writes."""
    file = io.BytesIO()
    figure.savefig(
        file, format=name, dpi=dpi, facecolor=ground, metadata=_METADATA[name]
    )
    return file.getvalue()


def write_commas(figure: Figure) -> bool:
    """Write commas for the decimal points of a figure; tells whether it has any.

    It was drawn before, which makes its ticks: they are fixed where they are.
    """
    found = False
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [label.get_text() for label in axis.get_majorticklabels()]
            if any(_POINT.search(label) for label in labels):
                found = True
                axis.set_major_locator(FixedLocator(list(axis.get_majorticklocs())))
                axis.set_major_formatter(FixedFormatter([_comma(x) for x in labels]))
    for text in figure.findobj(Text):
        found |= _POINT.search(text.get_text()) is not None
        text.set_text(_comma(text.get_text()))
    return found


def _comma(text: str) -> str:
    """Exchange decimal points; in a formula braces keep a comma from a space."""
    return _POINT.sub("{,}" if "$" in text else ",", text)


def compact(svg: str, *, dark: bool = True) -> str:
    """Return the SVG that matplotlib writes made small, with its style sheet inside.

    One line, which suits dark pages as well unless it is told not to.

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
    return svg.replace("</style>", style_sheet(looks, dark=dark) + "</style>", 1) + "\n"


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
