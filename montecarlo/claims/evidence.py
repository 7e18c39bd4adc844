"""What a check is decided on: the one way by which evidence reaches the judge.

Simulation and what is on record each answer the same questions: in which cases a check
can be looked at, what was found in one, and whether more can be had.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import Located
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.estimates import Estimate
from montecarlo.records.training import Record
from montecarlo.theory.limits import Limit


@dataclass(frozen=True, slots=True)
class Found:
    """What evidence has for a check in a case.

    Attributes
    ----------
    region : (float, float) or None
        The values that count as agreement, both ends included; None: it is only shown.
    estimate : Estimate or None
        None where the check is not applicable.
    exact : float or None
        What theory gives for the estimate.
    limit : Limit or None
        What theory gives for growing d_k, and decides, where the check speaks of that.
    d_k : (int, int) or None
        The smallest and largest that it is made of.
    rows : tuple of str
        Names of its lines in the table of measurements.
    most : int or None
        Replicates at most; None where no more can be had.
    """

    region: tuple[float, float] | None
    estimate: Estimate | None
    exact: float | None = None
    limit: Limit | None = None
    d_k: tuple[int, int] | None = None
    rows: tuple[str, ...] = ()
    most: int | None = None


class Evidence(Protocol):
    """Something that checks can be decided on."""

    def reaches(self, check: Check) -> bool:
        """Tell whether its cases reach the whole scope of a check."""

    def cases(self, check: Check) -> Sequence[Located]:
        """Return the cases in which a check can be looked at, in a fixed order."""

    def find(self, check: Check, case: Located) -> Found:
        """Return what there is for a check in one of its cases."""


@dataclass(frozen=True, slots=True)
class RecordedQuantity:
    """What is known before anything is sampled, by a record or by arithmetic.

    Attributes
    ----------
    find : callable
        (catalogue, check, what reads the record of training) -> the cases that there
        are and the estimate of each.
    symbol : str
        As LaTeX; empty where no page shows it.
    summary : str
        The one that it has.
    divisors, initialisations, parts : tuple of str
        What a check may name of each; parts are an optimiser, for example.
    sign : str
        What stands between two divisors that are compared, replicate by replicate.
    exact : bool
        Whether the estimates have no error, and take no share of the error rate.
    looks : int
        At how much evidence it may be decided; the error rate is split over them.
    words : str
        What it is, in English: a message, to be translated; empty with the symbol.
    """

    find: Callable[[Catalogue, Check, Callable[[], Record]], Mapping[Located, Estimate]]
    symbol: str = ""
    summary: str = "value"
    divisors: tuple[str, ...] = ("none",)
    initialisations: tuple[str, ...] = ("",)
    parts: tuple[str, ...] = ()
    sign: str = "/"
    exact: bool = False
    looks: int = 1
    words: str = ""
