"""Rendering an earlier run's results again: nothing is sampled, nothing judged."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.record import DATA_FILES, read_report_run
from montecarlo.claims.schema import Catalogue
from montecarlo.errors import InputError
from montecarlo.names import look_up
from montecarlo.report.content.findings import Findings, read_results
from montecarlo.report.content.record import require_fits
from montecarlo.report.language.catalogues import require_languages
from montecarlo.report.language.own_words import OWN_FILE, read_own_claims
from montecarlo.report.running import Make, Target, choose_languages
from montecarlo.study.curves import FOLDER
from montecarlo.study.executors import PROCESSES, make_executor
from montecarlo.study.folder import ResultsError
from montecarlo.study.publishing import publishing

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
    judged = _judged_by(record, source)
    asked = None
    if target.only:  # of passages nothing is left out: they are as true as before
        asked = replace(judged.only(tuple(target.only)), passage=judged.passage)
    languages = target.languages or choose_languages(record["languages"])
    require_languages(languages)
    files = (*DATA_FILES, *[OWN_FILE] * ("own_claims" in record))
    held = {name: (source / name).read_bytes() for name in files}
    with publishing(target.output, target.typed) as edition:
        for name, content in held.items():
            (edition.folder / name).parent.mkdir(exist_ok=True)
            (edition.folder / name).write_bytes(content)
        edition.record = {**record, "languages": list(languages)}
        findings = read_results(edition.folder, judged, edition.record)
        require_fits(findings.record, judged)
        if asked is not None:
            findings = findings.only(asked)
        with make_executor(kind=PROCESSES) as executor:
            edition.timing |= {"executor": executor.kind, "jobs": executor.jobs}
            make(findings, languages, edition.folder, executor)
        if not with_data:
            for name in held:
                (edition.folder / name).unlink()
            (edition.folder / FOLDER).rmdir()
        edition.note_time("rendering")
    return findings, edition.written


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
    return catalogue.only(record["only"]) if record["only"] else catalogue
