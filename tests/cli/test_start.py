"""What a point needs is imported, and nothing else: it starts at once."""

import subprocess
import sys

import pytest

#: Libraries beside Python's own that `measure` may import, and parts of SciPy.
LIBRARIES = {"montecarlo", "numpy", "scipy", "msgspec", "threadpoolctl"}
OF_SCIPY = {
    "_cyutility",
    "_distributor_init",
    "_external",
    "_lib",
    "special",
    "version",
}
#: Prints the names of all modules behind a command.
LISTED = """
import sys
before = set(sys.modules)  # what the environment itself brings
from montecarlo.__main__ import main
try:
    main(sys.argv[1:])
except SystemExit:  # of --help
    pass
print(*(set(sys.modules) - before), file=sys.stderr)
"""


def imported(*typed):
    """Return the modules that a command imports in a fresh interpreter."""
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
    modules = imported("measure", "--d-k", "16", *point, "--relative-error", "0.5")
    own = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    public = {name for name in own if name.isidentifier() and name[0] != "_"}
    assert public <= LIBRARIES | {"cython_runtime", "typing_extensions"}
    parts = {name.split(".")[1] for name in modules if name.startswith("scipy.")}
    assert {one for one in parts if not one.startswith("_")} <= OF_SCIPY
    rooms = {name.split(".")[1] for name in modules if name.startswith("montecarlo.")}
    assert not rooms & {"claims", "model"}
