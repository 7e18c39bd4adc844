"""claims.json: how everything that a study judges came out, in one type."""

from typing import Annotated

from montecarlo.claims.outcomes import Judgement
from montecarlo.claims.schema import ModelSize, RecordEntry
from montecarlo.claims.verdicts import Verdict
from montecarlo.claims.z_scores import ZScores
from montecarlo.study.validating import about

CLAIMS_FILE = "claims.json"


class ClaimsRecord(Judgement, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """claims.json: how everything that is judged came out."""

    error_rate: Annotated[float, about("nominal error rate of all of it", gt=0, lt=1)]
    simultaneous_error: Annotated[
        float, about("of one end of one simultaneous interval", gt=0, lt=1)
    ]
    analyses: Annotated[int, about("interim analyses of all statistics together")]
    z_scores: Annotated[ZScores, about("distances to exact values")]
    models: Annotated[tuple[ModelSize, ...], about("published sizes of models")]
    records: Annotated[tuple[RecordEntry, ...], about("published facts")]

    def failed_self_checks(self) -> list[str]:
        """Return the ids of the refuted self-checks, ``z-scores`` last."""
        failed = [c.id for c in self.self_checks if c.verdict == Verdict.REFUTED]
        if self.z_scores.verdict == Verdict.REFUTED:
            failed.append("z-scores")
        return failed
