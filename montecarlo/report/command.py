"""The three things that the report command does: list, run, render again.

A report of a user's own claims is written, and rendered again, in the same way.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from montecarlo.calibration.card import read_card
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.executors import make_executor
from montecarlo.names import look_up
from montecarlo.report.findings import Results, gather, read_results
from montecarlo.report.language import read_language
from montecarlo.report.making import FORMATS, make_report
from montecarlo.report.messages import require_complete
from montecarlo.report.options import choose_languages, read_options
from montecarlo.report.own_words import OWN_FILE, read_own_claims
from montecarlo.report.report_card import with_card
from montecarlo.report.terminal import print_list, print_outcome, progress_bar
from montecarlo.report.views import Findings
from montecarlo.results.folder import (
    TIMING_FILE,
    ResultsError,
    commit,
    discard_staging,
    finish_staging,
    open_staging,
    read_run,
    write_json,
)
from montecarlo.study import Study, run_study, write_results

#: Writes what was asked for: results, catalogue, codes of languages, folder.
Make = Callable[[Results, Catalogue, Sequence[str], Path], None]
#: Says what came out, and which files were written.
Show = Callable[[Findings, Sequence[Path]], None]
DATA_FILES = ("measurements.csv", "curves.csv", "claims.json")
#: What `finish_staging` adds to a record.
_ADDED = ("program", "schema", "sha256")
#: What pages show of a record.
_NEEDED = {"claims", "error_rate", "grid", "kernel", "languages", "only", "preset"} | {
    "replicates",
    "seed",
    "versions",
}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a report is written, in which languages, and by which command.

    Attributes
    ----------
    output : Path
    languages : sequence of str
    typed : sequence of str
        The command line, for timing.json.
    jobs : int
    quiet : bool
        Whether to show no progress.
    """

    output: Path
    languages: Sequence[str]
    typed: Sequence[str]
    jobs: int
    quiet: bool


def choose_formats(asked: Sequence[str] | None) -> tuple[str, ...]:
    """Return what a report is written as, in the order of `FORMATS`.

    Raises
    ------
    ValueError
        If a format is not known.
    """
    for name in asked or ():
        look_up("format", name, FORMATS)
    return tuple(name for name in FORMATS if name in (asked or ("html",)))


def report_maker(asked: Sequence[str] | None) -> Make:
    """Return what writes a report in the formats that were asked for, or as pages.

    Raises
    ------
    ValueError
        If a format is not known.
    """
    formats = choose_formats(asked)

    def make(
        results: Results, catalogue: Catalogue, languages: Sequence[str], folder: Path
    ) -> None:
        make_report(results, catalogue, languages, folder, formats)

    return make


def list_kind(kind: str) -> None:
    """Print what there is of one kind; raises ValueError for an unknown one."""
    print_list(kind)


def run_report(
    arguments: argparse.Namespace,
    typed: Sequence[str],
    make: Make,
    show: Show = print_outcome,
) -> None:
    """Sample, judge and write the report.

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
    options = read_options(arguments)
    study = Study(
        options.catalogue,
        options.grid,
        options.seed,
        options.error_rate,
        options.preset,
        whole_grid=not options.only,
    )
    target = Target(
        options.output, options.languages, typed, options.jobs, arguments.quiet
    )
    results, written = write_report(study, target, only=options.only, make=make)
    if not arguments.quiet:
        show(gather(results, options.catalogue), written)


def write_report(
    study: Study,
    target: Target,
    *,
    only: Sequence[str] = (),
    own_file: bytes | None = None,
    make: Make | None = None,
) -> tuple[Results, list[Path]]:
    """Run a study and write its report.

    Parameters
    ----------
    study : Study
    target : Target
    only : sequence of str
        The claims that were asked for, if not all.
    own_file : bytes, optional
        The user's file that the study's claims are from.
    make : callable, optional
        Writes the report from the results; by default as pages.

    Returns
    -------
    Results, list of Path
        What the pages were made from, and the files written.

    Raises
    ------
    ValueError
        If the output folder is not usable.
    OSError, RuntimeError
        If the run could not finish; the previous output is as it was.
    """
    started = time.perf_counter()
    require_complete(read_language(code) for code in target.languages)
    staging = open_staging(target.output)
    try:
        with (
            progress_bar(len(study.grid.divisors), quiet=target.quiet) as advance,
            make_executor(target.jobs) as executor,
        ):
            results = with_card(run_study(study, executor, advance), read_card())
        sampled = time.perf_counter()
        record = write_results(results, staging)
        record |= {"only": list(only), "languages": list(target.languages)}
        if own_file is not None:
            (staging / OWN_FILE).write_bytes(own_file)
            record["own_claims"] = OWN_FILE
        read_back = read_results(staging, record)
        write = make or report_maker(None)
        write(read_back, study.catalogue, target.languages, staging)
        timing = {
            "command": list(target.typed),
            "jobs": target.jobs,
            "seconds": {
                "sampling": round(sampled - started, 3),
                "rendering": round(time.perf_counter() - sampled, 3),
            },
        }
        write_json(staging / TIMING_FILE, timing)
        finish_staging(target.output, record)
    except BaseException:
        discard_staging(target.output)
        raise
    return read_back, commit(target.output)


def render_again(
    arguments: argparse.Namespace,
    typed: Sequence[str],
    make: Make,
    show: Show = print_outcome,
) -> None:
    """Render an earlier run's results without sampling or judging.

    Parameters
    ----------
    arguments, typed, make, show
        As for `run_report`.

    Raises
    ------
    ValueError
        If an option, the results or the output folder is not usable.
    OSError
        If a file cannot be written; the previous output is as it was.
    """
    started = time.perf_counter()
    for name in ("seed", "preset", "only", "jobs", "config"):
        if getattr(arguments, name) is not None:
            raise ValueError(f"--from must stand without --{name}: it does not sample")
    source, output = Path(arguments.source), Path(arguments.output or "output")
    record = {k: v for k, v in read_run(source).items() if k not in _ADDED}
    if missing := _NEEDED - set(record):
        raise ResultsError(f"results must have {min(missing)!r} in their run.json")
    catalogue = _judged_by(record, source)
    languages = choose_languages(arguments.lang or record["languages"])
    require_complete(read_language(code) for code in languages)
    files = (*DATA_FILES, *[OWN_FILE] * ("own_claims" in record))
    held: dict[str, Any] = {name: (source / name).read_bytes() for name in files}
    staging = open_staging(output)
    try:
        for name, content in held.items():
            (staging / name).write_bytes(content)
        record["languages"] = list(languages)
        results = read_results(staging, record)
        make(results, catalogue, languages, staging)
        seconds = {"rendering": round(time.perf_counter() - started, 3)}
        timing = {"command": list(typed), "jobs": 1, "seconds": seconds}
        write_json(staging / TIMING_FILE, timing)
        finish_staging(output, record)
    except BaseException:
        discard_staging(output)
        raise
    written = commit(output)
    if not arguments.quiet:
        show(gather(results, catalogue), written)


def _judged_by(record: Mapping[str, Any], source: Path) -> Catalogue:
    """Read what results were judged by: the catalogue of the five texts, or a file."""
    own = "own_claims" in record
    catalogue = read_own_claims(source / OWN_FILE)[0] if own else read_catalogue()
    by_id = {claim.id: claim for claim in catalogue.claim}
    try:
        for name in record["claims"]:
            look_up("claim", name, by_id)
    except ValueError as error:
        raise ResultsError(
            f"results must be of claims of this version: {error}"
        ) from None
    return catalogue
