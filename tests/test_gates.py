"""A gate that measures nothing does not pass, and options that cannot act are refused.

Nothing here is sampled for longer than a second: what is wrong is known before.
"""

from itertools import product

import pytest

from montecarlo.cli.command_line import build_parser
from montecarlo.cli.exits import run
from montecarlo.sampling.cost import MOST_BYTES, replicate_bytes
from montecarlo.study.presets import PRESETS
from tests.commands import judge, measure, report
from tests.conftest import claim_text

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

    def write(what=TWO, domain=HERE, quantity="score_variance"):
        pairs = quantity.startswith(("score_v", "entry"))
        text = claim_text(what, domain, quantity, "value" if pairs else "mean")
        path = tmp_path / "claim.toml"
        path.write_text(text, encoding="utf-8")
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
        ((EXACT, ROWS, "jacobian_spectral"), "exact value"),
        ((EXACT, BOTH, "entropy"), "laplace"),
        ((TWO, FEW_MOMENTS, "score_variance"), "student_t3"),
    ],
)
def test_what_is_not_judged_does_not_pass(check, why, file, capsys):
    """Status 4, and claim, distribution and reason; whatever `--fail-on`."""
    path = file(*check)
    assert judge([path, "--jobs", "1", "--fail-on", "none"]) == 4
    line = told(capsys)
    assert line.startswith("montecarlo judge: claim 'mine', interpretation 'r': ")
    assert why in line


@pytest.mark.parametrize("typed", ["", ",", " , "])
@pytest.mark.parametrize("command", ["judge", "observe"])
def test_empty_list_of_verdicts_is_refused(command, typed, capsys):
    """A gate that could never close is a mistake; `none` says that it is meant."""
    assert run(command, [*COMMANDS[command], "--fail-on", typed]) == 2
    assert "fail-on must have a value, got ''" in told(capsys)


# --- The wrong thing ------------------------------------------------------------------

SLOPE = 'relation = "slope_between"\nlow = 0.0'


PLANTED = f'{SIZES}, dependence = ["none", "planted(0.5)"]'
PROJECTED = f'd_k = [16, 16], distributions = ["laplace"], initialisation = ["{WIDE}"]'
LONG = "d_k = [16, 16], n_keys = [2048, 8192]"
KEPT = 'number_format = "bfloat16"\nsoftmax = "naive"'


#: A check, and the field or the unit that its refusal names.
NO_CHECKS = [
    ((f"{TWO}\n{KEPT}", HERE, "score_variance"), "bfloat16"),
    ((f'{TWO}\nsoftmax = "naive"', HERE, "score_variance"), "softmax"),
    ((f'{EXACT}\nsoftmax = "naive"', HERE, "entropy"), "softmax of entropy"),
    ((TWO, ROWS, "score_variance"), "domain.n_keys"),
    ((SLOPE, HERE, "score_variance"), "domain.d_k"),
    ((TWO, PROJECTED, "score_variance"), "gaussian"),
    ((EXACT, PLANTED, "planted_weight"), "planted"),
    ((EXACT, BOTH, "entropy_identity"), "Gaussian keys"),
    ((f"{TWO}\n{KEPT}", LONG, "format_error"), "8192 keys"),
    ((TWO, f"{HERE}, dependence = []", "score_variance"), "dependence"),
    ((TWO, f"{HERE}, normalisation = ['l3']", "score_variance"), "normalisation"),
    ((TWO, f"{HERE}, mask = ['before']", "score_variance"), "mask"),
    ((TWO, f"{HERE}, mask = ['causal']", "score_variance"), "mask"),
    ((TWO, "d_k = [64, 1048576]", "score_variance"), "GiB"),
]


@pytest.mark.parametrize(("check", "name"), NO_CHECKS)
def test_checks_that_nobody_can_judge_are_refused(check, name, file, capsys):
    """Or that nobody can sample: one line, status 2."""
    assert judge([file(*check)]) == 2
    line = told(capsys)
    assert "claim 'mine'" in line
    assert name in line


#: What is typed, and the option, or the unit, that the refusal names.
REFUSED = rf"""
--quantity score_variance --number-format float16 | number_format
--quantity score_variance --softmax naive | softmax
--quantity score_variance --from there | --from
--quantity score_variance --distribution gaussian*cauchy | distribution
--quantity score_variance --distribution laplace --initialisation {WIDE} | gaussian
--quantity entropy --relative-error 1 --absolute-error 1 | --absolute-error
--quantity entropyy --keys 8 | 'entropy'
--quantity ENTROPY --keys 8 | Did you mean 'entropy'?
--quantity entropy --keys 8 --mask casual | Did you mean 'causal'?
--quantity planted_weight --keys 8 --dependence planed(0.5) | mean 'planted(0.5)'?
--quantity format_error --keys 8 --number-format float61 | Did you mean 'float64'?
--quantity score_variance --keys 8 | keys
--quantity score_variance --divisor 1/sqrt(d_k) | (d_k, not 1/d_k)
--quantity planted_weight --keys 128 | planted
--quantity entropy --keys 8 --summary q0.99 | q99 (not 0.99)
--quantity entropy --keys 8 --number-format f8 | number
--quantity entropy --keys 8 --most 0 | most
--quantity entropy --keys 8 --absolute-error=nan | absolute
--quantity score_variance --relative-error 2 | relative
--quantity score_variance --d-k 0 | d_k
--quantity score_variance --distribution cauchy | distribution
--quantity score_variance --divisor d_k*ln(n) | divisor
--d-k 8 | --quantity
--row r1 --d-k 8 | --d-k
--replicates 5 | --most sets how many
--replicates 0:5 --number-format half | number-format
--replicates 0:5 --quantity entropy | --quantity
--replicates 0:2 --most 9 | --most
--quantity entropy --keys {HUGE} | GiB
--quantity entropy --d-k 1048576 --keys 16384 | GiB
--quantity entropy --keys 1048576 --d-k 4096 | GiB
--quantity entropy --keys 65536 --mask causal | --most
--quantity entropy --keys 8 --most {HUGE} | most
--quantity score_variance --initialisation {WIDE} | width=1048576
--replicates 0:1000000000 | replicates
--replicates 0:1048576 --keys 1024 | 600 s
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_measure_refuses_what_does_not_act_or_nobody_can_sample(line, capsys):
    """Before a draw: one line that names the option, or the cost; status 2."""
    typed, _, name = line.partition(" | ")
    assert measure(typed.split()) == 2
    assert name in told(capsys)


# --- What is no value -----------------------------------------------------------------

COMMANDS = {
    "figures": [],
    "judge": ["claims.toml"],
    "measure": [],
    "observe": ["q.npz"],
    "report": [],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_option_without_a_value_is_refused(command, capsys):
    """`--seed=--` and `--config=`: one line that names the option, status 2."""
    needed = COMMANDS[command]
    for option, value in product(build_parser(command)._actions, ("--", "")):
        if not option.option_strings or option.nargs is not None:
            continue
        flag = option.option_strings[-1]
        if (flag, value) == ("--initialisation", ""):
            continue  # nothing stands before q and k
        assert run(command, [*needed, f"{flag}={value}"]) == 2
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
    assert report(["--config", str(path), "--output", str(output)]) == 2
    assert "GiB" in told(capsys)
    assert not output.exists()


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"observe"}))
def test_seeds_have_one_rule(command, here, capsys):
    """From 0 to 2**63 - 1 for every command: one line, status 2, nothing written."""
    needed = COMMANDS[command]
    more = ["--quantity", "score_variance"] if command == "measure" else []
    for seed in ("-1", str(2**63), "1.0", "x", "9" * 5000):
        assert run(command, [*needed, *more, f"--seed={seed}"]) == 2
        assert ": seed must " in told(capsys)
    assert not list(here.iterdir())


def test_estimated_memory_is_that_of_presets():
    """Every point of every preset is far from the limits."""
    for grid in PRESETS.values():
        for point in grid.points():
            assert replicate_bytes(point, 4) < MOST_BYTES / 2
