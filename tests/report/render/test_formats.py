"""Figures and pages are made by worker processes, or here, to the same bytes."""

from concurrent.futures import BrokenExecutor, Executor

import pytest

from montecarlo.report.formats import FORMATS
from montecarlo.report.making import make_report
from montecarlo.study.executors import PROCESSES, make_executor
from montecarlo.study.folder import files_of


class Dying(Executor):
    """Workers of which none is left."""

    def submit(self, *_):
        """Take nothing."""
        raise BrokenExecutor


class Drawing(Executor):
    """One worker that lasts, and counts."""

    def __init__(self):
        self.drawn = 0

    def map(self, function, *parts):
        """Work here."""
        for some in zip(*parts, strict=False):
            self.drawn += 1
            yield function(*some)


@pytest.mark.parametrize("workers", [Dying(), Drawing()])
def test_pages_are_the_same_whoever_makes_them(report, tmp_path, workers):
    """With workers, and with some that die: every figure and page is there."""
    with report.keep_figures():
        make_report(report.results, ["en", "ja"], tmp_path, executor=workers)

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


@pytest.mark.slow
def test_formats_are_the_same_whoever_makes_them(report, tmp_path):
    """Posts too, in each language, by real processes."""
    # two whose figures have no commas: those are drawn once
    arguments = report.results, ["ja", "zh"]
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    with report.keep_figures():  # drawn here, too
        make_report(*arguments, here, FORMATS)
    with make_executor(2, PROCESSES) as executor:
        make_report(*arguments, there, FORMATS, executor)
    files = {p.relative_to(here): p.read_bytes() for p in files_of(here)}
    others = {p.relative_to(there): p.read_bytes() for p in files_of(there)}
    assert files.keys() == others.keys()
    assert [name for name in files if files[name] != others[name]] == []
    assert {path.suffix for path in files} >= {".html", ".md", ".json", ".svg"}
