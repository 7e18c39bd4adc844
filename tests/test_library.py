"""What the package offers in Python, beside its commands."""

import copy
import inspect
import json
import math
import re
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import montecarlo
from montecarlo import grid, judge, measure
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
            d_k=line["d_k"],
            n_keys=keys,
            quantity=line["quantity"],
            divisor=line["divisor"],
            **MANY,
        )
        assert line["row_id"] == point.row_id
        assert line["estimate"] == pytest.approx(point.estimate, rel=1e-12)
        assert line["std_error"] == pytest.approx(point.std_error, rel=1e-9)
        assert line["n_replicates"] == point.n_replicates == 16


@pytest.mark.parametrize("name", sorted({*montecarlo.__all__} - {"ScoreWarning"}))
def test_each_parameter_has_an_entry(name):
    """Of its own in the docstring, in the order of the signature."""
    public = getattr(montecarlo, name)
    lines = inspect.cleandoc(public.__doc__).partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n[A-Z]\w+\n---", lines)[0]
    entries = re.findall(r"^(\S.*?) : ", section, re.MULTILINE)
    assert entries == [*inspect.signature(public).parameters]


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
        assert re.search("error.rate must ", capsys.readouterr().err)


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
