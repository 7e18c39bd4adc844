r"""Divisors: the numbers by which attention scores are divided before softmax.

A divisor is a factor times powers of d_k, of the number of keys n and of ln(n).  Those
of the reports are in `DIVISORS`; any other is given as a formula, which is also its
name.

>>> parse_divisor("3*d_k^0.6").value(64)
36.377...
>>> parse_divisor("sqrt(d_k * ln(n))").name
'sqrt(d_k*ln(n))'

A *pair* of divisors, written ``none/sqrt``, denotes the ratio of a quantity under the
first divisor to the same quantity under the second, from the same draws.
"""

import ast
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from montecarlo.errors import InputError, show
from montecarlo.names import require_number, suggest

#: Largest number of characters of a formula.
MOST_CHARACTERS = 100


class Product(NamedTuple):
    """A product: a factor times d_k, n and ln(n), each raised to its exponent."""

    factor: float
    d_k: float = 0.0
    n: float = 0.0
    log_n: float = 0.0

    def times(self, other: "Product", sign: float = 1.0) -> "Product":
        """Return this product times ``other``; with ``sign`` -1, divided by it."""
        powers = (a + sign * b for a, b in zip(self[1:], other[1:], strict=True))
        factor = (
            self.factor * other.factor if sign > 0.0 else self.factor / other.factor
        )
        return Product(factor, *powers)

    def raised_to(self, power: float) -> "Product":
        """Return this product raised to ``power``."""
        return Product(self.factor**power, *(0.0 + power * old for old in self[1:]))

    @property
    def text(self) -> str:
        """Formula that `parse_divisor` reads: a factor, powers, and one square root.

        Examples
        --------
        >>> Product(2.0, d_k=0.6, log_n=0.5).text
        '2*d_k^0.6*sqrt(ln(n))'
        """
        powers = dict(zip(("d_k", "n", "ln(n)"), self[1:], strict=True))
        factors = [
            base if power == 1.0 else f"{base}^{_type_number(power)}"
            for base, power in powers.items()
            if power not in {0.0, 0.5}
        ]
        if under_root := [base for base, power in powers.items() if power == 0.5]:
            factors.append(f"sqrt({'*'.join(under_root)})")
        if self.factor != 1.0 or not factors:
            factors.insert(0, _type_number(self.factor))
        return "*".join(factors)


def _type_number(value: float) -> str:
    """Return a number as text for a formula: 2, 0.5, 1e-5."""
    mantissa, _, exponent = repr(value).partition("e")
    mantissa = mantissa.removesuffix(".0")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _typeset_number(match: re.Match[str]) -> str:
    """Return the matched number of a formula as LaTeX, rounded to six digits."""
    mantissa, _, exponent = f"{float(match[0]):g}".partition("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}" if exponent else mantissa


_BASES = {
    "d_k": Product(1.0, d_k=1.0),
    "n": Product(1.0, n=1.0),
    **dict.fromkeys(("ln(n)", "log(n)"), Product(1.0, log_n=1.0)),
}


def _evaluate(node: ast.expr) -> Product:
    """Return the product that a formula means; ``node`` is its syntax tree.

    Raises
    ------
    ValueError
        If it is not a product of powers, or if a number in it is not above 0.
    ArithmeticError
        If a factor overflows, or is divided by a number that underflows to 0.
    """
    if (base := _BASES.get(ast.unparse(node))) is not None:
        return base
    match node:
        case ast.Constant(int() | float() as number) if number is not True:
            if number > 0:
                return Product(float(number))
        case ast.Call(ast.Name("sqrt"), [inner], []):
            return _evaluate(inner).raised_to(0.5)
        case ast.BinOp(left, ast.Mult(), right):
            return _evaluate(left).times(_evaluate(right))
        case ast.BinOp(left, ast.Div(), right):
            return _evaluate(left).times(_evaluate(right), -1.0)
        case ast.BinOp(left, ast.Pow(), right):
            return _evaluate(left).raised_to(_exponent(right))
    raise ValueError(f"{ast.unparse(node)} is no product of powers")


def _exponent(node: ast.expr) -> float:
    """Return the number that an exponent means; ``node`` is its syntax tree.

    Raises
    ------
    ValueError
        If it depends on d_k or n, is 0 or is no number.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_exponent(node.operand)
    factor, *powers = _evaluate(node)
    if any(powers):
        raise ValueError("an exponent must be a number")
    return factor


@dataclass(frozen=True, slots=True)
class Divisor:
    """A function of d_k, and possibly of n, whose value divides the scores.

    Attributes
    ----------
    name : str
        As in the tables; the formula, unless the divisor is in `DIVISORS`.
    formula : Product
    """

    name: str
    formula: Product

    @property
    def needs_keys(self) -> bool:
        """Whether the value depends on n, the number of keys, and not on d_k alone."""
        return any(self.formula[2:])

    @property
    def text(self) -> str:
        """Formula as it can be typed, such as ``sqrt(d_k)``."""
        return self.formula.text

    @property
    def symbol(self) -> str:
        r"""Formula as LaTeX, with numbers rounded to six digits: ``2\,d_k^{0.6}``."""
        tex = self.text.replace("*", r"\,")
        tex = tex.replace("ln(n)^", r"(\ln n)^").replace("ln(n)", r"\ln n")
        tex = re.sub(r"\^([-\d.e]+)", r"^{\1}", tex)
        tex = re.sub(r"sqrt\((.*)\)", r"\\sqrt{\1}", tex)
        return re.sub(r"\d[\d.]*(?:e-?\d+)?", _typeset_number, tex)

    def value(self, d_k: int, n_keys: int | None = None) -> float:
        """Return the number by which scores are divided at a given d_k and n.

        Parameters
        ----------
        d_k : int
            At least 1.
        n_keys : int, optional
            Number of keys of a row; required if the divisor depends on it.

        Raises
        ------
        InputError
            If the divisor depends on n and ``n_keys`` is missing or 1, or if the value
            is not between `LEAST_VALUE` and `MOST_VALUE`.
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

#: Ratios between divisors are to this one.
BASELINE = "sqrt"
#: Range of the value of a divisor; for rows see also `require_spread`.
LEAST_VALUE, MOST_VALUE = 1e-8, 1e20
#: Ranges of exponents and factor, so that no value overflows with sizes up to 2**20.
MOST_POWER, LEAST_FACTOR, MOST_FACTOR = 8.0, 1e-30, 1e30


def name_divisor(text: str) -> str:
    """Return the canonical name of a divisor or of a pair of divisors.

    Parameters
    ----------
    text : str
        A name or formula as for `parse_divisor`, or two of them with a ``/`` between.
        A ``/`` outside of all parentheses separates two divisors if one of them is a
        key of `DIVISORS` or begins with a parenthesis.  A formula of `DIVISORS` over a
        number is a single divisor: ``d_k/8``.

    Raises
    ------
    InputError
        If it is neither, if the two divisors are equal, or if it could be a fraction as
        well as a pair: ``n/8``.

    Examples
    --------
    >>> name_divisor("d_k^(1/2)"), name_divisor("none / d_k^0.6"), name_divisor("d_k/8")
    ('sqrt', 'none/d_k^0.6', '0.125*d_k')
    """
    parts = _split_at_slashes(text)
    is_plain = any(part in DIVISORS or part.startswith("(") for part in parts)
    if len(parts) == 2 and all(parts) and not is_plain:
        over, under = map(parse_divisor, parts)
        if over.name in DIVISORS and not any(under.formula[1:]):
            return parse_divisor(text).name  # not a pair: linear/8 would be one
        raise InputError(
            "divisor, by which scores are divided (d_k, not 1/d_k), must have brackets "
            "around all of a fraction, (n/8), or around a part of a ratio of two "
            f"divisors, d_k^0.6/(8), got {show(text)}"
        )
    names = [parse_divisor(part).name for part in parts]
    if len(names) > 2 or len(set(names)) < len(names):
        raise InputError(f"divisor must be one, or two that differ, got {show(text)}")
    return "/".join(names)


def parse_divisor(text: str) -> Divisor:
    """Return the divisor with a given name or formula.

    Parameters
    ----------
    text : str
        A key of `DIVISORS`, a number above 0, or a product of powers: ``d_k^0.6``,
        ``2*sqrt(d_k)``, ``sqrt(d_k*ln(n))``, ``d_k^(1/3)``.

    Returns
    -------
    Divisor
        That of `DIVISORS` with this formula, if there is one.

    Raises
    ------
    InputError
        If the text is none of these or longer than `MOST_CHARACTERS`, or if exponents
        or factor are out of range.
    """
    formula = text.strip()
    return DIVISORS[formula] if formula in DIVISORS else _parse_formula(formula)


@lru_cache(maxsize=1024)
def _parse_formula(formula: str) -> Divisor:
    """Return the divisor that a formula denotes, cached; see `parse_divisor`."""
    source = formula.replace("^", "**") if len(formula) <= MOST_CHARACTERS else ""
    try:
        product = _evaluate(ast.parse(source, mode="eval").body)
    except (SyntaxError, ArithmeticError, TypeError, ValueError, RecursionError):
        raise InputError(
            f"divisor must be one of {', '.join(DIVISORS)}, a number above 0, or a "
            f"product of powers of d_k, n and ln(n) such as 2*d_k^0.6; "
            f"got {show(formula)}.{suggest(formula, (*DIVISORS, 'd_k'))}"
        ) from None
    require_number("divisor", product.factor, LEAST_FACTOR, MOST_FACTOR)
    if max(map(abs, product[1:])) > MOST_POWER:
        raise InputError(
            f"divisor must have powers between -{MOST_POWER:g} and {MOST_POWER:g}, "
            f"got {show(formula)}"
        )
    same = (one for one in DIVISORS.values() if one.formula == product)
    return next(same, None) or Divisor(product.text, product)


def _split_at_slashes(text: str) -> list[str]:
    """Return the parts of a text between slashes, such as ``none`` and ``sqrt``.

    Slashes within parentheses do not separate parts.  Spaces around parts are removed.
    """
    depth, parts = 0, [""]
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
