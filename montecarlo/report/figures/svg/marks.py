"""Marks of an SVG drawn by its paths: a series is one path, with a mark at each point.

In: marks that are used one by one, as matplotlib writes them.  Out: ticks as strokes of
one path, points as a path that is not drawn itself.
"""

import re
from itertools import groupby
from xml.etree import ElementTree as ET

from montecarlo.report.figures.svg.texts import DEFS, PATH, SVG, USE

MARKER = f"{{{SVG}}}marker"
#: A tick: one stroke from the place it is put.
_TICK = re.compile(r"M 0 0\s+L (-?[\d.]+) (-?[\d.]+)\s*")
#: From so many on, a path is shorter than the marks one by one.
FEWEST = 4


def join_marks(root: ET.Element) -> None:
    """Join neighbours that are the same mark; changes the tree.

    Parameters
    ----------
    root : Element
        Its first child holds the definitions.
    """
    shared = root.find(DEFS)
    if shared is None:
        return
    outlines = {e.get("id", ""): e for e in shared.findall(PATH)}
    known: dict[tuple[tuple[str, str], ...], str] = {}
    for parent in list(root.iter()):
        children: list[ET.Element] = []
        for look, run in groupby(parent, key=_look):
            uses = list(run)
            outline = outlines.get(dict(look).get("href", "")[1:])
            tick = outline is not None and _TICK.fullmatch(outline.get("d", ""))
            if outline is None or (len(uses) < FEWEST and not tick):
                children.extend(uses)
            elif tick:
                children.append(_strokes(uses, dict(look), (tick[1], tick[2])))
            else:
                if look not in known:
                    known[look] = f"mark{len(known)}"
                    shared.append(_marker(outline, dict(look), known[look]))
                children.append(_points(uses, known[look]))
        parent[:] = children


def _look(element: ET.Element) -> tuple[tuple[str, str], ...]:
    """Return what tells a mark from others, but for its place; nothing else is one."""
    if element.tag != USE or "x" not in element.attrib or "y" not in element.attrib:
        return ()
    return tuple(sorted((n, v) for n, v in element.items() if n not in {"x", "y"}))


def _place(use: ET.Element) -> str:
    return f"{use.get('x')} {use.get('y')}"


def _strokes(
    uses: list[ET.Element], look: dict[str, str], way: tuple[str, str]
) -> ET.Element:
    """Return ticks as one path."""
    del look["href"]
    pieces = []
    for use in uses:
        x, y = (float(use.get(name, "0")) for name in ("x", "y"))
        pieces.append(f"M{x} {y}L{x + float(way[0])} {y + float(way[1])}")
    return ET.Element(PATH, {**look, "d": "".join(pieces), "fill": "none"})


def _marker(outline: ET.Element, look: dict[str, str], name: str) -> ET.Element:
    """Return the definition of a mark with its colours, as large as it is drawn."""
    marker = ET.Element(
        MARKER, {"id": name, "overflow": "visible", "markerUnits": "userSpaceOnUse"}
    )
    del look["href"]
    drawn = {n: v for n, v in outline.items() if n != "id"}
    ET.SubElement(marker, PATH, {**look, **drawn})
    return marker


def _points(uses: list[ET.Element], name: str) -> ET.Element:
    """Return a path that has a mark at each point and is not drawn itself."""
    marks = {f"marker-{where}": f"url(#{name})" for where in ("start", "mid", "end")}
    path = "M" + "L".join(_place(use) for use in uses)
    return ET.Element(PATH, {"fill": "none", "stroke": "none", **marks, "d": path})
