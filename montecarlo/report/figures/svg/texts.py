"""Marks and texts of an SVG drawn once: each outline, and each label used often.

In: the tree that matplotlib writes, where each text is a group of glyphs that are
scaled down from 64 times their size.  Out: the same from shared definitions.
"""

import re
from collections import Counter
from xml.etree import ElementTree as ET

from montecarlo.report.figures.svg.paths import short_number, short_path

SVG = "http://www.w3.org/2000/svg"
GROUP, USE, PATH, DEFS = (f"{{{SVG}}}{name}" for name in ("g", "use", "path", "defs"))
#: matplotlib draws glyphs so many times as large as the other coordinates of a text.
DRAWN = 64
#: So many times as large they are kept: a unit is 1/40 point in print of 10 points.
KEPT = 4
_GLYPH = re.compile(r"scale\(0\.0156\d*\)")
_TEXT = re.compile(
    r"translate\((?P<x>[-\d.]+) (?P<y>[-\d.]+)\)(?P<turn> rotate\([^)]*\))?"
    r" scale\((?P<size>[\d.]+) -[\d.]+\)"
)
_INNER = re.compile(r"translate\(([-\d.]+) ([-\d.]+)\)(?: scale\(([\d.]+)\))?")


def share_texts(root: ET.Element) -> None:
    """Draw each glyph once, and each label that stands several times.

    Parameters
    ----------
    root : Element
        Changed in place; definitions become its first child.
    """
    shared = ET.Element(DEFS)
    _take_outlines(root, shared)
    texts = [e for e in root.iter(GROUP) if _TEXT.fullmatch(e.get("transform", ""))]
    for text in texts:
        for piece in text:
            _keep_larger(piece)
    count = Counter(_label(text) for text in texts)
    names: dict[str, str] = {}
    for text in texts:
        label = _label(text)
        if count[label] > 1 and label not in names:
            names[label] = f"label{len(names)}"
            group = ET.SubElement(shared, GROUP, {"id": names[label]})
            group.set("transform", _place(text)[2])
            group.extend(list(text))
        _replace(text, names.get(label))
    if len(shared):
        root.insert(0, shared)


def _take_outlines(root: ET.Element, shared: ET.Element) -> None:
    """Move glyphs and marks to the definitions, each outline once."""
    uses: dict[str, list[ET.Element]] = {}
    for use in root.iter(USE):
        uses.setdefault(use.get("href", "")[1:], []).append(use)
    known: dict[tuple[tuple[str, str], ...], str] = {}
    for parent in list(root.iter()):
        for definitions in list(parent.findall(DEFS)):
            for outline in definitions.findall(PATH):
                definitions.remove(outline)
                name = outline.attrib.pop("id")
                _leave_to_uses(outline, uses[name])
                if _GLYPH.fullmatch(outline.get("transform", "")):
                    del outline.attrib["transform"]
                    drawn = short_path(outline.get("d", ""), 0, KEPT / DRAWN)
                    outline.set("d", drawn)
                look = tuple(sorted(outline.attrib.items()))
                if look not in known:
                    outline.set("id", name)
                    shared.append(outline)
                for use in uses[name]:
                    use.set("href", f"#{known.setdefault(look, name)}")
            if not len(definitions):
                parent.remove(definitions)


def _leave_to_uses(outline: ET.Element, uses: list[ET.Element]) -> None:
    """Drop from a mark what each use of it says as well."""
    for attribute, value in list(outline.items()):
        if attribute != "d" and all(use.get(attribute) == value for use in uses):
            del outline.attrib[attribute]


def _keep_larger(piece: ET.Element) -> None:
    """Put a piece of a text, a glyph or a bar, into the larger coordinates."""
    place = _INNER.fullmatch(piece.attrib.pop("transform", "translate(0 0)"))
    if place is None:
        raise ValueError("texts must be made of pieces that are moved and scaled")
    x, y = (round(KEPT * float(place[i])) for i in (1, 2))
    if piece.tag == PATH:  # the bar of a root or of a fraction
        piece.set("d", short_path(piece.get("d", ""), 0, KEPT))
    if place[3]:
        piece.set("transform", f"translate({x} {y}) scale({place[3]})")
        return
    if piece.tag == PATH:
        if x or y:
            piece.set("transform", f"translate({x} {y})")
        return
    for name, value in (("x", x), ("y", y)):
        if value:
            piece.set(name, str(value))


def _label(text: ET.Element) -> str:
    """Return what tells a text from others that stand elsewhere."""
    pieces = "".join(ET.tostring(piece, encoding="unicode") for piece in text)
    return f"{_place(text)[2]} {text.get('fill')} {pieces}"


def _place(text: ET.Element) -> tuple[str, str, str]:
    """Return x, y and the rest of a text's transform, in the larger coordinates."""
    found = _TEXT.fullmatch(text.get("transform", ""))
    if found is None:
        raise ValueError("a text must be moved and scaled")
    x, y = (short_number(round(10 * float(found[name])), 1) for name in ("x", "y"))
    size = short_number(round(1e4 * float(found["size"]) / KEPT), 4)
    turn = re.sub(r"\.0+\)", ")", found["turn"] or "").strip()
    return x, y, f"{turn}scale({size}-{size})"


def _replace(text: ET.Element, name: str | None) -> None:
    """Make a text a use of its label, or write its place anew."""
    x, y, rest = _place(text)
    if name is None:
        text.set("transform", f"translate({x} {y}){rest}")
        return
    text[:] = []
    del text.attrib["transform"]
    text.tag = USE
    text.attrib = {**text.attrib, "href": f"#{name}", "x": x, "y": y}
