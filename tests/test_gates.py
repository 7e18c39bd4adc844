"""A gate that measures nothing does not pass, and options that cannot act are refused.

Nothing here is sampled for longer than a second: what is wrong is known before.
"""

from pathlib import Path

import pytest

from montecarlo import observe
from montecarlo.judge import main as judge
from montecarlo.measure import main as measure

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


# --- The wrong thing ------------------------------------------------------------------

SLOPE = 'relation = "slope_between"\nlow = 0.0'
SETUP = '["init(kind=xavier_uniform,norm=layer,shape=fused,width=64)"]'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"what": f'{TWO}\nnumber_format = "float16"'},
            "number_format: must be left out for score_variance",
        ),
        (
            {"what": f'{TWO}\nsoftmax = "naive"'},
            "softmax: must be left out for score_variance",
        ),
        (
            {"what": f'{EXACT}\nsoftmax = "naive"', "quantity": "entropy"},
            "softmax: must be left out for entropy, which has no number formats",
        ),
        (
            {"domain": f"{HERE}, n_keys = [32, 32]"},
            "domain.n_keys: must be left out for score_variance",
        ),
        ({"what": SLOPE}, "domain.d_k: must hold several sizes for slope_between"),
        (
            {"domain": f'd_k = [16, 16], laws = ["laplace"], setup = {SETUP}'},
            "setup must have the law gaussian",
        ),
        (
            {"quantity": "planted_weight", "what": EXACT, "domain": ROWS}
            | {"domain": f'{ROWS}, dependence = ["none", "planted(0.5)"]'},
            "planted_weight everywhere, which needs planted keys",
        ),
        (
            {"quantity": "entropy_identity", "what": EXACT}
            | {"domain": f'{ROWS}, laws = ["gaussian", "laplace"]'},
            "entropy_identity everywhere, which needs Gaussian keys",
        ),
        (
            {"quantity": "format_error"}
            | {"what": f'{TWO}\nnumber_format = "bfloat16"\nsoftmax = "naive"'}
            | {"domain": "d_k = [16, 16], n_keys = [2048, 8192]"},
            "is not computed in bfloat16 with the softmax naive at 8192 keys",
        ),
    ],
)
def test_options_that_cannot_act_on_a_quantity_are_refused(
    change, message, file, capsys
):
    """What is not read would seem to have been judged: one line, status 2."""
    assert judge([file(**change)]) == 2
    line = told(capsys)
    assert "claim 'mine'" in line
    assert message in line


def test_share_that_no_quantifier_reads_is_refused(file, capsys):
    """A share is that of `usually`."""
    path = Path(file())
    text = path.read_text()
    for quantifier, status in (("always", 2), ("usually", 0)):
        more = f'id = "r"\nquantifier = "{quantifier}"\nshare = 0.9'
        path.write_text(text.replace('id = "r"', more))
        assert judge([str(path), "--jobs", "1"]) == status
    assert "field share: must be left out for always, got 0.9" in told(capsys)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("--quantity score_variance --number-format float16", "number_format of score"),
        ("--quantity score_variance --softmax naive", "softmax of score_variance must"),
        ("--quantity score_variance --from there", "--from must stand with --row"),
        (
            "--quantity score_variance --law laplace --law-q uniform --law-k uniform",
            "--law-q and --law-k must stand without --law, got 'laplace'",
        ),
        (
            f"--quantity score_variance --law laplace --setup {SETUP[2:-2]}",
            "setup must have the law gaussian",
        ),
        ("--replicates 0:2 --divisor nonsense", "must stand without --divisor"),
        ("--replicates 0:2 --summary nonsense", "must stand without --summary"),
        ("--replicates 0:2 --softmax nonsense", "must stand without --softmax"),
        ("--replicates 0:2 --relative-error x", "must stand without --relative-error"),
        ("--replicates 0:2 --most nonsense", "must stand without --most"),
        ("--replicates 0:2 --from nowhere", "must stand without --from"),
        ("--replicates 0:2 --json", "must stand without --json"),
        ("--replicates 0:2 --number-format float16", "left out without keys"),
        (
            "--replicates 0:2 --quantity overflow_probability --keys nonsense",
            "must stand without --keys",
        ),
        (
            "--replicates 0:2 --quantity overflow_probability --law-k nonsense",
            "must stand without --law-k",
        ),
    ],
)
def test_options_of_measure_that_do_not_act_are_refused(typed, message, capsys):
    """One line that names the option, status 2, nothing sampled."""
    assert measure([*typed.split(), "--d-k", "4"]) == 2
    assert message in told(capsys)
