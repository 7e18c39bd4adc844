"""Formulas that are products of powers of d_k, n and ln(n): read, and written."""

import ast
import re
from collections.abc import Callable
from typing import NamedTuple

MOST_CHARACTERS = 100
#: What Python takes for a number beside these: 1_000, 0x10.
_NO_NUMBER = re.compile("[0-9]_|0[box]", re.IGNORECASE)


class Product(NamedTuple):
    """A factor, and the powers of d_k, n and ln(n)."""

    factor: float
    d_k: float = 0.0
    n: float = 0.0
    log_n: float = 0.0

    def times(self, other: "Product", sign: float = 1.0) -> "Product":
        """Return it times the other, or over it with the sign -1."""
        powers = (a + sign * b for a, b in zip(self[1:], other[1:], strict=True))
        factor = (
            self.factor * other.factor if sign > 0.0 else self.factor / other.factor
        )
        return Product(factor, *powers)

    def to(self, power: float) -> "Product":
        """Return a power of it."""
        return Product(self.factor**power, *(0.0 + power * one for one in self[1:]))


def read_formula(text: str) -> Product:
    """Return what a formula says.

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
    if _NO_NUMBER.search(text):
        raise ValueError("numbers must be decimal ones, as 1000 or 1e3")
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
    return _write(product, _NAMES)


def typeset_formula(product: Product) -> str:
    """Write a product as LaTeX, numbers to six digits."""
    return _write(product, _SYMBOLS)


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
    found = _evaluate(node)
    if any(found[1:]):
        raise ValueError("an exponent must be a number")
    return found.factor


class _Spelling(NamedTuple):
    """How a product is written."""

    bases: tuple[str, str, str]
    power: str
    root: str
    joint: str
    digits: Callable[[float], str]
    exponent: str  # of ten


_NAMES = _Spelling(("d_k", "n", "ln(n)"), "{}^{}", "sqrt({})", "*", repr, "e{}")
_SYMBOLS = _Spelling(
    ("d_k", "n", r"\ln n"),
    "{}^{{{}}}",
    r"\sqrt{{{}}}",
    r"\,",
    "{:g}".format,
    r"\times 10^{{{}}}",
)


def _write(product: Product, spelling: _Spelling) -> str:
    """Write a product of powers: the factor, powers, and one root of the rest."""
    written, under_root = [], []
    for base, power in zip(spelling.bases, product[1:], strict=True):
        if power == 0.5:
            under_root.append(base)
        elif power == 1.0:
            written.append(base)
        elif power != 0.0:
            bracketed = rf"({base})" if base.startswith("\\") else base
            written.append(spelling.power.format(bracketed, _number(power, spelling)))
    if under_root:
        written.append(spelling.root.format(spelling.joint.join(under_root)))
    if product.factor != 1.0 or not written:
        written.insert(0, _number(product.factor, spelling))
    return spelling.joint.join(written)


def _number(value: float, spelling: _Spelling) -> str:
    digits = spelling.digits(value).removesuffix(".0")
    mantissa, _, exponent = digits.partition("e")
    return mantissa + spelling.exponent.format(int(exponent)) if exponent else mantissa
