"""Judges what texts claim about dividing attention scores by sqrt(d_k).

``python -m montecarlo`` lists the commands.  In Python, one number in three lines:

>>> from montecarlo import measure
>>> point = measure("gaussian", "gaussian", 4, 8, quantity="entropy", most=128)
>>> point.quantity, point.n_replicates
('entropy', 128)

`grid` measures over lists of sizes, quantities and divisors; `judge` takes claims of
your own, `observe` queries and keys of your own model.  `applied_scale` tells what a
model divides by, `capture` records it from torch and transformers, and
`assert_attention_scale` and `compare` are for tests of it.  They are imported when they
are first asked for.

The folders read as a pipeline: ``attention`` (arrays in, arrays out), ``sampling`` (the
only one that draws), ``theory`` (exact values), ``estimation``, ``results``,
``claims``, ``study``, ``report`` (pages and figures), and ``cli`` (commands).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from montecarlo.applied.checking import assert_attention_scale, compare
    from montecarlo.applied.heads import applied_scale
    from montecarlo.capturing import capture
    from montecarlo.observation import observe
    from montecarlo.study.measurement import grid, measure
    from montecarlo.study.own_claims import judge

__all__ = [
    "applied_scale",
    "assert_attention_scale",
    "capture",
    "compare",
    "grid",
    "judge",
    "measure",
    "observe",
]

#: Where each name of the library is from.
_LIBRARY = {
    "applied_scale": "montecarlo.applied.heads",
    "assert_attention_scale": "montecarlo.applied.checking",
    "capture": "montecarlo.capturing",
    "compare": "montecarlo.applied.checking",
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
