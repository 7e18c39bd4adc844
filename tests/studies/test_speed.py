"""Speed: the table is made, and a wrong standard error is caught."""

import csv
import itertools
import math
import time
from collections import defaultdict
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from studies import speed
from studies.speed import (
    Contender,
    row_contenders,
    time_together,
    variance_contenders,
)
from studies.stacks import watch

DOCS = Path(__file__).parents[2] / "docs"


def mean_of(units, claimed):
    """A contender that says its mean's error is ``claimed`` times the true one."""

    def run(seed):
        values = 5.0 + np.random.default_rng(seed).normal(size=units)
        error = claimed * values.std(ddof=1) / math.sqrt(units)
        return {"mean": (float(values.mean()), float(error))}

    return Contender("mean", units, run)


def test_right_standard_error_passes():
    """A right standard error agrees with the spread over runs, up to 1 in 1,000,000."""
    (timed,) = time_together([mean_of(50, 1.0)], 8)

    assert timed.errors["mean"] == pytest.approx(1.0 / math.sqrt(50) / 5.0, rel=0.1)
    assert timed.seconds > 0.0
    assert timed.spread < 1.7


@pytest.mark.parametrize("claimed", [0.5, 2.0])
def test_planted_standard_error_is_caught(claimed):
    """One that is half or twice the true one is not."""
    with pytest.raises(ValueError, match="standard error of mean: mean must agree"):
        time_together([mean_of(50, claimed)], 8)


@pytest.mark.parametrize("family", ["variance", "rows"])
def test_contenders_estimate_the_same(family):
    """What is timed against ours comes to the same values, within its errors, which few
    blocks do not tell well.
    """
    if family == "variance":
        plain, _, *others = variance_contenders(16, 16, 4096)
        contenders = [plain, *others]
    else:
        contenders = list(row_contenders(32, 8, 4))
    found = [contender.run(3) for contender in contenders]

    for one, other in itertools.combinations(found, 2):
        assert one.keys() == other.keys()
        for name, (value, error) in one.items():
            limit = 12.0 * math.hypot(error, other[name][1])
            assert abs(value - other[name][0]) < limit, name


@pytest.mark.slow
def test_table_is_made(tmp_path, capsys):
    """The command prints and writes a line for each contender."""
    path = tmp_path / "speed.csv"
    assert speed.main(["--quick", "--output", str(path)]) == 0

    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == speed.COLUMNS
    tasks = {line["task"] for line in lines}
    assert tasks == {
        "Var(q·k)",
        "score_variance_ratio",
        "row family",
        "all row quantities",
    }
    assert all(float(line["times"]) > 0.0 for line in lines)
    assert "NumPy notebook" in capsys.readouterr().out


def rounded(value):
    """A number as docs/cost.md shows it: two digits, or whole from 10 on."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def test_page_holds_the_table():
    """The page's table is the one beside the benchmark, in fewer digits."""
    with speed.TABLE.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    shown = [
        [float(x) for x in line.strip("| ").split("|")[-1].split(", ")]
        for line in (DOCS / "cost.md")
        .read_text(encoding="utf-8")
        .split("## How fast")[1]
        .split("|--:|\n")[1]
        .split("\n\n")[0]
        .splitlines()
    ]

    def times(task, against):
        return [
            float(line["times"])
            for line in lines
            if (line["task"], line["against"]) == (task, against)
        ]

    floor = times("all row quantities", "ours over the floor")
    expected = [
        times("Var(q·k)", "NumPy notebook"),
        times("Var(q·k)", "PyTorch notebook"),
        times("row family", "ten lines, float64"),
        times("row family", "explicit Jacobians"),
        [1.0 / one for one in floor[1:]],
    ]
    assert shown == [[float(rounded(x)) for x in row] for row in expected]


def test_stages_of_stacks():
    """The first stage that has a call names a stack; pages are told by language."""
    render = ["jinja2:render", "montecarlo.report.making:_render:de"]
    draws = ["montecarlo.sampling.distributions:_gaussian"]
    sample = ["montecarlo.sampling.replicates:sample"]
    assert speed.stage_of(render) == "pages, de"
    assert speed.stage_of([*draws, *sample]) == "draws and projections"
    assert speed.stage_of(sample) == "batches and journal"
    assert speed.stage_of(["importlib._bootstrap:_load", *sample]) == "imports"
    assert speed.stage_of(["montecarlo.claims.running:run_study"]).startswith("plan")


def test_stacks_are_watched():
    """Time is that of the thread that works; one that waits has none."""
    found, done = defaultdict(float), Event()
    waiting = Thread(target=done.wait)
    waiting.start()
    watcher = Thread(target=watch, args=(found, done))
    watcher.start()
    start = time.process_time()
    while time.process_time() - start < 0.1:
        sum(range(1000))
    done.set()
    watcher.join()
    waiting.join()
    # a thread of the test runner waits in a call of its own
    ours = {k: s for k, s in found.items() if not k[0].startswith("execnet.")}
    here = [s for stack, s in ours.items() if f"{__name__}:" in " ".join(stack)]
    assert sum(here) > 0.9 * sum(ours.values()) > 0.04


def test_page_holds_the_stages():
    """The page's table of stages is the one beside the benchmark."""
    with speed.STAGES_TABLE.open(encoding="utf-8", newline="") as file:
        lines = [list(line.values()) for line in csv.DictReader(file)]
    made = speed.MADE.search((DOCS / "cost.md").read_text(encoding="utf-8"))
    assert made
    assert [[*map(str.strip, x.strip("|").split("|"))] for x in made[0].splitlines()][
        2:
    ] == lines
