"""From the SVG that matplotlib writes to a small one for light and dark pages.

Each look becomes a class, which a style sheet inside the file gives its colours, light
and dark; points are rounded far below a pixel; names are short, and what names nothing
goes.
"""

import re
import string
from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as ET

from montecarlo.report.figures.drawing.palette import DARK, LIGHT_PAGE

SVG = "http://www.w3.org/2000/svg"
GROUP, USE = f"{{{SVG}}}g", f"{{{SVG}}}use"
HREF = "{http://www.w3.org/1999/xlink}href"
#: Decimals of coordinates, in points: a tenth is a quarter of a pixel at 1600 pixels.
DIGITS = 1
#: How many coordinates each command of a path takes; all are absolute.
ARITY = {"M": 2, "L": 2, "Q": 4, "C": 6, "z": 0}
_COMMAND = re.compile(r"\s*([A-Za-z])([^A-Za-z]*)")
_MOVE = re.compile(r"translate\(([^ ]+) ([^)]+)\)")
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_DARK_PAGES = "@media (prefers-color-scheme:dark)"
_REFERENCE = re.compile(r"url\(#(.*)\)")


def compact(text: str, *, dark: bool = True) -> str:
    """Return the SVG that matplotlib writes made small, with its style sheet inside.

    One line, which suits dark pages as well unless it is told not to.

    Raises
    ------
    ValueError
        If a path is not as matplotlib writes it, or a colour has no dark counterpart.
    """
    ET.register_namespace("", SVG)
    root = ET.fromstring(text)  # noqa: S314 - what matplotlib has just written
    sheets = list(root.iter(f"{{{SVG}}}style"))
    default = "".join(sheet.text or "" for sheet in sheets)
    _drop_noise(root)
    _shorten_names(root)
    looks = _name_looks(root)
    for element in root.iter():
        _round_numbers(element)
    _unwrap(root)
    sheet = ET.Element(f"{{{SVG}}}style")
    sheet.text = default + style_sheet(looks, dark=dark)
    root.insert(0, sheet)
    root.tail = None
    return ET.tostring(root, encoding="unicode").replace(" />", "/>") + "\n"


def style_sheet(looks: Mapping[str, str], *, dark: bool) -> str:
    """Return the style sheet of a figure, from classes and their declarations.

    Raises
    ------
    ValueError
        If a colour has no dark counterpart, but dark pages are to be suited.
    """
    rules = "".join(f".{name}{{{look}}}" for name, look in looks.items())
    if not dark:
        return rules
    if unknown := sorted(set(_COLOUR.findall(rules)) - set(DARK)):
        known = ", ".join(DARK)
        raise ValueError(f"colours must be among {known}; got {', '.join(unknown)}")
    exchanged = ""
    for name, look in looks.items():
        coloured = [part for part in look.split(";") if _COLOUR.search(part)]
        if coloured:
            exchanged += f".{name}{{{';'.join(coloured)}}}"
    exchanged = _COLOUR.sub(lambda colour: DARK[colour[0]], exchanged)
    return f"{rules}{_DARK_PAGES}{{{exchanged}}}"


def on_light_ground(svg: str) -> str:
    """Return a figure that suits light and dark pages as one that is always light.

    An image follows its reader's system, not the page that it stands on.
    """
    ground = f'<rect width="100%" height="100%" fill="{LIGHT_PAGE}"/>'
    start = svg.index(_DARK_PAGES)
    end = svg.index("</style>", start)
    return f"{svg[:start]}</style>{ground}{svg[end + len('</style>') :]}"


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
        if letter == "L" and 0 in moved:
            text += f"h{_join(moved[:1])}" if moved[1] == 0 else f"v{_join(moved[1:])}"
        else:
            text += letter.lower() + _join(moved)
    return text


def _join(values: Iterable[int]) -> str:
    """Write numbers given in their last digit; a sign parts them as a space does."""
    words = (f"{value / 10**DIGITS:.{DIGITS}f}" for value in values)
    return " ".join(word.removesuffix(".0") for word in words).replace(" -", "-")


def _drop_noise(root: ET.Element) -> None:
    """Drop what is not drawn: metadata, which name versions, style sheets, spaces."""
    for parent in list(root.iter()):
        parent.text = None
        for child in list(parent):
            child.tail = None
            if child.tag in {f"{{{SVG}}}metadata", f"{{{SVG}}}style"}:
                parent.remove(child)


def _name_looks(root: ET.Element) -> dict[str, str]:
    """Exchange styles and clips for classes; returns class to declarations."""
    classes: dict[str, str] = {}
    for element in root.iter():
        look = element.attrib.pop("style", "").replace(": ", ":").replace("; ", ";")
        clip = element.attrib.pop("clip-path", "")
        parts = [look, clip and f"clip-path:{clip}"]
        names = [
            classes.setdefault(part, _letters(len(classes))) for part in parts if part
        ]
        if names:
            element.set("class", " ".join(names))
    return {name: look for look, name in classes.items()}


def _shorten_names(root: ET.Element) -> None:
    """Name what is referred to with letters, in order; drop names that are not."""
    short: dict[str, str] = {}
    for element in root.iter():
        if HREF in element.attrib:
            old = element.attrib.pop(HREF).removeprefix("#")
            element.set("href", "#" + short.setdefault(old, _letters(len(short))))
        for attribute, value in element.items():
            if found := _REFERENCE.fullmatch(value):
                name = short.setdefault(found[1], _letters(len(short)))
                element.set(attribute, f"url(#{name})")
    for element in root.iter():
        old = element.attrib.pop("id", "")
        if old in short:
            element.set("id", short[old])


def _letters(number: int) -> str:
    """Name the first things a to Z, later ones aa and so on."""
    more, last = divmod(number, len(string.ascii_letters))
    return (_letters(more - 1) if more else "") + string.ascii_letters[last]


def _round_numbers(element: ET.Element) -> None:
    if "d" in element.attrib:
        element.set("d", short_path(element.get("d", "")))
    for name in ("x", "y", "width", "height"):
        value = element.get(name, "")
        if value and not value.endswith("pt"):
            element.set(name, _round(value))
    transform = element.get("transform", "")
    if element.tag == USE and (moved := _MOVE.fullmatch(transform)):
        del element.attrib["transform"]
        element.attrib |= {"x": _round(moved[1]), "y": _round(moved[2])}
    elif transform:
        element.set(
            "transform",
            _MOVE.sub(
                lambda by: f"translate({_round(by[1])} {_round(by[2])})", transform
            ),
        )


def _unwrap(parent: ET.Element) -> None:
    """Put what stands in a group that says nothing in the group's place."""
    for child in parent:
        _unwrap(child)
    parent[:] = [
        member
        for child in parent
        for member in (child if child.tag == GROUP and not child.attrib else [child])
    ]


def _round(number: str) -> str:
    return _join([round(10**DIGITS * float(number))])
