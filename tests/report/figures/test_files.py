"""Figures as files: small SVG for light and dark pages, words by language, themes."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib import font_manager

from montecarlo.errors import InputError
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.files import (
    draw_files,
    drawn_fonts,
    style_sheet,
)
from montecarlo.report.figures.palette import (
    CLAIMED,
    DARK,
    GRID,
    LIGHT,
    PAGE,
    SHADES,
    THEMES,
)
from montecarlo.report.language.catalogues import LANGUAGES, read_language

SVG = "http://www.w3.org/2000/svg"
COUNTERPARTS = {LIGHT[name]: DARK[name] for name in LIGHT}
#: What must be told from the page; grid lines and undecided areas need not stand out.
STANDING_OUT = set(LIGHT) - {PAGE, GRID, CLAIMED, *SHADES}


def parse(text: str) -> ET.Element:
    """Parse what a renderer of ours wrote."""
    return ET.fromstring(text)  # noqa: S314


def sheet_of(root: ET.Element) -> str:
    """The style sheet of a figure."""
    (sheet,) = root.iter(f"{{{SVG}}}style")
    return sheet.text


def looks_of(root: ET.Element) -> dict[str, dict[str, str]]:
    """What the light rules of a style sheet say of each class."""
    light = sheet_of(root).partition("@media")[0]
    return {
        name: dict(part.split(":") for part in look.split(";"))
        for name, look in re.findall(r"\.([\w-]+){([^}]*)}", light)
    }


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
    """A figure is well-formed and asks for nothing outside: no link, font or script.

    Nothing in it says by what or when it was made, and every coordinate is a number.
    """
    text = svgs[name]
    program = r"matplotlib|creator|metadata|20\d\d-[01]\d-[0-3]\d"
    assert not re.search(rf"{program}|\bnan|\binf\b", text.lower())
    root = parse(text)
    assert root.tag == f"{{{SVG}}}svg"
    assert root.get("viewBox")
    allowed = {"svg", "style", "defs", "g", "path", "use", "rect", "clipPath"}
    allowed |= {"text", "tspan"}
    assert {e.tag.removeprefix(f"{{{SVG}}}") for e in root.iter()} <= allowed
    assert set(re.findall(r"https?://[^\"]*", text)) == {SVG}
    assert "@import" not in text
    assert "<!DOCTYPE" not in text
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    named = {link[1:] for link in painted_with(root, "href")}
    named |= set(re.findall(r"url\(#(\w+)\)", sheet_of(root)))
    assert named <= set(ids)
    classes = {name for names in painted_with(root, "class") for name in names.split()}
    assert classes <= set(looks_of(root))
    assert set(looks_of(root)) - classes <= {"b-", "i-", "s-"}


@pytest.mark.parametrize("name", FIGURES)
def test_every_colour_has_a_dark_counterpart(svgs, name):
    """The dark style exchanges every colour that the figure uses."""
    root = parse(svgs[name])
    light, _, dark = sheet_of(root).partition("@media ")
    scheme, _, rules = dark.partition("{")
    assert scheme == "(prefers-color-scheme:dark)"
    wanted = {
        (label, part, COUNTERPARTS[value])
        for label, look in looks_of(root).items()
        for part, value in look.items()
        if value.startswith("#")
    }
    exchanged = {
        (label, *part.split(":"))
        for label, look in re.findall(r"\.([\w-]+){([^}]*)}", rules)
        for part in look.split(";")
    }
    assert exchanged == wanted
    assert set(re.findall(r"#\w{6}", light)) <= set(COUNTERPARTS)
    # A colour beside the classes would be the same on dark pages.
    for attribute in ("style", "fill", "stroke"):
        assert not painted_with(root, attribute)


@pytest.mark.parametrize("colour", sorted(STANDING_OUT))
@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_colours_stand_out_from_the_page(colour, theme):
    """Series, ink and areas have a contrast of 3 : 1 on their page."""
    assert contrast(theme[colour], theme[PAGE]) >= 3.0


def test_unknown_colour_is_refused():
    """A colour without a dark counterpart is an error, not a black spot."""
    with pytest.raises(KeyError, match="#123456"):
        style_sheet({"fill:#123456": "a"}, dark=True)
    assert style_sheet({"fill:#123456": "a"}, dark=False) == ".a{fill:#123456}"


# --- Words --------------------------------------------------------------------------


def texts_of(svg):
    """What stands in a figure, line by line."""
    return ["".join(line.itertext()) for line in parse(svg).iter(f"{{{SVG}}}text")]


@pytest.mark.parametrize("code", LANGUAGES)
def test_figures_speak_the_language_of_their_page(drawings, code):
    """Words are translated, also where lines are broken; numbers have its marks."""
    language = read_language(code)
    for name, drawing in drawings.items():
        svg = drawing.svg_in(language)
        assert f'<svg lang="{language.tag}"' in svg
        blocks = drawing.layout.blocks
        wanted = [part.label.words for block in blocks for part in block.parts]
        shown = re.sub(r"\s", "", "".join(texts_of(svg)))
        for words in filter(None, wanted):
            text = language.translate(words).replace("%%", "%")
            for part in re.split(r"\$[^$]*\$|%\(symbol\)s", text):
                assert re.sub(r"\s", "", part) in shown, (name, words)
    numbers = texts_of(drawings["gradients"].svg_in(language))
    mark = language.numbers.decimal_sign
    assert any(re.fullmatch(rf"0{re.escape(mark)}\d+", text) for text in numbers)


@pytest.mark.parametrize("kind", ["pdf", "png"])
def test_matplotlib_writes_the_words_as_well(results, kind):
    """A file of each language, which is not that of another, and as before again."""
    files = [
        draw_files(FIGURES["texts"], results, [kind], [read_language(code)])
        for code in ("de", "es", "de")
    ]
    first, spanish, again = (one.popitem() for one in files)
    assert first == again
    assert (first[0], spanish[0]) == ((kind, "de"), (kind, "es"))
    assert first[1] != spanish[1]


class FontList:
    """A list of fonts as matplotlib keeps it: what it names, and what is added."""

    ttflist = ()

    def __init__(self, *names):
        self.names = {*names}

    def get_font_names(self):
        """Return the names of all."""
        return [*self.names]

    def addfont(self, path):
        """Add a file under its own name, unless it is broken."""
        if path == "broken.ttf":
            raise RuntimeError
        self.names.add(Path(path).stem)


def test_a_missing_font_is_named(monkeypatch):
    """Japanese is not drawn with boxes: one line says what to install."""
    monkeypatch.setattr(font_manager, "fontManager", FontList("DejaVu Sans"))
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: ["broken.ttf"])
    with pytest.raises(InputError, match="fonts-noto-cjk"):
        drawn_fonts(read_language("ja"))
    assert drawn_fonts(read_language("de")) == []


@pytest.mark.slow
@pytest.mark.usefixtures("cjk_fonts")
@pytest.mark.parametrize("kind", ["pdf", "png"])
def test_chinese_and_japanese_are_drawn_in_fonts_of_their_own(results, kind):
    """Each is a file that differs from that of the other, and from English."""
    languages = [read_language(code) for code in ("en", "ja", "zh")]
    drawn = draw_files(FIGURES["texts"], results, [kind], languages)
    assert len({*drawn.values()}) == 3


def test_a_font_that_was_just_installed_is_found(monkeypatch):
    """Although matplotlib's own list is older."""
    monkeypatch.setattr(font_manager, "fontManager", FontList("DejaVu Sans"))
    monkeypatch.setattr(
        font_manager, "findSystemFonts", lambda: ["broken.ttf", "IPAexGothic.ttf"]
    )
    assert drawn_fonts(read_language("ja")) == ["IPAexGothic"]
