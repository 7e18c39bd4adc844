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
from montecarlo.estimation.executors import PROCESSES, make_executor
from montecarlo.names import look_up
from montecarlo.recording import recipe, write_results
from montecarlo.report.findings import Results, gather, read_results
from montecarlo.report.language import read_language
from montecarlo.report.making import make_report
from montecarlo.report.messages import require_complete
from montecarlo.report.options import choose_languages, read_options, repeated_options
from montecarlo.report.own_words import OWN_FILE, read_own_claims
from montecarlo.report.report_card import with_card
from montecarlo.report.terminal import print_list, print_outcome, progress_bar
from montecarlo.results.folder import (
    TIMING_FILE,
    ResultsError,
    claim_folder,
    commit,
    discard_staging,
    finish_staging,
    open_staging,
    read_run,
    write_json,
)
from montecarlo.results.journal import (
    Journal,
    JournaledStore,
    locked,
    open_journal,
)
from montecarlo.study import Study, require_replicates, run_study

DATA_FILES = ("measurements.csv", "curves.csv", "claims.json")
#: What `finish_staging` adds to a record.
_ADDED = ("program", "schema", "sha256")
#: Flags that mean nothing where nothing is sampled.
_OF_SAMPLING = (
    *("seed", "preset", "only", "jobs", "executor", "config"),
    *("max_seconds", "replicates_from"),
)
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
    jobs : int or None
    quiet : bool
        Whether to show no progress.
    fresh : bool
        Whether to drop what an interrupted run left.
    executor : str or None
        Kind of the workers, None: by their number.
    max_seconds : float or None
        After which sampling ends, whatever is undecided.
    """

    output: Path
    languages: Sequence[str]
    typed: Sequence[str]
    jobs: int | None
    quiet: bool
    fresh: bool = False
    executor: str | None = None
    max_seconds: float | None = None


def list_kind(kind: str) -> None:
    """Print what there is of one kind; raises ValueError for an unknown one."""
    print_list(kind)


def run_report(arguments: argparse.Namespace, typed: Sequence[str]) -> None:
    """Sample, judge and write the report.

    Parameters
    ----------
    arguments : argparse.Namespace
    typed : sequence of str
        The command line, for timing.json.

    Raises
    ------
    ValueError
        If an option, the configuration or the output folder is not usable.
    OSError, RuntimeError
        If the run could not finish; the previous output is as it was.
    """
    repeating = arguments.replicates_from is not None
    options = (repeated_options if repeating else read_options)(arguments)
    study = Study(
        options.catalogue,
        options.grid,
        options.seed,
        options.error_rate,
        options.preset,
        whole_grid=not options.only,
        replicates=options.replicates,
        time_limit_reached=options.time_limit_reached,
    )
    require_replicates(study)
    target = Target(
        options.output,
        options.languages,
        typed,
        options.jobs,
        arguments.quiet,
        fresh=arguments.fresh,
        executor=options.executor,
        max_seconds=options.max_seconds,
    )
    results, written = write_report(study, target, only=options.only)
    if not arguments.quiet:
        print_outcome(gather(results, options.catalogue), written)


def write_report(
    study: Study,
    target: Target,
    *,
    only: Sequence[str] = (),
    own_file: bytes | None = None,
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
    require_complete(read_language(code) for code in target.languages)
    claim_folder(target.output)
    with open_journal(target.output, recipe(study), fresh=target.fresh) as journal:
        try:
            read_back = _write(study, target, journal, only, own_file)
            journal.finish()
            written = commit(target.output)
            journal.remove()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(journal.goes_on()) from None
    return read_back, written


def _write(
    study: Study,
    target: Target,
    journal: Journal,
    only: Sequence[str],
    own_file: bytes | None,
) -> Results:
    """Sample, judge, and write all files of the report aside."""
    started = time.perf_counter()
    store = JournaledStore(journal=journal)
    staging = open_staging(target.output)
    try:
        with make_executor(target.jobs, target.executor) as executor:
            with progress_bar(len(study.grid.divisors), quiet=target.quiet) as advance:
                in_time = _until(started, target.max_seconds)
                found = run_study(study, executor, advance, store, in_time)
            results = with_card(found, read_card())
            sampled = time.perf_counter()
            record = write_results(results, staging)
            record |= {"only": list(only), "languages": list(target.languages)}
            if own_file is not None:
                (staging / OWN_FILE).write_bytes(own_file)
                record["own_claims"] = OWN_FILE
            read_back = read_results(staging, record)
            # matplotlib is not made for threads, and a cluster may not have it
            drawing = executor if executor.kind == PROCESSES else None
            make_report(read_back, study.catalogue, target.languages, staging, drawing)
        timing = {
            "command": list(target.typed),
            "executor": executor.kind,
            "jobs": executor.jobs,
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
    return read_back


def _until(started: float, seconds: float | None) -> Callable[[], bool] | None:
    """Return what tells whether so many seconds have not yet passed."""
    if seconds is None:
        return None
    return lambda: time.perf_counter() - started < seconds


def render_again(arguments: argparse.Namespace, typed: Sequence[str]) -> None:
    """Render an earlier run's results without sampling or judging.

    Raises
    ------
    ValueError
        If an option, the results or the output folder is not usable.
    OSError
        If a file cannot be written; the previous output is as it was.
    """
    started = time.perf_counter()
    for name in _OF_SAMPLING:
        if getattr(arguments, name) is not None:
            flag = name.replace("_", "-")
            raise ValueError(f"--from must stand without --{flag}: it does not sample")
    source, output = Path(arguments.source), Path(arguments.output or "output")
    record = {k: v for k, v in read_run(source).items() if k not in _ADDED}
    if missing := _NEEDED - set(record):
        raise ResultsError(f"results must have {min(missing)!r} in their run.json")
    catalogue = _judged_by(record, source)
    languages = choose_languages(arguments.lang or record["languages"])
    require_complete(read_language(code) for code in languages)
    files = (*DATA_FILES, *[OWN_FILE] * ("own_claims" in record))
    held: dict[str, Any] = {name: (source / name).read_bytes() for name in files}
    claim_folder(output)
    with locked(output):
        staging = open_staging(output)
        try:
            for name, content in held.items():
                (staging / name).write_bytes(content)
            record["languages"] = list(languages)
            results = read_results(staging, record)
            make_report(results, catalogue, languages, staging)
            seconds = {"rendering": round(time.perf_counter() - started, 3)}
            timing = {"command": list(typed), "jobs": 1, "seconds": seconds}
            write_json(staging / TIMING_FILE, timing)
            finish_staging(output, record)
        except BaseException:
            discard_staging(output)
            raise
        written = commit(output)
    if not arguments.quiet:
        print_outcome(gather(results, catalogue), written)


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
