"""A gate that measures nothing does not pass, and options that cannot act are refused.

Nothing here is sampled for longer than a second: what is wrong is known before.
"""

import pytest

from montecarlo import observe
from montecarlo.judge import main as judge

CLAIM = """
[[claim]]
id = "mine"
topic = "variance"
statement = "So it is."
[[claim.reading]]
id = "r"
[[claim.reading.check]]
quantity = "{quantity}"
summary = "{summary}"
{what}
domain = {{ {domain} }}
"""
TWO = 'relation = "equals"\nexpected = 16.0\ntolerance = 0.05'
EXACT = 'relation = "equals"\nexpected = "reference"\ntolerance = 0.5'
HERE = 'd_k = [16, 16], laws = ["gaussian"]'
ROWS = "d_k = [16, 16], n_keys = [32, 32]"


@pytest.fixture
def file(tmp_path):
    """Write a file with one check; returns its path."""

    def write(what=TWO, domain=HERE, quantity="score_variance", more=""):
        pairs = quantity.startswith(("score_v", "entry"))
        text = CLAIM.format(
            quantity=quantity,
            summary="value" if pairs else "mean",
            what=what,
            domain=domain,
        )
        path = tmp_path / "claim.toml"
        path.write_text(text + more, encoding="utf-8")
        return str(path)

    return write


def told(capsys):
    """Return the one line that a command complained with."""
    (line,) = capsys.readouterr().err.splitlines()
    return line


# --- Nothing judged -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"quantity": "jacobian_spectral", "what": EXACT}
            | {"domain": f'{ROWS}, laws = ["gaussian"]'},
            "theory has no exact value at 1 of 1 places",
        ),
        (
            {"quantity": "entropy", "what": EXACT}
            | {"domain": f'{ROWS}, laws = ["gaussian", "laplace"]'},
            "entropy is not judged for laplace: theory has no exact value",
        ),
        (
            {"domain": 'd_k = [16, 16], laws = ["student_t3"]'},
            "is not judged for student_t3: the entries lack the moments",
        ),
        (
            {"domain": 'd_k = [16, 16], laws = ["gaussian", "student_t3"]'},
            "is not judged for student_t3: the entries lack the moments",
        ),
    ],
)
def test_what_is_not_judged_does_not_pass(change, why, file, capsys):
    """Status 4 and a line that names claim, law and reason; whatever `--fail-on` asks,
    as long as it names no verdict that is there.
    """
    path = file(**change)
    for asked in ("refuted,inconclusive", "none"):
        assert judge([path, "--jobs", "1", "--fail-on", asked]) == 4
        line = told(capsys)
        assert line.startswith("judge: claim 'mine', reading 'r': ")
        assert why in line


def test_failing_verdict_comes_first(file, capsys):
    """What is named by `--fail-on` ends in 1, also beside what cannot be judged."""
    laws = 'd_k = [16, 16], laws = ["gaussian", "student_t3"]'
    path = file(TWO.replace("16.0", "20.0"), laws)
    assert judge([path, "--jobs", "1"]) == 1
    assert "student_t3" in told(capsys)


def test_file_of_practice_alone_does_not_pass(tmp_path, capsys):
    """Claims that need training are not judged by this command."""
    path = tmp_path / "claim.toml"
    path.write_text(
        '[[claim]]\nid = "mine"\ntopic = "practice"\nkind = "practice"\n'
        'statement = "It trains."\nfinding = [{ text = "Not measured." }]\n'
    )
    assert judge([str(path), "--jobs", "1"]) == 4
    assert "no claim is of a kind that can be" in told(capsys)


def test_self_checks_of_a_file_are_judged(file, capsys):
    """They are sampled, printed, and end in status 1 like a claim."""
    wrong = (
        '[[self_check]]\nid = "drawn"\nstatement = "So it is."\ncheck = [{ quantity = '
        '"entry_variance_q", summary = "value", relation = "equals", expected = 2.0, '
        'tolerance = 0.05, domain = { d_k = [8, 8], laws = ["gaussian"] } }]\n'
    )
    assert judge([file(), "--jobs", "1"]) == 0
    assert judge([file(more=wrong), "--jobs", "1"]) == 1
    assert "refuted        drawn (self-check)" in capsys.readouterr().out


@pytest.mark.parametrize("typed", ["", ",", " , "])
@pytest.mark.parametrize("command", ["judge", "observe"])
def test_empty_list_of_verdicts_is_refused(command, typed, file, capsys):
    """A gate that could never close is a mistake; `none` says that it is meant."""
    if command == "judge":
        assert judge([file(), "--fail-on", typed]) == 2
    else:
        assert observe.main(["q.npz", "--fail-on", typed]) == 2
    line = told(capsys)
    assert "fail-on" in line
    assert repr(typed) in line


@pytest.mark.parametrize("field", ["dependence", "setup"])
def test_empty_domain_is_refused(field, file, capsys):
    """A domain without a place: one line that names claim and field, status 2."""
    assert judge([file(domain=f"{HERE}, {field} = []")]) == 2
    line = told(capsys)
    assert "claim.toml: claim 'mine'" in line
    assert field in line
