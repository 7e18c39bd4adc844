"""Rendering an earlier run's results again: nothing is sampled, nothing judged."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.record import DATA_FILES, read_report_run
from montecarlo.claims.schema import Catalogue
from montecarlo.errors import InputError
from montecarlo.names import look_up, parse_folder
from montecarlo.report.command import Make, Show
from montecarlo.report.content.findings import gather, read_results
from montecarlo.report.content.fitting import require_catalogue
from montecarlo.report.content.record import require_records
from montecarlo.report.content.views import Findings
from montecarlo.report.language.catalogues import read_language
from montecarlo.report.language.messages import require_complete
from montecarlo.report.language.own_words import OWN_FILE, read_own_claims
from montecarlo.report.options import choose_languages
from montecarlo.report.terminal import print_outcome
from montecarlo.study.executors import PROCESSES, make_executor
from montecarlo.study.folder import ResultsError
from montecarlo.study.publishing import publishing

#: What `finish_staging` adds to a record.
_ADDED = ("program", "schema", "sha256", "digest")
#: Flags that mean nothing where nothing is sampled.
_OF_SAMPLING = (
    *("seed", "preset", "jobs", "executor", "config"),
    *("max_seconds", "replicates_from", "fresh"),
)


def render_again(
    arguments: argparse.Namespace,
    typed: Sequence[str],
    make: Make,
    show: Show = print_outcome,
) -> Findings:
    """Render an earlier run's results without sampling; returns what they show.

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
    for name in _OF_SAMPLING:
        if getattr(arguments, name):
            flag = name.replace("_", "-")
            raise InputError(f"--from must stand without --{flag}: it does not sample")
    source = parse_folder("from", arguments.source)
    typed_output = "output" if arguments.output is None else arguments.output
    output = parse_folder("output", typed_output)
    if source.resolve() == output.resolve() and _writes_less(arguments):
        raise InputError(
            f"--output must name another folder than {str(source)!r}, which loses what "
            "is not written anew"
        )
    run = read_report_run(source)
    record = {name: value for name, value in run.items() if name not in _ADDED}
    catalogue = _judged_by(record, source)
    judged = catalogue.only(record["only"]) if record["only"] else catalogue
    chosen = None
    if arguments.only:  # of passages nothing is left out: they are as true as before
        passages = {"passage": judged.passage}
        chosen = replace(judged.only(tuple(arguments.only)), **passages)
    languages = choose_languages(arguments.lang or record["languages"])
    require_complete(read_language(code) for code in languages)
    files = (*DATA_FILES, *[OWN_FILE] * ("own_claims" in record))
    held: dict[str, Any] = {name: (source / name).read_bytes() for name in files}
    with publishing(output, typed) as edition:
        for name, content in held.items():
            (edition.folder / name).write_bytes(content)
        edition.record = {**record, "languages": list(languages)}
        results = read_results(edition.folder, edition.record)
        require_catalogue(results.claims, judged)
        require_records(results.claims, judged)
        if chosen is not None:
            results, catalogue = results.only(chosen), chosen
        with make_executor(kind=PROCESSES) as executor:
            edition.timing |= {"executor": executor.kind, "jobs": executor.jobs}
            make(results, catalogue, languages, edition.folder, executor)
        if "figures" in arguments:  # they are quoted, the data stay where they are
            for name in held:
                (edition.folder / name).unlink()
        edition.note_time("rendering")
    findings = gather(results, catalogue)
    if not arguments.quiet:
        show(findings, edition.written)
    return findings


def _writes_less(arguments: argparse.Namespace) -> bool:
    """Tell whether something else than all pages of the report is asked for."""
    return "figures" in arguments or bool(
        arguments.lang or arguments.format or arguments.only
    )


def _judged_by(record: Mapping[str, Any], source: Path) -> Catalogue:
    """Read what results were judged by: the catalogue of the five texts, or a file."""
    own = "own_claims" in record
    catalogue = read_own_claims(source / OWN_FILE)[0] if own else read_catalogue()
    by_id = {claim.id: claim for claim in catalogue.claim}
    try:
        for name in (*record["claims"], *record["only"]):
            look_up("claim", name, by_id)
    except InputError as error:
        raise ResultsError(
            f"results must be of claims of this version: {error}"
        ) from None
    return catalogue
