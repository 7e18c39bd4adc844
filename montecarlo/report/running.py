"""Runs a study and writes its report, or renders the results of an earlier run.

Reports of a user's own claims are written the same way.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.outcomes import CLAIMS_FILE, read_report_run
from montecarlo.claims.running import (
    Study,
    StudyResults,
    recipe,
    run_study,
    seconds_by_claim,
    write_results,
)
from montecarlo.claims.schema import Catalogue
from montecarlo.errors import InputError
from montecarlo.estimation.engine import SampleStore
from montecarlo.names import look_up
from montecarlo.printing import print_lines
from montecarlo.report.content.curves import (
    CURVE_FILES,
    FOLDER,
    make_curves,
    write_curves,
)
from montecarlo.report.content.findings import Findings, read_results
from montecarlo.report.content.training import records_digest, training_view
from montecarlo.report.formats import DEFAULT, FORMATS
from montecarlo.report.language.catalogues import LANGUAGES, read_language
from montecarlo.report.language.own_words import OWN_FILE, read_own_claims
from montecarlo.report.making import import_modules, make_report
from montecarlo.study.executors import PROCESSES, Workers, make_executor
from montecarlo.study.folder import count_batches, publishing
from montecarlo.study.measured import MEASUREMENTS
from montecarlo.study.progress import progress_bar

#: Writes pages or figures, from findings, codes of languages, folder and worker
#: processes.
Make = Callable[[Findings, Sequence[str], Path, Workers | None], None]


class Target(NamedTuple):
    """Where and how a report is written: folder, languages, command line, workers."""

    output: Path
    languages: Sequence[str]
    argv: Sequence[str]  # command line, for timing.json
    jobs: int | None = None  # number of workers; None: one for each core
    executor: str | None = None  # kind of workers; None: chosen by their number
    scheduler: str | None = None  # address of a Dask cluster
    quiet: bool = False  # no progress bar
    fresh: bool = False  # discard what an interrupted run left
    only: Sequence[str] = ()  # ids of selected claims; empty: all


def choose_languages(codes: Sequence[str]) -> tuple[str, ...]:
    """Return the codes of the requested languages, in the order of `LANGUAGES`.

    ``all`` among ``codes`` stands for all languages.

    Raises
    ------
    InputError
        If a language is unknown.
    """
    known = {**LANGUAGES, "all": ("", "")}
    for code in codes:
        look_up("language", code, known)
    return tuple(code for code in LANGUAGES if code in codes or "all" in codes)


def report_maker(names: Sequence[str] | None) -> Make:
    """Return a function that writes a report in the named formats, by default as HTML.

    Its parameters are (findings, codes of languages, folder, workers or None).

    Raises
    ------
    InputError
        If a format is unknown.
    """
    for name in names or ():
        look_up("format", name, dict.fromkeys(FORMATS))
    formats = tuple(name for name in FORMATS if name in (names or (DEFAULT,)))
    return partial(make_report, formats=formats)


def write_report(
    study: Study,
    target: Target,
    *,
    own_file: bytes | None = None,
    make: Make = make_report,
    with_data: bool = True,
) -> tuple[Findings, Sequence[Path]]:
    """Run a study and write its report into the output folder.

    Parameters
    ----------
    study : Study
    target : Target
    own_file : bytes, optional
        Content of the user's file of claims, which is copied beside the report.
    make : callable
        Writes the pages or figures.
    with_data : bool
        Whether the data files remain beside the report.

    Returns
    -------
    (Findings, sequence of Path)
        The findings of the run, and the files that were written.

    Raises
    ------
    InputError
        If the output folder is not usable, or the catalogue of a language cannot be
        read.
    OSError, RuntimeError
        If the run could not start or finish; the previous output is unchanged.
        `UnfinishedError`, a RuntimeError, also if another run uses the folder.
    """
    for code in target.languages:  # fails before sampling if a catalogue cannot be read
        read_language(code)
    how = publishing(target.output, target.argv, recipe(study), fresh=target.fresh)
    workers = target.jobs, target.executor, target.scheduler
    with how as edition, make_executor(*workers) as executor:
        edition.timing |= {"executor": executor.kind, "jobs": executor.jobs}
        if (taken := count_batches(edition.journal)) and not target.quiet:
            line = f"going on from {taken} finished batches of an interrupted run"
            print_lines(line, sys.stderr)
        # matplotlib is not thread-safe, and a cluster may lack it
        drawing = executor if executor.kind == PROCESSES else None
        store, warm = SampleStore(edition.journal), partial(_import_in_workers, drawing)
        with progress_bar(len(study.grid.divisors), quiet=target.quiet) as advance:
            results = run_study(study, executor, advance, store, idle=warm)
        edition.end_part("sampling")
        edition.timing["claims"] = seconds_by_claim(study, results.replicates)
        edition.record = write_data(results, edition.folder, own=own_file is not None)
        languages = list(target.languages)
        edition.record |= {"only": list(target.only), "languages": languages}
        if own_file is not None:
            (edition.folder / OWN_FILE).write_bytes(own_file)
            edition.record["own_claims"] = OWN_FILE
        findings = read_results(edition.folder, study.catalogue, edition.record)
        make(findings, target.languages, edition.folder, drawing)
        if not with_data:
            _remove_data(DATA_FILES, edition.folder)
        edition.end_part("rendering")
    return findings, edition.written


def write_data(results: StudyResults, folder: Path, *, own: bool) -> dict[str, Any]:
    """Write the data files of a report; return their fields for run.json.

    These are the fields of `write_results`, and ``training``, the hash of the training
    records.  With ``own``, for a user's claims, the file of training curves has only a
    header.
    """
    write_curves(make_curves(results, None if own else training_view()), folder)
    return {**write_results(results, folder), "training": records_digest()}


#: The files that `read_results` reads.
DATA_FILES = (MEASUREMENTS, *CURVE_FILES, CLAIMS_FILE)
#: Fields of run.json that `write_run` adds.
_ADDED = ("program", "schema", "sha256", "digest")


def render_again(
    source: Path, target: Target, make: Make, *, with_data: bool = True
) -> tuple[Findings, Sequence[Path]]:
    """Write the pages of an earlier run again, without sampling or judging.

    Parameters
    ----------
    source : Path
        Results folder of the earlier run.
    target : Target
        Without languages, those of the earlier run are used.  Workers, ``quiet`` and
        ``fresh`` have no effect.
    make : callable
        Writes the pages or figures.
    with_data : bool
        Whether the data files are copied beside them.

    Returns
    -------
    (Findings, sequence of Path)
        The findings that were rendered, and the files that were written.

    Raises
    ------
    InputError
        If the results or the output folder are not usable, the results are of another
        version's claims, or a selected claim is not among them.
    OSError
        If a file cannot be read or written; the previous output is unchanged.
    """
    run = read_report_run(source)
    record = {name: value for name, value in run.items() if name not in _ADDED}
    judged = _read_matching_catalogue(record, source)
    asked = None
    if target.only:  # passages are not about the selection: they hold as before
        asked = replace(judged.only(tuple(target.only)), passage=judged.passage)
    languages = target.languages or choose_languages(record["languages"])
    for code in languages:
        read_language(code)
    files = (*DATA_FILES, *[OWN_FILE] * ("own_claims" in record))
    held = {name: (source / name).read_bytes() for name in files}
    with publishing(target.output, target.argv) as edition:
        for name, content in held.items():
            (edition.folder / name).parent.mkdir(exist_ok=True)
            (edition.folder / name).write_bytes(content)
        edition.record = {**record, "languages": list(languages)}
        findings = read_results(edition.folder, judged, edition.record)
        if asked is not None:
            findings = findings.only(asked)
        with make_executor(kind=PROCESSES) as executor:
            edition.timing |= {"executor": executor.kind, "jobs": executor.jobs}
            make(findings, languages, edition.folder, executor)
        if not with_data:
            _remove_data(held, edition.folder)
        edition.end_part("rendering")
    return findings, edition.written


def _remove_data(names: Iterable[str], folder: Path) -> None:
    """Remove the named data files from a folder, and then the subfolder of curves.

    ``names`` must include all files of curves, so that the subfolder is empty.
    """
    for name in names:
        (folder / name).unlink()
    (folder / FOLDER).rmdir()


def _read_matching_catalogue(record: Mapping[str, Any], source: Path) -> Catalogue:
    """Return the catalogue by which results were judged: a user's, or the package's.

    If the run judged only some claims, the catalogue has only these.  ``record`` is the
    content of run.json, and ``source`` the folder of the results.

    Raises
    ------
    InputError
        If the catalogue or the training records have changed since then.
    """
    own = "own_claims" in record
    catalogue = read_own_claims(source / OWN_FILE)[0] if own else read_catalogue()
    known = {claim.id for claim in catalogue.claim}
    if record["only"] and known.issuperset(record["only"]):
        catalogue = catalogue.only(tuple(record["only"]))
    judged_by = catalogue.digest(), records_digest()
    if judged_by != (record["catalogue"], record.get("training")):
        raise InputError(
            "results must be of the claims and records of this version, got others; "
            "the version that wrote them renders them"
        )
    return catalogue


def _import_in_workers(workers: Workers | None) -> None:
    """Let workers import the modules for rendering ahead of time.

    Nothing is done without workers.
    """
    if workers is not None:
        with suppress(BrokenExecutor):
            for _ in range(workers.jobs):
                workers.submit(import_modules)
