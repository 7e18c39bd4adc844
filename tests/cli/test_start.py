"""What a question needs is imported, and nothing else: it starts at once."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.commands import run_python

CLAIM = Path(__file__).parents[2] / "docs" / "own-claim.toml"
#: Prints the modules that a command loads, whose ever they are.
LISTED = """
import json, sys
from montecarlo.__main__ import main
main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""
#: Tables and pages, of which one number has nothing.
PAGES = {"matplotlib", "jinja2", "bs4", "markdownify", "rich"}
SLOW_PARTS = {"scipy.optimize", "scipy.stats", "scipy.linalg", "scipy.sparse"}
# what SciPy's special functions load themselves: linalg, from 1.18 on
SLOW_PARTS -= {
    *run_python("-c", "import scipy.special, sys; print(*sys.modules)").stdout.split()
}
#: What a variance at 128 replicates asks of neither theory nor intervals.
OF_NO_POINT = PAGES | SLOW_PARTS | {"pandas", "babel", "distributed"}


def loaded(*typed):
    """Return what a command loads in a fresh interpreter."""
    done = run_python("-c", LISTED, *typed, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("point", "unasked"),
    [
        (("--quantity", "saturated", "--keys", "128"), set()),
        (("--quantity", "entropy", "--keys", "8", "--divisor", "d_k^0.6"), set()),
        (("--quantity", "score_variance"), {"scipy.special"}),
        (("--quantity", "score_variance", "--exact"), {"scipy.special"}),
    ],
)
def test_a_point_loads_no_more_than_it_needs(point, unasked):
    """Neither tables, figures nor pages, nor SciPy's slow parts; of a variance not even
    special functions.
    """
    effort = () if "--exact" in point else ("--relative-error", "0.5")
    there = loaded("measure", "--d-k", "16", *point, *effort)
    assert not there & (OF_NO_POINT | unasked)
    rooms = {one.split(".")[1] for one in there if one.startswith("montecarlo.")}
    assert "study" in rooms
    assert not rooms & {"claims", "model"}


def test_queries_and_keys_alone_load_no_figures(tmp_path):
    """Without weights no scale is told, and none is drawn."""
    q, k = np.random.default_rng(1).normal(size=(2, 5, 1, 1, 8, 4))
    np.savez(tmp_path / "qk.npz", q=q, k=k)
    output = str(tmp_path / "observed")
    there = loaded("observe", str(tmp_path / "qk.npz"), "--output", output)
    assert not there & {"matplotlib", "jinja2", "bs4"}


def test_claims_on_the_terminal_load_no_pages():
    """Nor other processes: what takes a moment is sampled here."""
    there = loaded("judge", str(CLAIM))
    assert not there & (PAGES | SLOW_PARTS | {"distributed"})
    assert "montecarlo.report.making" not in there
    assert "multiprocessing.popen_spawn_posix" not in there
