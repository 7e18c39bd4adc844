"""What the package offers in Python, beside its commands."""

import copy
import json
import math
import tomllib
from fractions import Fraction
from itertools import count, product
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator

from montecarlo import distribution, expected_row, figure, grid, judge, measure
from montecarlo.__main__ import main
from montecarlo.claims.own_claims import _catalogue_of
from montecarlo.claims.running import Study
from montecarlo.claims.schema import Catalogue
from montecarlo.errors import InputError
from montecarlo.study.presets import PRESETS

CLAIM = Path(__file__).parents[1] / "docs" / "own-claim.toml"
MANY = {"first": 16, "most": 16}


def test_grid_has_the_numbers_of_its_points():
    """Each line is what `measure` says of that point, whatever is sampled beside it."""
    table = grid(
        d_k=[4, 16],
        n_keys=[8],
        quantity=["score_variance", "entropy", "gradient_query"],
        divisor=["none", "sqrt", "none/sqrt"],
        **MANY,
    )
    assert len(table) == 2 * (2 + 2 + 3)  # the last alone has ratios
    for line in table.to_dict("records"):
        keys = None if line["quantity"] == "score_variance" else 8
        point = measure(
            "gaussian",
            "gaussian",
            line["d_k"],
            keys,
            quantity=line["quantity"],
            divisor=line["divisor"],
            **MANY,
        )
        assert line["row_id"] == point.row_id
        assert line["estimate"] == pytest.approx(point.estimate, rel=1e-12)
        assert line["std_error"] == pytest.approx(point.std_error, rel=1e-9)
        assert line["n_replicates"] == point.n_replicates == 16


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"quantity": ["entropi"]}, "Did you mean 'entropy'"),
        ({"divisor": ["none", "sqr"]}, "Did you mean 'sqrt'"),
        ({"n_keys": []}, "quantities of rows need n_keys"),
        ({"relative_error": 2.0}, "relative_error must lie between 1e-12 and 1"),
    ],
)
def test_grid_refuses_what_it_has_no_row_for(change, said):
    """What is asked for and not there is no empty table."""
    asked = {"d_k": [4], "n_keys": [8], "quantity": ["entropy"], **MANY}
    with pytest.raises(ValueError, match=said):
        grid(**asked | change)


def test_judge_says_what_the_command_says(capsys):
    """The same claims, from a path, a text or a mapping."""
    assert main(["judge", str(CLAIM), "--jobs", "1", "--json"]) in (0, 1)
    told = json.loads(capsys.readouterr().out)
    text = CLAIM.read_text(encoding="utf-8")
    found = judge(text)
    assert json.loads(json.dumps(found["claims"])) == told["claims"]
    assert found["not_judged"] == []
    read = [_catalogue_of(c) for c in (CLAIM, str(CLAIM), text, tomllib.loads(text))]
    assert read == [read[0]] * 4
    with pytest.raises(ValueError, match="claims must be TOML"):
        judge("[[claim\n")


#: What is no text, no size, no number or no list of such.
NO_TEXT = (None, True, 4, 1.5, b"sqrt", object(), [["none"]], {"none": 1}, np.array(4))
NO_SIZE = (
    True,
    0,
    -1,
    1.5,
    "4",
    b"4",
    [[4]],
    {4: 1},
    object(),
    math.nan,
    np.array(4.0),
)
NO_NUMBER = (True, "1", b"1", [1.0], object(), math.nan, 1j, 10**400)
SIZES = {"d_k": 4, "n_keys": 8}
ENTRIES = {"distribution_q": "gaussian", "distribution_k": "gaussian"}
ASKED = {**ENTRIES, **SIZES, "quantity": "entropy"}
OWN = {"sampler": Generator.standard_normal, "kurtosis": 3.0, "name": "own"}
#: Function, what it is called with, and the arguments that are to be of some type.
CALLS = (
    (measure, ASKED, ("quantity", "number_format", "softmax", *ENTRIES), NO_TEXT),
    (measure, ASKED, ("dependence", "initialisation", "normalisation"), NO_TEXT),
    (measure, ASKED, ("summary",), NO_TEXT[1:]),
    (measure, ASKED, ("divisor",), (*NO_TEXT[:2], *NO_TEXT[4:])),
    (measure, ASKED, ("d_k", "first", "most"), NO_SIZE),
    (measure, ASKED, ("d_k", "n_keys"), ([4, 16], (4,), np.array([4, 16]), range(3))),
    (measure, ASKED, ("seed",), (-1, 2**63, *NO_SIZE[2:])),
    (measure, ASKED, ("relative_error",), (0.0, 1.0, 1e-300, *NO_NUMBER)),
    (measure, ASKED, ("absolute_error",), (0.0, math.inf, *NO_NUMBER)),
    (measure, ASKED, ("executor",), (4, "threads", object())),
    (grid, ASKED, ("quantity", "dependence", "initialisation"), NO_TEXT),
    (grid, ASKED, ("normalisation",), NO_TEXT),
    (grid, ASKED, ("divisor",), (*NO_TEXT[:2], *NO_TEXT[4:])),
    (grid, ASKED, ("d_k", "n_keys"), (*NO_SIZE, [4, 1.5], range(10**9), count(2))),
    (grid, ASKED, ("quantity",), ([],)),
    (grid, ASKED, ("first", "most"), (1, *NO_SIZE)),
    (grid, ASKED, ("seed", "jobs"), (-1, 2**63, *NO_SIZE[2:])),
    (grid, ASKED, ("progress",), (1, "yes", None)),
    (judge, {"claims": CLAIM}, ("claims", "preset"), NO_TEXT[:6]),
    (judge, {"claims": CLAIM}, ("seed",), (-1, 2**63, *NO_SIZE[2:])),
    (expected_row, {"n_keys": 8, "std": 1.0}, ("n_keys",), (1, 2**21, *NO_SIZE)),
    (expected_row, {"n_keys": 8, "std": 1.0}, ("std", "bias"), (1e300, *NO_NUMBER)),
    (expected_row, {"n_keys": 8, "std": 1.0}, ("causal",), (1, "yes", None)),
    (expected_row, {"n_keys": 8, "d_k": 4}, ("d_k",), (10**400, *NO_SIZE)),
    (expected_row, {"n_keys": 8, "d_k": 64}, ("divisor",), (1e30, None, True, b"1")),
    (distribution, OWN, ("name", "sampler"), (*NO_TEXT, "a b")),
    (distribution, OWN, ("mean", "std", "kurtosis", "moments"), NO_NUMBER),
    (figure, {"frame": 4}, ("frame",), NO_TEXT),
)


@pytest.mark.parametrize(("function", "usual", "names", "values"), CALLS)
def test_other_types_are_refused(function, usual, names, values):
    """One line with argument, requirement and what came; nothing is sampled."""
    for name, value in product(names, values):
        with pytest.raises(InputError) as error:
            function(**usual | {name: value})
        told = str(error.value)
        assert "\n" not in told, (name, value)
        assert len(told) < 300, (name, value)


@pytest.mark.parametrize(
    "error_rate",
    [0, 5e-324, 0.9e-12, math.nan, -1, 0.5, 1, 2, math.inf, "0.01", True],
)
def test_error_rates_have_one_rule(error_rate, capsys):
    """From 1e-12 on and below one half, from Python as from the command, and of any
    study.
    """
    with pytest.raises(InputError, match=r"error_rate must .*, got "):
        judge(CLAIM, error_rate=error_rate)
    with pytest.raises(InputError, match=r"error_rate must .*, got "):
        Study(Catalogue(), PRESETS["quick"], error_rate=error_rate)
    if not isinstance(error_rate, bool | str):
        assert main(["judge", str(CLAIM), f"--error-rate={error_rate}"]) == 2
        assert "error-rate must " in capsys.readouterr().err


def loop():
    """Return a list that holds itself."""
    found = []
    found.append(found)
    return found


def places(data, path=()):
    """Yield the way to each value within lists and dicts."""
    for key in data if isinstance(data, dict) else range(len(data)):
        yield (*path, key)
        if isinstance(data[key], dict | list):
            yield from places(data[key], (*path, key))


@pytest.mark.parametrize(
    "value",
    [
        *(1j, b"x", object(), int, np.array([1, 2]), np.datetime64("2020"), math.nan),
        *("\ud800", ["\ud800"], {"\ud800": 1}, {1: 2}, loop(), {"a": loop()}, {1, 2}),
        *(range(3), Fraction(10**400), {"a": object()}),
    ],
    ids=lambda value: f"{type(value).__name__}-{value!a:.20}",
)
def test_claims_hold_what_a_file_can(value):
    """Values of other types, surrogates and a list that holds itself are refused in one
    line, wherever they stand.
    """
    claims = tomllib.loads(CLAIM.read_text())
    for *path, last in places(claims):
        changed = copy.deepcopy(claims)
        place = changed
        for step in path:
            place = place[step]
        place[last] = value
        with pytest.raises(InputError) as error:
            _catalogue_of(changed)
        assert len(str(error.value).encode()) < 1000, (*path, last)


def test_long_input_is_cut():
    """Of what came a message shows about 80 characters."""
    for name in ("divisor", "quantity", "dependence", "initialisation", "summary"):
        with pytest.raises(InputError) as error:
            grid(**ASKED | {name: "y" * 9000})
        assert "y" * 20 in str(error.value)
        assert "y" * 90 not in str(error.value)


def test_numbers_of_any_kind_are_numbers():
    """NumPy's and fractions are sizes, seeds, errors and divisors like Python's."""
    kinds = {
        "d_k": np.int64(4),
        "seed": np.uint8(1),
        "first": np.int32(8),
        "most": np.int64(8),
        "relative_error": np.float32(0.5),
        "divisor": Fraction(2),
    }
    plain = {"seed": 1, "first": 8, "most": 8, "relative_error": 0.5}
    one, other = (
        measure(**ASKED | more) for more in (kinds, plain | {"divisor": "sqrt"})
    )
    assert (one.estimate, one.row_id != other.row_id) == (other.estimate, True)
