"""The explorer of the report page: what it computes, draws, says and looks like."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from montecarlo.report.language.catalogues import template_folder
from montecarlo.theory import expected_row, largest_weight_share, query_gradient_squared
from studies import explorer

#: Positions of the slider for d_k: four an octave, those that round to the same once.
SIZES = list(dict.fromkeys(round(2 ** (i / 4)) for i in range(41)))
#: What the page promises: relative, and absolute for the share.
RELATIVE, ABSOLUTE = 1e-3, 1e-4
#: Standard errors that a drawn mean may be away: 1 in 16,000 is farther by chance.
FAR = 4.0
REDRAWS, ROWS = 200, 400
#: d_k, n and exponent that rows are drawn for: also where |q| differs most.
DRAWN = ((1, 8, 0), (2, 16, 0), (3, 16, 100), (64, 128, 50), (16, 512, 0))
#: Moves the sliders, and returns what the page then has; the exponent in hundredths.
ASK = """places => places.map(([d, n, a]) => {
  const get = name => document.getElementById("explorer-" + name);
  [get("d").value, get("n").value, get("a").value] = [d, n, a];
  get("a").dispatchEvent(new Event("input", {bubbles: true}));
  const number = name => +get(name).dataset.value;
  return Object.fromEntries(["d-value", "n-value", "c-value", "largest", "keys",
    "share", "jacobian", "gradient", "exact"].map(name => [name, number(name)]));
})"""
REDRAW = """times => Array.from({length: times}, () => {
  document.querySelector(".again").click();
  return ["drawn", "error", "count"].map(
    name => +document.getElementById("explorer-" + name).dataset.value);
})"""


@dataclass
class Opened:
    """A page, and what happened on it."""

    page: Any

    def ask(self, places: list[tuple[int, int, int]]) -> list[dict[str, float]]:
        """Return what the page has for d_k, n and hundredths of the exponent."""
        sliders = [(SIZES.index(d), explorer.KEYS.index(n), a) for d, n, a in places]
        return self.page.evaluate(ASK, sliders)

    def text(self, name: str) -> str:
        """Return what stands in a part of the explorer."""
        return self.page.inner_text(f"#explorer-{name}")


@pytest.fixture
def opened(browser, report, tmp_path):
    """Open a page, or one whose script was changed; without motion, unless asked."""
    contexts = []

    def open_page(name="en", change=None, **options):
        report.page(name)
        path = report.folder / f"{name}.html"
        if change is not None:
            text = path.read_text(encoding="utf-8")
            assert text.count(change[0]) == 1
            path = tmp_path / "changed.html"
            path.write_text(text.replace(*change), encoding="utf-8")
            options["bypass_csp"] = True
        options = {"reduced_motion": "reduce", **options}
        size = {"width": options.pop("width", 1280), "height": 900}
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.goto(path.as_uri())
        return found

    yield open_page
    for context in contexts:
        context.close()


def odd_places(count: int) -> Iterator[tuple[int, int, int]]:
    """Yield places all over the sliders, the corners first."""
    for d in (SIZES[0], SIZES[-1]):
        for n in (explorer.KEYS[0], explorer.KEYS[-1]):
            yield from ((d, n, a) for a in (0, 100))
    rng = np.random.default_rng(8)
    for _ in range(count - 8):
        d, n = rng.choice(SIZES), rng.choice(explorer.KEYS)
        yield int(d), int(n), int(rng.integers(101))


@cache
def exact(d_k: int, n_keys: int, hundredths: int) -> dict[str, float]:
    """Return what theory has, averaged over |q| by its own code."""
    rows = {"d_k": d_k, "divisor": float(d_k) ** (hundredths / 100)}
    row = expected_row(n_keys, **rows)
    return {
        "largest": row["weight_max"].value,
        "keys": float(np.exp(row["entropy"].value)),
        "share": largest_weight_share(explorer.SATURATED, n_keys, **rows).value,
        "jacobian": row["jacobian_frobenius_squared"].value ** 0.5,
        "gradient": query_gradient_squared(n_keys, **rows).value ** 0.5,
    }


def deviations(page: Opened, places: list[tuple[int, int, int]]) -> dict[str, float]:
    """Return by how much of what is promised the page is off, at most."""
    worst: dict[str, float] = {}
    for place, found in zip(places, page.ask(places), strict=True):
        assert (found["d-value"], found["n-value"]) == place[:2]
        assert found["c-value"] == pytest.approx(place[0] ** (place[2] / 100))
        for name, value in exact(*place).items():
            bound = ABSOLUTE if name == "share" else RELATIVE * value
            off = abs(found[name] - value) / bound
            worst[name] = max(worst.get(name, 0.0), off)
    return worst


def distance(page: Opened, place: tuple[int, int, int], times: int) -> float:
    """Return how many standard errors drawn means are away from the exact one."""
    (there,) = page.ask([place])
    means, errors, counts = np.array(page.page.evaluate(REDRAW, times)).T
    assert set(counts) == {ROWS}
    # 200 means tell their standard deviation to 5 %
    assert means.std() == pytest.approx(np.sqrt((errors**2).mean()), rel=0.3)
    error = np.sqrt((errors**2).sum()) / times
    return abs(means.mean() - there["exact"]) / error


def test_some_of_the_table_made_again():
    """The table is what `python -m studies.explorer` makes, to a last digit or two."""
    table = json.loads((template_folder() / "explorer.json").read_bytes())
    assert table["keys"] == list(explorer.KEYS)
    assert (table["top"], table["unit"]) == (explorer.TOP, explorer.UNIT)
    for n_keys in (explorer.KEYS[0], explorer.KEYS[4]):
        found = np.array(table["functions"][explorer.KEYS.index(n_keys)])
        assert np.abs(found - explorer.coefficients(n_keys)).max() <= 2
    assert (template_folder() / "explorer.json").stat().st_size < 20_000


@pytest.mark.browser
@pytest.mark.slow
def test_exact_values_are_those_of_theory(opened):
    """Everywhere on the sliders, within what is promised."""
    worst = deviations(opened(), list(odd_places(80)))
    assert all(off < 1.0 for off in worst.values()), worst


@pytest.mark.browser
@pytest.mark.slow
def test_drawn_means_come_to_the_exact_ones(opened):
    """Within four standard errors over 200 redraws; by chance one run in 3,000 fails.

    The errors that are shown are those of the means.
    """
    page = opened()
    assert all(distance(page, place, REDRAWS) < FAR for place in DRAWN)


#: One error in each part: the density of |q|, the polynomials, the draws.
PLANTED = (
    ("Math.exp(d * (y - ", "Math.exp((d - 1) * (y - "),
    ("2 * x * next - after + c", "2 * x * next - 0.999 * after + c"),
    ("Math.sqrt(-2 * Math.log", "Math.sqrt(-1.9 * Math.log"),
    ("Math.hypot(...normals(d))", "Math.sqrt(d)"),
)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("change", PLANTED)
def test_planted_errors_are_found(opened, change):
    """What the two tests above look at is off by more than they allow."""
    page, few = opened(change=change), list(odd_places(12))
    wrong = max(deviations(page, few).values()) > 1.0
    assert wrong == (change in PLANTED[:2])
    if change in PLANTED[2:]:
        assert any(distance(page, place, REDRAWS) > FAR for place in DRAWN)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(opened, scheme):
    """No rule of axe is broken, also while a choice of the divisor is not pressed."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    for width in (1280, 390):
        found = opened(color_scheme=scheme, width=width)
        found.ask([(64, 128, 33)])
        result = Axe().run(found.page, context="#explorer").response
        assert result["violations"] == []
        assert len(result["passes"]) > 10


@pytest.mark.browser
@pytest.mark.slow
def test_keyboard_does_all(opened):
    """Sliders, divisors and draws by keys alone; what is heard is what is shown."""
    found = opened()
    page = found.page
    page.focus("#explorer-d")
    for key, shown in (("ArrowRight", "76"), ("Home", "1"), ("End", "1024")):
        page.keyboard.press(key)
        assert found.text("d-value") == shown
        assert page.get_attribute("#explorer-d", "aria-valuetext") == shown
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert found.text("n-value") == "16,384"
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert found.text("c-value") == "1024"
    pressed = "#explorer [aria-pressed='true']"
    for exponent, c in (("0", "1.00"), ("0.5", "32.0"), ("0.5", "64.0"), ("1", "1024")):
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.locator(pressed).count() == 1
        assert page.get_attribute(pressed, "data-power") == exponent
        assert found.text("c-value") == c
    assert page.get_attribute("#explorer-a", "aria-valuetext").startswith("1.00, c = ")
    before = found.text("drawn")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert found.text("drawn") != before
    page.wait_for_function(
        "said => document.getElementById('explorer-status').textContent.includes(said)",
        arg=found.text("drawn"),
    )
    assert found.text("drawn") in found.text("status")
    assert found.text("exact") in found.text("status")


@pytest.mark.browser
@pytest.mark.slow
def test_a_picture_stands_in_its_place_without_a_script(opened):
    """And with a script only the explorer; on paper without its controls."""
    page = opened(java_script_enabled=False).page
    assert page.is_visible("#figure-attention")
    assert not page.is_visible("#explorer-form")
    page = opened().page
    assert not page.is_visible("#figure-attention")
    assert page.is_visible("#explorer-form")
    page.emulate_media(media="print")
    assert page.locator("#explorer :is(input, button):visible").count() == 0
    assert page.is_visible("#explorer-largest")
    assert page.is_visible("#explorer-d-value")
