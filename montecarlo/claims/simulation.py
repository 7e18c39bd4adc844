"""Simulation as evidence: the cases that a grid has for a check, and what was sampled.

A case is a design point, or a series of points along d_k.  Its statistic is one
estimate; checks that look at the same statistic share one share of the error rate.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import msgspec

from montecarlo.attention.quantities import FORMAT_QUANTITIES, PAIR_QUANTITIES
from montecarlo.claims.checks import Check, region_of
from montecarlo.claims.domains import points_of
from montecarlo.claims.evidence import Found
from montecarlo.claims.outcomes import Located
from montecarlo.estimation.estimates import Estimate, log_log_slope, ratio_of_ends
from montecarlo.estimation.summaries import RowKey, Summaries, has_interval
from montecarlo.sampling.design_points import DesignPoint, name_of
from montecarlo.study.table import row_id
from montecarlo.theory.limits import limit_of

#: The far end of a series: from the largest d_k down to a quarter of it.
FAR = 4
Points = tuple[DesignPoint, ...]
Exact = Callable[[DesignPoint, RowKey], float | None]


class Statistic(NamedTuple):
    """One estimate that checks may share."""

    relation: str
    key: RowKey
    points: Points


@dataclass(frozen=True, slots=True)
class Simulation:
    """A grid, and what was sampled on it: `montecarlo.claims.evidence.Evidence`.

    Attributes
    ----------
    budgets : mapping
        Point to the most replicates it may get: the grid.
    divisors : collection of str
        Those that are sampled.
    reference : callable
        (point, row) -> exact value or None.
    summaries : callable
        Point -> its estimates; not needed before sampling.
    """

    budgets: Mapping[DesignPoint, int]
    divisors: Collection[str]
    reference: Exact
    summaries: Callable[[DesignPoint], Summaries] | None = None
    _looked_at: dict[Check, dict[Located, Points]] = field(default_factory=dict)

    def reaches(self, check: Check) -> bool:
        """Tell whether the grid has all that a domain names, and its corners.

        The corners are the smallest and largest d_k with the fewest and most keys.
        """
        domain = check.domain
        cases = self.cases(check)
        points = [point for case in cases for point in self.points(check, case)]
        if not points:
            return False
        sizes = {(point.d_k, point.n_keys) for point in points}
        of_pairs = check.quantity in PAIR_QUANTITIES
        corners = product(domain.d_k, (None,) if of_pairs else domain.n_keys)
        named = (
            (domain.distributions, {case.distribution for case in cases}),
            (domain.dependence, {case.dependence for case in cases}),
            (domain.initialisation, {case.initialisation for case in cases}),
        )
        return set(corners) <= sizes and all(
            set(asked) <= there for asked, there in named
        )

    def cases(self, check: Check) -> list[Located]:
        """Return the cases that the grid has, and that there is something to hold to.

        By distribution, number of keys and d_k.
        """
        return list(self._points(check))

    def points(self, check: Check, case: Located) -> Points:
        """Return what is sampled in a case of a check, by rising d_k."""
        return self._points(check)[case]

    def find(self, check: Check, case: Located) -> Found:
        """Return the estimate of a case, and the region that it is held against."""
        points = self.points(check, case)
        region = region_in(check, case, points, self.reference)
        if region is None or self.summaries is None:
            raise LookupError(f"{check.quantity} has nothing to be held against")
        key = row_key(check)
        found = Found(
            region,
            None,
            d_k=(points[0].d_k, points[-1].d_k),
            rows=tuple(row_id(point, key) for point in points),
            most=min(self.budgets[point] for point in points),
        )
        if not is_applicable(check, points):
            return found
        estimate = estimate_in(check, points, self.summaries)
        exact = limit = None
        if check.relation == "tends_to":
            limit = limit_of(check.quantity, check.summary, case.n_keys or 0)
        else:
            exact = exact_in(check, points, self.reference)
        return replace(found, estimate=estimate, exact=exact, limit=limit)

    def _points(self, check: Check) -> dict[Located, Points]:
        if check not in self._looked_at:
            self._looked_at[check] = {
                case: points
                for case, points in cases_of(check, self.budgets, self.divisors).items()
                if region_in(check, case, points, self.reference) is not None
            }
        return self._looked_at[check]


def cases_of(
    check: Check, points: Iterable[DesignPoint], divisors: Collection[str]
) -> dict[Located, Points]:
    """Return the cases of a check's domain that a grid has.

    Parameters
    ----------
    check : Check
    points : iterable of DesignPoint
        The grid.
    divisors : collection of str
        The divisors that are sampled.

    Returns
    -------
    dict
        Case to its points, by rising d_k; by distribution, number of keys and d_k.
    """
    if not set(check.divisor.split("/")) <= set(divisors):
        return {}
    inside = points_of(check, points)
    if not check.along_d_k:
        return {locate(check, point): (point,) for point in inside}
    series: dict[Located, list[DesignPoint]] = {}
    for point in inside:
        where = msgspec.structs.replace(locate(check, point), d_k=None)
        series.setdefault(where, []).append(point)
    return {case: tuple(members) for case, members in series.items() if members[1:]}


def locate(check: Check, point: DesignPoint) -> Located:
    """Name the case of a check that a point is."""
    compared = check.quantity in FORMAT_QUANTITIES
    return Located(
        distribution=point.label,
        dependence=point.dependence.name,
        initialisation=name_of(point.initialisation),
        arithmetic=f"{check.number_format} {check.softmax}" if compared else "",
        n_keys=point.n_keys,
        d_k=point.d_k,
    )


def row_key(check: Check) -> RowKey:
    """Name the row that a check looks at."""
    return RowKey(
        check.divisor, check.quantity, check.summary, check.number_format, check.softmax
    )


def statistic_of(check: Check, points: Points) -> Statistic:
    """Return the statistic of a case, the same for checks that share it.

    Quantities of pairs under another divisor are the same row times a known factor, and
    so are their intervals.  The standard deviation is a known function of the variance,
    but its interval is not that function of the variance's: it has a share of its own.
    """
    key = row_key(check)
    quantity = PAIR_QUANTITIES.get(check.quantity)
    if quantity is not None:
        key = RowKey("none", quantity.name, "value")
    relation = check.relation if check.along_d_k else "value"
    return Statistic(relation, key, points)


def is_applicable(check: Check, points: Points) -> bool:
    """Tell whether distributions have the moments that the intervals need."""
    return all(has_interval(c, check.quantity) for c in points)


def estimate_in(
    check: Check, points: Points, summaries: Callable[[DesignPoint], Summaries]
) -> Estimate:
    """Return the estimate that a check compares in a case."""
    key = row_key(check)
    if check.relation == "tends_to":  # the slope where d_k is largest
        far = points[-1].d_k / FAR
        points = tuple(c for c in points if c.d_k >= far)
    estimates = [summaries(c).estimate(key) for c in points]
    if check.relation in ("slope_between", "tends_to"):
        return log_log_slope([c.d_k for c in points], estimates)
    if check.relation == "ratio_of_ends_between":
        return ratio_of_ends(estimates)
    return estimates[0]


def exact_in(check: Check, points: Points, reference: Exact) -> float | None:
    """Return the exact value of what a check compares in a case, where theory has it.

    Parameters
    ----------
    check : Check
    points : tuple of DesignPoint
        Those of the case.
    reference : callable
        Exact value of a row, None where there is none.
    """
    exact = [_exact_row(c, row_key(check), reference) for c in points]
    known = [value for value in exact if value is not None]
    if len(known) < len(exact) or check.relation == "tends_to":
        return None
    if not check.along_d_k:
        return known[0]
    if min(known) <= 0.0:
        return None
    if check.relation == "ratio_of_ends_between":
        return known[-1] / known[0]
    estimates = [Estimate(value, 0.0, 2) for value in known]
    return log_log_slope([c.d_k for c in points], estimates).value


def _exact_row(point: DesignPoint, key: RowKey, reference: Exact) -> float | None:
    """Return the exact value of a row, or of the ratio of two."""
    parts = [
        reference(point, key._replace(divisor=divisor))
        for divisor in key.divisor.split("/")
    ]
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    return parts[0] / parts[1] if parts[1] else None


def region_in(
    check: Check, case: Located, points: Points, reference: Exact
) -> tuple[float, float] | None:
    """Return the equivalence region of a case.

    None where the check compares with a reference that does not exist.
    """
    exact = None
    if check.expected == "reference":
        exact = _exact_row(points[0], row_key(check), reference)
    return region_of(check, case.d_k, case.n_keys, exact)
