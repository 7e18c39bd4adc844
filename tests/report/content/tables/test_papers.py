"""The page of papers: a paper's number is shown to the digits that it has."""

from types import SimpleNamespace

import pytest

from montecarlo.report.content.tables.papers import CaseView


@pytest.mark.parametrize(
    ("paper", "error"),
    [(0.943, 1.5e-2), (1.0, 1.5), (0.00012, 1.5e-4), (5e-05, 1.5e-4), (2.5e-7, 1.5e-7)],
)
def test_papers_number_has_the_digits_it_was_given(paper, error):
    """The error that rounds it to those digits, however small the number."""
    outcome = SimpleNamespace(paper=paper, region_low=None, region_high=None)
    shown = CaseView((), "", outcome)

    assert shown.paper_error == pytest.approx(error)
