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

import ast
import difflib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from montecarlo.errors import InputError, show
from montecarlo.names import require_number

MOST_CHARACTERS = 100


class Product(NamedTuple):
    """A factor, and the powers of d_k, n and ln(n)."""

    factor: float
    d_k: float = 0.0
    n: float = 0.0
    log_n: float = 0.0

    def times(self, other: "Product", sign: float = 1.0) -> "Product":
        """Multiply by another; with the sign -1 divide by it."""
        powers = (a + sign * b for a, b in zip(self[1:], other[1:], strict=True))
        factor = (
            self.factor * other.factor if sign > 0.0 else self.factor / other.factor
        )
        return Product(factor, *powers)

    def to(self, power: float) -> "Product":
        """Raise to a power."""
        return Product(self.factor**power, *(0.0 + power * one for one in self[1:]))


def read_formula(text: str) -> Product:
    """Parse a formula.

    Raises
    ------
    ValueError
        If it is no product of powers.

    Examples
    --------
    >>> read_formula("2*sqrt(d_k*ln(n))")
    Product(factor=2.0, d_k=0.5, n=0.0, log_n=0.5)
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"formula must have at most {MOST_CHARACTERS} characters")
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval")
        return _evaluate(tree.body)
    except (SyntaxError, ArithmeticError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def name_formula(product: Product) -> str:
    """Write a product so that `read_formula` reads the same.

    Examples
    --------
    >>> name_formula(Product(2.0, d_k=0.6, log_n=0.5))
    '2*d_k^0.6*sqrt(ln(n))'
    """
    bases, powers = ("d_k", "n", "ln(n)"), ("d_k^{}", "n^{}", "ln(n)^{}")
    return _write(product, bases, powers, "sqrt({})", "*", _spell_number)


def _write(  # noqa: PLR0913, PLR0917 - a notation
    product: Product,
    bases: Sequence[str],
    powers: Sequence[str],
    root: str,
    joint: str,
    number: Callable[[float], str],
) -> str:
    """Write a product of powers: the factor, powers, and one root of the rest."""
    written, under_root = [], []
    for base, power, exponent in zip(bases, powers, product[1:], strict=True):
        if exponent == 0.5:
            under_root.append(base)
        elif exponent != 0.0:
            written.append(base if exponent == 1.0 else power.format(number(exponent)))
    if under_root:
        written.append(root.format(joint.join(under_root)))
    if product.factor != 1.0 or not written:
        written.insert(0, number(product.factor))
    return joint.join(written)


def _spell_number(value: float) -> str:
    """Write a number as it can be typed: 2, 0.5, 1e-5."""
    mantissa, _, exponent = repr(value).partition("e")
    mantissa = mantissa.removesuffix(".0")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _typeset_number(value: float) -> str:
    """Write a number as LaTeX, to six digits."""
    mantissa, _, exponent = f"{value:g}".partition("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}" if exponent else mantissa


_BASES = {
    "d_k": Product(1.0, d_k=1.0),
    "n": Product(1.0, n=1.0),
    **dict.fromkeys(("ln(n)", "log(n)"), Product(1.0, log_n=1.0)),
}


def _evaluate(node: ast.expr) -> Product:
    if (known := _BASES.get(ast.unparse(node))) is not None:
        return known
    match node:
        case ast.Constant(int() | float() as number) if number is not True:
            if number > 0:
                return Product(float(number))
        case ast.Call(ast.Name("sqrt"), [inner], []):
            return _evaluate(inner).to(0.5)
        case ast.BinOp(left, ast.Mult(), right):
            return _evaluate(left).times(_evaluate(right))
        case ast.BinOp(left, ast.Div(), right):
            return _evaluate(left).times(_evaluate(right), -1.0)
        case ast.BinOp(left, ast.Pow(), right):
            return _evaluate(left).to(_exponent(right))
    raise ValueError(f"{ast.unparse(node)} is no product of powers")


def _exponent(node: ast.expr) -> float:
    """Return an exponent: a number, or a fraction of two."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_exponent(node.operand)
    factor, *powers = _evaluate(node)
    if any(powers):
        raise ValueError("an exponent must be a number")
    return factor


@dataclass(frozen=True, slots=True)
class Divisor:
    """A rule that turns d_k, and perhaps n, into the number that scores are divided by.

    Attributes
    ----------
    name : str
        As in tables; of one that is not in `DIVISORS` its formula.
    formula : Product
        What it is.
    """

    name: str
    formula: Product

    @property
    def needs_keys(self) -> bool:
        """Whether it depends on the number of keys."""
        return any(self.formula[2:])

    @property
    def text(self) -> str:
        """Its formula as it can be typed: ``sqrt(d_k)``."""
        return name_formula(self.formula)

    @property
    def symbol(self) -> str:
        """Its formula as LaTeX, numbers to six digits."""
        bases = ("d_k", "n", r"\ln n")
        powers = ("d_k^{{{}}}", "n^{{{}}}", r"(\ln n)^{{{}}}")
        root, joint = r"\sqrt{{{}}}", r"\,"
        return _write(self.formula, bases, powers, root, joint, _typeset_number)

    def value(self, d_k: int, n_keys: int | None = None) -> float:
        """Return the number that scores are divided by.

        Raises
        ------
        InputError
            If it depends on n and there are no keys, or only one; or if the number is
            beyond all use.
        """
        factor, power, n_power, log_power = self.formula
        value = float(factor * d_k**power)
        if self.needs_keys:
            if n_keys is None or n_keys < 2:
                got = "none" if n_keys is None else str(n_keys)
                raise InputError(f"divisor {self.name} needs rows of 2 keys, got {got}")
            value *= float(n_keys**n_power * math.log(n_keys) ** log_power)
        return require_number("divisor", value, LEAST_VALUE, MOST_VALUE)


DIVISORS = {
    divisor.name: divisor
    for divisor in (
        Divisor("none", Product(1.0)),
        Divisor("sqrt", Product(1.0, 0.5)),
        Divisor("2sqrt", Product(2.0, 0.5)),
        Divisor("linear", Product(1.0, 1.0)),
    )
}

#: Every other divisor is compared with this one.
BASELINE = "sqrt"
#: What scores may be divided by.  Rows want more of it: see `require_spread`.
LEAST_VALUE, MOST_VALUE = 1e-8, 1e20
#: Far beyond any use, and so that no value overflows with sizes up to 2**20.
MOST_POWER, LEAST_FACTOR, MOST_FACTOR = 8.0, 1e-30, 1e30


def name_divisor(text: str) -> str:
    """Return the name, in tables, of a divisor or of a pair of them.

    Parameters
    ----------
    text : str
        Names or formulas, as `parse_divisor` takes them; a ``/`` that stands in no
        brackets parts a pair, but for a number below a formula that has a name:
        ``d_k/8``.

    Raises
    ------
    InputError
        If it is neither, or could be a fraction as well.

    Examples
    --------
    >>> name_divisor("d_k^(1/2)"), name_divisor("none / d_k^0.6"), name_divisor("d_k/8")
    ('sqrt', 'none/d_k^0.6', '0.125*d_k')
    """
    parts = _split(text)
    if len(parts) > 2:
        raise InputError(
            f"divisor must be one divisor or a ratio of two, got {show(text)}"
        )
    is_plain = any(part in DIVISORS or part.startswith("(") for part in parts)
    if len(parts) == 2 and all(parts) and not is_plain:
        over, under = map(parse_divisor, parts)
        if over.name in DIVISORS and not any(under.formula[1:]):
            return parse_divisor(text).name  # no pair is named so: linear/8 is one
        raise InputError(
            "divisor must have brackets around all of a fraction, (n/8), or around "
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
        product = read_formula(formula)
    except ValueError:
        near = difflib.get_close_matches(formula, DIVISORS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(
            f"divisor must be one of {', '.join(DIVISORS)}, a number above 0, or a "
            f"product of powers of d_k, n and ln(n) such as 2*d_k^0.6; "
            f"got {show(formula)}.{hint}"
        ) from None
    require_number("divisor", product.factor, LEAST_FACTOR, MOST_FACTOR)
    if max(map(abs, product[1:])) > MOST_POWER:
        raise InputError(
            f"divisor must have powers between -{MOST_POWER:g} and {MOST_POWER:g}, "
            f"got {show(formula)}"
        )
    for known in DIVISORS.values():
        if product == known.formula:
            return known
    return Divisor(name_formula(product), product)


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
