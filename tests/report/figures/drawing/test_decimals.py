"""Decimal commas: the same figures, but for their marks."""

import io
import re

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.drawing.decimals import (
    COMMA,
    POINT,
    with_comma,
    write_commas,
)
from montecarlo.report.figures.drawing.panels import house_style
from montecarlo.report.figures.drawing.svg import compact
from montecarlo.report.render.contents import make_figure


def drawn(*texts: str) -> str:
    """SVG of a figure of these texts."""
    with house_style("decimals"):
        figure = Figure(figsize=(2, 1))
        for place, text in enumerate(texts):
            figure.text(0.1, 0.2 + 0.2 * place, text)
        content = io.StringIO()
        figure.savefig(content, format="svg", metadata={"Date": None})
    return compact(content.getvalue())


def test_comma_is_drawn_as_a_comma():
    """What is exchanged is what would have been drawn, inside formulas and outside."""
    points = drawn("0.5", "−12.25", r"$Q_{0.5}$")
    assert with_comma(points) == drawn("0,5", "−12,25", r"$Q_{0{,}5}$")
    assert with_comma(points) != points
    whole = drawn("5", r"$c = \sqrt{d_k}\cdot 2$")
    assert with_comma(whole) == whole


@pytest.mark.parametrize("name", FIGURES)
def test_points_in_figures_are_decimal_points(laid_out, name):
    """Every full stop of a figure stands between digits, so that it may be a comma."""
    for text in laid_out(name).findobj(Text):
        assert not re.search(r"(?<!\d)\.|\.(?!\d)", text.get_text()), text.get_text()


@pytest.mark.parametrize("name", ["thresholds", "gradients", "planted"])
def test_files_have_commas_where_pages_have_them(build, svgs, name):
    """Both ways come to the same bytes, where no number is centred on its height."""
    with house_style(name):
        figure = build(name)
        write_commas(figure)
        content = io.StringIO()
        figure.savefig(content, format="svg", metadata={"Date": None})
    assert compact(content.getvalue()) == with_comma(svgs[name]) != svgs[name]


def test_data_uri_is_exchanged_as_well(svgs):
    """A page embeds the figure with commas, of the same size."""
    figure = make_figure("thresholds", svgs["thresholds"])
    assert POINT in figure.source
    assert POINT not in figure.with_comma
    assert COMMA in figure.with_comma
    assert figure.with_comma.replace(COMMA, POINT) == figure.source
