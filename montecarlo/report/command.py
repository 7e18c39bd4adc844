"""The three things that the report command does: list, run, render again."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.estimation.executors import make_executor
from montecarlo.names import look_up
from montecarlo.report.findings import gather, read_results
from montecarlo.report.language import read_language
from montecarlo.report.making import make_report
from montecarlo.report.messages import require_complete
from montecarlo.report.options import choose_languages, read_options
from montecarlo.report.terminal import print_list, print_outcome, progress_bar
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

DATA_FILES = ("measurements.csv", "curves.csv", "claims.json")
#: What `finish_staging` adds to a record.
_ADDED = ("program", "schema", "sha256")
#: What pages show of a record.
_NEEDED = {"claims", "error_rate", "grid", "kernel", "languages", "only", "preset"} | {
    "replicates",
    "seed",
    "versions",
}


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
    started = time.perf_counter()
    options = read_options(arguments)
    for code in options.languages:
        require_complete(read_language(code))
    staging = open_staging(options.output)
    study = Study(
        options.catalogue,
        options.grid,
        options.seed,
        options.error_rate,
        options.preset,
        whole_grid=not options.only,
    )
    try:
        divisors = len(options.grid.divisors)
        with (
            progress_bar(divisors, quiet=arguments.quiet) as advance,
            make_executor(options.jobs) as executor,
        ):
            results = run_study(study, executor, advance)
        sampled = time.perf_counter()
        record = write_results(results, staging)
        record |= {"only": list(options.only), "languages": list(options.languages)}
        read_back = read_results(staging, record)
        make_report(read_back, options.catalogue, options.languages, staging)
        timing = {
            "command": list(typed),
            "jobs": options.jobs,
            "seconds": {
                "sampling": round(sampled - started, 3),
                "rendering": round(time.perf_counter() - sampled, 3),
            },
        }
        write_json(staging / TIMING_FILE, timing)
        finish_staging(options.output, record)
    except BaseException:
        discard_staging(options.output)
        raise
    written = commit(options.output)
    if not arguments.quiet:
        print_outcome(gather(read_back, options.catalogue), written)


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
    for name in ("seed", "preset", "only", "jobs", "config"):
        if getattr(arguments, name) is not None:
            raise ValueError(f"--from must stand without --{name}: it does not sample")
    source, output = Path(arguments.source), Path(arguments.output or "output")
    record = {k: v for k, v in read_run(source).items() if k not in _ADDED}
    if missing := _NEEDED - set(record):
        raise ResultsError(f"results must have {min(missing)!r} in their run.json")
    catalogue = read_catalogue()
    by_id = {claim.id: claim for claim in catalogue.claim}
    try:
        for name in record["claims"]:
            look_up("claim", name, by_id)
    except ValueError as error:
        raise ResultsError(
            f"results must be of claims of this version: {error}"
        ) from None
    languages = choose_languages(arguments.lang or record["languages"])
    for code in languages:
        require_complete(read_language(code))
    held: dict[str, Any] = {name: (source / name).read_bytes() for name in DATA_FILES}
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
