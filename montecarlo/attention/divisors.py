"""What scores are divided by before softmax.

One table; a new divisor is one entry.  A *pair* of divisors, written ``none/sqrt``,
names the ratio of a quantity under the first to the same quantity under the second,
from the same draws.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Divisor:
    """A rule that turns d_k into the number that scores are divided by."""

    name: str
    symbol: str  # LaTeX
    value: Callable[[int], float]  # d_k -> divisor


DIVISORS = {
    divisor.name: divisor
    for divisor in (
        Divisor("none", "1", lambda d_k: 1.0),
        Divisor("sqrt", r"\sqrt{d_k}", lambda d_k: math.sqrt(d_k)),
        Divisor("2sqrt", r"2\sqrt{d_k}", lambda d_k: 2.0 * math.sqrt(d_k)),
        Divisor("linear", "d_k", lambda d_k: float(d_k)),
    )
}

#: Every other divisor is compared with this one.
BASELINE = "sqrt"


def pairs_of(divisors: tuple[str, ...]) -> tuple[str, ...]:
    """Name the ratios to the baseline that these divisors allow.

    Returns
    -------
    tuple of str
        For example ``("none/sqrt", "linear/sqrt")``; empty without the baseline.
    """
    if BASELINE not in divisors:
        return ()
    return tuple(f"{name}/{BASELINE}" for name in divisors if name != BASELINE)
