"""A user's own claims are judged by the rule of the catalogue."""

import json
from pathlib import Path

import pytest

from montecarlo.judge import main

EXAMPLE = Path(__file__).parents[1] / "docs" / "own-claim.toml"
CLAIM = """
[[claim]]
id = "mine"
topic = "variance"
statement = "{statement}"
source = []
[[claim.reading]]
id = "r"
[[claim.reading.check]]
quantity = "{quantity}"
summary = "value"
relation = "equals"
expected = {expected}
tolerance = 0.05
domain = {{ d_k = [{d_k}, {d_k}], laws = ["gaussian"] }}
"""


def write(path, **changes):
    """Write a claim about one variance."""
    values = {
        "statement": "The variance is what it is.",
        "quantity": "score_variance",
        "expected": "16.0",
        "d_k": "16",
    } | changes
    path.write_text(CLAIM.format(**values))
    return str(path)


def test_example_is_judged(capsys):
    """The documented example runs: one claim holds, the other does not."""
    assert main([str(EXAMPLE), "--jobs", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["supported", "halved-head-halves-variance"]
    assert lines[2].split() == ["refuted", "temperature-two-is-one-hot"]


@pytest.mark.parametrize(
    ("expected", "fail_on", "status"),
    [
        ("16.0", "refuted,inconclusive", 0),
        ("20.0", "refuted,inconclusive", 1),
        ("20.0", "inconclusive", 0),
        ("16.0", "supported", 1),
    ],
)
def test_exit_status_is_what_was_asked_for(expected, fail_on, status, tmp_path):
    """Exit status 1 for the verdicts named by `--fail-on`, and only then."""
    path = write(tmp_path / "claim.toml", expected=expected)
    assert main([path, "--fail-on", fail_on, "--jobs", "1"]) == status


def test_places_that_the_grid_lacks_are_added(tmp_path, capsys):
    """A claim about d_k = 48, which no preset has, is measured there."""
    path = write(tmp_path / "claim.toml", expected="48.0", d_k="48")
    assert main([path, "--json", "--jobs", "1"]) == 0
    claim = json.loads(capsys.readouterr().out)["claims"][0]
    assert claim["readings"][0]["places"][0]["d_k"] == 48


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantity": "score_varianc"}, "Did you mean 'score_variance'"),
        ({"expected": "1e999"}, "expected"),
        ({"statement": "a\\u0007b"}, "statement"),
        ({"d_k": "99999999999"}, "d_k"),
        ({"expected": '"{{ 7*7 }}"'}, "expected"),
    ],
)
def test_hostile_content_is_refused(changes, message, tmp_path, capsys):
    """Unknown names, huge exponents, control characters: one line, exit status 2."""
    path = write(tmp_path / "claim.toml", **changes)
    assert main([path, "--jobs", "1"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_sentences_name_readings(tmp_path, capsys):
    """A sentence that asks for a reading which the claim lacks: one line, status 2."""
    path = write(tmp_path / "claim.toml")
    sentences = """
[claim.sentences]
supported = "It is."
refuted = "It is not."
conditional = "It is in some places."
inconclusive = "The sample does not tell."
[[claim.sentences.when]]
readings = { "%s" = "supported" }
sentence = "It is in this reading."
"""
    text = Path(path).read_text()
    Path(path).write_text(text + sentences % "r")
    assert main([path, "--jobs", "1"]) == 0
    capsys.readouterr()
    Path(path).write_text(text + sentences % "s")
    assert main([path, "--jobs", "1"]) == 2
    error = capsys.readouterr().err
    assert "claim.toml: claim 'mine', field sentences.when.readings" in error
    assert "reading must be one of r; got 's'." in error
    assert error.count("\n") == 1


def test_markup_stays_text(tmp_path, capsys):
    """A statement with markup is data: printed in JSON, executed nowhere."""
    path = write(tmp_path / "claim.toml", statement="<script>alert(1)</script>")
    assert main([path, "--json", "--jobs", "1"]) == 0
    assert "<script>" not in capsys.readouterr().out
