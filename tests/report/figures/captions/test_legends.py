"""Legends in words list what their pictures draw, in the same colours and shapes."""

import re

import pytest

from montecarlo.report.figures.captions.legends import KINDS, read_legends
from montecarlo.report.figures.drawing.palette import DARK, VERDICT_LOOKS
from montecarlo.report.render.pages import stylesheet

LOOKS = {kind: looks for kind, (_, looks) in KINDS.items()}
#: Those whose picture's own legend names divisors, distributions, formats or verdicts.
NAMED = (
    "attention",
    "variance",
    "weights-by-rank",
    "effective-keys",
    "weight-max",
    "gradients",
    "planted",
    "formats",
    "score-distribution",
    "texts",
    "training-loss",
    "training-rates",
    "training-starts",
    "report-card",
)


def symbols_of(figure):
    """What stands in all legends of a figure."""
    found = [*figure.legends, *(one.get_legend() for one in figure.axes)]
    return {t.get_text() for legend in found if legend for t in legend.get_texts()}


@pytest.mark.parametrize("name", NAMED)
def test_words_name_what_the_picture_names(build, results, name):
    """Each series of the picture's legend stands in the legend in words, and no other.

    Verdicts without a sign of their own share one.
    """
    legend = read_legends(*results)[name]
    wanted = set()
    for kind, looks in LOOKS.items():
        wanted |= {looks[series].symbol for series in getattr(legend, kind)}
    known = {look.symbol for looks in LOOKS.values() for look in looks.values()}
    shown = symbols_of(build(name))
    if name == "report-card":  # ✓ and ✗ are lines of the other panel
        shown -= {"✓", "✗"}
    assert wanted
    assert shown & known == wanted


def test_a_series_that_is_not_there_has_no_entry(results):
    """Without its rows, a divisor or distribution is in no legend."""
    measurements, curves = results
    fewer = measurements[~measurements["divisor"].eq("linear")]
    fewer = fewer[~fewer["distribution_k"].eq("laplace")]
    before, after = read_legends(measurements, curves), read_legends(fewer, curves)
    assert set(before["variance"].divisors) - set(after["variance"].divisors) == {
        "linear"
    }
    assert set(before["variance"].distributions) - set(
        after["variance"].distributions
    ) == {"laplace"}
    assert "linear" not in after["effective-keys"].divisors


@pytest.mark.parametrize(
    ("verdict", "name"),
    [
        ("supported", "supported"),
        ("refuted", "refuted"),
        ("tally", "mixed"),
        ("depends", "mixed"),
        ("approximate", "mixed"),
        ("degree", "undecided"),
        ("undecided", "undecided"),
    ],
)
def test_verdicts_have_the_colours_of_pages(verdict, name):
    """A verdict's colour is its badge's, on light and on dark pages."""
    light, dark = re.findall(rf"--{name}:\s*(#[0-9a-f]{{6}})", stylesheet())[:2]
    assert VERDICT_LOOKS[verdict].colour == light
    assert DARK[light] == dark


def test_every_two_verdicts_can_be_told_apart():
    """By shape, and not by colour alone; what was not judged looks alike."""
    judged = [v for v in VERDICT_LOOKS if not v.startswith("not_")]
    shapes = {
        (look.marker, look.filled, look.half)
        for look in (VERDICT_LOOKS[verdict] for verdict in judged)
    }
    assert len(shapes) == len(judged)
