"""Captions: numbers of alternative texts, legends in words as their pictures draw."""

import pickle
import re

import pytest

from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.captions import KINDS, figure_facts, read_legends
from montecarlo.report.figures.palette import DARK, LIGHT, VERDICT_LOOKS
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


def test_every_figure_has_its_two_numbers(results):
    """A figure without them would be left out of the pages."""
    facts = figure_facts(*results)
    assert list(facts) == list(FIGURES)
    assert [
        n for n, fact in facts.items() if not {"first", "second"} <= set(fact)
    ] == []


@pytest.mark.parametrize("name", FIGURES)
def test_figure_can_be_sent_to_a_worker(name):
    """Its functions have names: of a lambda, pages would be drawn by one process."""
    assert pickle.loads(pickle.dumps(FIGURES[name])) == FIGURES[name]  # noqa: S301


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
        wanted |= {looks[series].symbol for series in legend[kind]}
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
    for kind, gone in (("divisors", "linear"), ("distributions", "laplace")):
        names = (set(one["variance"][kind]) for one in (before, after))
        assert next(names) - next(names) == {gone}
    assert "linear" not in after["effective-keys"]["divisors"]


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
    colour = VERDICT_LOOKS[verdict].colour
    assert (LIGHT[colour], DARK[colour]) == (light, dark)


def test_every_two_verdicts_can_be_told_apart():
    """By shape, and not by colour alone; what was not judged looks alike."""
    judged = [v for v in VERDICT_LOOKS if not v.startswith("not_")]
    shapes = {
        (look.marker, look.filled, look.half)
        for look in (VERDICT_LOOKS[verdict] for verdict in judged)
    }
    assert len(shapes) == len(judged)
