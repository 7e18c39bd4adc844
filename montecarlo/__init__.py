"""Judges what texts claim about dividing attention scores by sqrt(d_k).

``python -m montecarlo`` lists the commands.  In Python, one number in three lines:

>>> from montecarlo import measure
>>> point = measure("gaussian", "gaussian", 4, 8, quantity="entropy", most=128)
>>> point.quantity, point.n_replicates
('entropy', 128)

`grid` measures over lists of sizes, quantities and divisors; `judge` takes claims of
your own, `observe` queries and keys of your own model.  They are imported when they are
first asked for.

The folders read as a pipeline: ``attention`` (arrays in, arrays out), ``sampling`` (the
only one that draws), ``theory`` (exact values), ``estimation``, ``results``,
``claims``, ``study``, ``report`` (pages and figures), and ``cli`` (commands).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from montecarlo.observation import observe
    from montecarlo.study.measurement import grid, measure
    from montecarlo.study.own_claims import judge

__all__ = ["grid", "judge", "measure", "observe"]

#: Where each name of the library is from.
_LIBRARY = {
    "grid": "montecarlo.study.measurement",
    "judge": "montecarlo.study.own_claims",
    "measure": "montecarlo.study.measurement",
    "observe": "montecarlo.observation",
}


def __getattr__(name: str) -> object:
    """Import what is first asked for now: all of it takes a second."""
    if name == "__version__":
        return import_module("importlib.metadata").version(
            import_module("montecarlo.names").PROJECT
        )
    if name not in _LIBRARY:
        raise AttributeError(f"module 'montecarlo' has no attribute {name!r}")
    return getattr(import_module(_LIBRARY[name]), name)
