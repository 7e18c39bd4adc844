"""A gate that measures nothing does not pass, and options that cannot act are refused.

Nothing here is sampled for longer than a second: what is wrong is known before.
"""

import re
from itertools import product
from pathlib import Path

import pytest

from montecarlo.cli import figures, observe, report
from montecarlo.cli import judge as judge_command
from montecarlo.cli import measure as measure_command
from montecarlo.cli.judge import main as judge
from montecarlo.cli.measure import main as measure
from montecarlo.sampling.cost import MOST_BYTES, replicate_bytes
from montecarlo.study.presets import PRESETS

CLAIM = """
[[claim]]
id = "mine"
topic = "variance"
statement = "So it is."
[[claim.interpretation]]
id = "r"
[[claim.interpretation.check]]
quantity = "{quantity}"
summary = "{summary}"
{what}
domain = {{ {domain} }}
"""
TWO = 'relation = "equals"\nexpected = 16.0\ntolerance = 0.05'
EXACT = 'relation = "equals"\nexpected = "reference"\ntolerance = 0.5'
HERE = 'd_k = [16, 16], distributions = ["gaussian"]'
SIZES = "d_k = [16, 16], n_keys = [32, 32]"
ROWS = f'{SIZES}, distributions = ["gaussian"]'
BOTH = f'{SIZES}, distributions = ["gaussian", "laplace"]'
FEW_MOMENTS = 'd_k = [16, 16], distributions = ["gaussian", "student_t3"]'


HUGE = str(10**30)
WIDE = "init(kind=he_normal,norm=rms,shape=full,width=1048576)"


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


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys):
    """Return the one line that a command complained with."""
    (line,) = capsys.readouterr().err.splitlines()
    return line


# --- Nothing judged -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ((EXACT, ROWS, "jacobian_spectral"), "has no exact value in 1 of 1 cases"),
        ((EXACT, BOTH, "entropy"), "entropy is not judged for laplace: theory has no"),
        ((TWO, FEW_MOMENTS, "score_variance"), "for student_t3: the entries lack the"),
    ],
)
def test_what_is_not_judged_does_not_pass(check, why, file, capsys):
    """Status 4, and claim, distribution and reason; whatever `--fail-on`."""
    path = file(*check)
    for asked in ("refuted,undecided", "none"):
        assert judge([path, "--jobs", "1", "--fail-on", asked]) == 4
        line = told(capsys)
        assert line.startswith("judge: claim 'mine', interpretation 'r': ")
        assert why in line


def test_failing_verdict_comes_first(file, capsys):
    """What is named by `--fail-on` ends in 1, also beside what cannot be judged."""
    path = file(TWO.replace("16.0", "20.0"), FEW_MOMENTS)
    assert judge([path, "--jobs", "1"]) == 1
    assert "student_t3" in told(capsys)


def test_file_of_practice_alone_does_not_pass(tmp_path, capsys):
    """Claims that need training are not judged by this command."""
    path = tmp_path / "claim.toml"
    path.write_text(
        '[[claim]]\nid = "mine"\ntopic = "training"\nkind = "practice"\n'
        'statement = "It trains."\nfinding = [{ text = "Not measured." }]\n'
    )
    assert judge([str(path), "--jobs", "1"]) == 4
    assert "no claim is of a kind that can be" in told(capsys)


def test_self_checks_of_a_file_are_judged(file, capsys):
    """They are sampled, printed, and end in status 1 like a claim."""
    wrong = (
        '[[self_check]]\nid = "drawn"\nstatement = "So it is."\ncheck = [{ quantity = '
        '"entry_variance_q", summary = "value", relation = "equals", expected = 2.0, '
        'tolerance = 0.05, domain = { d_k = [8, 8], distributions = ["gaussian"] } }]\n'
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
    assert "fail-on must have a value, got ''" in told(capsys)


# --- The wrong thing ------------------------------------------------------------------

SLOPE = 'relation = "slope_between"\nlow = 0.0'


PLANTED = f'{SIZES}, dependence = ["none", "planted(0.5)"]'
PROJECTED = f'd_k = [16, 16], distributions = ["laplace"], initialisation = ["{WIDE}"]'
LONG = "d_k = [16, 16], n_keys = [2048, 8192]"
KEPT = 'number_format = "bfloat16"\nsoftmax = "naive"'


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ((f"{TWO}\n{KEPT}", HERE, "score_variance"), "number_format: must be left out"),
        (
            (f'{TWO}\nsoftmax = "naive"', HERE, "score_variance"),
            "softmax: must be left",
        ),
        ((f'{EXACT}\nsoftmax = "naive"', HERE, "entropy"), "has no number formats"),
        ((TWO, ROWS, "score_variance"), "domain.n_keys: must be left out for score_va"),
        ((SLOPE, HERE, "score_variance"), "domain.d_k: must hold several sizes for sl"),
        ((TWO, PROJECTED, "score_variance"), "must be of the distribution gaussian"),
        ((EXACT, PLANTED, "planted_weight"), "everywhere, which needs planted keys"),
        ((EXACT, BOTH, "entropy_identity"), "everywhere, which needs Gaussian keys"),
        ((f"{TWO}\n{KEPT}", LONG, "format_error"), "the softmax naive at 8192 keys"),
        ((TWO, f"{HERE}, dependence = []", "score_variance"), "dependence"),
        ((TWO, f"{HERE}, initialisation = []", "score_variance"), "initialisation"),
        ((TWO, f"{HERE}, normalisation = ['l2(gain=9)']", "score_variance"), "'l2(ga"),
        (
            (TWO, f"{HERE}, normalisation = ['l3']", "score_variance"),
            "must be none, l2",
        ),
        ((TWO, "d_k = [64, 1048576]", "score_variance"), "d_k=524288: about 2 GiB"),
    ],
)
def test_checks_that_nobody_can_judge_are_refused(check, message, file, capsys):
    """Or that nobody can sample: one line, status 2."""
    assert judge([file(*check)]) == 2
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


#: What is typed, and what the refusal says.
REFUSED = rf"""
--quantity score_variance --number-format float16 | number_format of score
--quantity score_variance --softmax naive | softmax of score_variance must
--quantity score_variance --from there | --from must stand with --row
--quantity x --distribution a --distribution-q b --distribution-k c | -k must stand
--quantity score_variance --distribution laplace --initialisation {WIDE} | gaussian
--quantity entropy --relative-error 1 --absolute-error 1 | without --absolute-error
--quantity entropyy --keys 8 | Did you mean 'entropy'
--quantity entropy | keys must be given for entropy
--quantity score_variance --keys 8 | keys must be left out
--quantity planted_weight --keys 128 | a dependence planted
--quantity entropy --keys 8 --summary q50 | must be one of mean, median, q99
--quantity entropy --keys 8 --number-format f8 | must be one of float64
--quantity entropy --keys 8 --most 0 | integer of at least 2, got 0
--quantity entropy --keys 8 --most -4 | integer of at least 2, got -4
--quantity entropy --keys 8 --absolute-error=0 | absolute
--quantity entropy --keys 8 --absolute-error=-1 | absolute
--quantity entropy --keys 8 --absolute-error=inf | absolute
--quantity entropy --keys 8 --absolute-error=nan | absolute
--quantity entropy --keys 8 --absolute-error=x | absolute
--quantity score_variance --relative-error 2 | between 1e-12 and 1, got 2.0
--quantity score_variance --d-k 0 | at least 1, got 0
--quantity score_variance --d-k x | whole number, got 'x'
--quantity score_variance --distribution cauchy | distribution must be one of
--quantity score_variance --divisor d_k*ln(n) | must not depend on n for
--row r0 --from nowhere | run.json
--d-k 8 | --quantity must be given, or --row
--row r1 --d-k 8 | --row must stand without --d-k, got 8
--replicates 5 | replicates must be two whole numbers A:B
--replicates 5:5 | with A below B, got '5:5'
--replicates=-1:5 | replicates must be two whole numbers
--replicates 0:5 --d-k 0 | d_k must be an integer of at least 1
--replicates 0:5 --number-format half | number-format must be one of
--replicates 1:5 --quantity overflow_probability | must begin with 0
--replicates 0:5 --quantity entropy | must stand without --quantity
--replicates 0:5 --row r1 | must stand without --row
--replicates 0:2 --divisor nonsense | must stand without --divisor
--replicates 0:2 --summary nonsense | must stand without --summary
--replicates 0:2 --softmax nonsense | must stand without --softmax
--replicates 0:2 --relative-error 0.1 | must stand without --relative-error
--replicates 0:2 --most 9 | must stand without --most
--replicates 0:2 --from nowhere | must stand without --from
--replicates 0:2 --json | must stand without --json
--replicates 0:2 --number-format float16 | left out without keys
--replicates 0:2 --quantity overflow_probability --keys 8 | must stand without --keys
--replicates 0:2 --quantity overflow_probability --distribution-k x | -distribution-k
--quantity entropy --keys {HUGE} | about 5.96e\+22 GiB
--quantity score_variance --d-k {HUGE} | about 3.81e\+24 GiB
--quantity entropy --d-k 1048576 --keys 16384 | GiB and 60 s a replicate
--quantity score_variance --d-k 1048576 | at most 1 GiB .* about 4 GiB
--quantity entropy --keys 8 --d-k {"9" * 6000} | at most 50 digits
--quantity entropy --keys 1048576 --d-k 4096 | --most must take at most
--quantity entropy --keys 8 --most {HUGE} | most must be at most 1048576
--quantity score_variance --initialisation {WIDE} | width=1048576
--replicates 0:1000000000 | replicates must end at 1048576 at most
--replicates {HUGE}:{HUGE}9 | replicates must
--replicates 0:1048576 --keys 1024 | at most 600 s on one core
--replicates 0:2 --keys 16384 --d-k 1048576 | at most 1 GiB
--replicates 0:2 --quantity overflow_probability --d-k 65536 | about 8 GiB
--replicates 0:1048576 --quantity overflow_probability --d-k 4096 | at most 600 s
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_measure_refuses_what_does_not_act_or_nobody_can_sample(line, capsys):
    """Before a draw: one line that names the option, or the cost; status 2."""
    typed, message = line.split(" |")
    assert measure(typed.split()) == 2
    assert re.search(message.strip(), told(capsys))


# --- What is no value -----------------------------------------------------------------

COMMANDS = {
    "figures": (figures, []),
    "judge": (judge_command, ["claims.toml"]),
    "measure": (measure_command, []),
    "observe": (observe, ["q.npz"]),
    "report": (report, []),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_option_without_a_value_is_refused(command, capsys):
    """`--seed=--` and `--config=`: one line that names the option, status 2."""
    module, needed = COMMANDS[command]
    for option, value in product(module.build_parser()._actions, ("--", "")):
        if not option.option_strings or option.nargs is not None:
            continue
        flag = option.option_strings[-1]
        if (flag, value) == ("--initialisation", ""):
            continue  # nothing stands before q and k
        assert module.main([*needed, f"{flag}={value}"]) == 2
        name = flag.lstrip("-")
        assert f": {name} must have a value, got {value!r}" in told(capsys)


# --- Numbers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "grid",
    [
        "d_k = [1048576]\nn_keys = [16384]",
        "d_k = [4]\nn_keys = []\ntails = [[65536, 2]]",
    ],
)
def test_grids_that_nobody_can_sample_are_refused(grid, tmp_path, capsys):
    """The same for a study of one's own."""
    path = tmp_path / "study.toml"
    path.write_text(f"[grid]\n{grid}\ndistributions = []\n", encoding="utf-8")
    output = tmp_path / "output"
    assert report.main(["--config", str(path), "--output", str(output)]) == 2
    assert "GiB" in told(capsys)
    assert not output.exists()


@pytest.mark.parametrize(
    ("seed", "must"),
    [
        ("-1", "lie between 0 and 9223372036854775807, got -1"),
        (str(2**63), "lie between 0 and 9223372036854775807"),
        ("1.0", "be a whole number, got '1.0'"),
        ("x", "be a whole number"),
        ("9" * 5000, "be a whole number of at most 50 digits"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_seeds_have_one_rule(command, seed, must, here, capsys):
    """From 0 to 2**63 - 1 for every command: one line, status 2, nothing written."""
    module, needed = COMMANDS[command]
    more = ["--quantity", "score_variance"] if command == "measure" else []
    assert module.main([*needed, *more, f"--seed={seed}"]) == 2
    assert f": seed must {must}" in told(capsys)
    assert not list(here.iterdir())


def test_estimated_memory_is_that_of_presets():
    """Every point of every preset is far from the limits."""
    for grid in PRESETS.values():
        for point in grid.points():
            assert replicate_bytes(point, 4) < MOST_BYTES / 2
