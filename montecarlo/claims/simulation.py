"""Simulation as evidence: the cases that a grid has for a check, and what was sampled.

A case is a design point, or a series of points along d_k.  Its statistic is one
estimate; checks that look at the same statistic share one share of the error rate.
Here stands, too, which cases are worth sampling on, and what a grid cannot judge.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
    CheckOutcome,
    ClaimsRecord,
    Located,
    case_on,
    locate,
)
from montecarlo.claims.recorded import RECORDED, Recorded
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.verdicts import Outcome
from montecarlo.errors import InputError
from montecarlo.estimation.estimates import Estimate, log_log_slope
from montecarlo.estimation.summaries import RowKey, Summaries, has_interval, lacks
from montecarlo.sampling.design_points import DesignPoint, name_of
from montecarlo.sampling.distributions import DISTRIBUTIONS, parse_distribution
from montecarlo.study.measured import row_id
from montecarlo.study.rows import Row
from montecarlo.study.table import PointTable
from montecarlo.theory.limits import limit_of


def points_of(check: Check, points: Iterable[DesignPoint]) -> list[DesignPoint]:
    """Return the points of a check's domain that a grid has.

    Parameters
    ----------
    check : Check
    points : iterable of DesignPoint
        The grid.

    Returns
    -------
    list of DesignPoint
        By distribution, number of keys and d_k; none for what is on record.
    """
    if check.quantity in RECORDED:
        return []
    pairs = check.quantity in PAIR_QUANTITIES
    # none named, the premise of the texts: one of mean 0 and variance 1
    labels = set(map(canonical_distributions, check.domain.distributions))
    labels = labels or set(DISTRIBUTIONS)
    return sorted(
        (
            point
            for point in points
            if point.has_rows != pairs
            and point.label in labels
            and _contains(check, point)
        ),
        key=lambda c: (*c.names, c.n_keys or 0, c.d_k),
    )


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
    domain = check.domain
    _, _, normalisation, dependence, initialisation = point.names
    n_keys = domain.n_keys[0] if point.n_keys is None else point.n_keys
    return (
        dependence in domain.dependence
        and initialisation in domain.initialisation
        and normalisation in domain.normalisation
        and domain.d_k[0] <= point.d_k <= domain.d_k[1]
        and domain.n_keys[0] <= n_keys <= domain.n_keys[1]
        and not lacks(check.quantity, check.number_format, check.softmax, point)
    )


#: The far end of a series: from the largest d_k down to a quarter of it.
FAR = 4
Points = tuple[DesignPoint, ...]
Exact = Callable[[DesignPoint, RowKey], float | None]
#: What the estimates of a point are asked of.
Estimates = Summaries | PointTable


class Statistic(NamedTuple):
    """One estimate that checks may share."""

    relation: str
    key: RowKey
    points: Points


@dataclass(frozen=True, slots=True)
class Simulation:
    """A grid, and what was sampled on it: `montecarlo.claims.recorded.Evidence`.

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
    summaries: Callable[[DesignPoint], Estimates] | None = None
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
            (domain.normalisation, {case.normalisation for case in cases}),
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

    def find(self, check: Check, where: Located, rate: float) -> Case:
        """Return the estimate of a case, and the region that it is held against."""
        points = self.points(check, where)
        region = region_in(check, where, points, self.reference)
        if region is None or self.summaries is None:
            raise LookupError(f"{check.quantity} has nothing to be held against")
        key, estimate, exact, limit = row_key(check), None, None, None
        if is_applicable(check, points):
            estimate = estimate_in(check, points, self.summaries)
            if check.relation == "tends_to":
                limit = limit_of(check.quantity, check.summary, where.n_keys or 0)
            else:
                exact = exact_in(check, points, self.reference)
        return case_on(
            where,
            region,
            estimate,
            rate,
            exact=exact,
            limit=limit,
            most=min(self.budgets[point] for point in points),
            rows=tuple(row_id(point, key) for point in points),
            d_k_range=(points[0].d_k, points[-1].d_k),
        )

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
        return {case_of(check, point): (point,) for point in inside}
    series: dict[Located, list[DesignPoint]] = {}
    for point in inside:
        where = msgspec.structs.replace(case_of(check, point), d_k=None)
        series.setdefault(where, []).append(point)
    return {case: tuple(members) for case, members in series.items() if members[1:]}


def check_rows(
    checks: Iterable[Check], points: Collection[DesignPoint], divisors: Collection[str]
) -> Iterator[Row]:
    """Yield the rows that checks look at, of the cases that a grid has."""
    for check in checks:
        for case in cases_of(check, points, divisors).values():
            yield from ((point, row_key(check)) for point in case)


def case_of(check: Check, point: DesignPoint) -> Located:
    """Name the case of a check that a point is."""
    compared = check.quantity in FORMAT_QUANTITIES
    return Located(
        distribution=point.label,
        dependence=point.dependence.name,
        initialisation=name_of(point.initialisation),
        normalisation=point.normalisation.name,
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
    check: Check, points: Points, summaries: Callable[[DesignPoint], Estimates]
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
    catalogue: Catalogue, simulation: Simulation, error_rate: float
) -> ErrorRates:
    """Split the report's error rate over the two sides of every interval it uses.

    Parameters
    ----------
    catalogue : Catalogue
    simulation : Simulation
        Its budgets are the numbers of interim analyses that points may have.
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
                if check.quantity in RECORDED:
                    if not (quantity := RECORDED[check.quantity]).exact:
                        key = (check.quantity, check.divisor, case)
                        statistics[key] = quantity.looks
                    continue
                points = simulation.points(check, case)
                if is_applicable(check, points):
                    most = max(simulation.budgets[point] for point in points)
                    statistics[statistic_of(check, points)] = most
        return sum(statistics.values())

    total = count(catalogue.checks())
    each = error_rate / (2.0 * max(1, total))
    claims = {c.id: 2.0 * each * count(c.checks()) for c in catalogue.claim}
    return ErrorRates(each, total, claims)


#: A case that seems to need more budgets than this is not sampled further.
HOPELESS = 4


def undecided_points(judged: ClaimsRecord, simulation: Simulation) -> set[DesignPoint]:
    """Return the points of all undecided cases that the budget may still decide.

    Parameters
    ----------
    judged : ClaimsRecord
    simulation : Simulation
        On which it was judged.

    Notes
    -----
    A case that seems to need many times its budget is given up: that leaves it
    undecided, which it would end as anyhow, and makes no decision wrong.  What a
    sentence asserts and theory knows does not wait for the sample.
    """
    found: set[DesignPoint] = set()
    for check, case in _open_cases(judged):
        points = simulation.points(check.asked, locate(case))
        budget = min(simulation.budgets[point] for point in points)
        if (case.replicates_needed or 0) <= HOPELESS * budget:
            found.update(points)
    return found


def _open_cases(judged: ClaimsRecord) -> Iterator[tuple[CheckOutcome, Case]]:
    """Yield what more replicates would decide, with its check."""
    for check in judged.judged_checks():
        yield from ((check, case) for case in check.cases if _is_open(case))
    for check in judged.said_checks():
        for case in check.cases:
            if _is_open(case) and case.exact is None:
                yield check, case


def _is_open(case: Case) -> bool:
    undecided = case.outcome == Outcome.UNDECIDED or case.by_theory
    return undecided and case.replicates_needed is not None


def gate_checks(catalogue: Catalogue) -> Iterator[tuple[str, Check]]:
    """Yield the checks whose outcome is a verdict, each with its place in the file."""
    for claim in catalogue.claim:
        if claim.kind != "measured":
            continue
        for interpretation in claim.interpretation:
            for check in interpretation.check:
                yield f"claim {claim.id!r}, interpretation {interpretation.id!r}", check
    for self_check in catalogue.self_check:
        for check in self_check.check:
            yield f"self_check {self_check.id!r}", check


def unjudged(catalogue: Catalogue, simulation: Simulation) -> Iterator[str]:
    """Yield what is asked and will not be judged: where, of what, and why.

    Parameters
    ----------
    catalogue : Catalogue
    simulation : Simulation
        A grid, before it is sampled.

    Notes
    -----
    Each distribution, dependence, initialisation and normalisation that a domain names
    has to be judged in all of its cases; of the distributions of a domain that names
    none, one has to be.
    """
    evidence = Recorded(catalogue, simulation)
    for where, check in gate_checks(catalogue):
        if check.quantity in RECORDED:
            lacking = _lacks_record(check, evidence.cases(check))
            if lacking:
                yield f"{where}: {check.quantity} is not judged: {lacking} on record"
            continue
        cases = cases_of(check, simulation.budgets, simulation.divisors)
        domain = check.domain
        for distribution, *others in product(
            domain.distributions or ("",),
            domain.dependence,
            domain.initialisation,
            domain.normalisation,
        ):
            asked = [distribution or "all distributions", *others]
            named = ", ".join(part for part in asked if part not in ("none", ""))
            mine = [
                case
                for case in cases
                if [case.dependence, case.initialisation, case.normalisation] == others
                and distribution in ("", case.distribution)
            ]
            why = _reason(check, mine, simulation, all_of_them=bool(distribution))
            if why:
                yield f"{where}: {check.quantity} is not judged for {named}: {why}"
    if all(claim.kind in ("practice", "assumption") for claim in catalogue.claim):
        yield "nothing is judged: no claim is of a kind that can be"


def _lacks_record(check: Check, cases: Sequence[Located]) -> str:
    """Tell what of a domain is not on record: a part, or an end of its range of d_k."""
    parts, sizes = {case.part for case in cases}, {case.d_k for case in cases} - {None}
    missing = [repr(name) for name in check.domain.part if name not in parts]
    if sizes:
        missing += [f"d_k = {d_k}" for d_k in check.domain.d_k if d_k not in sizes]
    if not cases:
        return "nothing is"
    return f"{missing[0]} is not" if missing else ""


def _reason(
    check: Check, cases: list[Located], simulation: Simulation, *, all_of_them: bool
) -> str:
    """Tell why cases cannot be judged; empty where they can."""
    if not cases:
        return "there is no such case"
    there = set(simulation.cases(check))
    compared = [case for case in cases if case in there]
    if not compared or (all_of_them and len(compared) < len(cases)):
        lacking = len(cases) - len(compared)
        return f"theory has no exact value in {lacking} of {len(cases)} cases"
    points = (simulation.points(check, case) for case in compared)
    if not any(is_applicable(check, some) for some in points):
        return "the entries lack the moments that an interval needs"
    return ""
