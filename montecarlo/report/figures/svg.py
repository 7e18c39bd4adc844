"""From the SVG that matplotlib writes to a small one for light and dark pages.

Colours become attributes, which a style sheet inside the file can exchange; numbers are
rounded far below a pixel; names are short; metadata, which names versions, goes.
"""

import re
from xml.etree import ElementTree as ET

from montecarlo.report.figures.palette import DARK

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
OLD_HREF, HREF = f"{{{XLINK}}}href", "href"
#: Attributes that a group can hold once for all its children.
INHERITED = (
    "clip-path",
    "fill",
    "fill-opacity",
    "fill-rule",
    "stroke",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-miterlimit",
    "stroke-opacity",
    "stroke-width",
)
#: Decimals of coordinates, in points: a tenth is a quarter of a pixel at 1600 pixels.
DIGITS = 1
_TRANSLATE = re.compile(r"translate\([^)]*\)")
_NUMBER = re.compile(r"-?\d*\.\d+(?:e[+-]?\d+)?")


def compact(text: str) -> str:
    """Return a figure's SVG made small, with the dark style inside.

    Parameters
    ----------
    text : str
        SVG as matplotlib writes it, with text as paths.

    Returns
    -------
    str
        One line of SVG; the same for the same input.
    """
    ET.register_namespace("", SVG)
    root = ET.fromstring(text)  # noqa: S314 - what matplotlib has just written
    _drop_noise(root)
    for element in root.iter():
        _style_to_attributes(element)
    _shorten_names(root)
    for element in root.iter():
        _round_numbers(element)
    _hoist(root)
    _unwrap(root)
    _join_strokes(root)
    # Was a style sheet of matplotlib's, which would overrule attributes.
    root.set("stroke-linejoin", "round")
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


def _shorten_names(root: ET.Element) -> None:
    """Keep the ids that are used, numbered in order of appearance."""
    used = set()
    for element in root.iter():
        used.add(element.get(HREF, "").removeprefix("#"))
        used.add(element.get("clip-path", "").removeprefix("url(#").removesuffix(")"))
    short: dict[str, str] = {}
    for element in root.iter():
        name = element.attrib.pop("id", "")
        if name in used and name:
            element.set("id", short.setdefault(name, f"i{len(short)}"))
    for element in root.iter():
        if HREF in element.attrib:
            element.set(HREF, f"#{short[element.get(HREF, '')[1:]]}")
        if "clip-path" in element.attrib:
            element.set(
                "clip-path", f"url(#{short[element.get('clip-path', '')[5:-1]]})"
            )


def _round_numbers(element: ET.Element) -> None:
    # A glyph is drawn 64 times as large and scaled down.
    is_glyph = element.get("transform", "").startswith("scale(0.0156")
    for name in ("d", "x", "y", "x1", "x2", "y1", "y2", "width", "height"):
        if name in element.attrib:
            value = _NUMBER.sub(
                lambda m: _shortest(m[0], 0 if is_glyph else DIGITS),
                element.get(name, ""),
            )
            element.set(name, re.sub(r"\s+", " ", value).strip())
    if "d" in element.attrib:
        element.set("d", re.sub(r" ?([A-Za-z]) ?", r"\1", element.get("d", "")))
    if "transform" in element.attrib:
        place = element.get("transform", "")
        element.set("transform", _TRANSLATE.sub(_round_translation, place))


def _round_translation(match: re.Match[str]) -> str:
    return _NUMBER.sub(lambda m: _shortest(m[0], DIGITS), match[0])


def _shortest(number: str, digits: int) -> str:
    text = f"{float(number):.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _unwrap(parent: ET.Element) -> None:
    """Drop groups that do nothing, that are empty, or that hold one thing only."""
    for child in list(parent):
        _unwrap(child)
    group = f"{{{SVG}}}g"
    children: list[ET.Element] = []
    for child in parent:
        if child.tag == group and not child.attrib:
            children.extend(child)
        elif child.tag == group and len(child) == 1 and "transform" not in child.attrib:
            child[0].attrib = {**child.attrib, **child[0].attrib}
            children.append(child[0])
        elif child.tag != group or len(child):
            children.append(child)
    parent[:] = children


def _hoist(parent: ET.Element) -> None:
    """Move what all children of a group have in common to the group."""
    for child in parent:
        _hoist(child)
    shown = [child for child in parent if child.tag != f"{{{SVG}}}defs"]
    if parent.tag != f"{{{SVG}}}g" or not shown:
        return
    for name in INHERITED:
        value = shown[0].get(name)
        if value is not None and all(child.get(name) == value for child in shown):
            parent.set(name, value)
            for child in shown:
                del child.attrib[name]


def _join_strokes(parent: ET.Element) -> None:
    """Make one path of neighbours that are stroked alike: error bars, for example."""
    last: ET.Element | None = None
    for child in list(parent):
        _join_strokes(child)
        look = {name: value for name, value in child.attrib.items() if name != "d"}
        if (
            last is not None
            and child.tag == last.tag == f"{{{SVG}}}path"
            and (child.get("fill") or parent.get("fill")) == "none"
            and look == {name: v for name, v in last.attrib.items() if name != "d"}
        ):
            last.set("d", last.get("d", "") + child.get("d", ""))
            parent.remove(child)
        else:
            last = child
