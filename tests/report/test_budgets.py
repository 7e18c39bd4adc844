"""How long and how heavy the pages of a standard report are, as a reader meets them."""

import sys

import pytest

from montecarlo.cli.report import main

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDTH, HEIGHT = 1280, 800
MOST_CLOSED, MOST_OPEN = 17_000, 25_000
MOST_WORDS = 5_000
MOST_BYTES, MOST_EVIDENCE = 700_000, 1_500_000
OPEN = "for (const d of document.querySelectorAll('details')) d.open = true"
HOW_HIGH = "document.documentElement.scrollHeight"
TEXT = "document.body.innerText"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The standard report in English."""
    output = tmp_path_factory.mktemp("standard") / "output"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["report"])
        given = ["--preset", "standard", "--lang", "en", "--quiet"]
        assert main([*given, "--output", str(output)]) == 0
    return output


def test_report_is_a_dozen_screens(browser, folder):
    """Its height, closed and open, and its words keep within what was promised.

    Words are what stands between white space while the details are closed.
    """
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto((folder / "en.html").as_uri())
    assert page.evaluate(HOW_HIGH) <= MOST_CLOSED
    assert len(page.evaluate(TEXT).split()) <= MOST_WORDS
    page.evaluate(OPEN)
    assert page.evaluate(HOW_HIGH) <= MOST_OPEN
    page.close()


def test_pages_are_light(folder):
    """The report and its evidence can be sent by mail."""
    assert (folder / "en.html").stat().st_size <= MOST_BYTES
    assert (folder / "evidence-en.html").stat().st_size <= MOST_EVIDENCE
