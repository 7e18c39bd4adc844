"""Judges what texts claim about dividing attention scores by sqrt(d_k).

``python -m montecarlo`` lists the commands.  In Python, one number in three lines:

>>> from montecarlo import measure
>>> point = measure(d_k=4, n_keys=8, quantity="entropy", most=128)
>>> point.quantity, point.divisor, point.n_replicates
('entropy', 'sqrt', 128)

Ask
    `measure`: one quantity at one place, to the error you want; `grid`: over lists of
    sizes, quantities and divisors, as a DataFrame, which `figure` draws.  A divisor is
    a name, a number or a formula: ``"sqrt"``, ``13.5``, ``"2*d_k^0.6"``,
    ``"sqrt(d_k*ln(n))"``.  `distribution` names entries of your own.

Judge
    `judge`: claims of your own, from a file or a dict, by the report's rule.

Know
    `expected_row`: what theory gives exactly of a row of up to a million keys.

Look at a model
    `observe`: queries and keys, head by head.  `applied_scale`: what scores are really
    divided by; `attention_maps`: what weights alone say; `capture` records from torch
    and transformers; `assert_attention_scale` and `compare` are for tests, and so is
    the fixture `attention_scale` of pytest.  `ScoreWatch` watches scores while a model
    trains.

``python -m montecarlo --list`` says what can be asked for.  Each is imported when it is
first asked for.

The folders read as a pipeline: ``attention`` (arrays in, arrays out), ``sampling`` (the
only one that draws), ``theory`` (exact values), ``estimation``, ``model``, ``study``,
``claims``, ``report`` (pages and figures), and ``cli`` (commands).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from montecarlo.claims.own_claims import judge as judge
    from montecarlo.model import capture as capture
    from montecarlo.model import observe as observe
    from montecarlo.model.checking import (
        assert_attention_scale as assert_attention_scale,
    )
    from montecarlo.model.comparing import compare as compare
    from montecarlo.model.maps import attention_maps as attention_maps
    from montecarlo.model.scales import applied_scale as applied_scale
    from montecarlo.model.watch import ScoreWarning as ScoreWarning
    from montecarlo.model.watch import ScoreWatch as ScoreWatch
    from montecarlo.report.figures.sweep import figure as figure
    from montecarlo.sampling.distributions import distribution as distribution
    from montecarlo.study.measurement import grid as grid
    from montecarlo.study.measurement import measure as measure
    from montecarlo.theory import expected_row as expected_row

#: Where each name of the library is from.
_LIBRARY = {
    "ScoreWarning": "montecarlo.model.watch",
    "ScoreWatch": "montecarlo.model.watch",
    "applied_scale": "montecarlo.model.scales",
    "assert_attention_scale": "montecarlo.model.checking",
    "attention_maps": "montecarlo.model.maps",
    "capture": "montecarlo.model",
    "compare": "montecarlo.model.comparing",
    "distribution": "montecarlo.sampling.distributions",
    "expected_row": "montecarlo.theory",
    "figure": "montecarlo.report.figures.sweep",
    "grid": "montecarlo.study.measurement",
    "judge": "montecarlo.claims.own_claims",
    "measure": "montecarlo.study.measurement",
    "observe": "montecarlo.model",
}
__all__ = list(_LIBRARY)


def __dir__() -> list[str]:
    """List the library beside what is imported already."""
    return sorted({*globals(), *__all__, "__version__"})


def __getattr__(name: str) -> object:
    """Import what is first asked for now: all of it takes a second."""
    if name == "__version__":
        return import_module("importlib.metadata").version(
            import_module("montecarlo.names").PROJECT
        )
    if name not in _LIBRARY:
        raise AttributeError(f"module 'montecarlo' has no attribute {name!r}")
    return getattr(import_module(_LIBRARY[name]), name)
