"""What the report command does: list, and run; a report of own claims is made alike."""

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import suppress
from functools import partial
from pathlib import Path

from montecarlo.calibration.card import read_card
from montecarlo.claims.running import (
    Study,
    recipe,
    require_replicates,
    run_study,
    write_results,
)
from montecarlo.claims.schema import Catalogue
from montecarlo.errors import InputError
from montecarlo.names import NONE, look_up
from montecarlo.report.content.findings import Results, gather, read_results
from montecarlo.report.content.record import with_calibration, with_studies
from montecarlo.report.content.views import Findings
from montecarlo.report.formats import DEFAULT, FORMATS, MARKDOWN
from montecarlo.report.language.catalogues import SOURCE, read_language
from montecarlo.report.language.messages import require_complete
from montecarlo.report.language.own_words import OWN_FILE
from montecarlo.report.making import import_all, make_report
from montecarlo.report.options import Target, read_options
from montecarlo.report.render.contents import KRAMDOWN, Post
from montecarlo.report.render.flavours import FLAVOURS, front_matter
from montecarlo.report.terminal import print_outcome
from montecarlo.study.executors import PROCESSES, make_executor
from montecarlo.study.journal import JournaledStore
from montecarlo.study.progress import progress_bar
from montecarlo.study.publishing import publishing
from montecarlo.study.workers import Workers

#: Writes what was asked for: results, catalogue, codes of languages, folder, processes
#: that may draw.
Make = Callable[[Results, Catalogue, Sequence[str], Path, Executor | None], None]
#: Says what came out, and which files were written.
Show = Callable[[Findings, Sequence[Path]], None]


def report_maker(
    asked: Sequence[str] | None,
    flavour: str | None = None,
    front: Sequence[str] | None = None,
) -> Make:
    """Return what writes a report in the formats that were asked for, or as pages.

    Parameters
    ----------
    asked : sequence of str or None
        Names of formats.
    flavour : str or None
        Of Markdown.
    front : sequence of str or None
        Keys of front matter; the one key ``none``: no front matter.

    Raises
    ------
    ValueError
        If a format, a flavour or a key is not known.
    """
    for name in asked or ():
        look_up("format", name, dict.fromkeys(FORMATS))
    formats = tuple(name for name in FORMATS if name in (asked or (DEFAULT,)))
    post = _read_post(flavour, front, formats)

    def make(
        results: Results,
        catalogue: Catalogue,
        languages: Sequence[str],
        folder: Path,
        executor: Executor | None,
    ) -> None:
        make_report(results, catalogue, languages, folder, formats, executor, post)

    return make


def _read_post(
    flavour: str | None, front: Sequence[str] | None, formats: Sequence[str]
) -> Post:
    """Return how posts are written; refused where there are none."""
    for name, given in (("flavour", flavour), ("front-matter", front)):
        if given is not None and MARKDOWN not in formats:
            raise InputError(f"--{name} must stand with --format markdown, got {given}")
    if flavour is not None:
        look_up("flavour", flavour, FLAVOURS)
    if front is not None and NONE in front and list(front) != [NONE]:
        raise InputError(f"front-matter must be {NONE} alone, got {','.join(front)!r}")
    keys = None if front is None else tuple(key for key in front if key != NONE)
    front_matter(SOURCE, "", keys or ())
    return Post(flavour or KRAMDOWN.flavour, keys)


def run_report(
    arguments: argparse.Namespace,
    typed: Sequence[str],
    make: Make,
    show: Show = print_outcome,
) -> Findings:
    """Sample, judge and write the report; returns what it shows.

    Parameters
    ----------
    arguments : argparse.Namespace
    typed : sequence of str
        The command line, for timing.json.
    make : callable
        Writes the report from the results.
    show : callable
        Prints what came out.

    Raises
    ------
    ValueError
        If an option, the configuration or the output folder is not usable.
    OSError, RuntimeError
        If the run could not finish; the previous output is as it was.
    """
    study, target = read_options(arguments, typed)
    require_replicates(study)
    results, written = write_report(study, target, make=make)
    findings = gather(results, study.catalogue)
    if not target.quiet:
        show(findings, written)
    return findings


def write_report(
    study: Study,
    target: Target,
    *,
    own_file: bytes | None = None,
    make: Make | None = None,
) -> tuple[Results, Sequence[Path]]:
    """Run a study and write its report.

    Parameters
    ----------
    study : Study
    target : Target
    own_file : bytes, optional
        The user's file that the study's claims are from.
    make : callable, optional
        Writes the report from the results; by default as pages.

    Returns
    -------
    Results, sequence of Path
        What the pages were made from, and the files written.

    Raises
    ------
    ValueError
        If the output folder is not usable.
    OSError, RuntimeError
        If the run could not finish; the previous output is as it was.
    """
    require_complete(read_language(code) for code in target.languages)
    in_time = _until(time.perf_counter(), target.max_seconds)
    how = publishing(target.output, target.typed, recipe(study), fresh=target.fresh)
    with how as edition, make_executor(target.jobs, target.executor) as executor:
        edition.timing |= {"executor": executor.kind, "jobs": executor.jobs}
        # matplotlib is not made for threads, and a cluster may not have it
        drawing = executor if executor.kind == PROCESSES else None
        store, ready = JournaledStore(journal=edition.journal), partial(_ready, drawing)
        with progress_bar(len(study.grid.divisors), quiet=target.quiet) as advance:
            found = run_study(study, executor, advance, store, in_time, sampled=ready)
        results = with_calibration(found, read_card())
        if own_file is None:
            results = with_studies(results)
        edition.note_time("sampling")
        edition.record = write_results(results, edition.folder)
        edition.record |= {
            "only": list(target.only),
            "languages": list(target.languages),
        }
        if own_file is not None:
            (edition.folder / OWN_FILE).write_bytes(own_file)
            edition.record["own_claims"] = OWN_FILE
        read_back = read_results(edition.folder, edition.record)
        write = make or report_maker(None)
        write(read_back, study.catalogue, target.languages, edition.folder, drawing)
        edition.note_time("rendering")
    return read_back, edition.written


def _ready(workers: Workers | None) -> None:
    """Let workers import what pages need while this process makes the table."""
    if workers is not None:
        with suppress(BrokenExecutor):
            for _ in range(workers.jobs):
                workers.submit(import_all)


def _until(started: float, seconds: float | None) -> Callable[[], bool] | None:
    """Return what tells whether so many seconds have not yet passed."""
    if seconds is None:
        return None
    return lambda: time.perf_counter() - started < seconds
