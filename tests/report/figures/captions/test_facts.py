"""Alternative texts have the numbers that they name, from each figure's own module."""

import pickle

import pytest

from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.captions.facts import figure_facts


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
