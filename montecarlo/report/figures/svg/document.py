"""From the SVG that matplotlib writes to a small one for light and dark pages.

Colours become attributes, which a style sheet inside the file can exchange; numbers are
rounded far below a pixel; what is drawn twice is defined once; names are short;
metadata, which names versions, goes.
"""

import re
import string
from xml.etree import ElementTree as ET

from montecarlo.report.figures.drawing.palette import DARK, INK
from montecarlo.report.figures.svg.groups import (
    GROUPED,
    drop_inherited,
    group_runs,
    hoist,
    join_strokes,
    unwrap,
)
from montecarlo.report.figures.svg.marks import join_marks
from montecarlo.report.figures.svg.paths import short_number, short_path
from montecarlo.report.figures.svg.texts import (
    DEFS,
    GROUP,
    PATH,
    SVG,
    share_texts,
)

XLINK = "http://www.w3.org/1999/xlink"
OLD_HREF, HREF = f"{{{XLINK}}}href", "href"
#: Attributes that name a definition as url(#…).
REFERENCES = ("clip-path", "marker-start", "marker-mid", "marker-end")
#: Decimals of coordinates, in points: a tenth is a quarter of a pixel at 1600 pixels.
DIGITS = 1
_RELATIVE = re.compile("[hlmqcv]")
_TICK = re.compile(r"[xy]tick_\d+")


def compact(text: str, *, dark: bool = True) -> str:
    """Return a figure's SVG made small, with the dark style inside.

    Parameters
    ----------
    text : str
        SVG as matplotlib writes it, with text as paths.
    dark : bool
        Whether to put the style for dark pages inside.

    Returns
    -------
    str
        One line of SVG; the same for the same input.
    """
    ET.register_namespace("", SVG)
    root = ET.fromstring(text)  # noqa: S314 - what matplotlib has just written
    _drop_noise(root)
    _sort_ticks(root)
    for element in root.iter():
        _style_to_attributes(element)
    _drop_unseen(root, painted=False)
    share_texts(root)
    join_marks(root)
    _drop_names(root)
    for element in root.iter():
        _round_numbers(element)
    hoist(root)
    unwrap(root)
    join_strokes(root)
    group_runs(root, GROUPED)
    # Was a style sheet of matplotlib's, which would overrule attributes.
    root.set("stroke-linejoin", "round")
    root.set("fill", INK)
    drop_inherited(root, {})
    unwrap(root)
    for path in root.iter(PATH):
        drawn = path.get("d", "")
        if not _RELATIVE.search(drawn):
            path.set("d", short_path(drawn, DIGITS))
    _shorten_names(root)
    if dark:
        style = ET.Element(f"{{{SVG}}}style")
        style.text = dark_style(_colours(root))
        root.insert(0, style)
    root.tail = None
    return ET.tostring(root, encoding="unicode").replace(" />", "/>") + "\n"


def dark_style(colours: set[str]) -> str:
    """Return the style sheet that exchanges light colours for dark ones.

    Raises
    ------
    ValueError
        If a colour has no dark counterpart.
    """
    if unknown := sorted(colours - set(DARK)):
        known = ", ".join(DARK)
        raise ValueError(f"colours must be among {known}; got {', '.join(unknown)}")
    rules = "".join(
        f'[{name}="{light}"]{{{name}:{DARK[light]}}}'
        for light in sorted(colours)
        for name in ("fill", "stroke")
    )
    return f"@media (prefers-color-scheme:dark){{{rules}}}"


def _colours(root: ET.Element) -> set[str]:
    """Return every colour that something is filled or stroked with."""
    found = {
        element.get(name) for element in root.iter() for name in ("fill", "stroke")
    }
    return {colour for colour in found if colour is not None and colour != "none"}


def _drop_noise(root: ET.Element) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            local = child.tag.rpartition("}")[2]
            if local in {"metadata", "style"} or (local == "defs" and _is_empty(child)):
                parent.remove(child)
        parent.text = None
        for child in parent:
            child.tail = None


def _is_empty(definitions: ET.Element) -> bool:
    return all(child.tag == f"{{{SVG}}}style" for child in definitions)


def _style_to_attributes(element: ET.Element) -> None:
    if OLD_HREF in element.attrib:
        element.set(HREF, element.attrib.pop(OLD_HREF))
    for item in element.attrib.pop("style", "").split(";"):
        name, _, value = item.partition(":")
        if value.strip():
            element.set(name.strip(), value.strip())
    if element.get("fill-opacity") == "0":  # how matplotlib writes an open mark
        element.set("fill", "none")
        del element.attrib["fill-opacity"]
    if element.get("stroke-dashoffset") == "0":  # as without it
        del element.attrib["stroke-dashoffset"]


def _sort_ticks(root: ET.Element) -> None:
    """Put the lines of a grid before all ticks and labels, as alike as they are.

    They come tick by tick: line of the grid, tick, label.
    """
    for axis in root.iter(GROUP):
        ticks = [e for e in axis if _TICK.fullmatch(e.get("id", ""))]
        pieces = [piece for tick in ticks for piece in tick]
        pieces.sort(key=_rank)
        if ticks:
            at = list(axis).index(ticks[0])
            for tick in ticks:
                axis.remove(tick)
            axis[at:at] = pieces


def _rank(piece: ET.Element) -> int:
    """Return 0 for a line of a grid, 1 for a tick, 2 for a label."""
    if piece.get("id", "").startswith("text"):
        return 2
    return 0 if piece.find(PATH) is not None else 1


def _drop_unseen(parent: ET.Element, *, painted: bool) -> None:
    """Drop paths that are neither filled nor stroked: grounds that are transparent."""
    for child in list(parent):
        stroked = painted or child.get("stroke", "none") != "none"
        if child.tag == PATH and child.get("fill") == "none" and not stroked:
            parent.remove(child)
        elif child.tag == GROUP:
            _drop_unseen(child, painted=stroked)


def _drop_names(root: ET.Element) -> None:
    """Keep the ids that are used, and the definitions that have one."""
    used = set()
    for element in root.iter():
        used.add(element.get(HREF, "").removeprefix("#"))
        for name in REFERENCES:
            used.add(element.get(name, "").removeprefix("url(#").removesuffix(")"))
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
    for definitions in root.iter(DEFS):
        definitions[:] = [e for e in definitions if "id" in e.attrib]


def _shorten_names(root: ET.Element) -> None:
    """Name what has a name with letters, in order of appearance."""
    short: dict[str, str] = {}
    for element in root.iter():
        if "id" in element.attrib:
            name = _letters(len(short))
            short[element.get("id", "")] = name
            element.set("id", name)
    for element in root.iter():
        if HREF in element.attrib:
            element.set(HREF, f"#{short[element.get(HREF, '')[1:]]}")
        for name in REFERENCES:
            if name in element.attrib:
                element.set(name, f"url(#{short[element.get(name, '')[5:-1]]})")


def _letters(number: int) -> str:
    """Name the first things a to Z, later ones aa and so on."""
    more, last = divmod(number, len(string.ascii_letters))
    return (_letters(more - 1) if more else "") + string.ascii_letters[last]


def _round_numbers(element: ET.Element) -> None:
    for name in ("x", "y", "x1", "x2", "y1", "y2", "width", "height"):
        value = element.get(name, "")
        if value and not value.endswith("pt"):
            element.set(name, short_number(round(10 * float(value)), DIGITS))
