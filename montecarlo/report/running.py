"""Running a study and writing its report, or rendering results again.

One of own claims is made alike.
"""

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
from montecarlo.study.folder import publishing
from montecarlo.study.measured import MEASUREMENTS
from montecarlo.study.progress import progress_bar

#: Writes what was asked for: findings, codes of languages, folder, processes that may
#: draw.
Make = Callable[[Findings, Sequence[str], Path, Workers | None], None]


class Target(NamedTuple):
    """Where a report is written, in which languages, by whom, and by which command."""

    output: Path
    languages: Sequence[str]
    typed: Sequence[str]  # the command line, for timing.json
    jobs: int | None = None
    executor: str | None = None  # kind of the workers, None: by their number
    scheduler: str | None = None  # address of a Dask cluster
    quiet: bool = False  # whether to show no progress
    fresh: bool = False  # whether to drop what an interrupted run left
    only: Sequence[str] = ()  # the claims that were asked for, if not all


def choose_languages(asked: Sequence[str]) -> tuple[str, ...]:
    """Return codes of languages in the order of `LANGUAGES`; ``all`` stands for all.

    Raises
    ------
    InputError
        If a language is not known.
    """
    known = {**LANGUAGES, "all": ("", "")}
    for code in asked:
        look_up("language", code, known)
    return tuple(code for code in LANGUAGES if code in asked or "all" in asked)


def report_maker(asked: Sequence[str] | None) -> Make:
    """Return what writes a report in some of `FORMATS`, by default as pages.

    Raises
    ------
    InputError
        If a format is not known.
    """
    for name in asked or ():
        look_up("format", name, dict.fromkeys(FORMATS))
    formats = tuple(name for name in FORMATS if name in (asked or (DEFAULT,)))
    return lambda findings, languages, folder, workers: make_report(
        findings, languages, folder, workers, formats
    )


def write_report(
    study: Study,
    target: Target,
    *,
    own_file: bytes | None = None,
    make: Make = make_report,
    with_data: bool = True,
) -> tuple[Findings, Sequence[Path]]:
    """Run a study and write its report, by default as pages.

    ``own_file`` is the user's file that the study's claims are from; ``with_data``: the
    results stand beside the report.  Returns what was rendered, and the files.

    Raises
    ------
    ValueError
        If the output folder is not usable.
    OSError, RuntimeError
        If the run could not finish; the previous output is as it was.
    """
    for code in target.languages:  # catalogues can be read, before anything is sampled
        read_language(code)
    how = publishing(target.output, target.typed, recipe(study), fresh=target.fresh)
    workers = target.jobs, target.executor, target.scheduler
    with how as edition, make_executor(*workers) as executor:
        edition.timing |= {"executor": executor.kind, "jobs": executor.jobs}
        # matplotlib is not made for threads, and a cluster may not have it
        drawing = executor if executor.kind == PROCESSES else None
        store, warm = SampleStore(edition.journal), partial(_warm, drawing)
        with progress_bar(len(study.grid.divisors), quiet=target.quiet) as advance:
            results = run_study(study, executor, advance, store, sampled=warm)
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
            _remove(DATA_FILES, edition.folder)
        edition.end_part("rendering")
    return findings, edition.written


def write_data(results: StudyResults, folder: Path, *, own: bool) -> dict[str, Any]:
    """Write what pages are made of; returns the record for run.json.

    Beside a user's ``own`` claims stands nothing of training.
    """
    write_curves(make_curves(results, None if own else training_view()), folder)
    return {**write_results(results, folder), "training": records_digest()}


#: What a report's numbers and verdicts are read from.
DATA_FILES = (MEASUREMENTS, *CURVE_FILES, CLAIMS_FILE)
#: What `write_run` adds to a record.
_ADDED = ("program", "schema", "sha256", "digest")


def render_again(
    source: Path, target: Target, make: Make, *, with_data: bool = True
) -> tuple[Findings, Sequence[Path]]:
    """Render the results in an earlier run's folder without sampling.

    A target without languages has those of the earlier run; ``with_data``: the results
    stand beside what ``make`` writes.  Returns what was rendered, and the files.

    Raises
    ------
    InputError
        If the results or the output folder are not usable.
    OSError
        If a file cannot be written; the previous output is as it was.
    """
    run = read_report_run(source)
    record = {name: value for name, value in run.items() if name not in _ADDED}
    judged = _read_matching_catalogue(record, source)
    asked = None
    if target.only:  # of passages nothing is left out: they are as true as before
        asked = replace(judged.only(tuple(target.only)), passage=judged.passage)
    languages = target.languages or choose_languages(record["languages"])
    for code in languages:
        read_language(code)
    files = (*DATA_FILES, *[OWN_FILE] * ("own_claims" in record))
    held = {name: (source / name).read_bytes() for name in files}
    with publishing(target.output, target.typed) as edition:
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
            _remove(held, edition.folder)
        edition.end_part("rendering")
    return findings, edition.written


def _remove(names: Iterable[str], folder: Path) -> None:
    """Remove files of data, and the folder of curves."""
    for name in names:
        (folder / name).unlink()
    (folder / FOLDER).rmdir()


def _read_matching_catalogue(record: Mapping[str, Any], source: Path) -> Catalogue:
    """Read what results were judged by: the catalogue of the five texts, or a file.

    Raises
    ------
    InputError
        If they were judged by a catalogue, or on a record, of another version.
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


def _warm(workers: Workers | None) -> None:
    """Let workers import what pages need while this process makes the table."""
    if workers is not None:
        with suppress(BrokenExecutor):
            for _ in range(workers.jobs):
                workers.submit(import_modules)
