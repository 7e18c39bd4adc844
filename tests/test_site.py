"""The site as a browser shows it: no request elsewhere, no barrier, found by a search.

MONTECARLO_SITE names the folder that `make docs` or .ci/run built; skipped without.
"""

import functools
import inspect
import json
import os
import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

import montecarlo
from montecarlo.__main__ import COMMANDS
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.report.language.catalogues import LANGUAGES
from tests.conftest import axe_faults
from tests.links import dead_links

SITE = os.environ.get("MONTECARLO_SITE")
#: One of each kind: text, code, tables, formulas, figures, generated pages.
EXAMINED = (
    "index",
    "api",
    "ask",
    "check-a-port",
    "commands",
    "contributing",
    "gallery",
    "quantities",
    "verdicts",
    "why-divide",
)
WIDTHS = (390, 1280)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not SITE, reason="MONTECARLO_SITE is not set"),
]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def address():
    """The site on a port of this machine."""
    handler = functools.partial(Quiet, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def opened(new_page, address):
    """Open a page; returns it and the addresses that were asked for elsewhere."""

    def open_page(name, scheme="light"):
        page, elsewhere = new_page(color_scheme=scheme, reduced_motion="reduce"), []

        def note(request):
            if not request.url.startswith((address, "data:", "blob:")):
                elsewhere.append(request.url)

        page.on("request", note)
        page.goto(f"{address}{name}.html", wait_until="networkidle")
        return page, elsewhere

    return open_page


@pytest.mark.parametrize("name", EXAMINED)
def test_pages_ask_for_nothing_and_fit(name, opened):
    """No request to other hosts, no fault of axe in either scheme, no page too wide."""
    for scheme in ("light", "dark"):
        page, elsewhere = opened(name, scheme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.scrollingElement.scrollWidth")
            assert wide <= width, f"{name}: {wide} px at {width}"
            faults = axe_faults(page)
            assert not faults, f"{name}, {scheme}, {width}: {faults}"
        assert not elsewhere


def test_no_page_names_another_host():
    """No script, style, font or picture of elsewhere; links are for readers."""
    loaded = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?https?:")
    pages = sorted(Path(SITE).glob("*.html"))
    assert len(pages) > 20
    for page in pages:
        assert not loaded.search(page.read_text(encoding="utf-8")), page.name


def test_no_link_is_dead():
    """Of any page of the site, its report among them; elsewhere only forms count."""
    site = Path(SITE)
    followed, dead = dead_links(site, sorted(site.rglob("*.html")))
    assert followed > 4000
    assert not dead


def test_formulas_are_set():
    """No dollar and no bracket of LaTeX stands where a formula is meant, in pages or
    in what is searched.
    """
    index = json.loads((Path(SITE) / "search" / "search_index.json").read_text("utf-8"))
    pages = [(path.name, path.read_text("utf-8")) for path in Path(SITE).glob("*.html")]
    pages += [(one["location"], one["title"] + one["text"]) for one in index["docs"]]
    code = re.compile(r"<(pre|code|script)\b.*?</\1>", re.DOTALL)
    for name, text in pages:
        assert not re.search(r"\$|\\[(\[]", code.sub("", text)), name


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("resume", "first-report"),
        ("resuming", "first-report"),
        ("uncertainty", "judging"),
        ("GQA", "check-a-port"),
        ("QK-norm", "normalise"),
    ],
)
def test_words_of_readers_are_in_the_index(word, page):
    """What somebody types who does not know our words."""
    index = json.loads((Path(SITE) / "search" / "search_index.json").read_text("utf-8"))
    found = [one for one in index["docs"] if word.lower() in one["text"].lower()]
    assert any(one["location"].startswith(f"{page}.html") for one in found)


#: Public names that have a page.
PAGES_OF = {"measure", "grid", "judge", "capture", "compare", "ScoreWatch"}


@pytest.mark.parametrize("name", sorted({*montecarlo.__all__} - {"ScoreWarning"}))
def test_reference_is_that_of_the_signature(name):
    """Each parameter is an entry, with its default as a value."""
    file = {"ScoreWatch": "score-watch"}.get(name, name) if name in PAGES_OF else "api"
    page = BeautifulSoup((Path(SITE) / f"{file}.html").read_bytes(), "html.parser")
    shown = {}
    for heading in page.select(f'[id^="montecarlo.{name}("]'):
        text = heading.parent.get_text().partition("–")[0]
        default = text.partition("default:")[2].strip().removesuffix(")").strip()
        shown[heading.code.get_text()] = default.replace('"', "'")
    signature = inspect.signature(getattr(montecarlo, name))
    empty = inspect.Parameter.empty
    assert shown == {
        one.name: "" if one.default is empty else repr(one.default)
        for one in signature.parameters.values()
    }


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [("unit of independence", "judging.html"), ("--exact", "commands.html")],
)
def test_the_search_finds_what_is_written(typed, wanted, opened):
    """Words, or an option, lead from the field to a page; without another host."""
    page, elsewhere = opened("index")
    page.set_viewport_size({"width": 1280, "height": 900})
    field = page.get_by_role("textbox", name="Search")
    field.click()
    field.press_sequentially(typed)
    results = page.locator(f'.md-search-result__item a[href*="{wanted}"]')
    results.first.wait_for(state="attached", timeout=30_000)
    assert not elsewhere


def test_reference_is_whole():
    """Every public name, command and quantity, and the report in each language; what
    has a page has a contents list and an example there.
    """
    site = Path(SITE)
    api = (site / "api.html").read_text(encoding="utf-8")
    for name in {*montecarlo.__all__} - PAGES_OF:
        assert f'id="montecarlo.{name}"' in api, name
    for name in PAGES_OF:
        file = {"ScoreWatch": "score-watch"}.get(name, name)
        page = (site / f"{file}.html").read_text(encoding="utf-8")
        assert f'id="montecarlo.{name}"' in page, name
        assert page.count('href="#example"') > 1 < page.count('href="#parameters"')
    commands = (site / "commands.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f'id="{name}"' in commands, name
    quantities = (site / "quantities.html").read_text(encoding="utf-8")
    for name, one in QUANTITIES.items():
        assert not one.words or f"<code>{name}</code>" in quantities, name
    for code in LANGUAGES:
        assert (site / "report" / f"{code}.html").stat().st_size > 10_000


def test_gallery_shows_every_figure():
    """Each with the line that makes it, which names a figure that there is."""
    from montecarlo.report.figures import FIGURES  # noqa: PLC0415

    text = (Path(SITE) / "gallery.html").read_text(encoding="utf-8")
    assert text.index("replicates of each sampled point") < text.index('"pictures"')
    for name in FIGURES:
        assert text.count(f'src="gallery/{name}.') == 2, name  # small, then large
        assert f"--only {name}" in re.sub(r"<[^>]+>", "", text), name
