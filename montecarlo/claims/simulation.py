"""Evidence for checks, sampled or recorded, and the split of the error rate.

A case of a check on samples is a design point, or a series of points over d_k.  It has
one estimate.  Checks with the same estimate share one part of the error rate.  Recorded
quantities have cases of their own, and no design points.  The module also selects the
cases that are worth further sampling.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import msgspec

from montecarlo.attention.quantities import FORMAT_QUANTITIES, PAIR_QUANTITIES
from montecarlo.claims.calibration import interval_kind, nominal_rate
from montecarlo.claims.checks import CONDITIONS, Check, region_of
from montecarlo.claims.outcomes import (
    Case,
    CaseKey,
    ClaimsRecord,
    case_key,
    decide_case,
    six_digits,
)
from montecarlo.claims.recorded import RECORDED, find_recorded
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.training import LOOKS, Record, read_record
from montecarlo.claims.verdicts import Outcome
from montecarlo.errors import InputError
from montecarlo.estimation.estimates import Estimate, log_log_slope
from montecarlo.estimation.summaries import RowKey, has_interval, reason_missing
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.distributions import DISTRIBUTIONS, parse_distribution
from montecarlo.study.measured import row_id
from montecarlo.study.rows import Row
from montecarlo.study.table import PointTable
from montecarlo.theory.limits import Limit, limit_of
from montecarlo.theory.simulated_rows import simulated_value


def canonical_distributions(named: str) -> str:
    """Return the canonical name of a distribution, or of a pair ``q * k`` of them.

    Such as ``gaussian * laplace``.  A pair of equal distributions becomes one name.

    Raises
    ------
    InputError
        If a distribution is unknown, or there are more than two.
    """
    names = [parse_distribution(part.strip()).name for part in named.split("*")]
    if len(names) > 2:
        raise InputError(
            f"distributions must be one distribution or a pair 'q * k', got {named!r}"
        )
    return names[0] if names[0] == names[-1] else " * ".join(names)


def conditions_of(point: DesignPoint) -> dict[str, Any]:
    """Return the conditions of a design point: name of the condition -> value.

    Such as ``{"mask": "causal", "dependence": "none", ...}``, for each of `CONDITIONS`.
    """
    _, _, normalisation, dependence, initialisation, mask = point.names
    names = dependence, initialisation, normalisation, mask
    return dict(zip(CONDITIONS, names, strict=True))


def _in_domain(check: Check, point: DesignPoint) -> bool:
    """Return whether a design point lies in a check's domain and has its quantity."""
    domain, pairs = check.domain, check.quantity in PAIR_QUANTITIES
    # by default the premise of the texts: mean 0 and variance 1
    n_keys = domain.n_keys[0] if point.n_keys is None else point.n_keys
    return (
        point.has_rows != pairs
        and point.label in (domain.distributions or DISTRIBUTIONS)
        and all(name in getattr(domain, f) for f, name in conditions_of(point).items())
        and domain.d_k[0] <= point.d_k <= domain.d_k[1]
        and domain.n_keys[0] <= n_keys <= domain.n_keys[1]
        and not reason_missing(point, row_key(check))
    )


#: A limit is compared with the slope from 1/FAR of the largest d_k to the largest.
FAR = 4
#: The design points of one case: a single one, or a series by rising d_k.
Points = tuple[DesignPoint, ...]
#: Function: (point, row key) -> exact value of the estimate; None if theory has none.
Exact = Callable[[DesignPoint, RowKey], float | None]


#: The tables of points before sampling: none.
NO_TABLES: Mapping[DesignPoint, PointTable] = {}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What claims are judged on: estimates at the points of a grid, and records.

    Attributes
    ----------
    budgets : mapping
        Design point -> its maximal number of replicates.  The keys are the grid.
    divisors : collection of str
        Divisors that are sampled.
    reference : callable
        (point, row key) -> exact value, or None.
    summaries : callable
        Point -> its estimates.  Only `decide` needs it.
    record : Record or None
        Record of training; None for the one in the package.
    """

    budgets: Mapping[DesignPoint, int]
    divisors: Collection[str]
    reference: Exact
    summaries: Callable[[DesignPoint], PointTable] = NO_TABLES.__getitem__
    record: Record | None = None
    _cache: dict[Check, dict[CaseKey, Points]] = field(default_factory=dict)

    def covers_domain(self, check: Check) -> bool:
        """Return whether the grid reaches the whole domain of a check.

        Cases must have all corners: the smallest and the largest d_k, each with the
        smallest and the largest number of keys.  They must also have each condition and
        each distribution that the domain names, but not all combinations of these.  For
        a recorded quantity the result is True.
        """
        if check.quantity in RECORDED:
            return True
        domain = check.domain
        cases = self.points_by_case(check)
        sizes = {(c.d_k, c.n_keys) for points in cases.values() for c in points}
        of_pairs = check.quantity in PAIR_QUANTITIES
        corners = product(domain.d_k, (None,) if of_pairs else domain.n_keys)
        conditions = {name: getattr(domain, name) for name in CONDITIONS}
        conditions["distribution"] = domain.distributions
        return set(corners) <= sizes and all(
            set(values) <= {getattr(case, name) for case in cases}
            for name, values in conditions.items()
        )

    def cases(self, check: Check) -> list[CaseKey]:
        """Return the cases of a check that can be judged on this evidence.

        A case is a design point, a series of points over d_k, or a part of a record.
        Cases are sorted by distribution, number of keys and d_k.  If the check refers
        to an exact value or a limit, cases for which theory does not know it are left
        out.
        """
        if check.quantity in RECORDED:
            return list(find_recorded(check, self.record or read_record()))
        return list(self.points_by_case(check))

    def decide(
        self, check: Check, where: CaseKey, rate: float, *, by_theory: bool = True
    ) -> Case:
        """Return one case of a check, with its estimate and its outcome.

        If a distribution lacks the moments that an interval needs, the case has no
        estimate, and its outcome is not applicable.

        Parameters
        ----------
        check : Check
        where : CaseKey
            A case from `cases`.
        rate : float
            One-sided error rate of the simultaneous interval.
        by_theory : bool
            Whether an exact value decides if the sample does not.
        """
        fields: dict[str, Any] = {"by_theory": by_theory}
        estimate = None
        if check.quantity in RECORDED:
            estimate = find_recorded(check, self.record or read_record())[where]
            exact = estimate.value if RECORDED[check.quantity].exact else None
            fields["d_k_range"] = where.d_k and (where.d_k, where.d_k)
        else:
            points = self.points_by_case(check)[where]
            exact = exact_of_case(check, points, self.reference)
            used = _points_of_slope(check, points)
            fields["d_k_range"] = used[0].d_k, used[-1].d_k
            if not check.along_d_k:
                key = check.quantity, points[0], check.divisor, check.summary
                simulated = simulated_value(*key)
                fields["simulated"] = simulated and six_digits(simulated.value)
            fields["limit"] = limit_of_case(check, where)
            fields["most"] = min(self.budgets[point] for point in points)
            if is_applicable(check, points):
                fields["rows"] = tuple(row_id(c, row_key(check)) for c in points)
                estimate = estimate_of_case(check, points, self.summaries)
        region = region_of(check, where.d_k, where.n_keys, exact)
        return decide_case(check, where, region, estimate, rate, exact=exact, **fields)

    def points_by_case(self, check: Check) -> dict[CaseKey, Points]:
        """Return the design points of each case that `cases` returns: case -> points.

        An empty dict for a recorded quantity, which has no points.
        """
        if check not in self._cache:
            cases = cases_of(check, self.budgets, self.divisors)
            self._cache[check] = {
                case: points
                for case, points in cases.items()
                if self._can_compare(check, case, points)
            }
        return self._cache[check]

    def _can_compare(self, check: Check, case: CaseKey, points: Points) -> bool:
        """Return whether theory knows the exact value or limit that a check refers to.

        True if the check refers to neither.
        """
        if check.relation == "tends_to":
            return limit_of_case(check, case) is not None
        exact = check.expected == "reference"
        return not exact or exact_of_case(check, points, self.reference) is not None


def cases_of(
    check: Check, points: Iterable[DesignPoint], divisors: Collection[str]
) -> dict[CaseKey, Points]:
    """Return the cases of a check in a grid, with their design points: case -> points.

    A case is a single design point, or a series of two or more over d_k.

    Parameters
    ----------
    check : Check
    points : iterable of DesignPoint
        The grid.
    divisors : collection of str
        Divisors that are sampled.

    Returns
    -------
    dict
        Sorted by distribution, number of keys and d_k; points by ascending d_k.  Empty
        for a recorded quantity, or if a divisor of the check is not sampled.
    """
    sampled = set(check.divisor.split("/")) <= set(divisors)
    if not sampled or check.quantity in RECORDED:
        return {}
    inside = sorted(
        (point for point in points if _in_domain(check, point)),
        key=lambda c: (*c.names, c.n_keys or 0, c.d_k),
    )
    if not check.along_d_k:
        return {case_of(check, point): (point,) for point in inside}
    series: dict[CaseKey, list[DesignPoint]] = {}
    for point in inside:
        where = msgspec.structs.replace(case_of(check, point), d_k=None)
        series.setdefault(where, []).append(point)
    return {case: tuple(members) for case, members in series.items() if members[1:]}


def check_rows(
    checks: Iterable[Check], points: Collection[DesignPoint], divisors: Collection[str]
) -> Iterator[Row]:
    """Yield (point, row key) for the estimates in a grid that checks need.

    Cases whose distributions lack the moments that an interval needs are left out.
    ``divisors`` are those that are sampled.  A row that several checks need is yielded
    several times.
    """
    for check in checks:
        for case in cases_of(check, points, divisors).values():
            if is_applicable(check, case):
                yield from ((point, row_key(check)) for point in case)


def case_of(check: Check, point: DesignPoint) -> CaseKey:
    """Return the case that a check has at a single design point, without results."""
    in_formats = check.quantity in FORMAT_QUANTITIES
    return CaseKey(
        distribution=point.label,
        **conditions_of(point),
        arithmetic=f"{check.number_format} {check.softmax}" if in_formats else "",
        n_keys=point.n_keys,
        d_k=point.d_k,
    )


def row_key(check: Check) -> RowKey:
    """Return the key of the estimate that a check compares at each of its points.

    It has quantity, summary, divisor, number format and softmax of the check.
    """
    return RowKey(
        check.divisor, check.quantity, check.summary, check.number_format, check.softmax
    )


def statistic_key(check: Check, points: Points) -> tuple[str, RowKey, Points]:
    """Return the key of the statistic that a check estimates in a case.

    Checks with equal keys share one interval and its part of the error rate.

    Returns
    -------
    (kind, row, points)
        Kind of statistic (``value`` or the relation), key of the row, and the case's
        points.

    Notes
    -----
    A quantity of pairs of a query and a key is, divided, the undivided one times a
    known factor, and so is its interval.  So its key is that of the row with the
    divisor ``none``, and checks of several divisors share one interval.  The standard
    deviation is a known function of the variance, but its interval is not that function
    of the variance's interval: it has a key and a share of its own.
    """
    key = row_key(check)
    if check.quantity in PAIR_QUANTITIES:
        key = RowKey("none", check.quantity, "value")
    return check.relation if check.along_d_k else "value", key, points


def is_applicable(check: Check, points: Points) -> bool:
    """Return whether a check can be judged in a case, given as its points.

    The distributions of all points must have the moments that an interval needs.
    """
    return all(has_interval(c, check.quantity) for c in points)


def _points_of_slope(check: Check, points: Points) -> Points:
    """Return the points of a case from which its estimate is computed.

    These are all points, or for a limit those with at least 1/`FAR` of the largest d_k.
    """
    if check.relation != "tends_to":
        return points
    return tuple(c for c in points if c.d_k >= points[-1].d_k / FAR)


def estimate_of_case(
    check: Check, points: Points, summaries: Callable[[DesignPoint], PointTable]
) -> Estimate:
    """Return the estimate that a check compares in a case, given as its points.

    For a single point it is the estimate of the quantity, and for a series the log-log
    slope of the quantity over d_k.  For a limit, the slope is over the largest d_k
    alone, see `FAR`.  ``summaries`` returns the estimates of a point.
    """
    key, points = row_key(check), _points_of_slope(check, points)
    estimates = [summaries(c).estimate(key) for c in points]
    if check.along_d_k:
        return log_log_slope([c.d_k for c in points], estimates)
    return estimates[0]


def exact_of_case(check: Check, points: Points, reference: Exact) -> float | None:
    """Return the exact value of the number that a check estimates in a case.

    Parameters
    ----------
    check : Check
    points : tuple of DesignPoint
        The points of the case.
    reference : callable
        (point, row key) -> exact value, or None.

    Returns
    -------
    float or None
        The value at the point, or the log-log slope of the values over d_k.  None if
        theory lacks a value, if a value of a slope is not positive, and for a limit.
    """
    exact = [_exact_of_row(c, row_key(check), reference) for c in points]
    known = [value for value in exact if value is not None]
    if len(known) < len(exact) or check.relation == "tends_to":
        return None
    if not check.along_d_k:
        return known[0]
    if min(known) <= 0.0:
        return None
    estimates = [Estimate(value, 0.0, 2) for value in known]
    return log_log_slope([c.d_k for c in points], estimates).value


def limit_of_case(check: Check, case: CaseKey) -> Limit | None:
    """Return the limit for large d_k that theory knows for a case.

    None if the check is not about a limit, or if theory does not know it.
    """
    if check.relation != "tends_to":
        return None
    return limit_of(check.quantity, check.summary, case.n_keys or 0)


def _exact_of_row(point: DesignPoint, key: RowKey, reference: Exact) -> float | None:
    """Return the exact value of an estimate at a point; None if theory has none.

    For two divisors, such as ``none/sqrt``, it is the ratio of their values.  None if
    theory lacks one of these, or if the second value is 0.
    """
    parts = [
        reference(point, key._replace(divisor=divisor))
        for divisor in key.divisor.split("/")
    ]
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    return parts[0] / parts[1] if parts[1] else None


class ErrorRates(NamedTuple):
    """How a nominal error rate is split over intervals and claims.

    Attributes
    ----------
    share : float
        Error rate for one end of one interval at one interim analysis.
    analyses : int
        Number of interim analyses of all statistics together.
    claims : mapping
        Id of a claim -> nominal error rate of its statistics, over all their analyses
        and both ends.  As claims share statistics, the sum may exceed the total.
    """

    share: float
    analyses: int
    claims: Mapping[str, float]

    def stated(self, check: Check) -> float:
        """Return the nominal one-sided error rate of the intervals of a check.

        Intervals of few replicates miss more often than their nominal rate.  By the
        calibration record, at this rate they miss no more often than `share`.
        """
        return nominal_rate(self.share, interval_kind(check))


def split_error_rate(
    catalogue: Catalogue, evidence: Evidence, error_rate: float
) -> ErrorRates:
    """Return how an error rate is split: equally over both ends of all intervals.

    Parameters
    ----------
    catalogue : Catalogue
    evidence : Evidence
        Its ``budgets``: point -> number of interim analyses that it may have.
    error_rate : float
        Nominal probability that any decided check is wrong.
    """

    def count(checks: Iterable[Check]) -> int:
        """Return the most interim analyses that statistics of checks may have in all.

        The statistics are those of the cases of ``checks`` on ``evidence``.  Those with
        the same `statistic_key` count once.  Cases that theory or algebra decides, or
        to which the check does not apply, do not count.
        """
        statistics: dict[tuple[object, ...], int] = {}
        for check in checks:
            recorded = RECORDED.get(check.quantity)
            if check.relation == "tends_to" or (recorded and recorded.exact):
                continue  # theory or algebra decides
            for case in evidence.cases(check):
                if recorded:
                    statistics[check.quantity, check.divisor, case] = len(LOOKS)
                    continue
                points = evidence.points_by_case(check)[case]
                if is_applicable(check, points):
                    most = max(evidence.budgets[point] for point in points)
                    statistics[statistic_key(check, points)] = most
        return sum(statistics.values())

    total = count(catalogue.checks())
    share = error_rate / (2.0 * max(1, total))
    claims = {c.id: 2.0 * share * count(c.checks()) for c in catalogue.claim}
    return ErrorRates(share, total, claims)


#: A case is not sampled further if it needs more than this many times its budget.
UNREACHABLE = 4


def undecided_points(judged: ClaimsRecord, evidence: Evidence) -> set[DesignPoint]:
    """Return the design points of undecided cases that further sampling may decide.

    Parameters
    ----------
    judged : ClaimsRecord
    evidence : Evidence
        What it was judged on.

    Notes
    -----
    A case that needs more than `UNREACHABLE` times its budget is given up.  It stays
    undecided, as it would at the end of the budget, so no decision becomes wrong.
    Nothing is sampled for cases that theory decides, or for interpretations that do not
    vote.
    """
    cases = [
        (check, case)
        for check in judged.judged_checks(voting=True)
        for case in check.cases
    ]
    for check in judged.sentence_checks():
        cases += ((check, case) for case in check.cases if case.exact is None)
    points_to_sample: set[DesignPoint] = set()
    for check, case in cases:
        if case.outcome == Outcome.UNDECIDED and case.replicates_needed is not None:
            points = evidence.points_by_case(check.check)[case_key(case)]
            budget = min(evidence.budgets[point] for point in points)
            if case.replicates_needed <= UNREACHABLE * budget:
                points_to_sample.update(points)
    return points_to_sample
