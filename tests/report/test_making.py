"""Figures are drawn by worker processes, or here, to the same bytes."""

from concurrent.futures import BrokenExecutor, Executor

import pytest

from montecarlo.report import making


class Dying(Executor):
    """Workers of which none is left."""

    def submit(self, *_):
        """Take nothing."""
        raise BrokenExecutor


class Drawing(Executor):
    """One worker that lasts, and counts."""

    def __init__(self):
        self.drawn = 0

    def map(self, function, *tables):
        """Work here."""
        for arguments in zip(*tables, strict=False):
            self.drawn += 1
            yield function(*arguments)


@pytest.mark.parametrize("workers", [None, Dying(), Drawing()])
def test_figures_are_the_same_whoever_draws_them(report, tmp_path, workers):
    """With workers, without, and with some that die, every figure is written."""
    making.make_report(
        report.results, report.catalogue, ["en"], tmp_path, executor=workers
    )

    drawn = {path.name: path.read_bytes() for path in tmp_path.glob("figures/*")}
    before = {path.name: path.read_bytes() for path in report.folder.glob("figures/*")}
    assert drawn == before
    assert len(drawn) > 5
    if isinstance(workers, Drawing):
        assert workers.drawn == len(making.FIGURES)
