"""Text in figures: formulas as runs, lines that break where a language lets them."""

from itertools import pairwise

import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.report.figures.labels import (
    Label,
    break_lines,
    formula_runs,
    text_runs,
    width_of,
)
from montecarlo.report.language.catalogues import read_language


def plain(runs):
    """The signs of runs: small ones in brackets, italic ones after an apostrophe."""
    return "".join(
        f"[{run.level:+}{run.text}]" if run.level else "'" * run.italic + run.text
        for run in runs
    )


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        ("d_k", "'d[-1k]"),
        (r"\sqrt{d_k}", "√'d[-1k]"),
        (r"\sqrt{2\,\ln n}", "√(2\N{THIN SPACE}ln\N{THIN SPACE}'n)"),
        (r"\lVert J\rVert_F", "‖\N{THIN SPACE}'J\N{THIN SPACE}‖[-1F]"),
        (r"\lVert v\rVert", "‖\N{THIN SPACE}'v\N{THIN SPACE}‖"),
        (r"p_{\max} \ge 0.9", "'p[-1max] ≥ 0.9"),
        (r"\operatorname{Var}(q\cdot k)", "Var('q·'k)"),
        ("10^{-3}", "10[+1-3]"),
        ("c = 1", "'c = 1"),
        ("-2", "−2"),
    ],
)
def test_a_formula_is_text(latex, shown):
    """Letters are italic, names upright, what is below or above the line small."""
    assert plain(formula_runs(latex)).replace("−3", "-3") == shown


@pytest.mark.parametrize("table", [DIVISORS, QUANTITIES])
def test_symbols_of_tables_can_be_set(table):
    """Whatever stands in a table and may stand in a figure."""
    for one in table.values():
        if "frac" not in one.symbol:
            assert width_of(formula_runs(one.symbol), 10.0) > 0.0


def test_what_is_not_known_is_refused():
    """A command that no rule is for is an error, not a word in the figure."""
    with pytest.raises(ValueError, match="frac"):
        formula_runs(r"\frac{a}{b}")


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("Rows of all keys", 60.0, ["Rows of all", "keys"]),
        ("最大の重み（全体）", 62.0, ["最大の重み", "（全体）"]),
        ("重み、$p$ の割合", 31.0, ["重み、", "p の割", "合"]),
        ("one", 1.0, ["one"]),
    ],
)
def test_lines_break_where_they_may(text, width, lines):
    """Between words or wide signs; no comma begins a line, no bracket ends one."""
    found = break_lines(text, 10.0, width)
    assert ["".join(run.text for run in line) for line in found] == lines


def test_lines_are_as_wide_as_they_may_be():
    """None is wider than it may be, and the next piece would not have fitted."""
    text = "share of the rows in which one key takes nearly everything there is"
    for width in (80.0, 120.0, 200.0):
        lines = break_lines(text, 11.0, width)
        assert all(width_of(line, 11.0) <= width for line in lines)
        for line, after in pairwise(lines):
            first = after[0].text.split()[0]
            assert width_of([*line, *text_runs(f" {first}")], 11.0) > width


def test_a_label_is_words_and_symbol():
    """The symbol stands behind the words, where they say, or alone."""
    german = read_language("de")
    held = Label("undivided", "c = 1")
    assert held.text_in(german) == "ohne Division\N{EM SPACE}$c = 1$"
    assert Label("%(symbol)s keys", "16384").text_in(german) == "$16{.}384$ Keys"
    held = Label(r"divided by $\sqrt{d_k}$")
    assert held.text_in(german) == r"durch $\sqrt{d_k}$ geteilt"
    assert Label(symbol="0.5").text_in(german) == "$0{,}5$"
    assert Label(symbol="16384").text_in(german) == "$16{.}384$"
