"""How checks and interpretations came out, as typed records."""

from dataclasses import dataclass

from montecarlo.claims.cases import Case, Place
from montecarlo.claims.checks import Check
from montecarlo.claims.schema import Interpretation
from montecarlo.claims.verdicts import Border, Verdict
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval
from montecarlo.estimation.summaries import RowKey
from montecarlo.theory.limits import Limit


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """How a check came out in one case.

    Attributes
    ----------
    case : Case
    key : RowKey
    estimate, interval : Estimate and Interval, or None
        None where the check is not applicable; no interval where theory decides.
    region : (float, float)
    verdict : Verdict
    exact : float or None
        What theory gives for the estimate.
    limit : Limit or None
        What theory gives for growing d_k, where the check speaks of that.
    needed : int or None
        Replicates that would decide it.
    """

    case: Case
    key: RowKey
    estimate: Estimate | None
    interval: Interval | None
    region: tuple[float, float]
    verdict: Verdict
    exact: float | None = None
    limit: Limit | None = None
    needed: int | None = None


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """A check with its cases."""

    check: Check
    cases: tuple[CaseOutcome, ...]


@dataclass(frozen=True, slots=True)
class InterpretationOutcome:
    """An interpretation: its checks, the joint outcomes, and the borders."""

    interpretation: Interpretation
    verdict: Verdict
    checks: tuple[CheckOutcome, ...]
    places: tuple[tuple[Place, Verdict], ...]
    borders: tuple[Border, ...]

    @property
    def id(self) -> str:
        """The interpretation's."""
        return self.interpretation.id
