"""Groups of an SVG: what neighbours have in common is said once.

The tree of a drawing in, changed in place; what is drawn stays the same.
"""

from itertools import groupby
from xml.etree import ElementTree as ET

from montecarlo.report.figures.svg.texts import DEFS, GROUP, PATH, USE

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
#: What neighbours that have it in common are put into a group for, in this order.
GROUPED = ("clip-path", "stroke", "fill", "stroke-width", "stroke-linecap")


def unwrap(parent: ET.Element) -> None:
    """Drop groups that do nothing, that are empty, or that hold one thing only."""
    for child in list(parent):
        unwrap(child)
    children: list[ET.Element] = []
    for child in parent:
        if child.tag == GROUP and not child.attrib:
            children.extend(child)
        elif child.tag == GROUP and len(child) == 1 and _can_take(child[0], child):
            child[0].attrib = {**child.attrib, **child[0].attrib}
            children.append(child[0])
        elif child.tag != GROUP or len(child):
            children.append(child)
    parent[:] = children


def _can_take(child: ET.Element, group: ET.Element) -> bool:
    """Tell whether an element can have its group's attributes itself.

    A clip is moved along with an element that is moved, as ``use`` is by x and y.
    """
    moved = child.tag == USE or "transform" in child.attrib
    return "transform" not in group.attrib and not (
        moved and "clip-path" in group.attrib
    )


def hoist(parent: ET.Element) -> None:
    """Move what all children of a group have in common to the group."""
    for child in parent:
        hoist(child)
    shown = [child for child in parent if child.tag != DEFS]
    if parent.tag != GROUP or not shown:
        return
    for name in INHERITED:
        value = shown[0].get(name)
        if value is not None and all(child.get(name) == value for child in shown):
            parent.set(name, value)
            for child in shown:
                del child.attrib[name]


def join_strokes(parent: ET.Element) -> None:
    """Make one path of neighbours that are stroked alike: error bars, for example."""
    last: ET.Element | None = None
    for child in list(parent):
        join_strokes(child)
        look = {name: value for name, value in child.attrib.items() if name != "d"}
        if (
            last is not None
            and child.tag == last.tag == PATH
            and (child.get("fill") or parent.get("fill")) == "none"
            and look == {name: v for name, v in last.attrib.items() if name != "d"}
        ):
            last.set("d", last.get("d", "") + child.get("d", ""))
            parent.remove(child)
        else:
            last = child


def group_runs(parent: ET.Element, names: tuple[str, ...]) -> None:
    """Put neighbours that have an attribute in common into a group that holds it."""
    for child in parent:
        if child.tag == GROUP and len(child) > 1:
            group_runs(child, names)
    if not names:
        return
    children: list[ET.Element] = []
    for value, run in groupby(parent, key=lambda child: child.get(names[0])):
        members = list(run)
        if value is None or len(members) == 1 or len(members) == len(parent):
            children.extend(members)
            continue
        group = ET.Element(GROUP, {names[0]: value})
        for member in members:
            del member.attrib[names[0]]
        group.extend(members)
        group_runs(group, names[1:])
        children.append(group)
    parent[:] = children
    group_runs(parent, names[1:])


def drop_inherited(element: ET.Element, inherited: dict[str, str]) -> None:
    """Drop attributes that say what a group around them says."""
    own = {name: element.attrib[name] for name in INHERITED if name in element.attrib}
    for name, value in own.items():
        # a clip is cut once more by each group, and is the same
        if inherited.get(name) == value:
            del element.attrib[name]
    for child in element:
        if DEFS in {element.tag, child.tag}:
            drop_inherited(child, {})  # drawn in another place
        else:
            drop_inherited(child, inherited | own)
