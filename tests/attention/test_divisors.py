"""Divisors by name and formula: values held against Python's own arithmetic."""

import math

import pytest

from montecarlo.attention.divisors import (
    DIVISORS,
    name_divisor,
    parse_divisor,
)

#: Formula, what it is called, and Python's own arithmetic for it.
FORMULAS = [
    ("none", "none", lambda d, n: 1.0),
    (" sqrt ", "sqrt", lambda d, n: d**0.5),
    ("1", "none", lambda d, n: 1.0),
    ("1.0", "none", lambda d, n: 1.0),
    ("d_k", "linear", lambda d, n: d),
    ("sqrt(d_k)", "sqrt", lambda d, n: math.sqrt(d)),
    ("d_k^0.5", "sqrt", lambda d, n: math.sqrt(d)),
    ("d_k ** (1/2)", "sqrt", lambda d, n: math.sqrt(d)),
    ("2*sqrt(d_k)", "2sqrt", lambda d, n: 2 * math.sqrt(d)),
    ("sqrt(4*d_k)", "2sqrt", lambda d, n: 2 * math.sqrt(d)),
    ("13.5", "13.5", lambda d, n: 13.5),
    ("1e-5", "1e-5", lambda d, n: 1e-5),
    ("2.5e19", "2.5e19", lambda d, n: 2.5e19),
    ("d_k^0.6", "d_k^0.6", lambda d, n: d**0.6),
    ("d_k^0.6*2", "2*d_k^0.6", lambda d, n: 2 * d**0.6),
    ("d_k^(6/10)", "d_k^0.6", lambda d, n: d**0.6),
    ("d_k^-1", "d_k^-1", lambda d, n: 1 / d),
    ("(d_k/8)", "0.125*d_k", lambda d, n: d / 8),
    ("d_k^(1/3)", f"d_k^{1 / 3!r}", lambda d, n: d ** (1 / 3)),
    ("sqrt(d_k*ln(n))", "sqrt(d_k*ln(n))", lambda d, n: math.sqrt(d * math.log(n))),
    ("(d_k*log(n))^0.5", "sqrt(d_k*ln(n))", lambda d, n: math.sqrt(d * math.log(n))),
    ("(sqrt(d_k)/ln(n))", "ln(n)^-1*sqrt(d_k)", lambda d, n: d**0.5 / math.log(n)),
    ("n^0.25*ln(n)^2", "n^0.25*ln(n)^2", lambda d, n: n**0.25 * math.log(n) ** 2),
    ("n*d_k*3", "3*d_k*n", lambda d, n: 3 * n * d),
]


@pytest.mark.parametrize(("formula", "name", "by_hand"), FORMULAS)
def test_formula_is_the_number_it_says(formula, name, by_hand):
    """A formula has one name, whose divisor is the same, and Python's own value."""
    found = parse_divisor(formula)
    assert found.name == name == name_divisor(name)
    assert parse_divisor(name) == found
    for d_k, n_keys in ((1, 2), (80, 2048), (2**16, 2**12)):
        if not 1e-8 <= by_hand(d_k, n_keys) <= 1e20:
            continue
        value = found.value(d_k, n_keys)
        assert math.isclose(value, by_hand(d_k, n_keys), rel_tol=1e-13)


def test_names_and_symbols_are_of_one_divisor():
    """No two formulas that differ have a name or a symbol in common."""
    found = {parse_divisor(formula) for formula, _, _ in FORMULAS}
    assert len({one.name for one in found}) == len(found)
    assert len({one.symbol for one in found}) == len(found)
    assert set(DIVISORS.values()) <= found


@pytest.mark.parametrize(
    ("formula", "symbol"),
    [
        ("3*d_k^0.6", r"3\,d_k^{0.6}"),
        ("sqrt(2*d_k*ln(n))", r"1.41421\,\sqrt{d_k\,\ln n}"),
        ("ln(n)^-2", r"(\ln n)^{-2}"),
        ("1e-5*n", r"1\times 10^{-5}\,n"),
    ],
)
def test_symbols_are_latex(formula, symbol):
    """Pages set a divisor as a formula."""
    assert parse_divisor(formula).symbol == symbol


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("none / sqrt(d_k)", "none/sqrt"),
        ("d_k^0.6/(8)", "d_k^0.6/8"),
        ("linear/8", "linear/8"),
        ("d_k/8", "0.125*d_k"),
        ("sqrt(d_k) / 2", "0.5*sqrt(d_k)"),
        ("(d_k/8)/sqrt", "0.125*d_k/sqrt"),
        ("none/13.5", "none/13.5"),
    ],
)
def test_pairs_have_one_name(text, name):
    """A slash in no brackets parts a pair, but above a number that divides a formula
    of the table.
    """
    assert name_divisor(text) == name
