"""claims.json of a report: how everything came out, and what pages show beside it."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pandas as pd

from montecarlo.claims.record import CLAIMS_FILE, ClaimsRecord
from montecarlo.claims.running import StudyResults
from montecarlo.records.training import read_language, read_record
from montecarlo.report.content.training import (
    TrainingView,
    training_curves,
    view_training,
)
from montecarlo.small_files import read_small
from montecarlo.study.curves import tabulate_curves
from montecarlo.study.folder import ResultsError

#: Bytes of a claims.json at most; that of the full preset has two million.
MOST_CLAIMS = 2**25


class ReportRecord(ClaimsRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """claims.json: how everything that is judged came out."""

    #: what training says; null: it was left out
    training: TrainingView | None = None


def with_studies(results: StudyResults) -> StudyResults:
    """Put beside results what training says: numbers of pages come from their files."""
    training = view_training(read_record(), read_language())
    lines = tabulate_curves(training_curves(training))
    curves = pd.concat([results.curves, lines], ignore_index=True)
    claims = ReportRecord(**msgspec.structs.asdict(results.claims), training=training)
    return replace(results, curves=curves, claims=claims)


def read_claims(folder: Path) -> ReportRecord:
    """Read claims.json of a folder.

    Raises
    ------
    ResultsError
        If it is not what this version writes; one line.
    """
    try:
        content = read_small(CLAIMS_FILE, folder / CLAIMS_FILE, MOST_CLAIMS)
        return msgspec.json.decode(content, type=ReportRecord)
    except (msgspec.DecodeError, RecursionError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise ResultsError(
            f"{CLAIMS_FILE} must be what this version writes, got: {reason}"
        ) from None
