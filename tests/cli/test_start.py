"""What a point needs is imported, and nothing else: it starts at once."""

import subprocess
import sys

import pytest

#: Libraries beside Python's own that modules of `measure` may ask for; parts of SciPy.
LIBRARIES = {"montecarlo", "numpy", "scipy", "msgspec", "threadpoolctl"}
OF_SCIPY = {"special"}
#: Prints what the modules behind a command ask for, and which of ours there are: what
#: a library imports in its turn depends on what else is installed.
LISTED = """
import builtins, sys
asked, usual = set(), builtins.__import__

def noted(name, globals=None, locals=None, fromlist=(), level=0):
    if (globals or {}).get("__name__", "").partition(".")[0] == "montecarlo":
        asked.update([name, *(f"{name}.{part}" for part in fromlist or ())])
    return usual(name, globals, locals, fromlist, level)

builtins.__import__ = noted
from montecarlo.__main__ import main
try:
    main(sys.argv[1:])
except SystemExit:  # of --help
    pass
asked.update(one for one in sys.modules if one.startswith("montecarlo."))
print(*asked, file=sys.stderr)
"""


def imported(*typed):
    """Return what a command imports in a fresh interpreter."""
    run = [sys.executable, "-c", LISTED, *typed]
    done = subprocess.run(run, capture_output=True, text=True, check=True)  # noqa: S603
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "point",
    [
        ("--quantity", "saturated", "--keys", "128"),
        ("--quantity", "entropy", "--keys", "8", "--divisor", "d_k^0.6"),
        ("--quantity", "score_variance"),
    ],
)
def test_a_point_imports_no_more_than_it_needs(point):
    """Neither tables, figures nor pages, nor SciPy's slow parts."""
    asked = imported("measure", "--d-k", "16", *point, "--relative-error", "0.5")
    public = {one.partition(".")[0] for one in asked} - sys.stdlib_module_names
    assert public <= LIBRARIES
    assert {one.split(".")[1] for one in asked if one.startswith("scipy.")} == OF_SCIPY
    rooms = {one.split(".")[1] for one in asked if one.startswith("montecarlo.")}
    assert "study" in rooms
    assert not rooms & {"claims", "model"}
