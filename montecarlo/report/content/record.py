"""claims.json of a report: how everything came out, and what pages show beside it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from montecarlo.claims.outcomes import CLAIMS_FILE, ClaimsRecord
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
    """Put beside results what training says."""
    studies = _studies()
    lines = training_curves(studies["training"])
    curves = pd.concat([results.curves, tabulate_curves(lines)], ignore_index=True)
    return replace(results, curves=curves, claims=_with(results.claims, **studies))


def _with(claims: ClaimsRecord, **beside: object) -> ReportRecord:
    """Return a record with further fields: numbers of pages come from results files."""
    return ReportRecord(**(msgspec.structs.asdict(claims) | beside))


def _studies() -> dict[str, Any]:
    """Return what claims.json says of studies that ship with the package."""
    return {
        "training": view_training(read_record(), read_language()),
    }


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
