"""What a log is told of work, where no terminal shows a bar."""

import io
import re
import sys
from types import SimpleNamespace

import pytest

from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.design_points import parse_point
from montecarlo.study import progress
from montecarlo.study.progress import SHORT, open_bar, progress_bar

POINTS = [parse_point("gaussian", "gaussian", d_k, 128) for d_k in (64, 256)]


@pytest.fixture
def clock(monkeypatch):
    """The clock that progress looks at, set by hand."""
    found = SimpleNamespace(now=0.0)
    monkeypatch.setattr(progress.time, "perf_counter", lambda: found.now)
    return found


def sampled(clock, seconds, *, quiet=False):
    """Sample two points for so many seconds of one core, in eight steps, in a round."""
    counts = {p: round(seconds / 2 / replicate_seconds(p, 4) / 4) for p in POINTS}
    with progress_bar(4, quiet=quiet) as advance:
        for point, count in counts.items():
            advance(point, 0, 4 * count)
        for point, count in counts.items():
            for _ in range(4):
                clock.now += seconds / 8
                advance(point, count, 0)


def test_a_log_has_a_line_at_the_start_and_at_each_quarter(clock, capsys):
    """What is done and how long that takes, then how long it took so far."""
    sampled(clock, 400.0)
    first, *others = capsys.readouterr().err.splitlines()
    assert first == "sampling: 2 points, about 400 s on one core"
    assert len(others) == 3
    for quarter, line in enumerate(others, start=1):
        percent, seconds = map(int, re.findall(r"\d+", line))
        assert line.startswith("sampling: ")
        assert percent == 25 * quarter
        # of eight steps it is the one that reaches it, but for rounding
        assert 100 * quarter <= seconds <= 100 * quarter + 50


def test_a_log_has_nothing_of_a_moment(clock, capsys):
    """Nor of what is to be quiet."""
    sampled(clock, 0.9 * SHORT)
    sampled(clock, 400.0, quiet=True)
    assert capsys.readouterr().err == ""


def test_other_work_tells_its_quarters_alone(clock, capsys):
    """How long it takes is not known before."""
    with open_bar("observing", quiet=False) as update:
        for done in (1, 2, 3):
            clock.now += 2.0 * SHORT
            update(total=3, completed=done)
    assert capsys.readouterr().err.splitlines() == [
        "observing: 25 % after 20 s",
        "observing: 50 % after 40 s",
        "observing: 75 % after 60 s",
    ]


def test_a_terminal_has_a_bar(monkeypatch, clock):
    """And no lines."""
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    sampled(clock, 400.0)
    assert "sampling" in stream.getvalue()
    assert not re.search(r"points|after", stream.getvalue())
