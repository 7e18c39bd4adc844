"""Divisors of scores: those that models have, the one expected, hints of a wrong one.

A known divisor is one entry of a table.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from montecarlo.attention.divisors import parse_divisor
from montecarlo.errors import InputError

#: What is expected where nothing else is said.
EXPECTED = "sqrt"
#: What a divisor may be: beyond, scores or their differences are lost in rounding.
SMALLEST, LARGEST = 1e-20, 1e20
#: How near a divisor is to what it looks like, as a part of it.
NEAR = 0.01


@dataclass(frozen=True, slots=True)
class KnownDivisor:
    """A divisor: factor · d_k**power · h**head_power, h the number of heads."""

    name: str
    text: str  # what it is called in a sentence
    factor: float = 1.0
    power: float = 0.0
    head_power: float = 0.0

    @property
    def inverse(self) -> str:
        """One over it, plain."""
        told = self.text.removeprefix("1/")
        return told if told != self.text or told == "1" else f"1/({told})"

    def value(self, d_k: int, n_heads: int) -> float:
        """Return the divisor of a model."""
        return float(self.factor * d_k**self.power * n_heads**self.head_power)


KNOWN = (
    KnownDivisor("none", "1"),
    KnownDivisor("sqrt", "sqrt(d_k)", power=0.5),
    KnownDivisor("2sqrt", "2 sqrt(d_k)", 2.0, 0.5),
    KnownDivisor("linear", "d_k", power=1.0),
    KnownDivisor("inverse_sqrt", "1/sqrt(d_k)", power=-0.5),
    KnownDivisor("fourth_root", "d_k^(1/4)", power=0.25),
    KnownDivisor("sqrt_width", "sqrt(h d_k)", power=0.5, head_power=0.5),
    KnownDivisor("width", "h d_k", power=1.0, head_power=1.0),
    KnownDivisor("sqrt_heads", "sqrt(h)", head_power=0.5),
)


@dataclass(frozen=True, slots=True)
class Expected:
    """The divisor that somebody expects."""

    typed: str  # its name or number, or what stands for a configuration
    value: float  # NaN where it cannot be told, or differs by layer
    said: str = ""  # how it follows from a configuration, or why it does not
    #: Divisors that known mistakes make of it, by their hints.
    mistakes: Mapping[str, float] = field(default_factory=dict)
    cap: float = math.nan  # what scores are capped at by tanh, where something is said
    #: What is expected of a layer, where that differs.
    layers: Mapping[int, "Expected"] = field(default_factory=dict)

    def at(self, layer: int) -> "Expected":
        """Return what is expected of a layer."""
        return self.layers.get(layer, self)

    @property
    def is_told(self) -> bool:
        """Whether it is known, of all layers."""
        each = self.layers.values() or [self]
        return not any(math.isnan(one.value) for one in each)

    @property
    def text(self) -> str:
        """What it is called in a sentence."""
        if self.said:
            return self.said
        named = {one.name: one.text for one in KNOWN}
        if self.typed in named:
            return f"{named[self.typed]} = {self.value:.4g}"
        return f"{self.value:.6g}"


def expected_divisor(typed: str | float, d_k: int, n_heads: int) -> Expected:
    """Return the divisor that is expected: a name of `KNOWN`, a number or a formula.

    Raises
    ------
    InputError
        If it is neither, or no divisor.
    """
    names = {one.name: one for one in KNOWN}
    name = str(typed)
    if name not in names:
        try:
            divisor = parse_divisor(name)
        except InputError as error:
            raise InputError(
                f"expect must be one of {', '.join(names)}, or a divisor: {error}"
            ) from None
        name = divisor.name
    if name in names:
        return Expected(name, names[name].value(d_k, n_heads))
    return Expected(str(typed), divisor_value(typed, d_k, "expect"))


def divisor_value(divisor: str | float, d_k: int, name: str = "divisor") -> float:
    """Return what a model divides by: a number, or a divisor by its name or formula."""
    value = parse_divisor(str(divisor)).value(d_k)
    if not SMALLEST <= value <= LARGEST:
        raise InputError(
            f"{name} must be a number between {SMALLEST:g} and {LARGEST:g}, got "
            f"{divisor!r}"
        )
    return value


def divisors_within(
    low: float, high: float, d_k: int, n_heads: int
) -> tuple[KnownDivisor, ...]:
    """Return the known divisors between two borders.

    Where d_k or the number of heads is 1, what differs by powers of it is the same.
    """
    return tuple(
        one
        for one in KNOWN
        if low <= one.value(d_k, n_heads) <= high
        and not (n_heads == 1 and one.head_power)
        and not (d_k == 1 and one.power)
    )


def hints_at(
    divisor: float, expected: Expected, d_k: int, n_heads: int
) -> tuple[str, ...]:
    """Return what a wrong divisor looks like: all that would give it.

    Returns
    -------
    tuple of {"sign", "missing", "twice", "multiplied", "width", "heads"}
        Or keys of ``expected.mistakes``, which stand first; padded heads, which may
        have any width, last.  Empty where it looks like nothing known.
    """
    if divisor < 0.0:
        return ("sign",)
    looks = {
        "missing": 1.0,
        "twice": expected.value**2,
        "multiplied": 1.0 / expected.value,
        "width": (n_heads * d_k) ** 0.5,
        "heads": n_heads**0.5,
    }
    known = {**expected.mistakes, **looks}
    found = [
        name for name, value in known.items() if abs(divisor / value - 1.0) <= NEAR
    ]
    return tuple(sorted(found, key=lambda name: name.startswith("padded")))
