"""The README: its commands are the tested ones, its table and figure are fresh."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.report.content.findings import read_results
from montecarlo.report.figures import FIGURES, render_svg

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Points of a figure 520 points wide: far below a mark's size, far above rounding.
APART = 0.5


def load_script():
    """Import docs/make_readme.py, which is no module of the package."""
    path = ROOT / "docs" / "make_readme.py"
    spec = importlib.util.spec_from_file_location("make_readme", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def coordinates(svg):
    """Return every number of a figure's paths, in order."""
    paths = " ".join(re.findall(r' d="([^"]*)"', svg))
    return np.array([float(x) for x in re.findall(r"-?\d+\.?\d*", paths)])


def test_error_rate_is_what_was_counted():
    """The README's numbers of the error rate are those of the report card."""
    script = load_script()
    (line,) = script.RATE_LINE.findall(README)
    assert line == script.error_rate_line()
    assert "times as often as stated" in line


def test_commands_are_the_tested_ones():
    """A new user's two commands stand in the README as CI runs them."""
    assert "python -m pip install . && python -m montecarlo.report\n" in README
    assert 'python -m pip install -e ".[test]" && python -m pytest\n' in README
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert 'python -m pip install -e ".[test]" && python -m pytest\n' in ci


def numbered_claims():
    """The claims with their numbers; questions of readers are numbered apart."""
    claims = read_catalogue().claim
    said = [claim for claim in claims if claim.source]
    asked = [claim for claim in claims if not claim.source]
    yield from ((str(n), claim) for n, claim in enumerate(said, start=1))
    yield from ((f"Q{n}", claim) for n, claim in enumerate(asked, start=1))


def test_every_claim_is_in_the_table():
    """The table between the markers names each claim once, with a verdict."""
    script = load_script()
    table = README.partition(script.START)[2].partition(script.END)[0]
    for number, claim in numbered_claims():
        assert table.count(f"\n| {number} | {claim.statement} | **") == 1


def verdicts_of_table(table):
    """Return the verdict of each claim of a table, by its number."""
    rows = re.findall(r"^\| (Q?\d+) \|.* \| \*\*(\w+)\*\* \|", table, re.MULTILINE)
    return dict(rows)


def test_page_of_changes_has_the_verdicts_of_the_table():
    """What came of a change is what the table says of that claim today."""
    script = load_script()
    numbers = {claim.id: number for number, claim in numbered_claims()}
    table = README.partition(script.START)[2].partition(script.END)[0]
    verdicts = verdicts_of_table(table)
    assert len(verdicts) == len(numbers)
    page = (ROOT / "docs" / "changes-after-results.md").read_text(encoding="utf-8")
    rows = [found.group() for found in script.ROW.finditer(page)]
    changes = [re.findall(r"`([\w-]+)`|\*\*(.+)\*\*", row) for row in rows]
    assert len(changes) == len(re.findall(r"^\| `", page, re.MULTILINE)) > 20
    for (claim, _), (_, verdict) in changes:
        assert verdict == verdicts[numbers[claim]], claim


def test_replacing_the_table_keeps_the_rest():
    """Only what stands between the markers changes."""
    script = load_script()
    changed = script.with_table(README, "| new |")
    assert script.with_table(changed, "| other |") == script.with_table(
        README, "| other |"
    )
    assert changed.partition(script.START)[0] == README.partition(script.START)[0]
    assert changed.partition(script.END)[2] == README.partition(script.END)[2]


@pytest.mark.slow
def test_table_and_figure_are_those_of_the_standard_report(standard_report):
    """The standard preset at seed 1 gives the README's table and figure again."""
    script = load_script()
    results = read_results(standard_report)
    table = script.verdict_table(results)
    assert table in README
    fresh = render_svg(FIGURES["attention"], results.measurements, results.curves)
    kept = (ROOT / "docs" / "attention.svg").read_text(encoding="utf-8")
    new, old = coordinates(fresh), coordinates(kept)
    assert new.shape == old.shape
    assert np.abs(new - old).max() < APART
