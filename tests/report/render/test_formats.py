"""Figures and pages are made by worker processes, or here, to the same bytes."""

from concurrent.futures import BrokenExecutor, Executor

import pytest

from montecarlo.report.making import make_report


class Dying(Executor):
    """Workers of which none is left."""

    jobs = 2

    def submit(self, *_):
        """Take nothing."""
        raise BrokenExecutor


class Drawing(Executor):
    """Workers that last, and count their calls."""

    jobs = 2

    def __init__(self):
        self.drawn = 0

    def map(self, function, parts):
        """Work here."""
        for calls in parts:
            self.drawn += len(calls)
            yield function(calls)


@pytest.mark.parametrize("workers", [Dying(), Drawing()])
def test_pages_are_the_same_whoever_makes_them(report, tmp_path, workers):
    """With workers, and with some that die: every figure and page is there."""
    with report.keep_figures():
        make_report(report.results, ["en", "ja"], tmp_path, workers)

    drawn = {path.name: path.read_bytes() for path in tmp_path.glob("figures/*")}
    before = {path.name: path.read_bytes() for path in report.folder.glob("figures/*")}
    assert drawn == before
    assert len(drawn) > 5
    pages = {path.stem for path in tmp_path.glob("??.html")}
    assert pages == {"en", "ja"}
    pages |= {path.stem for path in tmp_path.glob("evidence-??.html")}
    assert len(pages) == 4
    if isinstance(workers, Drawing):
        assert workers.drawn == len(drawn) + len(list(tmp_path.glob("*.*")))
