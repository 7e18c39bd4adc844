"""Pages as a browser shows them: no request, no barrier, no box, no overflow."""

import re
from dataclasses import dataclass, field

import pytest

from tests.report.conftest import CODES, EVIDENCE_PAGES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = (*CODES, *EVIDENCE_PAGES, "index", "erratum-de", "own_report/ja")
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
#: Details that are examined in the dark as well: with every verdict of a case.
KEPT = 16
#: What axe examines: structure and style of translations are those of English pages.
EXAMINED = {"en", "evidence-en", "index", "erratum-de", "own_report/ja"}
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
#: Tables that go on to a side, and how many of them throw no shadow there.
CUES = """() => {
  const wide = [...document.querySelectorAll(".scroll")].filter(
    e => e.scrollWidth > e.clientWidth);
  const bare = wide.filter(
    e => getComputedStyle(e).backgroundImage.split("gradient").length < 5);
  return [wide.length, bare.length];
}"""
#: Draws each character, and characters that no font has; returns those that look alike.
BOXES = """([characters, family, language]) => {
  document.documentElement.lang = language;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 40;
  const context = canvas.getContext("2d", {willReadFrequently: true});
  const draw = character => {
    context.clearRect(0, 0, 40, 40);
    context.font = "24px " + family;
    context.fillText(character, 4, 30);
    return context.getImageData(0, 0, 40, 40).data.join();
  };
  const boxes = new Set(["\\u0378", "\\u{10FFFD}", "\\u2FE0", "\\uFFFE"].map(draw));
  return characters.filter(character => boxes.has(draw(character)));
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

    def faults(self, *rules):
        """Return what axe finds, by all of its rules or by some."""
        from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

        options = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = {"type": "rule", "values": list(rules)}
        found = Axe().run(self.page, options=options).response["violations"]
        return [
            (fault["id"], node["html"][:200])
            for fault in found
            for node in fault["nodes"]
        ]


@pytest.fixture
def visit(browser):
    """Open a file as a reader would, offline."""
    contexts = []

    def open_file(path):
        context = browser.new_context(
            viewport={"width": 1280, "height": HEIGHT}, color_scheme="light"
        )
        contexts.append(context)
        context.add_init_script(WATCH)
        visited = Visit(context.new_page())
        page = visited.page
        page.on("request", lambda request: visited.requests.append(request.url))
        page.on("console", lambda message: visited.messages.append(message.text))
        page.on("pageerror", lambda error: visited.messages.append(str(error)))
        page.route(re.compile("^(?!file:|data:)"), lambda route: route.abort())
        page.goto(path.as_uri(), wait_until="load")
        return visited

    yield open_file
    for context in contexts:
        context.close()


@pytest.fixture(params=PAGES)
def visited(visit, request):
    """Each page of the report, and one about a user's claims, opened."""
    fixture, _, name = request.param.rpartition("/")
    page = request.getfixturevalue(fixture or "report").page(name)
    return page, visit(page.home.folder / f"{name}.html"), name


def assert_glyphs(browser, parsed, found):
    """See that no character is drawn as the box that stands for a missing one."""
    family = found.page.evaluate("getComputedStyle(document.body).fontFamily")
    language = found.page.evaluate("document.documentElement.lang")
    characters = {
        sign
        for text, element in parsed.texts()
        if not any(e.tag.endswith("math") for e in parsed.above(element))
        for sign in text
        if not sign.isspace()
    }
    assert len(characters) > 50
    blank = browser.new_page()
    asked = [sorted(characters), family, language]
    if blank.evaluate(BOXES, [["中", "あ"], "sans-serif", language]):
        blank.close()
        return  # no font for Chinese and Japanese is installed
    boxes = blank.evaluate(BOXES, asked)
    planted = blank.evaluate(BOXES, [["a", "\u0379"], family, language])
    blank.close()
    assert boxes == []
    assert planted == ["\u0379"]


def test_page_in_a_browser(visited, browser):
    """A page asks for nothing, breaks no rule of its policy or of access, and fits.

    One test for a page, as opening and examining one takes most of the time.
    """
    parsed, found, name = visited
    if name in CODES:
        assert_glyphs(browser, parsed, found)
    assert [
        url for url in found.requests if not url.startswith(("file:", "data:"))
    ] == []
    assert sum(url.startswith("file:") for url in found.requests) == 1
    assert found.page.evaluate("getComputedStyle(document.body).maxWidth") == "1152px"
    for width in WIDTHS:
        assert found.overflow(width) == []
    found.page.evaluate(OPEN)
    for width in WIDTHS:
        assert found.overflow(width) == []
        if width == WIDTHS[0] and name in EVIDENCE_PAGES:
            wide, bare = found.page.evaluate(CUES)
            assert wide > bare == 0
    if name in EXAMINED:
        assert found.faults() == []
        found.page.evaluate(CUT, KEPT)
        found.page.emulate_media(color_scheme="dark")
        assert found.faults("color-contrast", "link-in-text-block") == []
    if name == "evidence-en":
        cases = "[...document.querySelectorAll('.cases b')].map(b => b.dataset.verdict)"
        shown = {e.get("data-verdict") for e in parsed.root.iter("b")} - {None}
        assert set(found.page.evaluate(cases)) == shown
    assert found.blocked() == []
    assert found.messages == []
    images = "[...document.images].map(i => i.complete && i.naturalWidth > 0)"
    loaded = found.page.evaluate(images)
    assert all(loaded)
    assert len(loaded) == len(list(parsed.root.iter("img")))


#: Signs that stand at another height than the formula they belong to: on a new line.
LOST = """() => [...document.querySelectorAll(".kept")].filter(e => {
  const formula = e.querySelector("math").getBoundingClientRect();
  const range = document.createRange();
  range.selectNodeContents(e.lastChild);
  const sign = range.getBoundingClientRect();
  return formula.width > 0 && sign.top >= formula.bottom;
}).map(e => e.textContent)"""
LET_GO = """() => {
  for (const e of document.querySelectorAll(".kept")) e.style.whiteSpace = "normal";
}"""


@pytest.mark.parametrize("code", ["en", "zh"])
def test_no_line_begins_with_what_closes_a_formula(visit, report, code):
    """On a phone; where they are let go, some do not."""
    report.page(code)
    found = visit(report.folder / f"{code}.html")
    found.page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
    assert found.page.evaluate("document.querySelectorAll('.kept').length") > 50
    assert found.page.evaluate(LOST) == []
    found.page.evaluate(LET_GO)
    assert found.page.evaluate(LOST) != []


def test_faults_are_seen(visit, report, tmp_path):
    """Faint text, missing words, a wide page and a request would not pass."""
    image = '<img src="https://example.org/x.png" alt="x"><p style="color: red">y</p>'
    text = report.page("index").text
    planted = tmp_path / "planted.html"
    planted.write_text(text.replace("</main>", f"{image}</main>"), encoding="utf-8")
    found = visit(planted)
    blocked = found.blocked()
    assert any(entry.startswith("img-src https://example.org") for entry in blocked)
    assert any(entry.startswith("style-src-attr") for entry in blocked)
    assert found.messages != []
    found.page.evaluate("document.querySelector('h2').style.color = '#444'")
    assert found.faults("color-contrast") == []
    found.page.emulate_media(color_scheme="dark")
    assert [rule for rule, _ in found.faults("color-contrast")] == ["color-contrast"]
    assert found.overflow(320) == []
    found.page.evaluate("document.querySelector('h2').style.minWidth = '400px'")
    assert found.overflow(320) != []
    found.page.evaluate("document.querySelector('img').removeAttribute('alt')")
    found.page.evaluate("document.documentElement.removeAttribute('lang')")
    rules = {rule for rule, _ in found.faults()}
    assert {"image-alt", "html-has-lang"} <= rules
