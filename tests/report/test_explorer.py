"""The explorer of the report page: what it shows, draws, says and looks like."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.report.render.pages import passed_on
from montecarlo.sampling.streams import named_stream
from montecarlo.theory import expected_row, largest_weight_share
from montecarlo.theory.simulated_rows import simulated_table
from studies import explorer

TABLE = simulated_table()
#: Half of the last digit that the table has.
ROUNDING = 0.5 * 10.0 ** (1 - explorer.DIGITS)
#: Standard errors that a drawn value may be away: 1 in 16,000 is farther by chance.
FAR = 4.0
#: Moves the sliders and chooses; returns the text of the table, and the settings.
ASK = """([d, n, c]) => {
  const get = name => document.getElementById("explorer-" + name);
  [get("d").value, get("n").value] = [d, n];
  get("d").dispatchEvent(new Event("input", {bubbles: true}));
  document.querySelector(`[data-divisor="${c}"]`).click();
  const rows = [...document.querySelectorAll("#explorer tbody tr")];
  const shown = rows.map(row => [row.dataset.statistic,
    [...row.querySelectorAll("td")].map(cell => +cell.dataset.value)]);
  const sizes = ["d-value", "n-value"].map(name => get(name).textContent);
  return [Object.fromEntries(shown), ...sizes];
}"""
#: Largest weights of rows that are drawn, undivided and divided.
REDRAW = """times => Array.from({length: times}, () => {
  document.querySelector(".again").click();
  return ["none", "divided"].map(name => {
    const bar = document.querySelector(`#explorer-${name} .bars`).getAttribute("d");
    return -bar.match(/v(-[\\d.]+)h/)[1] / 100;
  });
})"""


@dataclass
class Opened:
    """A page, and what happened on it."""

    page: Any

    def ask(self, d_k: int, n_keys: int, divisor: str) -> tuple[dict[str, Any], ...]:
        """Return what the page has for a setting."""
        places = explorer.D_K.index(d_k), explorer.KEYS.index(n_keys)
        return self.page.evaluate(ASK, [*places, divisor])

    def text(self, name: str) -> str:
        """Return what stands in a part of the explorer."""
        return self.page.inner_text(f"#explorer-{name}")


@pytest.fixture
def opened(new_page, report, tmp_path):
    """Open a page, or one whose script was changed; without motion, unless asked."""

    def open_page(name="en", change=None, **options):
        report.page(name)
        path = report.folder / f"{name}.html"
        if change is not None:
            text = path.read_text(encoding="utf-8")
            assert text.count(change[0]) == 1
            path = tmp_path / "changed.html"
            path.write_text(text.replace(*change), encoding="utf-8")
            options["bypass_csp"] = True
        size = {"width": options.pop("width", 1280), "height": 900}
        found = Opened(new_page(viewport=size, **options))
        found.page.goto(path.as_uri())
        return found

    return open_page


def values_at(*setting) -> dict[str, float]:
    """Return what the table has of a setting."""
    values = TABLE["values"][[*explorer.settings()].index(setting)]
    return dict(zip(explorer.STATISTICS, values, strict=True))


def test_the_table_is_whole():
    """A line for each setting, and of a few kB."""
    for name in ("keys", "d_k", "divisors", "statistics"):
        known = {"keys": "KEYS", "d_k": "D_K", "divisors": "CHOSEN"}
        wanted = getattr(explorer, known.get(name, "STATISTICS"))
        assert TABLE[name] == list(wanted)
    assert TABLE["error"] == explorer.ERROR
    assert len(TABLE["values"]) == len([*explorer.settings()])
    assert explorer.TABLE.stat().st_size < 10_000


@pytest.mark.parametrize("setting", [(16, 64, "sqrt"), (128, 64, "none")])
def test_some_of_the_table_made_again(setting):
    """It is what `python -m studies.explorer` makes, to a digit."""
    found = explorer.statistics(*setting)
    assert found == pytest.approx(tuple(values_at(*setting).values()), rel=2 * ROUNDING)


@pytest.mark.parametrize("setting", [*explorer.settings()][::7])
def test_exact_values_are_those_of_theory(setting):
    """The largest weight and the share, everywhere."""
    n_keys, d_k, divisor = setting
    sizes, found = {"d_k": d_k, "divisor": divisor}, values_at(*setting)
    largest = expected_row(n_keys, **sizes)["weight_max"].value
    assert found["weight_max"] == pytest.approx(largest, rel=1.01 * ROUNDING)
    share = largest_weight_share(explorer.SATURATED, n_keys, **sizes).value
    assert found["saturated"] == pytest.approx(share, rel=1.01 * ROUNDING)


def textbook(n_keys, d_k, c, rows, rng):
    """Draw e^H and the norm of the query's gradient times c, from queries and keys."""
    keys, norms = np.empty(rows), np.empty(rows)
    for row in range(rows):
        q, k = rng.standard_normal(d_k), rng.standard_normal((n_keys, d_k))
        s, v = k @ q / c, rng.standard_normal(n_keys)
        p = np.exp(s - s.max())
        p /= p.sum()
        keys[row] = np.exp(-(p[p > 0] * np.log(p[p > 0])).sum())
        norms[row] = np.linalg.norm(k.T @ ((np.diag(p) - np.outer(p, p)) @ v))
    return keys, norms


@pytest.mark.parametrize(
    "setting", [(16, 8, "none"), (64, 64, "none"), (64, 8, "linear")]
)
def test_drawn_values_are_those_of_queries_and_keys(setting):
    """Within four standard errors of rows that are drawn as they are written."""
    n_keys, d_k, divisor = setting
    rng = named_stream(3, "textbook")
    c = DIVISORS[divisor].value(d_k)
    keys, norms = textbook(n_keys, d_k, c, 2000, rng)
    found = values_at(*setting)
    error = np.hypot(keys.std() / np.sqrt(len(keys)), 0.003 * keys.mean())
    assert abs(keys.mean() - found["effective_keys"]) < FAR * error
    below = (norms <= found["passed_on"]).mean()
    assert abs(below - 0.5) < FAR * 0.5 / np.sqrt(len(norms))


def test_keys_without_weight_are_none():
    """What is left out of long rows is a ten thousandth of the second key, at most."""
    for n_keys, std in ((16384, 8.0), (1024, 30.0), (16384, 30.0)):
        m = explorer.keys_with_weight(n_keys, std)
        assert 4 <= m < n_keys
        z = explorer.draw_largest(named_stream(4, "largest"), 2000, n_keys, n_keys)
        weights = np.exp(std * (z - z[:, 1:2]))
        assert np.median(weights[:, m:].sum(axis=1)) < explorer.NOTHING
    assert explorer.keys_with_weight(128, 0.5) == 128


@pytest.mark.browser
@pytest.mark.slow
def test_values_of_pages_are_those_of_the_table(opened):
    """Of each setting that is asked for; without a script, of the first one."""
    page = opened()
    rng = np.random.default_rng(8)
    places = [*explorer.settings()]
    for n_keys, d_k, divisor in (places[i] for i in rng.choice(len(places), 20)):
        chosen = "sqrt" if divisor == "none" else divisor
        shown, *sizes = page.ask(d_k, n_keys, chosen)
        assert [size.replace(",", "") for size in sizes] == [str(d_k), str(n_keys)]
        for statistic, values in shown.items():
            wanted = [values_at(n_keys, d_k, c)[statistic] for c in ("none", chosen)]
            assert values == wanted
    page.ask(64, 128, "sqrt")
    numbers = page.page.locator("#explorer tbody td").all_inner_texts()
    still = opened(java_script_enabled=False).page
    assert still.locator("#explorer tbody td").all_inner_texts() == numbers
    assert still.locator("#explorer svg:visible").count() == 0


#: One error in each part of a draw.
PLANTED = (
    None,
    ("Math.sqrt(-2 * Math.log", "Math.sqrt(-1.5 * Math.log"),
    ("Math.hypot(...query.subarray(0, d))", "Math.hypot(...query)"),
    ("scores.slice(0, n)", "scores.slice(0, 2 * n)"),
)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("change", PLANTED)
def test_drawn_rows_are_those_of_the_table(opened, change):
    """Their largest weights come to the exact mean, but not with a planted error."""
    page, off, times = opened(change=change), [], 500 if change else 2000
    for d_k, n_keys in ((8, 16), (64, 128)):
        page.ask(d_k, n_keys, "sqrt")
        drawn = np.array(page.page.evaluate(REDRAW, times))
        means = [values_at(n_keys, d_k, c)["weight_max"] for c in ("none", "sqrt")]
        off += [*np.abs(drawn.mean(axis=0) - means) / (drawn.std(axis=0) / times**0.5)]
    assert (max(off) > FAR) == (change is not None)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(opened, scheme):
    """No rule of axe is broken."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    for width in (1280, 390):
        found = opened(color_scheme=scheme, width=width)
        result = Axe().run(found.page, context="#explorer").response
        assert result["violations"] == []
        assert len(result["passes"]) > 10


@pytest.mark.browser
@pytest.mark.slow
def test_keyboard_does_all(opened):
    """Sliders, divisors and draws by keys alone; what is heard is what is shown."""
    page = opened().page
    page.focus("#explorer-d")
    for key, shown in (("ArrowRight", "128"), ("Home", "8"), ("End", "1024")):
        page.keyboard.press(key)
        assert page.inner_text("#explorer-d-value") == shown
        assert page.get_attribute("#explorer-d", "aria-valuetext") == shown
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert page.inner_text("#explorer-n-value") == "16,384"
    pressed = "#explorer [aria-pressed='true']"
    for divisor, c in (("sqrt", "32"), ("2sqrt", "64"), ("linear", "1024")):
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.locator(pressed).count() == 1
        assert page.get_attribute(pressed, "data-divisor") == divisor
        assert {*page.locator(".explorer-c").all_inner_texts()} == {c}
    before = page.get_attribute("#explorer-none", "aria-label")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    after = page.get_attribute("#explorer-none", "aria-label")
    assert before != after
    page.wait_for_function(
        "said => document.getElementById('explorer-status').textContent === said",
        arg=after,
    )


@pytest.mark.browser
@pytest.mark.slow
def test_axes_never_move(opened):
    """Whatever is chosen, a bar is its weight of the whole height; all has titles."""
    found = opened()
    ticks = "#explorer .plot span"
    before = found.page.locator(ticks).all_inner_texts()
    for setting in ((8, 16, "linear"), (1024, 16384, "sqrt"), (64, 128, "2sqrt")):
        found.ask(*setting)
        assert found.page.locator(ticks).all_inner_texts() == before
    assert all(found.page.locator("#explorer .axis").all_inner_texts())
    found.page.emulate_media(media="print")
    assert found.page.locator("#explorer :is(input, button):visible").count() == 0
    assert found.page.locator("#explorer tbody td:visible").count() == 8


def test_opening_has_the_ratios_of_the_explorer():
    """As sentences beside it have them, by the table's own order."""
    for d_k in (64, 256, 1024):
        none, sqrt = (
            TABLE["values"][[*explorer.settings()].index((128, d_k, divisor))][3]
            for divisor in ("none", "sqrt")
        )
        assert passed_on(d_k) == pytest.approx(none / sqrt, rel=1e-12)
