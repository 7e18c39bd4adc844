import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.drawing.palette import (
    BLUE,
    DARK,
    DARK_PAGE,
    GREEN,
    INK,
    LIGHT_PAGE,
    MUTED,
    OCHRE,
    PURPLE,
    REFUTED,
    SHADES,
    SUPPORTED,
    VERMILLION,
)
from montecarlo.report.figures.maps import MIDDLE
from montecarlo.report.figures.svg.document import SVG, compact, dark_style
from montecarlo.report.figures.svg.paths import short_path

#: What must be told from the page; grid lines and undecided areas need not stand out.
STANDING_OUT = (INK, MUTED, VERMILLION, BLUE, GREEN, PURPLE, OCHRE, SUPPORTED, REFUTED)
PICTURE = f"""<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/x.dtd">
<svg xmlns="{SVG}" xmlns:xlink="http://www.w3.org/1999/xlink" width="432pt">
 <metadata><creator>A program 1.2.3</creator></metadata>
 <defs><style type="text/css">*{{stroke-linecap: butt}}</style></defs>
 <g id="figure_1"><g id="axes_1">
  <defs><path id="mdeadbeef" d="M 0 0 \nL 0.123456 3.5 z" style="stroke: {INK}"/></defs>
  <g id="line_1">
   <use xlink:href="#mdeadbeef" x="1.00499" y="-0.001" style="stroke: {BLUE}"/>
   <use xlink:href="#mdeadbeef" x="2" y="2" style="stroke: {BLUE}"/>
  </g>
  <path d="M 1 1 L 2 2" style="fill: none; stroke: {INK}"/>
  <path d="M 3 3 L 4 4" style="fill: none; stroke: {INK}"/>
 </g></g>
</svg>"""


def parse(text: str) -> ET.Element:
    """Parse what a renderer of ours wrote."""
    return ET.fromstring(text)  # noqa: S314


def painted_with(element: ET.Element, attribute: str) -> set[str]:
    """Values of an attribute in a tree."""
    return {e.get(attribute) for e in element.iter() if e.get(attribute)}


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    linear = np.where(
        channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    )
    return float(linear @ (0.2126, 0.7152, 0.0722))


def contrast(one: str, other: str) -> float:
    """Contrast ratio, WCAG 2.2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", FIGURES)
def test_svg_stands_alone(svgs, name):
    """A figure is well-formed and asks for nothing outside: no link, font or script."""
    text = svgs[name]
    root = parse(text)
    assert root.tag == f"{{{SVG}}}svg"
    assert root.get("viewBox")
    allowed = {"svg", "style", "defs", "g", "path", "use", "rect", "clipPath"}
    allowed |= {"marker"}
    assert {e.tag.removeprefix(f"{{{SVG}}}") for e in root.iter()} <= allowed
    assert set(re.findall(r"https?://[^\"]*", text)) == {SVG}
    assert "@import" not in text
    assert "<!DOCTYPE" not in text
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    named = {link[1:] for link in painted_with(root, "href")}
    for attribute in ("clip-path", "marker-start", "marker-mid", "marker-end"):
        named |= {link[5:-1] for link in painted_with(root, attribute)}
    assert named == set(ids)


@pytest.mark.parametrize("name", FIGURES)
def test_svg_names_no_program_version_or_time(svgs, name):
    """Nothing in a figure says by what or when it was made."""
    assert not re.search(
        r"matplotlib|creator|metadata|20\d\d-", svgs[name], re.IGNORECASE
    )


@pytest.mark.parametrize("name", FIGURES)
def test_every_coordinate_is_a_number(svgs, name):
    """No path runs to infinity or to what is not a number."""
    for attribute in ("d", "x", "y", "transform", "width", "height", "viewBox"):
        for value in painted_with(parse(svgs[name]), attribute):
            assert not re.search(r"nan|inf", value, re.IGNORECASE)


@pytest.mark.parametrize("name", FIGURES)
def test_every_colour_has_a_dark_counterpart(svgs, name):
    """The dark style exchanges every colour that the figure uses."""
    root = parse(svgs[name])
    style = root.findtext(f"{{{SVG}}}style")
    assert style.startswith("@media (prefers-color-scheme:dark){")
    for attribute in ("fill", "stroke"):
        for colour in painted_with(root, attribute) - {"none"}:
            assert f'[{attribute}="{colour}"]{{{attribute}:{DARK[colour]}}}' in style
    # A colour in a style attribute would beat the dark style.
    assert not painted_with(root, "style")


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_painted_in_default_black(svgs, name):
    """Every shape has a fill of its own or a group's; black would stay in the dark."""

    def unpainted(element: ET.Element, *, has_fill: bool) -> int:
        local = element.tag.removeprefix(f"{{{SVG}}}")
        if local in {"defs", "clipPath", "style"}:
            return 0
        has_fill = has_fill or element.get("fill") is not None
        if local in {"path", "use", "rect"}:
            return int(not has_fill)
        return sum(unpainted(child, has_fill=has_fill) for child in element)

    assert unpainted(parse(svgs[name]), has_fill=False) == 0


@pytest.mark.parametrize("colour", STANDING_OUT)
def test_colours_stand_out_from_the_page(colour):
    """Series, ink and areas have a contrast of 3 : 1 on light and dark pages."""
    assert contrast(colour, LIGHT_PAGE) >= 3.0
    assert contrast(DARK[colour], DARK_PAGE) >= 3.0


def lightness(colour: str) -> float:
    """CIE L*, from 0 to 100: as far apart as it looks, also without colours."""
    return 116.0 * np.cbrt(luminance(colour)) - 16.0


@pytest.mark.parametrize("dark", [False, True])
def test_shades_are_even_and_bear_their_numbers(dark):
    """Shades of a map are even steps away from the page, and numbers can be read."""
    shades, ink, page = (
        ([DARK[s] for s in SHADES], DARK[INK], DARK_PAGE)
        if dark
        else (SHADES, INK, LIGHT_PAGE)
    )
    levels = np.array([lightness(shade) for shade in shades])
    steps = np.diff(levels)
    assert np.abs(steps - steps.mean()).max() < 0.3
    assert np.abs(steps.mean()) > 7.5
    distances = np.abs(levels - lightness(page))
    assert (np.diff(distances) > 0.0).all()
    for number, shade in enumerate(shades):
        assert contrast(shade, ink if number < MIDDLE else page) >= 4.5


def test_compact_keeps_what_is_drawn():
    """Rounding, short names, shared attributes and joined strokes; no metadata."""
    root = parse(compact(PICTURE))
    uses = list(root.iter(f"{{{SVG}}}use"))
    assert [(use.get("x"), use.get("y")) for use in uses] == [("1", "0"), ("2", "2")]
    assert {use.get("href") for use in uses} == {"#a"}
    assert not any(use.get("stroke") for use in uses)
    groups = [g for g in root.iter(f"{{{SVG}}}g") if g.get("stroke") == BLUE]
    assert [len(group) for group in groups] == [2]
    paths = [p.get("d") for p in root.iter(f"{{{SVG}}}path")]
    assert paths == ["M0 0l.1 3.5z", "M1 1l1 1m1 1l1 1"]


def points_of(path: str) -> list[tuple[float, float]]:
    """Follow a relative path, by rules of its own; returns where commands end."""
    x = y = 0.0
    start, found, letter = (0.0, 0.0), [], ""
    tokens = re.findall(r"[a-zA-Z]|-?(?:\d+\.?\d*|\.\d+)", path)
    while tokens:
        if tokens[0].isalpha():
            letter = tokens.pop(0)
        if letter == "z":
            x, y = start
            found.append(start)
            continue
        count = {"h": 1, "v": 1, "q": 4, "c": 6}.get(letter, 2)
        values, tokens = [float(t) for t in tokens[:count]], tokens[count:]
        dx = 0.0 if letter == "v" else values[-2] if count > 1 else values[0]
        dy = 0.0 if letter == "h" else values[-1]
        x, y = x + dx, y + dy
        if letter in "Mm":
            start = (x, y)
        found.append((x, y))
    return found


def test_relative_paths_lead_to_the_same_places():
    """Each point stands within half a unit of where it stood: errors do not add up."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        points = rng.normal(scale=10.0 ** rng.integers(-1, 4), size=(200, 2))
        points[rng.random(200) < 0.3] = points[0]
        letters = rng.choice(list("LLLQCMz"), 200)
        letters[0], wanted, start, path = "M", [], points[0], ""
        for letter, point in zip(letters, points, strict=True):
            size = {"Q": 1, "C": 2, "z": -1}.get(letter, 0)
            pairs = [*rng.normal(size=(max(size, 0), 2)), *[point] * (size >= 0)]
            path += letter + " ".join(f"{a:.6f} {b:.6f}" for a, b in pairs)
            start = point if letter == "M" else start
            wanted.append(start if letter == "z" else point)
        found = np.array(points_of(short_path(path, 1)))
        assert np.abs(found - np.array(wanted)).max() <= 0.0500011
        assert np.abs(found + 0.2 - np.array(wanted)).max() > 0.0500011


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("M 0.04 0 L 10 0 L 10 -0.5 z", "M0 0h10v-.5z"),
        ("M1 1L2.5 1.5L3.4 2L3.4 2", "M1 1l1.5.5.9.5h0"),
        ("M1 2M3 4L5 6", "M1 2m2 2l2 2"),
    ],
)
def test_paths_are_short(path, written):
    """Letters and signs that say nothing are left out."""
    assert short_path(path, 1) == written


def test_series_is_one_path_with_marks():
    """Marks in a row become a path through their places; ticks become strokes."""
    uses = "".join(f'<use xlink:href="#m" x="{x}" y="2"/>' for x in range(5))
    ticks = "".join(f'<use xlink:href="#t" x="{x}" y="9"/>' for x in range(3))
    drawing = (
        f'<svg xmlns="{SVG}" xmlns:xlink="http://www.w3.org/1999/xlink"><g><defs>'
        '<path id="m" d="M 0 -1 L 1 1 L -1 1 z"/><path id="t" d="M 0 0 L 0 3.5"/>'
        f"</defs><g style='fill: {BLUE}'>{uses}</g><g>{ticks}</g></g></svg>"
    )
    root = parse(compact(drawing))
    assert not list(root.iter(f"{{{SVG}}}use"))
    (marker,) = root.iter(f"{{{SVG}}}marker")
    marked, strokes = [p for p in root.iter(f"{{{SVG}}}path") if p not in list(marker)]
    ends = {marked.get(f"marker-{where}") for where in ("start", "mid", "end")}
    assert ends == {f"url(#{marker.get('id')})"}
    assert points_of(marked.get("d")) == [(float(x), 2.0) for x in range(5)]
    assert strokes.get("d") == "M0 9v3.5m1-3.5v3.5m1-3.5v3.5"


def test_unknown_path_command_is_refused():
    """A command that matplotlib does not write is an error, not another drawing."""
    with pytest.raises(ValueError, match="'A'"):
        short_path("M0 0A1 1 0 0 0 2 2", 1)


@pytest.mark.parametrize("name", FIGURES)
def test_outlines_are_drawn_once(svgs, name):
    """No outline of a glyph or mark, and no label of several pieces, stands twice."""
    root = parse(svgs[name])
    outlines = [p.get("d") for p in root.iter(f"{{{SVG}}}path") if p.get("id")]
    looks = [
        tuple(sorted((n, v) for n, v in p.items() if n != "id"))
        for p in root.iter(f"{{{SVG}}}path")
        if p.get("id")
    ]
    assert len(outlines) > 10
    assert len(set(looks)) == len(looks)
    labels = [
        "".join(ET.tostring(e, encoding="unicode") for e in group)
        + str(group.get("fill"))
        + group.get("transform").rpartition(")")[0].rpartition(")")[2]
        for group in root.iter(f"{{{SVG}}}g")
        if "scale" in (group.get("transform") or "")
    ]
    assert len(set(labels)) == len(labels)


def test_unknown_colour_is_refused():
    """A colour without a dark counterpart is an error, not a black spot."""
    with pytest.raises(ValueError, match="#123456"):
        dark_style({"#123456"})
