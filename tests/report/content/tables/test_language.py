"""The table of the language model: each of its numbers by a loop over lines."""

import csv
from statistics import median

from montecarlo.records.training import FOLDER, read_language
from montecarlo.report.content.tables.language import view_language


def test_lines_are_those_of_the_record():
    """Runs that learned, their steps, and what is left on text held out."""
    record = read_language()
    view = view_language(record)
    with (FOLDER / "language.csv").open(encoding="utf-8", newline="") as file:
        runs = list(csv.DictReader(file))
    judged = {str(seed) for seed in record.seeds["judged"]}
    assert view.seeds == len(judged)
    for line in view.lines:
        setting = (line.arm, str(line.d_k), line.rate)
        mine = [
            one
            for one in runs
            if (one["arm"], one["d_k"], float(one["rate"])) == setting
            and one["seed"] in judged
        ]
        steps = [float(one["steps"]) for one in mine if one["steps"]]
        held_out = [float(one["held_out"]) for one in mine]
        assert len(mine) == view.seeds
        assert line.learned == len(steps)
        expected = median(steps) if len(steps) == len(mine) else None
        assert line.steps == expected or len(steps) not in (0, len(mine))
        assert line.held_out == (median(held_out), min(held_out), max(held_out))


def test_runs_of_an_arm_are_counted_over_all_sizes():
    """Two d_k of eight seeds each."""
    view = view_language(read_language())
    sizes = {line.d_k for line in view.lines}
    for arm in ("none", "sqrt", "linear"):
        mine = [line.learned for line in view.lines if line.arm == arm]
        assert view.count(arm) == (sum(mine), len(sizes) * view.seeds)
