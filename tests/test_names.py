"""A name that is not known is answered by those that are near."""

import re

import pytest

from montecarlo.__main__ import main
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.errors import InputError
from montecarlo.names import MOST_LISTED, look_up


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("quantity", QUANTITIES),
        ("quantity of d_k=4", QUANTITIES),
        ("claim", {claim.id: claim for claim in read_catalogue().claim}),
    ],
)
@pytest.mark.parametrize("wrong", ["", "x", "y" * 100_000])
def test_of_a_long_list_the_nearest_are_named(kind, table, wrong, capsys):
    """Three names, and a command that says how to print all."""
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
    assert {"quantities", kind.split()[0]} & {*capsys.readouterr().out.split()}


def test_of_a_short_list_all_are_named():
    """As many as fit on a line or two; what is printed whole elsewhere is there."""
    with pytest.raises(InputError, match=r"fruit must be one of a, b; got 'c'\."):
        look_up("fruit", "c", {"a": 1, "b": 2})
    with pytest.raises(
        InputError, match=r"fruit must be one of .* \(160 in all: .* --list\); got"
    ):
        look_up("fruit", "c", dict.fromkeys(map(str, range(MOST_LISTED))))
