"""What scores are divided by before softmax.

One table; a new divisor is one entry.  A *pair* of divisors, written ``none/sqrt``,
names the ratio of a quantity under the first to the same quantity under the second,
from the same draws.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Divisor:
    """A rule that turns d_k into the number that scores are divided by."""

    name: str
    symbol: str  # LaTeX
    factor: float = 1.0
    power: float = 0.0

    def value(self, d_k: int) -> float:
        """Return factor · d_k**power."""
        return float(self.factor * d_k**self.power)


DIVISORS = {
    divisor.name: divisor
    for divisor in (
        Divisor("none", "1"),
        Divisor("sqrt", r"\sqrt{d_k}", power=0.5),
        Divisor("2sqrt", r"2\sqrt{d_k}", 2.0, 0.5),
        Divisor("linear", "d_k", power=1.0),
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
