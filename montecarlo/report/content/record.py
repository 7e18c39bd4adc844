"""claims.json of a report: how everything came out, and what pages show beside it."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import pandas as pd

from montecarlo.calibration.card import Card, Counted, count_rate
from montecarlo.claims.record import CLAIMS_FILE, ClaimsRecord
from montecarlo.literature.outcomes import LiteratureOutcome
from montecarlo.literature.record import read_literature_record
from montecarlo.report.content.report_card import CardView, card_curves, view_card
from montecarlo.report.content.sensitivity import Sensitivity, read_sensitivity
from montecarlo.report.content.tables.language import view_language
from montecarlo.report.content.training import TrainingView, view_training
from montecarlo.report.content.training_curves import training_curves
from montecarlo.results.folder import ResultsError
from montecarlo.results.table import tabulate_curves
from montecarlo.results.validating import about, require_whole, validate
from montecarlo.small_files import read_small
from montecarlo.study.running import StudyResults
from montecarlo.training.record import read_language, read_record

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
        LiteratureOutcome | None, about("what papers say; null likewise")
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
    record = read_record()
    language = view_language(read_language())
    training = replace(view_training(record), language=language)
    papers = read_literature_record()
    claims = _with(
        results.claims,
        sensitivity=read_sensitivity(),
        training=training,
        literature=papers.outcome,
    )
    lines = (*training_curves(training, record), *papers.lines())
    curves = pd.concat([results.curves, tabulate_curves(lines)], ignore_index=True)
    return replace(results, curves=curves, claims=claims)


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
