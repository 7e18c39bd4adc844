"""claims.json of a folder of results, and reading its run.json."""

from pathlib import Path
from typing import Any

from montecarlo.claims.calibration import Calibration
from montecarlo.claims.outcomes import Judgement
from montecarlo.claims.schema import ModelSize, RecordEntry
from montecarlo.claims.verdicts import Verdict
from montecarlo.claims.z_scores import ZScores
from montecarlo.study.columns import MEASUREMENTS
from montecarlo.study.curves import CURVE_FILES
from montecarlo.study.folder import RUN_FILE, ResultsError, read_run

CLAIMS_FILE = "claims.json"


class ClaimsRecord(Judgement, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """claims.json: how everything that is judged came out."""

    #: nominal error rate of all of it
    error_rate: float
    #: that of one end of an interval at one look
    simultaneous_error: float
    #: how often intervals missed in trials
    calibration: Calibration
    #: interim analyses of all statistics together
    analyses: int
    #: distances to exact values
    z_scores: ZScores
    #: published sizes of models
    models: tuple[ModelSize, ...]
    #: published facts
    records: tuple[RecordEntry, ...]

    def failed_self_checks(self) -> list[str]:
        """Return the ids of the refuted self-checks, ``z-scores`` last."""
        failed = [c.id for c in self.self_checks if c.verdict == Verdict.REFUTED]
        if self.z_scores.verdict == Verdict.REFUTED:
            failed.append("z-scores")
        return failed


#: What a report's numbers and verdicts are read from.
DATA_FILES = (MEASUREMENTS, *CURVE_FILES, CLAIMS_FILE)


def read_report_run(folder: Path) -> dict[str, Any]:
    """Read run.json of a report, checked: its schema, its digest, hashes of files.

    Raises
    ------
    ResultsError
        One line: file, requirement, what came.
    """
    run = read_run(folder)
    if "kind" in run:
        raise ResultsError(
            f"results must be those of a report, got an {run['kind']!s:.40}"
        )
    for name in DATA_FILES:
        if name not in run["sha256"]:
            raise ResultsError(
                f"results must have {name!r} among the files of their {RUN_FILE}, got "
                f"{len(run['sha256'])} others"
            )
    return run
