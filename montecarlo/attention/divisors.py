r"""What scores are divided by before softmax.

A divisor is a factor times powers of d_k, of the number of keys n and of ln(n).  Those
of the reports stand in one table; any other is written as a formula and named by it.

>>> parse_divisor("3*d_k^0.6").value(64)
36.377...
>>> parse_divisor("sqrt(d_k * ln(n))").name
'sqrt(d_k*ln(n))'

A *pair* of divisors, written ``none/sqrt``, names the ratio of a quantity under the
first to the same quantity under the second, from the same draws.
"""

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from montecarlo.attention.divisor_formulas import (
    Product,
    name_formula,
    read_formula,
    typeset_formula,
)
from montecarlo.errors import InputError, show


@dataclass(frozen=True, slots=True)
class Divisor:
    """A rule that turns d_k, and perhaps n, into the number that scores are divided by.

    Attributes
    ----------
    name : str
        As in tables; of one that is not in `DIVISORS` its formula.
    symbol : str
        LaTeX.
    factor, power, n_power, log_power : float
        It is factor · d_k**power · n**n_power · ln(n)**log_power.
    """

    name: str
    symbol: str
    factor: float = 1.0
    power: float = 0.0
    n_power: float = 0.0
    log_power: float = 0.0

    @property
    def needs_keys(self) -> bool:
        """Whether it depends on the number of keys."""
        return self.n_power != 0.0 or self.log_power != 0.0

    @property
    def text(self) -> str:
        """Its formula as it can be typed: ``sqrt(d_k)``."""
        powers = self.power, self.n_power, self.log_power
        return name_formula(Product(self.factor, *powers))

    def value(self, d_k: int, n_keys: int | None = None) -> float:
        """Return the number that scores are divided by.

        Raises
        ------
        InputError
            If it depends on n and there are no keys, or only one; or if the number is
            beyond all use.
        """
        found = float(self.factor * d_k**self.power)
        if self.needs_keys:
            if n_keys is None or n_keys < 2:
                got = "none" if n_keys is None else str(n_keys)
                raise InputError(f"divisor {self.name} needs rows of 2 keys, got {got}")
            found *= float(n_keys**self.n_power * math.log(n_keys) ** self.log_power)
        if not LEAST_VALUE <= found <= MOST_VALUE:
            raise InputError(
                f"divisor must be a number between {LEAST_VALUE:g} and {MOST_VALUE:g}, "
                f"got {self.name} = {found:.6g}"
            )
        return found


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
#: What scores may be divided by.  Rows want more of it: see `require_spread`.
LEAST_VALUE, MOST_VALUE = 1e-8, 1e20
#: Far beyond any use, and so that no value overflows with sizes up to 2**20.
MOST_POWER, LEAST_FACTOR, MOST_FACTOR = 8.0, 1e-30, 1e30


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


def split_pairs(names: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the divisors that occur in some names, and the pairs among these.

    Examples
    --------
    >>> split_pairs(["none", "none/d_k^0.6"])
    (('none', 'd_k^0.6'), ('none/d_k^0.6',))
    """
    names = tuple(names)
    singles = dict.fromkeys(single for name in names for single in name.split("/"))
    return tuple(singles), tuple(dict.fromkeys(name for name in names if "/" in name))


def name_divisor(text: str) -> str:
    """Return the name, in tables, of a divisor or of a pair of them.

    Parameters
    ----------
    text : str
        Names or formulas, as `parse_divisor` takes them; a ``/`` that stands in no
        brackets parts a pair.

    Raises
    ------
    InputError
        If it is neither, or could be meant as a fraction.

    Examples
    --------
    >>> name_divisor("d_k^(1/2)"), name_divisor("none / d_k^0.6"), name_divisor("13.50")
    ('sqrt', 'none/d_k^0.6', '13.5')
    """
    parts = _split(text)
    if len(parts) > 2:
        raise InputError(
            f"divisor must be one divisor or a ratio of two, got {show(text)}"
        )
    clear = any(part in DIVISORS or part.startswith("(") for part in parts)
    if len(parts) == 2 and all(parts) and not clear:
        raise InputError(
            "divisor must have brackets around all of a fraction, (d_k/8), or around "
            "a part of a ratio of two divisors, d_k^0.6/(8): it could be either, got "
            f"{show(text)}"
        )
    names = [parse_divisor(part).name for part in parts]
    if len(names) == 2 and names[0] == names[1]:
        raise InputError(
            f"divisor must be a ratio of two that differ, got {show(text)}"
        )
    return "/".join(names)


def parse_divisor(text: str) -> Divisor:
    """Return a divisor by its name or formula.

    Parameters
    ----------
    text : str
        A name in `DIVISORS`, a number, or a product of powers: ``d_k^0.6``,
        ``2*sqrt(d_k)``, ``sqrt(d_k*ln(n))``, ``d_k^(1/3)``.

    Returns
    -------
    Divisor
        The one of the table where the formula says the same.

    Raises
    ------
    InputError
        If it is none, or beyond all use.
    """
    formula = text.strip()
    return DIVISORS[formula] if formula in DIVISORS else _parse_formula(formula)


@lru_cache(maxsize=1024)
def _parse_formula(formula: str) -> Divisor:
    try:
        found = read_formula(formula)
    except ValueError:
        near = difflib.get_close_matches(formula, DIVISORS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(
            f"divisor must be one of {', '.join(DIVISORS)}, a number above 0, or a "
            f"product of powers of d_k, n and ln(n) such as 2*d_k^0.6; "
            f"got {show(formula)}.{hint}"
        ) from None
    if not LEAST_FACTOR <= found.factor <= MOST_FACTOR:
        raise InputError(
            f"divisor must have a factor between {LEAST_FACTOR:g} and {MOST_FACTOR:g}, "
            f"got {show(formula)}"
        )
    if max(map(abs, found[1:])) > MOST_POWER:
        raise InputError(
            f"divisor must have powers between -{MOST_POWER:g} and {MOST_POWER:g}, "
            f"got {show(formula)}"
        )
    for known in DIVISORS.values():
        if found == (known.factor, known.power, known.n_power, known.log_power):
            return known
    return Divisor(name_formula(found), typeset_formula(found), *found)


def _split(text: str) -> list[str]:
    """Split at every slash that stands in no brackets."""
    depth, parts = 0, [""]
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
