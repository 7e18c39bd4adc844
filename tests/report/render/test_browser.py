"""Pages as a browser shows them: no request, no barrier, no box, no overflow."""

import re
from dataclasses import dataclass, field

import pytest

from tests.conftest import axe_faults
from tests.report.conftest import CODES, EVIDENCE_PAGES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = (*CODES, *EVIDENCE_PAGES, "index", "erratum-zh-chat", "own_report/ja")
WIDTHS = (320, 1280)
HEIGHT = 900
#: Collects what the policy blocked, from the first byte on.
WATCH = """
window.blocked = [];
document.addEventListener("securitypolicyviolation",
  event => window.blocked.push(event.violatedDirective + " " + event.blockedURI));
"""
OPEN = "for (const d of document.querySelectorAll('details')) d.open = true"
#: Takes the contents of all details away, or of all but some.
CUT = """(kept) => {
  const details = [...document.querySelectorAll("details")].slice(kept);
  for (const d of details) d.replaceChildren(d.querySelector("summary"));
}"""
#: Details that are examined in the dark and on evidence pages, which are long: with
#: every verdict of a case.
KEPT = 16
#: What axe examines: structure and style of translations are those of English pages.
EXAMINED = {"en", "evidence-en", "index", "erratum-zh-chat", "own_report/ja"}
#: What sticks out of the page to the right, apart from what scrolls by itself.
OVERFLOW = """() => {
  const width = window.innerWidth;
  const page = document.scrollingElement;
  const out = page.scrollWidth > width ? ["page " + page.scrollWidth] : [];
  for (const e of document.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (e.closest(".scroll") === null && e.closest("math") === null
        && box.width > 0 && box.right > width + 1)
      out.push(e.tagName + "." + e.className + " " + Math.round(box.right));
  }
  return out;
}"""


@dataclass
class Visit:
    """A page that was opened, and what happened meanwhile."""

    page: object
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def blocked(self):
        """Return what the policy blocked."""
        return self.page.evaluate("window.blocked")

    def overflow(self, width):
        """Return what is too wide for a window of some width."""
        self.page.set_viewport_size({"width": width, "height": HEIGHT})
        return self.page.evaluate(OVERFLOW)


@pytest.fixture
def visit(new_page):
    """Open a file as a reader would, offline."""

    def open_file(path):
        size = {"width": 1280, "height": HEIGHT}
        page = new_page(viewport=size, color_scheme="light")
        page.add_init_script(WATCH)
        visited = Visit(page)
        page.on("request", lambda request: visited.requests.append(request.url))
        page.on("console", lambda message: visited.messages.append(message.text))
        page.on("pageerror", lambda error: visited.messages.append(str(error)))
        page.route(re.compile("^(?!file:|data:)"), lambda route: route.abort())
        page.goto(path.as_uri(), wait_until="load")
        return visited

    return open_file


@pytest.fixture(params=PAGES)
def visited(visit, request):
    """Each page of the report, and one about a user's claims, opened."""
    fixture, _, name = request.param.rpartition("/")
    page = request.getfixturevalue(fixture or "report").page(name)
    return page, visit(page.home.folder / f"{name}.html"), name


def test_page_in_a_browser(visited):
    """A page asks for nothing, breaks no rule of its policy or of access, and fits.

    One test for a page, as opening and examining one takes most of the time.
    """
    parsed, found, name = visited
    assert [
        url for url in found.requests if not url.startswith(("file:", "data:"))
    ] == []
    assert sum(url.startswith("file:") for url in found.requests) == 1
    assert found.page.evaluate("getComputedStyle(document.body).maxWidth") == "1248px"
    for width in WIDTHS:
        assert found.overflow(width) == []
    found.page.evaluate(OPEN)
    for width in WIDTHS:
        assert found.overflow(width) == []
    if name in EXAMINED:
        if name.startswith("evidence"):
            found.page.evaluate(CUT, KEPT)
        assert axe_faults(found.page) == []
        found.page.evaluate(CUT, KEPT)
        found.page.emulate_media(color_scheme="dark")
        assert axe_faults(found.page, "color-contrast", "link-in-text-block") == []
    if name == "evidence-en":
        cases = "[...document.querySelectorAll('.cases b')].map(b => b.dataset.verdict)"
        shown = {e.get("data-verdict") for e in parsed.root.iter("b")} - {None}
        assert {"supported", "refuted"} <= set(found.page.evaluate(cases)) <= shown
    assert found.blocked() == []
    assert found.messages == []
    images = "[...document.images].map(i => i.complete && i.naturalWidth > 0)"
    loaded = found.page.evaluate(images)
    assert all(loaded)
    assert len(loaded) == len(list(parsed.root.iter("img")))
