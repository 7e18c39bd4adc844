"""The README: its commands are the tested ones; what it and docs/ quote is fresh."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.verdicts import Verdict
from montecarlo.report.content.findings import read_results
from montecarlo.report.render.contents import RELEASED

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Points of a figure 520 points wide: far below a mark's size, far above rounding.
APART = 0.5


@pytest.fixture(scope="module")
def script():
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


def page_of(script, name):
    """The page that holds a part."""
    return (ROOT / script.PARTS[name][0]).read_text(encoding="utf-8")


def test_readme_is_short():
    """At most 150 lines and 8.5 kB."""
    assert len(README.splitlines()) <= 150
    assert len(README.encode()) <= 8500


def test_commands_are_the_tested_ones():
    """A new user's two commands stand in the README as CI runs them."""
    assert "python -m pip install . && python -m montecarlo.report\n" in README
    assert 'python -m pip install -e ".[test]" && python -m pytest\n' in README
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert 'python -m pip install -e ".[test]" && python -m pytest\n' in ci


def test_error_rate_is_what_was_counted(script):
    """The table of how often intervals missed is that of the counts."""
    table = script.error_rate_table()
    assert f"\n\n{table}\n\n" in page_of(script, "error-rate")
    assert "| mean, several looks |" in table


def table_of_claims(script):
    """Number, statement and verdict of each line of the table."""
    line = re.compile(r"^\| (Q?\d+) \| (.*?) \| \*\*(\w+)\*\* \|", re.MULTILINE)
    return line.findall(page_of(script, "verdicts"))


def test_every_claim_is_in_the_table(script):
    """Once each, in the order of the numbers; questions of readers apart."""
    claims = read_catalogue().claim
    rows = table_of_claims(script)
    assert sorted(said for _, said, _ in rows) == sorted(c.statement for c in claims)
    said = len([claim for claim in claims if claim.source])
    numbers = [f"{n}" for n in range(1, said + 1)]
    numbers += [f"Q{n}" for n in range(1, len(claims) - said + 1)]
    assert [number for number, _, _ in rows] == numbers


def test_every_verdict_is_explained(script):
    """The page says what each word means."""
    page = page_of(script, "verdicts")
    for verdict in Verdict:
        assert page.count(f"\n| **{verdict}** | ") == 1


def test_page_of_changes_has_the_verdicts_of_the_table(script):
    """What came of a change is what the table says of that claim today."""
    came_out = {said: verdict for _, said, verdict in table_of_claims(script)}
    verdicts = {claim.id: came_out[claim.statement] for claim in read_catalogue().claim}
    page = (ROOT / script.CHANGES).read_text(encoding="utf-8")
    found = [row.group() for row in script.ROW.finditer(page)]
    changes = [re.findall(r"`([\w-]+)`|\*\*(.+)\*\*", row) for row in found]
    assert len(changes) == len(re.findall(r"^\| `", page, re.MULTILINE)) > 20
    for (claim, _), (_, verdict) in changes:
        assert verdict == verdicts[claim], claim


def test_a_part_takes_the_place_of_what_was_there(script):
    """Only what stands between the markers changes."""
    changed = script.with_part(README, "sentences", "new")
    assert "new" in changed
    assert script.with_part(changed, "sentences", "x") == script.with_part(
        README, "sentences", "x"
    )
    assert changed.partition("<!-- made")[0] == README.partition("<!-- made")[0]
    assert changed.partition("<!-- end")[2] == README.partition("<!-- end")[2]
    with pytest.raises(ValueError, match="must have a place for verdicts"):
        script.with_part(README, "verdicts", "new")


@pytest.mark.slow
def test_what_is_quoted_is_that_of_the_standard_report(script, standard_report):
    """The standard preset at seed 1 gives every part and the figure again."""
    results = read_results(standard_report)
    for name, (_, make) in script.PARTS.items():
        assert f"\n\n{make(results)}\n\n" in page_of(script, name), name
    counts = ", ".join(f"{n} {verdict}" for verdict, n in results.counts)
    assert f"\nclaims: {counts}\n" in README
    fresh = script.draw_attention(results)
    kept = (ROOT / "docs" / "attention.svg").read_text(encoding="utf-8")
    new, old = coordinates(fresh.shapes), coordinates(kept)
    assert new.shape == old.shape
    assert np.abs(new - old).max() < APART


def test_pages_cite_the_date_of_the_release():
    """That of CITATION.cff, which is not installed."""
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\ndate-released: {RELEASED}\n" in cited
