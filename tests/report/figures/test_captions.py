"""Figures look like the pages that they stand on."""

import re

import pytest

from montecarlo.claims.verdicts import Verdict
from montecarlo.report.figures.files import FONTS
from montecarlo.report.figures.palette import DARK, LIGHT
from montecarlo.report.figures.verdicts import PARTS
from montecarlo.report.render.pages import stylesheet


@pytest.mark.parametrize("code", ["", "zh", "ja"])
def test_fonts_are_those_of_pages(code):
    """A picture cannot use a page's own font, but looks for the same ones."""
    bare = re.sub(r'["\s]', "", stylesheet())
    families = re.findall(r"font-family:([^;]+),sans-serif;", bare)
    mine = re.sub(r'["\s]', "", FONTS[code]).removesuffix(",DejaVuSans")
    assert mine in families


@pytest.mark.parametrize("verdict", Verdict)
def test_verdicts_have_the_colours_of_pages(verdict):
    """A verdict's colour is its badge's, on light and on dark pages."""
    light, dark = re.findall(rf"--{verdict}:\s*(#[0-9a-f]{{6}})", stylesheet())[:2]
    _, colour = PARTS[verdict]
    assert (LIGHT[colour], DARK[colour]) == (light, dark)
