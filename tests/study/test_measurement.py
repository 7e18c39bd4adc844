"""A point query is a row of the table, sampled alone."""

import json
import math
import shutil

import pytest

from montecarlo.cli.measure import main
from montecarlo.cli.report import main as report
from montecarlo.estimation.intervals import FEWEST_BEHIND_A_MEAN
from montecarlo.results.folder import write_run
from montecarlo.results.table import COLUMNS
from montecarlo.study.measurement import measure

#: What the program adds to a record.
ADDED = {"program", "schema", "sha256", "digest"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a small report."""
    path = tmp_path_factory.mktemp("report")
    grid = path / "grid.toml"
    grid.write_text(
        "seed = 5\n[grid]\nd_k = [4, 16]\nn_keys = [8]\ndistributions = []\n"
        "first = 8\nmost = 8\n"
    )
    output = path / "output"
    arguments = ["--config", str(grid), "--lang", "en", "--output", str(output)]
    assert report([*arguments, "--jobs", "1", "--quiet"]) == 0
    return output


def rows(folder):
    """Return some rows of a report: pairs, means, quantiles, ratios."""
    lines = (folder / "measurements.csv").read_text().splitlines()
    table = [dict(zip(COLUMNS, line.split(","), strict=True)) for line in lines[1:]]
    return table[:: max(1, len(table) // 12)]


def test_row_of_a_report_gives_the_same_number(folder, capsys):
    """`--row` repeats a number to the bit, whatever was sampled beside it."""
    for row in rows(folder):
        arguments = ["--row", row["row_id"], "--from", str(folder), "--json"]
        assert main(arguments) == 0
        again = json.loads(capsys.readouterr().out)
        assert again["estimate"] == float(row["estimate"])
        assert again["row_id"] == row["row_id"]


def test_row_that_is_no_mean_is_refused(folder, tmp_path, capsys):
    """Probabilities found by tilting are no estimate from replicates."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    name = rows(folder)[0]["quantity"]
    table = tmp_path / "measurements.csv"
    table.write_text(table.read_text().replace(f",{name},", ",overflow_probability,"))
    run = json.loads((folder / "run.json").read_bytes())
    write_run(tmp_path, {k: v for k, v in run.items() if k not in ADDED})
    row = rows(folder)[0]["row_id"]
    assert main(["--row", row, "--from", str(tmp_path)]) == 2
    assert "row must be an estimate from replicates" in capsys.readouterr().err


def test_json_has_the_columns_of_the_table(capsys):
    """JSON is one object with the columns of measurements.csv, and the time."""
    arguments = "--d-k 4 --keys 8 --quantity entropy --divisor sqrt --most 128 --json"
    assert main(arguments.split()) == 0
    assert [*json.loads(capsys.readouterr().out)] == [*COLUMNS, "seconds"]


def test_precision_is_reached():
    """Replicates double until the standard error is small enough."""
    point = measure(
        "gaussian", "gaussian", 64, quantity="score_variance", relative_error=5e-4
    )
    assert point.std_error <= 5e-4 * abs(point.estimate)
    assert point.n_replicates > 128
    assert math.log2(point.n_replicates).is_integer()


def test_budget_is_kept():
    """With too few replicates the query ends all the same, and says how many."""
    point = measure(
        "gaussian",
        "gaussian",
        4,
        8,
        quantity="entropy",
        relative_error=1e-9,
        first=2,
        most=4,
    )
    assert point.n_replicates == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--quantity entropyy --keys 8", "Did you mean 'entropy'"),
        ("--quantity entropy", "keys must be given for entropy"),
        ("--quantity score_variance --keys 8", "quantity of"),
        ("--quantity entropy --keys 8 --summary median", "must be one of mean; got"),
        ("--quantity entropy --keys 8 --number-format f8", "must be one of float64"),
        ("--quantity entropy --keys 8 --most 0", "between 2 and 1048576, got 0"),
        ("--quantity entropy --keys 8 --most -4", "between 2 and 1048576, got -4"),
        ("--row r0 --d-k 8", "--row must stand without --d-k, got '8'"),
        ("--quantity score_variance --d-k 0", "at least 1, got 0"),
        ("--quantity score_variance --d-k x", "whole number, got 'x'"),
        (
            "--quantity score_variance --distribution cauchy",
            "distribution must be one of",
        ),
        ("--quantity score_variance --relative-error 2", "between 0 and 1, got 2.0"),
        ("--row r0 --from nowhere", "run.json"),
        ("", "--quantity must be given"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capsys):
    """What is wrong is said in one line, with exit status 2."""
    assert main(arguments.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_distribution_without_an_interval_is_told_at_once(capsys):
    """A distribution that lacks moments gives a value, no interval, and why; sampling
    stops.
    """
    wanted = ["--distribution", "student_t3", "--d-k", "4", "--divisor", "none"]
    assert main([*wanted, "--quantity", "score_variance", "--seed", "7"]) == 0
    text = capsys.readouterr().out
    assert "none: the distribution lacks the moments that it needs" in text
    assert "±" not in text
    assert "nan" not in text
    assert "replicates 128," in text


def test_mean_of_rare_replicates_has_no_interval(capsys):
    """An estimate that hangs on a few replicates says so, in words and as null."""
    wanted = [
        "--distribution",
        "gaussian",
        "--d-k",
        "256",
        "--keys",
        "32",
        "--divisor",
        "none",
    ]
    wanted += ["--dependence", "planted(0.5)", "--quantity", "weight_max"]
    assert main([*wanted, "--relative-error", "0.01", "--seed", "7"]) == 0
    assert f"fewer than {FEWEST_BEHIND_A_MEAN} replicates" in capsys.readouterr().out
    assert main([*wanted, "--relative-error", "0.01", "--seed", "7", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ci_low"], found["ci_high"]) == (None, None)
