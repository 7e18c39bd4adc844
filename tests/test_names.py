"""What is typed: numbers in the digits 0 to 9."""

import re

import pytest

from montecarlo.__main__ import main
from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.cli.listing import KINDS
from montecarlo.cli.options import parse_indices
from montecarlo.errors import InputError
from montecarlo.names import (
    LISTED,
    MOST_LISTED,
    look_up,
    parse_decimal,
    parse_seed,
    parse_whole,
)
from montecarlo.sampling.design_points import (
    parse_dependence,
    parse_initialisation,
    parse_normalisation,
)
from montecarlo.sampling.distributions import OF_SCIPY, parse_distribution

INITIALISATION = "init(kind=he_normal,norm=layer,shape=full,width={})"
WHOLE = {
    "whole": lambda typed: parse_whole("d-k", typed),
    "seed": parse_seed,
    "replicates": lambda typed: parse_indices("replicates", f"0:{typed}").stop,
}
DECIMAL = {
    "decimal": lambda typed: parse_decimal("absolute-error", typed),
    "distribution": lambda typed: parse_distribution(f"gaussian(std={typed})").std,
    "dependence": lambda typed: parse_dependence(f"pairs(0.{typed})").rho,
    "initialisation": lambda typed: parse_initialisation(INITIALISATION.format(typed)),
    "normalisation": lambda typed: parse_normalisation(f"l2(gain={typed})").gain,
    "divisor": lambda typed: parse_divisor(typed).factor,
}


@pytest.mark.parametrize("parser", [*WHOLE, *DECIMAL])
@pytest.mark.parametrize("typed", ["٣٢", "３２", "1_0", "0x1f", "", "-9" * 999])
def test_numbers_have_the_digits_0_to_9(parser, typed):
    """Python's own `int` and `float` take other scripts' digits and underscores."""
    with pytest.raises(InputError) as refused:
        (WHOLE | DECIMAL)[parser](typed)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("parser", [*WHOLE, *DECIMAL])
def test_numbers_are_read(parser):
    """And what they mean is that of Python's own."""
    found = (WHOLE | DECIMAL)[parser]("32")
    if parser in {"rtol", "dependence"}:
        assert found == 0.32
    elif parser == "initialisation":
        assert found.width == 32
    else:
        assert found == 32


@pytest.mark.parametrize(
    "typed", ["nan", "inf", "-inf", "1e999", "1e", ".", "1,5", "5%"]
)
def test_decimals_are_finite(typed):
    """No number is what a limit can be held against, and the line says what came."""
    with pytest.raises(InputError, match="x must be a number, got '"):
        parse_decimal("x", typed)


@pytest.mark.parametrize("typed", ["0.01", ".5", "5.", "-3", "1e-2", "+1.5E+3"])
def test_decimals_are_read(typed):
    """All ways of writing that people have."""
    assert parse_decimal("x", typed) == float(typed)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("max_weight", "weight_max"),
        ("planted-weight", "planted_weight"),
        ("weight_mx", "weight_max"),
        ("entropie", "entropy"),
    ],
)
def test_the_nearest_name_is_told(typed, meant):
    """The same words in another order first, then what is typed alike."""
    known = dict.fromkeys(("planted_weight", "entropy", "weight_max"))
    with pytest.raises(InputError, match=f"Did you mean '{meant}'"):
        look_up("quantity", typed, known)


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("quantity", QUANTITIES),
        ("quantity of d_k=4", QUANTITIES),
        ("distribution after 'scipy.'", OF_SCIPY),
        ("claim", {claim.id: claim for claim in read_catalogue().claim}),
    ],
)
@pytest.mark.parametrize("wrong", ["", "x", "y" * 100_000])
def test_of_a_long_list_the_nearest_are_named(kind, table, wrong, capsys):
    """Three names, and a command that prints them all."""
    name = next(iter(table)) + wrong
    with pytest.raises(InputError) as refused:
        look_up(kind, name + "?", table)
    told = str(refused.value)
    assert len(told) < 400
    nearest, how = re.search(
        r"one of (.*), \.\.\. \(\d+ in all: (.*)\); got ", told
    ).groups()
    assert len({*nearest.split(", ")} & {*table}) == 3
    assert next(iter(table)) in nearest or len(wrong) > 1
    assert how.startswith("python -m montecarlo ")
    assert main(how.split()[3:]) == 0
    printed = capsys.readouterr().out
    assert all(one in printed for one in nearest.split(", "))


def test_of_a_short_list_all_are_named():
    """As many as fit on a line or two; what is printed whole elsewhere is there."""
    with pytest.raises(InputError, match=r"fruit must be one of a, b; got 'c'\."):
        look_up("fruit", "c", {"a": 1, "b": 2})
    with pytest.raises(
        InputError, match=r"fruit must be one of .* \(160 in all\); got"
    ):
        look_up("fruit", "c", dict.fromkeys(map(str, range(MOST_LISTED))))
    assert {*LISTED.values()} <= {*KINDS}
