"""The report's error rate, split: how much of it an interval, and a claim, has.

Every statistic gets an interval that misses on either side with a probability that,
added over all statistics and looks, comes to the report's error rate: with the rest
of the probability all intervals are right at once, and so is every decided check.
That is nominal; the report card says what was counted.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from montecarlo.claims.cases import (
    Statistic,
    cases_of,
    is_applicable,
    region_in,
    statistic_of,
)
from montecarlo.claims.checks import Check
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.design_points import DesignPoint


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """How an error rate is split.

    Attributes
    ----------
    simultaneous_error : float
        One-sided, of one interval at one look.
    looks : int
        Of all statistics together.
    claims : mapping
        Id of each claim to its own rate: that of its statistics, at all their looks,
        on both sides.  Claims may share statistics: these add up to more than all.
    """

    simultaneous_error: float
    looks: int
    claims: Mapping[str, float]


def split_error_rate(
    catalogue: Catalogue,
    looks: Mapping[DesignPoint, int],
    divisors: tuple[str, ...],
    reference: Callable[[DesignPoint, RowKey], float | None],
    error_rate: float,
) -> ErrorRates:
    """Split the report's error rate over the two sides of every interval it uses.

    Parameters
    ----------
    catalogue : Catalogue
    looks : mapping
        Point to the number of times it may be looked at.
    divisors : tuple of str
        Those that are sampled.
    reference : callable
        (point, row) -> exact value or None.
    error_rate : float
        Nominal probability that any decided check is wrong.

    Returns
    -------
    ErrorRates
    """

    def count(checks: Iterable[Check]) -> int:
        statistics: dict[Statistic, int] = {}
        for check in checks:
            for case in cases_of(check, looks, divisors):
                if check.relation == "tends_to" or not is_applicable(check, case):
                    continue
                if region_in(check, case, reference) is not None:
                    most = max(looks[c] for c in case.points)
                    statistics[statistic_of(check, case)] = most
        return sum(statistics.values())

    total = count(catalogue.checks())
    each = error_rate / (2.0 * max(1, total))
    claims = {c.id: 2.0 * each * count(c.checks()) for c in catalogue.claim}
    return ErrorRates(each, total, claims)
