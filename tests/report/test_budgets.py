"""Budgets of the pages."""

import pytest

from montecarlo.report.language.catalogues import LANGUAGES

#: A standard report takes as long as all fast tests together.
pytestmark = pytest.mark.slow

#: Pixels of the whole report with its details closed, by the width of the window.
MOST_HIGH = {1280: 9_750, 390: 14_500}
MOST_BYTES, MOST_EVIDENCE = 500_000, 1_500_000
HOW_HIGH = "document.documentElement.scrollHeight"


@pytest.mark.parametrize("width", MOST_HIGH)
def test_report_is_a_dozen_screens(browser, standard_report, width):
    """In every language its height is what was promised, and nothing is cut."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    for code in LANGUAGES:
        page.goto((standard_report / f"{code}.html").as_uri())
        assert page.evaluate(HOW_HIGH) <= MOST_HIGH[width], code
        assert page.evaluate("document.documentElement.scrollWidth") <= width, code
    page.close()


@pytest.mark.parametrize("code", LANGUAGES)
def test_pages_are_light(standard_report, code):
    """The report and its evidence can be sent by mail."""
    assert (standard_report / f"{code}.html").stat().st_size <= MOST_BYTES
    assert (standard_report / f"evidence-{code}.html").stat().st_size <= MOST_EVIDENCE
