"""How checks and readings came out, as typed records."""

from dataclasses import dataclass

from montecarlo.claims.cells import Cell, Place
from montecarlo.claims.checks import Check
from montecarlo.claims.schema import Reading
from montecarlo.claims.verdicts import Border, Verdict
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval
from montecarlo.estimation.summaries import RowKey
from montecarlo.theory.limits import Limit


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """How a check came out in one cell.

    Attributes
    ----------
    cell : Cell
    key : RowKey
    estimate, interval : Estimate and Interval, or None
        None where the check is not applicable; no interval where theory decides.
    window : (float, float)
    verdict : Verdict
    exact : float or None
        What theory gives for the estimate.
    limit : Limit or None
        What theory gives for growing d_k, where the check speaks of that.
    needed : int or None
        Replicates that would decide it.
    """

    cell: Cell
    key: RowKey
    estimate: Estimate | None
    interval: Interval | None
    window: tuple[float, float]
    verdict: Verdict
    exact: float | None = None
    limit: Limit | None = None
    needed: int | None = None


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """A check with its cells."""

    check: Check
    cells: tuple[CellOutcome, ...]


@dataclass(frozen=True, slots=True)
class ReadingOutcome:
    """A reading: its checks, the joint outcome of each place, and the borders."""

    reading: Reading
    verdict: Verdict
    checks: tuple[CheckOutcome, ...]
    places: tuple[tuple[Place, Verdict], ...]
    borders: tuple[Border, ...]

    @property
    def id(self) -> str:
        """The reading's."""
        return self.reading.id
