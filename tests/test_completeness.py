"""What stands in a table has all that goes with it, or a test here says what lacks.

A distribution, a divisor, a number format, a quantity and a figure are one entry each.
An entry that forgets a symbol or a name, or has no look left or no caption, fails here
and not on a page.
"""

import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.cli.options import SHARED
from montecarlo.cli.report import build_parser
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.palette import (
    DISTRIBUTION_LOOKS,
    DIVISOR_LOOKS,
)
from montecarlo.report.figures.verdicts import CASES
from montecarlo.report.figures.weights import ATTENTION
from montecarlo.report.formats import FORMATS
from montecarlo.report.language.catalogues import LANGUAGES, SOURCE, read_language
from montecarlo.report.language.formulas import math_ml
from montecarlo.report.language.messages import source_messages
from montecarlo.report.language.symbols import row_symbol
from montecarlo.report.making import FILES
from montecarlo.report.render.contents import place_figures
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.study.executors import DASK, EXECUTORS, make_executor
from montecarlo.theory.references import REFERENCES, reference


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_is_whole(name):
    """Its moments fit each other, and it can be shown."""
    one = DISTRIBUTIONS[name]
    assert one.name == name
    assert math.isfinite(one.kurtosis) == (one.moments > 4)
    assert one.kurtosis >= 1.0
    assert name in DISTRIBUTION_LOOKS
    for code in LANGUAGES:
        assert read_language(code).translate(one.words)


def test_distributions_have_references():
    """Pairs have an exact variance under every distribution that has moments enough."""
    for name in DISTRIBUTIONS:
        found = reference(
            "score_variance", parse_point(name, name, 16), "sqrt", "value"
        )
        assert math.isclose(found.value, 1.0, rel_tol=1e-12)


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


@pytest.mark.parametrize("looks", [DISTRIBUTION_LOOKS, DIVISOR_LOOKS])
def test_looks_tell_entries_apart(looks):
    """Also without colour, by the mark; each has words or a symbol for the legend."""
    assert len({look.marker for look in looks.values()}) == len(looks)
    assert all(look.label.words or look.label.symbol for look in looks.values())


@pytest.mark.parametrize("name", QUANTITIES)
def test_a_quantity_is_whole(name):
    """It stands under its own name and has a symbol that can be set."""
    quantity = QUANTITIES[name]
    assert quantity.name == name
    assert "<math" in str(math_ml(quantity.symbol))
    assert row_symbol(name, "mean", "none")


def test_references_are_of_quantities():
    """Every reference is for a quantity that is measured."""
    assert set(REFERENCES) <= set(QUANTITIES)


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


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_whole(name):
    """It has files of its own in each language, and help and docs name it.

    That they are written, by whomever, is the matter of `test_formats`.
    """
    findings = SimpleNamespace(own=False)
    whole = SimpleNamespace(languages=LANGUAGES, errata=(), findings=findings)
    files = {one: list(FILES[one](whole)) for one in FORMATS}
    assert {code for _, _, code in files[name]} in ({SOURCE}, set(LANGUAGES))
    assert all(callable(render) for _, render, _ in files[name])
    written = [file for each in files.values() for file, *_ in each]
    assert len(set(written)) == len(written), "two formats write the same file"
    root = Path(__file__).parents[1]
    page = (root / "docs" / "first-report.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{name}\b", page)
    assert name in build_parser().format_help()


@pytest.mark.parametrize("name", EXECUTORS)
def test_an_executor_is_whole(name):
    """It works or is of a cluster, and help and the pages on clusters name it."""
    if name != DASK:
        with make_executor(1, name) as executor:
            assert executor.submit(len, name).result() == len(name)
            assert (executor.jobs, executor.kind) == (1, name)
    assert name in SHARED["--executor"]["help"]
    docs = Path(__file__).parents[1].joinpath("docs", "cluster.md")
    assert f"\n| `{name}` |" in docs.read_text(encoding="utf-8")


@pytest.mark.parametrize("own", [False, True])
def test_every_figure_has_one_place(own):
    """On the two pages of a report together, and on that of own claims; one of a
    report stands in for its explorer, without a number.
    """
    orders = [place_figures(own=own, on_report=page) for page in {True, own}]
    placed = [one for order in orders for ids in order.values() for one in ids]
    placed += [] if own else [ATTENTION.id]
    assert sorted(placed) == sorted([CASES.id, *FIGURES])
