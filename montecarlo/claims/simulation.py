"""Evidence: the cases that there are for a check, and what was found in each.

A case of what is sampled is a design point, or a series of points along d_k.  Its
statistic is one estimate; checks that look at the same statistic share one share of the
error rate.  What is on record has cases of its own, and no points.  Here stands, too,
which cases are worth sampling on.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import msgspec

from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    PAIR_QUANTITIES,
)
from montecarlo.claims.calibration import kind_of, nominal_rate
from montecarlo.claims.checks import Check, region_of
from montecarlo.claims.outcomes import (
    Case,
    ClaimsRecord,
    Located,
    case_on,
    locate,
)
from montecarlo.claims.recorded import RECORDED, find_recorded
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.training import LOOKS, Record, read_record
from montecarlo.claims.verdicts import Outcome
from montecarlo.errors import InputError
from montecarlo.estimation.estimates import Estimate, log_log_slope
from montecarlo.estimation.summaries import RowKey, has_interval, reason_missing
from montecarlo.sampling.design_points import DesignPoint, name_of
from montecarlo.sampling.distributions import DISTRIBUTIONS, parse_distribution
from montecarlo.study.measured import row_id
from montecarlo.study.rows import Row
from montecarlo.study.table import PointTable
from montecarlo.theory.limits import Limit, limit_of


def canonical_distributions(named: str) -> str:
    """Return the canonical form of a distribution, or of a pair ``q * k``.

    Raises
    ------
    InputError
        If a distribution is not known, or there are more than two.
    """
    names = [parse_distribution(part.strip()).name for part in named.split("*")]
    if len(names) > 2:
        raise InputError(
            f"distributions must be one distribution or a pair 'q * k', got {named!r}"
        )
    return names[0] if names[0] == names[-1] else " * ".join(names)


def _contains(check: Check, point: DesignPoint) -> bool:
    domain, pairs = check.domain, check.quantity in PAIR_QUANTITIES
    # none named, the premise of the texts: one of mean 0 and variance 1
    labels = domain.distributions or DISTRIBUTIONS
    _, _, normalisation, dependence, initialisation, mask = point.names
    n_keys = domain.n_keys[0] if point.n_keys is None else point.n_keys
    return (
        point.has_rows != pairs
        and point.label in labels
        and dependence in domain.dependence
        and initialisation in domain.initialisation
        and normalisation in domain.normalisation
        and mask in domain.mask
        and domain.d_k[0] <= point.d_k <= domain.d_k[1]
        and domain.n_keys[0] <= n_keys <= domain.n_keys[1]
        and not reason_missing(point, row_key(check))
    )


#: The far end of a series: from the largest d_k down to a quarter of it.
FAR = 4
Points = tuple[DesignPoint, ...]
Exact = Callable[[DesignPoint, RowKey], float | None]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A grid, what was sampled on it, and what is on record.

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
    record : Record or None
        That of training; None: the one of the package.
    """

    budgets: Mapping[DesignPoint, int]
    divisors: Collection[str]
    reference: Exact
    summaries: Callable[[DesignPoint], PointTable] | None = None
    record: Record | None = None
    _looked_at: dict[Check, dict[Located, Points]] = field(default_factory=dict)

    def reaches(self, check: Check) -> bool:
        """Tell whether there is all that a domain names, and its corners.

        The corners are the smallest and largest d_k with the fewest and most keys.  A
        record has what it speaks of.
        """
        if check.quantity in RECORDED:
            return True
        domain = check.domain
        cases = self._points(check)
        sizes = {
            (point.d_k, point.n_keys) for points in cases.values() for point in points
        }
        of_pairs = check.quantity in PAIR_QUANTITIES
        corners = product(domain.d_k, (None,) if of_pairs else domain.n_keys)
        named = {"distribution": domain.distributions}
        for name in ("dependence", "initialisation", "normalisation", "mask"):
            named[name] = getattr(domain, name)
        return set(corners) <= sizes and all(
            set(asked) <= {getattr(case, name) for case in cases}
            for name, asked in named.items()
        )

    def cases(self, check: Check) -> list[Located]:
        """Return the cases that there are, and that there is something to hold to.

        By distribution, number of keys and d_k.
        """
        if check.quantity in RECORDED:
            return list(find_recorded(check, self.record or read_record()))
        return list(self._points(check))

    def points(self, check: Check, case: Located) -> Points:
        """Return what is sampled in a case of a check, by rising d_k."""
        return self._points(check)[case]

    def find(
        self, check: Check, where: Located, rate: float, *, by_theory: bool = True
    ) -> Case:
        """Return what there is for a check in one of its cases, and how it came out.

        ``rate`` is what simultaneous intervals state; ``by_theory``: whether exact
        values decide what the sample leaves undecided.
        """
        if check.quantity in RECORDED:
            known = find_recorded(check, self.record or read_record())[where]
            return case_on(
                check,
                where,
                region_of(check, where.d_k, where.n_keys),
                known,
                rate,
                exact=known.value if RECORDED[check.quantity].exact else None,
                by_theory=by_theory,
                d_k_range=None if where.d_k is None else (where.d_k, where.d_k),
            )
        points = self.points(check, where)
        exact, estimate = exact_in(check, points, self.reference), None
        rows: tuple[str, ...] = ()
        if self.summaries is not None and is_applicable(check, points):
            rows = tuple(row_id(point, row_key(check)) for point in points)
            estimate = estimate_in(check, points, self.summaries)
        return case_on(
            check,
            where,
            region_of(check, where.d_k, where.n_keys, exact),
            estimate,
            rate,
            exact=exact,
            limit=limit_in(check, where),
            most=min(self.budgets[point] for point in points),
            by_theory=by_theory,
            rows=rows,
            d_k_range=(points[0].d_k, points[-1].d_k),
        )

    def _points(self, check: Check) -> dict[Located, Points]:
        if check not in self._looked_at:
            cases = cases_of(check, self.budgets, self.divisors)
            self._looked_at[check] = {
                case: points
                for case, points in cases.items()
                if self._can_compare(check, case, points)
            }
        return self._looked_at[check]

    def _can_compare(self, check: Check, case: Located, points: Points) -> bool:
        """Tell whether theory has what a case is held against."""
        if check.relation == "tends_to":
            return limit_in(check, case) is not None
        if check.expected != "reference":
            return True
        return exact_in(check, points, self.reference) is not None


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
    unsampled = not set(check.divisor.split("/")) <= set(divisors)
    if unsampled or check.quantity in RECORDED:
        return {}
    inside = sorted(
        (point for point in points if _contains(check, point)),
        key=lambda c: (*c.names, c.n_keys or 0, c.d_k),
    )
    if not check.along_d_k:
        return {case_of(check, point): (point,) for point in inside}
    series: dict[Located, list[DesignPoint]] = {}
    for point in inside:
        where = msgspec.structs.replace(case_of(check, point), d_k=None)
        series.setdefault(where, []).append(point)
    return {case: tuple(members) for case, members in series.items() if members[1:]}


def check_rows(
    checks: Iterable[Check], points: Collection[DesignPoint], divisors: Collection[str]
) -> Iterator[Row]:
    """Yield the rows that checks look at, of the cases that a grid has.

    None where distributions lack the moments that an interval needs.
    """
    for check in checks:
        for case in cases_of(check, points, divisors).values():
            if is_applicable(check, case):
                yield from ((point, row_key(check)) for point in case)


def case_of(check: Check, point: DesignPoint) -> Located:
    """Name the case of a check that a point is."""
    compared = check.quantity in FORMAT_QUANTITIES
    return Located(
        distribution=point.label,
        dependence=point.dependence.name,
        initialisation=name_of(point.initialisation),
        normalisation=point.normalisation.name,
        mask=point.mask.name,
        arithmetic=f"{check.number_format} {check.softmax}" if compared else "",
        n_keys=point.n_keys,
        d_k=point.d_k,
    )


def row_key(check: Check) -> RowKey:
    """Name the row that a check looks at."""
    return RowKey(
        check.divisor, check.quantity, check.summary, check.number_format, check.softmax
    )


def statistic_of(check: Check, points: Points) -> tuple[str, RowKey, Points]:
    """Return the statistic of a case, the same for checks that share it.

    Quantities of pairs under another divisor are the same row times a known factor, and
    so are their intervals.  The standard deviation is a known function of the variance,
    but its interval is not that function of the variance's: it has a share of its own.
    """
    key = row_key(check)
    quantity = PAIR_QUANTITIES.get(check.quantity)
    if quantity is not None:
        key = RowKey("none", quantity.name, "value")
    return check.relation if check.along_d_k else "value", key, points


def is_applicable(check: Check, points: Points) -> bool:
    """Tell whether distributions have the moments that the intervals need."""
    return all(has_interval(c, check.quantity) for c in points)


def estimate_in(
    check: Check, points: Points, summaries: Callable[[DesignPoint], PointTable]
) -> Estimate:
    """Return the estimate that a check compares in a case."""
    key = row_key(check)
    if check.relation == "tends_to":  # the slope where d_k is largest
        far = points[-1].d_k / FAR
        points = tuple(c for c in points if c.d_k >= far)
    estimates = [summaries(c).estimate(key) for c in points]
    if check.relation in ("slope_between", "tends_to"):
        return log_log_slope([c.d_k for c in points], estimates)
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
    estimates = [Estimate(value, 0.0, 2) for value in known]
    return log_log_slope([c.d_k for c in points], estimates).value


def limit_in(check: Check, case: Located) -> Limit | None:
    """Return what theory says of a case as d_k grows, where a check asks for that."""
    if check.relation != "tends_to":
        return None
    return limit_of(check.quantity, check.summary, case.n_keys or 0)


def _exact_row(point: DesignPoint, key: RowKey, reference: Exact) -> float | None:
    """Return the exact value of a row, or of the ratio of two."""
    parts = [
        reference(point, key._replace(divisor=divisor))
        for divisor in key.divisor.split("/")
    ]
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    return parts[0] / parts[1] if parts[1] else None


class ErrorRates(NamedTuple):
    """How an error rate is split.

    Attributes
    ----------
    share : float
        That of one side of one interval at one interim analysis.
    analyses : int
        Interim analyses of all statistics together.
    claims : mapping
        Id of each claim to its own rate: that of its statistics, at all their analyses,
        on both sides.  Claims may share statistics: these add up to more than all.
    """

    share: float
    analyses: int
    claims: Mapping[str, float]

    def stated(self, check: Check) -> float:
        """Return the rate that a check's intervals state, so that their share holds."""
        return nominal_rate(self.share, kind_of(check))


def split_error_rate(
    catalogue: Catalogue, evidence: Evidence, error_rate: float
) -> ErrorRates:
    """Split the report's error rate over the two sides of every interval it uses.

    Parameters
    ----------
    catalogue : Catalogue
    evidence : Evidence
        Its budgets are the numbers of interim analyses that points may have.
    error_rate : float
        Nominal probability that any decided check is wrong.

    Returns
    -------
    ErrorRates
    """

    def count(checks: Iterable[Check]) -> int:
        statistics: dict[tuple[object, ...], int] = {}
        for check in checks:
            if check.relation == "tends_to":  # theory decides
                continue
            for case in evidence.cases(check):
                if check.quantity in RECORDED:
                    if not RECORDED[check.quantity].exact:
                        key = (check.quantity, check.divisor, case)
                        statistics[key] = len(LOOKS)
                    continue
                points = evidence.points(check, case)
                if is_applicable(check, points):
                    most = max(evidence.budgets[point] for point in points)
                    statistics[statistic_of(check, points)] = most
        return sum(statistics.values())

    total = count(catalogue.checks())
    each = error_rate / (2.0 * max(1, total))
    claims = {c.id: 2.0 * each * count(c.checks()) for c in catalogue.claim}
    return ErrorRates(each, total, claims)


#: A case that seems to need more budgets than this is not sampled further.
UNREACHABLE = 4


def undecided_points(judged: ClaimsRecord, evidence: Evidence) -> set[DesignPoint]:
    """Return the points of all undecided cases that the budget may still decide.

    Parameters
    ----------
    judged : ClaimsRecord
    evidence : Evidence
        On which it was judged.

    Notes
    -----
    A case that seems to need many times its budget is given up: that leaves it
    undecided, which it would end as anyhow, and makes no decision wrong.  What theory
    decides does not wait for the sample, nor does what no text says.
    """
    cases = [
        (check, case)
        for check in judged.judged_checks(voting=True)
        for case in check.cases
    ]
    for check in judged.said_checks():
        cases += ((check, case) for case in check.cases if case.exact is None)
    found: set[DesignPoint] = set()
    for check, case in cases:
        if case.outcome == Outcome.UNDECIDED and case.replicates_needed is not None:
            points = evidence.points(check.asked, locate(case))
            budget = min(evidence.budgets[point] for point in points)
            if case.replicates_needed <= UNREACHABLE * budget:
                found.update(points)
    return found
