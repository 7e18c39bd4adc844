"""Tests what texts claim about dividing attention scores by sqrt(d_k).

``python -m montecarlo`` lists the commands.  In Python, one estimate takes three lines:

>>> from montecarlo import measure
>>> point = measure(d_k=4, n_keys=8, quantity="entropy", most=128)
>>> point.quantity, point.divisor, point.n_replicates
('entropy', 'sqrt', 128)

Estimates
    `measure` estimates one quantity at one design point, to a given standard error.
    `grid` does so for lists of sizes, quantities and divisors and returns a DataFrame,
    which `figure` draws.  A divisor is a name, a number or a formula: ``"sqrt"``,
    ``13.5``, ``"2*d_k^0.6"``, ``"sqrt(d_k*ln(n))"``.  `distribution` names a
    distribution of your own for the entries of queries and keys.

Claims
    `judge` judges claims from a file or a dict by the same rule as the report.

Exact values
    `expected_row` returns exact expectations over an attention row of up to a million
    keys.

Models
    `observe` summarises the scores of a model's queries and keys for each head.
    `applied_scale` determines the divisor that a model applies.  `attention_maps`
    summarises attention weights if there are no queries and keys.  `capture` records
    attention in torch and transformers.  `assert_attention_scale`, `compare` and the
    pytest fixture `attention_scale` are for tests.  `ScoreWatch` monitors scores during
    training.

``python -m montecarlo --list`` lists the available quantities, distributions and other
names.  Each function is imported when it is first used.

The folders form a pipeline: ``attention`` (computes on arrays), ``sampling`` (draws
random arrays; no other folder does), ``theory`` (exact values), ``estimation``,
``model``, ``study``, ``claims``, ``report`` (pages and figures), and ``cli``
(commands).
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

#: Public name -> module that defines it.
_MODULES = {
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
__all__ = list(_MODULES)


def __dir__() -> list[str]:
    """Return the public names, also of functions that are not imported yet."""
    return sorted({*globals(), *__all__, "__version__"})


def __getattr__(name: str) -> object:
    """Import and return a public name when it is first used.

    Importing all public names takes a second.
    """
    if name == "__version__":
        return import_module("importlib.metadata").version(
            import_module("montecarlo.names").PROJECT
        )
    if name not in _MODULES:
        raise AttributeError(f"module 'montecarlo' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
