"""Short runs of the program that measures the watch; where torch is installed.

The table beside the program was measured on 200 runs (``python -m
studies.watch_alarms``); `docs/watch.md` says its numbers.
"""

import csv
import importlib
from pathlib import Path

import pytest

from tests.model.needed import need_torch

pytestmark = pytest.mark.slow

need_torch()
watch_alarms = importlib.import_module("studies.watch_alarms")

PAGE = Path(__file__).parents[2] / "docs" / "watch.md"


def read_table():
    """The lines of the committed table."""
    with watch_alarms.TABLE.open(encoding="utf-8", newline="") as file:
        return {(one["task"], one["plant"]): one for one in csv.DictReader(file)}


def test_the_page_says_what_the_table_has():
    """False alarms, and how early planted faults are warned of."""
    page = PAGE.read_text(encoding="utf-8")
    for (task, plant), one in read_table().items():
        names = "runs", "warned", "first_warning", "lead"
        cells = [one[name] or "-" for name in names]
        words = watch_alarms.PLANTS[plant]
        assert f"| {task} | {words} | {' | '.join(cells)} |" in page


@pytest.mark.parametrize("plant", ["none", "growth"])
def test_a_short_run_is_as_the_table_says(plant, monkeypatch):
    """Of two models each; beside others one trains as it does alone."""
    monkeypatch.setattr(watch_alarms, "FROM", 200)
    runs = watch_alarms.train("copy", plant, range(2), steps=450, every=25)
    assert len(runs.losses) == 2
    assert [bool(one) for one in runs.alarms] == [plant == "growth"] * 2
    if plant == "none":
        alone = watch_alarms.train("copy", plant, [1], steps=450, every=25)
        assert alone.losses[0] == pytest.approx(runs.losses[1], rel=1e-2)
        assert alone.rises == [runs.rises[1]]


def test_a_loss_has_risen_where_its_mean_has():
    """Neither noise nor a fall is a rise; what is no number is one."""
    flat, most = [2.0, 2.1] * 50, watch_alarms.MEAN_OF
    assert watch_alarms.find_rise(flat) is None
    assert watch_alarms.find_rise([3.0] * 60 + [2.0] * 60) is None
    rise = watch_alarms.find_rise([2.0] * 100 + [3.0] * 100)
    assert 100 < rise <= 100 + most
    assert watch_alarms.find_rise([2.0] * 100 + [float("nan")]) == 100
