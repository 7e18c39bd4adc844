"""claims.json of a report: how everything came out, and what pages show beside it."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pandas as pd

from montecarlo.calibration.card import Card, Counted, count_rate
from montecarlo.claims.papers import PapersOutcome, read_papers_record
from montecarlo.claims.record import CLAIMS_FILE, ClaimsRecord
from montecarlo.claims.running import StudyResults
from montecarlo.claims.schema import Catalogue
from montecarlo.report.content.report_card import CardView, card_curves, view_card
from montecarlo.report.content.sensitivity import Sensitivity, read_sensitivity
from montecarlo.report.content.tables.language import view_language
from montecarlo.report.content.training import TrainingView, view_training
from montecarlo.report.content.training_curves import training_curves
from montecarlo.small_files import read_small
from montecarlo.study.folder import ResultsError
from montecarlo.study.table import tabulate_curves
from montecarlo.study.validating import about, require_whole, validate
from montecarlo.training.record import Record, read_language, read_record

#: What a study found, beside its numbers.
_JUDGED = ("verdict", "outcome")
#: Bytes of a claims.json at most; that of the full preset has two million.
MOST_CLAIMS = 2**25


class ReportRecord(ClaimsRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """claims.json: how everything that is judged came out."""

    error_rate_counted: Annotated[
        Counted | None, about("what the nominal rate is worth; null: not counted")
    ] = None
    report_card: Annotated[
        CardView | None, about("the judge's report card; null: there is none")
    ] = None
    sensitivity: Annotated[
        Sensitivity | None, about("what other choices would change; null likewise")
    ] = None
    training: Annotated[
        TrainingView | None, about("what training says; null likewise")
    ] = None
    literature: Annotated[
        PapersOutcome | None, about("what papers say; null likewise")
    ] = None


def with_calibration(results: StudyResults, card: Card | None) -> StudyResults:
    """Put beside results what the judge's errors were counted to be, and its curves."""
    if card is None:
        return results
    rate = results.claims.simultaneous_error
    view = view_card(card, rate)
    return replace(
        results,
        curves=pd.concat([results.curves, card_curves(view, card)], ignore_index=True),
        claims=_with(
            results.claims, error_rate_counted=count_rate(card, rate), report_card=view
        ),
    )


def with_studies(results: StudyResults) -> StudyResults:
    """Put beside results what training and papers say, and what choices change."""
    record, papers = read_record(), read_papers_record()
    studies = _studies(record)
    claims = _with(results.claims, **studies)
    lines = (*training_curves(studies["training"], record), *papers.curves)
    curves = pd.concat([results.curves, tabulate_curves(lines)], ignore_index=True)
    return replace(results, curves=curves, claims=claims)


def _studies(record: Record) -> dict[str, Any]:
    """Return what claims.json says of studies that ship with the package."""
    language = view_language(read_language())
    return {
        "sensitivity": read_sensitivity(),
        "training": replace(view_training(record), language=language),
        "literature": read_papers_record().outcome,
    }


def require_records(claims: ReportRecord, catalogue: Catalogue) -> None:
    """Make sure that pages can show what stands beside the claims of a folder.

    Each study has the parts, names and sizes of the one that ships; its numbers and
    verdicts are the folder's own.  One that was left out is not shown.

    Raises
    ------
    ResultsError
        One line: the file, the place, what there must be.
    """
    card = claims.report_card
    if card and not all(len(one.worst) == len(card.rates) for one in card.grades):
        raise ResultsError(
            f"{CLAIMS_FILE} must have a number for each rate in report_card.grades"
        )
    if catalogue.language is not None:  # of one's own claims there are no studies
        return
    for name, ships in _studies(read_record()).items():
        came = msgspec.to_builtins(getattr(claims, name))
        if came is None:
            continue
        if place := _unlike(msgspec.to_builtins(ships), came, name):
            raise ResultsError(
                f"{CLAIMS_FILE} must be of the records of this version, got another "
                f"{place}"
            )


def _unlike(ships: object, came: object, place: str) -> str:
    """Return the first place where data have other parts; empty where none."""
    if isinstance(ships, dict) and isinstance(came, dict):
        if ships.keys() != came.keys():
            return place
        parts = [(f"{place}.{key}", ships[key], came[key]) for key in ships]
    elif isinstance(ships, list | tuple) and isinstance(came, list | tuple):
        if len(ships) != len(came):
            return place
        pairs = enumerate(zip(ships, came, strict=True))
        parts = [(f"{place}[{number}]", *pair) for number, pair in pairs]
    else:
        name = place.rpartition(".")[2]
        both = (ships, came)
        numbers = all(one is None or isinstance(one, int | float) for one in both)
        free = name in _JUDGED or (numbers and name != "d_k")
        differs = not free and ships != came
        return place if differs else ""
    return next((found for one in parts if (found := _unlike(*one[1:], one[0]))), "")


def _with(claims: ClaimsRecord, **beside: object) -> ReportRecord:
    """Return a record with further fields: numbers of pages come from results files."""
    return ReportRecord(**(msgspec.structs.asdict(claims) | beside))


def read_claims(folder: Path) -> ReportRecord:
    """Read claims.json of a folder.

    Raises
    ------
    ResultsError
        If it is not as its type says, or a field was left out; one line.
    """
    try:
        content = read_small(CLAIMS_FILE, folder / CLAIMS_FILE, MOST_CLAIMS)
        claims = msgspec.json.decode(content)
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise ResultsError(f"{CLAIMS_FILE} must be JSON, got none: {reason}") from None
    record = validate(claims, ReportRecord, CLAIMS_FILE)
    require_whole(claims, record, CLAIMS_FILE)
    return record
