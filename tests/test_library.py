"""What the package offers in Python, beside its commands."""

import json
import tomllib
from pathlib import Path

import pytest

from montecarlo import grid, judge, measure
from montecarlo.__main__ import main
from montecarlo.claims.own_claims import _catalogue_of

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
