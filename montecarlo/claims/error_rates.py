"""The report's error rate, split: how much of it an interval, and a claim, has.

Every statistic gets an interval that misses on either side with a probability that,
added over all statistics and interim analyses, comes to the report's error rate:
with the rest of the probability all intervals are right at once, and so is every
decided check.  That is nominal; the report card says what was counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import Located
from montecarlo.claims.recorded import RECORDED, Recorded
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.simulation import (
    Simulation,
    Statistic,
    is_applicable,
    statistic_of,
)
from montecarlo.sampling.design_points import DesignPoint


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """How an error rate is split.

    Attributes
    ----------
    simultaneous_error : float
        One-sided, of one interval at one interim analysis.
    analyses : int
        Interim analyses of all statistics together.
    claims : mapping
        Id of each claim to its own rate: that of its statistics, at all their analyses,
        on both sides.  Claims may share statistics: these add up to more than all.
    """

    simultaneous_error: float
    analyses: int
    claims: Mapping[str, float]


def split_error_rate(
    catalogue: Catalogue,
    simulation: Simulation,
    analyses: Mapping[DesignPoint, int],
    error_rate: float,
) -> ErrorRates:
    """Split the report's error rate over the two sides of every interval it uses.

    Parameters
    ----------
    catalogue : Catalogue
    simulation : Simulation
    analyses : mapping
        Each of its points to the number of interim analyses it may have.
    error_rate : float
        Nominal probability that any decided check is wrong.

    Returns
    -------
    ErrorRates
    """
    evidence = Recorded(catalogue, simulation)

    def count(checks: Iterable[Check]) -> int:
        statistics: dict[Statistic | tuple[str, str, Located], int] = {}
        for check in checks:
            if check.relation == "tends_to":  # theory decides
                continue
            for case in evidence.cases(check):
                if check.quantity in RECORDED:  # looked at once
                    if not RECORDED[check.quantity].exact:
                        statistics[check.quantity, check.divisor, case] = 1
                    continue
                points = simulation.points(check, case)
                if is_applicable(check, points):
                    most = max(analyses[point] for point in points)
                    statistics[statistic_of(check, points)] = most
        return sum(statistics.values())

    total = count(catalogue.checks())
    each = error_rate / (2.0 * max(1, total))
    claims = {c.id: 2.0 * each * count(c.checks()) for c in catalogue.claim}
    return ErrorRates(each, total, claims)
