"""What stands in a table has all that goes with it, or a test here says what lacks.

A distribution, a divisor, a number format, a quantity and a figure are one entry each.
An entry that forgets a symbol or a name, or has no look left or no caption, fails here
and not on a page.
"""

import math

import numpy as np
import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.attention import ATTENTION
from montecarlo.report.figures.palette import DIVISOR_LOOKS
from montecarlo.report.figures.verdicts import CASES
from montecarlo.report.language.catalogues import LANGUAGES, read_language
from montecarlo.report.language.formulas import math_ml
from montecarlo.report.language.messages import source_messages
from montecarlo.report.language.symbols import row_symbol
from montecarlo.report.render.contents import place_figures
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.theory.references import reference


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_is_whole(name):
    """Its moments fit each other, and it can be shown."""
    one = DISTRIBUTIONS[name]
    assert one.name == name
    assert math.isfinite(one.kurtosis) == (one.moments > 4)
    assert one.kurtosis >= 1.0
    for code in LANGUAGES:
        assert read_language(code).translate(one.words)


@pytest.mark.parametrize("name", DIVISORS)
def test_a_divisor_is_whole(name):
    """It has a symbol that can be set, a look, and exact rows."""
    one = DIVISORS[name]
    assert "<math" in str(math_ml(one.symbol))
    assert name in DIVISOR_LOOKS
    found = reference(
        "entropy", parse_point("gaussian", "gaussian", 16, 8), name, "mean"
    )
    assert 0.0 < found.value < math.log(8)


@pytest.mark.parametrize("name", [name for name in NUMBER_FORMATS if name != "float64"])
def test_a_number_format_is_whole(name):
    """Its bits are those that it rounds to."""
    one = NUMBER_FORMATS[name]
    ulp = 2.0 ** (1 - one.bits)
    near = np.array([1.0 + ulp, 1.0 + 0.49 * ulp, 1.0 + 0.51 * ulp])
    assert one.round(near).tolist() == [1.0 + ulp, 1.0, 1.0 + ulp]


def test_looks_tell_divisors_apart():
    """Also without colour, by the mark; each has words or a symbol for the legend."""
    looks = DIVISOR_LOOKS.values()
    assert len({look.marker for look in looks}) == len(looks)
    assert all(look.label.words or look.label.symbol for look in looks)


@pytest.mark.parametrize("name", QUANTITIES)
def test_a_quantity_is_whole(name):
    """It stands under its own name and has a symbol that can be set."""
    quantity = QUANTITIES[name]
    assert quantity.name == name
    assert "<math" in str(math_ml(quantity.symbol))
    assert row_symbol(name, "mean", "none")


@pytest.fixture(scope="module")
def messages():
    """What each language has to translate."""
    return source_messages()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_whole(name, messages):
    """It is described, can be translated, and has a place on a page."""
    spec = FIGURES[name]
    assert spec.id == name
    assert spec.shows
    for words in (spec.caption, spec.alternative):
        assert words, f"{name} must have a caption and an alternative text"
        assert words in messages, f"{name} must mark its words by message()"
    if spec.section in {"answer", "method"}:  # of which there is one each
        assert spec.on_report == (spec.section == "answer")


@pytest.mark.parametrize("own", [False, True])
def test_every_figure_has_one_place(own):
    """On the two pages of a report together, and on that of own claims; one stands
    beside the opening of a report, without a number.
    """
    orders = [place_figures(own=own, on_report=page) for page in {True, own}]
    placed = [one for order in orders for ids in order.values() for one in ids]
    assert sorted([*placed, ATTENTION.id]) == sorted([CASES.id, *FIGURES])
