"""Slopes in d_k of exact values, far enough out that they have come to their limit.

In: a quantity of undivided rows of standard normal entries, and the number of keys.
Out: the local slope in the logarithms, on a grid of d_k that is extended until it has
converged: what a sample on a grid that ends too early cannot tell.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from montecarlo.sampling.design_points import parse_point
from montecarlo.theory.limits import as_mean
from montecarlo.theory.references import reference

#: A local slope has converged when the next one differs by less.
CONVERGED = 1e-3
#: Where a grid of d_k begins, and from each to the next.
FIRST_D_K, FACTOR = 16, 4


@dataclass(frozen=True, slots=True)
class FarSlope:
    """The slope of a quantity in d_k, both in logarithms, far out.

    Attributes
    ----------
    slope : float
        Between the last two d_k.
    d_k : int
        The last one.
    slopes : tuple of float
        All of them, from the first d_k on.
    """

    slope: float
    d_k: int
    slopes: tuple[float, ...]


@lru_cache(maxsize=256)
def far_slope(quantity: str, summary: str, n_keys: int) -> FarSlope | None:
    """Return the slope in d_k of the exact value of a quantity of undivided rows.

    Returns
    -------
    FarSlope or None
        On a grid that is extended until the slope has converged; None where no exact
        value is known, where it is not positive, or where theory's reach ends first.
    """
    name, kind = as_mean(quantity, summary)
    slopes: list[float] = []
    d_k, before = FIRST_D_K, _exact(name, kind, FIRST_D_K, n_keys)
    while before is not None:
        d_k *= FACTOR
        after = _exact(name, kind, d_k, n_keys)
        if after is None:
            return None
        slopes.append(math.log(after / before) / math.log(FACTOR))
        if len(slopes) > 1 and abs(slopes[-1] - slopes[-2]) < CONVERGED:
            return FarSlope(slopes[-1], d_k, tuple(slopes))
        before = after
    return None


def _exact(quantity: str, summary: str, d_k: int, n_keys: int) -> float | None:
    """Return the exact value for Gaussian entries and divisor 1, if positive."""
    point = parse_point("gaussian", "gaussian", d_k, n_keys)
    found = reference(quantity, point, "none", summary)
    return found.value if found is not None and found.value > 0.0 else None
