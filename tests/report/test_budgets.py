"""How long and how heavy the pages of a standard report are, as a reader meets them."""

import pytest

from montecarlo.report.language.catalogues import LANGUAGES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: Pixels of the whole report with its details closed, by the width of the window.
MOST_HIGH = {1280: 9_750, 390: 14_500}
#: Words of English with details closed; a formula is one.
MOST_WORDS = 2_900
MOST_BYTES, MOST_EVIDENCE = 500_000, 1_500_000
HOW_HIGH = "document.documentElement.scrollHeight"
FORMULAS_AS_WORDS = """
for (const formula of document.querySelectorAll("math")) formula.outerHTML = "x"
"""
TEXT = "document.querySelector('main').innerText"


@pytest.mark.parametrize("width", MOST_HIGH)
def test_report_is_a_dozen_screens(browser, standard_report, width):
    """In every language its height is what was promised, and nothing is cut."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    for code in LANGUAGES:
        page.goto((standard_report / f"{code}.html").as_uri())
        assert page.evaluate(HOW_HIGH) <= MOST_HIGH[width], code
        assert page.evaluate("document.documentElement.scrollWidth") <= width, code
    page.close()


def test_report_is_short(browser, standard_report):
    """Words are what stands between white space."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((standard_report / "en.html").as_uri())
    page.evaluate(FORMULAS_AS_WORDS)
    assert len(page.evaluate(TEXT).split()) <= MOST_WORDS
    page.close()


@pytest.mark.parametrize("code", LANGUAGES)
def test_pages_are_light(standard_report, code):
    """The report and its evidence can be sent by mail."""
    assert (standard_report / f"{code}.html").stat().st_size <= MOST_BYTES
    assert (standard_report / f"evidence-{code}.html").stat().st_size <= MOST_EVIDENCE
