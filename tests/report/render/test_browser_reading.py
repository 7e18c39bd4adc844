"""What a reader does with a page: keyboard, print, links, without a script."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: Where the focus is: the element's name and id, and whether it can be seen.
FOCUS = """() => {
  const e = document.activeElement, box = e.getBoundingClientRect();
  const style = getComputedStyle(e);
  return [e.localName, e.id, box.width > 0 && box.height > 0,
    style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0];
}"""
#: Width of A4 paper without margins of 15 mm, in pixels.
PAPER = {"width": 680, "height": 1000}
CUT = """() => [...document.querySelectorAll("table, img, p, pre, h2, h3, math")]
  .filter(e => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && box.right > innerWidth + 1 && !e.closest(".unseen, .quiet");
  }).map(e => e.localName + " " + (e.id || e.className))"""
FOLDED = """() => [...document.querySelectorAll("details")].filter(d =>
  d.checkVisibility() && [...d.children].slice(1).some(e => !e.checkVisibility())
).length"""


@pytest.fixture
def opened(new_page, report):
    """Open the English page, with or without its script."""

    def open_page(name="en", **options):
        report.page(name)
        page = new_page(viewport={"width": 1280, "height": 900}, **options)
        page.goto((report.folder / f"{name}.html").as_uri())
        return page

    return open_page


def test_keyboard_reaches_everything_in_order(opened):
    """Tab goes through all that can be used, in the order of the page, and is seen."""
    page = opened()
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUS))
    assert seen[0][0] == "a"
    assert all(visible for _, _, visible, _ in seen[1:])
    assert all(outlined for *_, outlined in seen)
    ids = [name for _, name, _, _ in seen]
    assert [n for n in ids if n.startswith("explorer-")] == [
        "explorer-d",
        "explorer-n",
    ]
    # the first link leads over the navigation
    page.reload()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"


def test_page_is_whole_without_a_script(opened, report):
    """Where scripts are off, every claim and value is there, and no dead control."""
    page = opened(java_script_enabled=False)
    assert page.locator("form:visible").count() == 0
    claims = report.contents.findings.claims
    assert page.locator("[id^='claim-']").count() == len(claims)
    counts = page.locator("summary:has(.counts)")  # opens the claims that it counts
    for place in range(counts.count()):
        counts.nth(place).click()
    assert page.locator(".claims > details:visible").count() > 30
    page = opened("evidence-en", java_script_enabled=False)
    assert page.locator("form:visible").count() == 0


@pytest.mark.parametrize("name", ["de", "ja"])
def test_print_cuts_nothing_and_folds_nothing(opened, name):
    """On paper all that is folded is there, and nothing sticks out."""
    page = opened(name)
    page.set_viewport_size(PAPER)
    assert page.evaluate(FOLDED) > 5
    page.emulate_media(media="print")
    assert page.evaluate(FOLDED) == 0
    assert page.evaluate(CUT) == []
    # a disc without its background is the ring of another verdict
    badge = "getComputedStyle(document.querySelector('.verdict'), '::before')"
    assert page.evaluate(f"{badge}.printColorAdjust") == "exact"


@pytest.mark.parametrize(("name", "least"), [("zh", 40), ("evidence-en", 10)])
def test_every_anchor_leads_to_what_can_be_seen(opened, name, least):
    """Each link within a page arrives at its place, folded parts opening for it."""
    page = opened(name)
    targets = page.evaluate(
        "[...new Set([...document.querySelectorAll('a[href^=\"#\"]')]"
        ".map(a => a.hash.slice(1)))]"
    )
    # other pages lead to claims, whose lines are folded
    targets += page.evaluate(
        "[...document.querySelectorAll(\"[id^='claim-']\")].map(e => e.id)"
    )
    assert len(targets) > least
    lost = page.evaluate(
        """targets => targets.filter(id => {
          const e = document.getElementById(id);
          if (!e) return true;
          location.hash = "#" + id;
          return e.getBoundingClientRect().height === 0;
        })""",
        targets,
    )
    assert lost == []
