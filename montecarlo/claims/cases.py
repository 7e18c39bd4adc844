"""Cases: the places of the grid where a check is decided, and the statistic in each.

A case is a point, or a series of points along d_k.  Its statistic is one
estimate; checks that look at the same statistic share one share of the error rate.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from montecarlo.attention.number_formats import FORMAT_QUANTITIES
from montecarlo.attention.pairs import PAIR_QUANTITIES
from montecarlo.attention.rows import ROW_QUANTITIES
from montecarlo.claims.checks import UNBOUNDED, Check, level_at
from montecarlo.errors import InputError
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.slopes import log_log_slope, ratio_of_ends
from montecarlo.estimation.summaries import RowKey, Summaries, has_interval
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.distributions import DISTRIBUTIONS, parse_distribution
from montecarlo.sampling.replicates import format_combinations, row_quantities

#: The far end of a series: from the largest d_k down to a quarter of it.
FAR = 4


class Place(NamedTuple):
    """Where a case lies; what it lacks is None."""

    distribution: str  # "q * k" where they differ
    n_keys: int | None
    d_k: int | None
    context: str = ""  # dependence, initialisation, or number format and softmax


@dataclass(frozen=True, slots=True)
class Case:
    """A place and the points that are looked at there, by rising d_k."""

    place: Place
    points: tuple[DesignPoint, ...]


@dataclass(frozen=True, slots=True)
class Statistic:
    """One estimate that checks may share."""

    relation: str
    key: RowKey
    points: tuple[DesignPoint, ...]


def cases_of(
    check: Check, points: Iterable[DesignPoint], divisors: Collection[str]
) -> list[Case]:
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
    list of Case
        By distribution, number of keys and d_k.
    """
    if not set(check.divisor.split("/")) <= set(divisors):
        return []
    inside = points_of(check, points)
    if not check.along_d_k:
        return [Case(_place(check, c), (c,)) for c in inside]
    series: dict[Place, list[DesignPoint]] = {}
    for point in inside:
        place = _place(check, point)._replace(d_k=None)
        series.setdefault(place, []).append(point)
    return [Case(p, tuple(members)) for p, members in series.items() if members[1:]]


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
        By distribution, number of keys and d_k.
    """
    pairs = check.quantity in PAIR_QUANTITIES
    return sorted(
        (
            point
            for point in points
            if (point.n_keys is None) == pairs and _contains(check, point)
        ),
        key=lambda c: (
            c.distribution_q,
            c.distribution_k,
            c.dependence,
            c.initialisation,
            c.n_keys or 0,
            c.d_k,
        ),
    )


def _place(check: Check, point: DesignPoint) -> Place:
    context = point.initialisation
    if point.dependence != "none":
        context = point.dependence
    if check.quantity in FORMAT_QUANTITIES:
        context = f"{check.number_format} {check.softmax}"
    return Place(distributions_label(point), point.n_keys, point.d_k, context)


def distributions_label(point: DesignPoint) -> str:
    """Name the distributions of a point: one name where q and k share it."""
    if point.distribution_q == point.distribution_k:
        return point.distribution_k
    return f"{point.distribution_q} * {point.distribution_k}"


def canonical_distributions(named: str) -> str:
    """Return the canonical form of a distribution, or of a pair ``q * k``.

    Raises
    ------
    ValueError
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
    if point.dependence not in domain.dependence:
        return False
    if point.initialisation not in domain.initialisation or not _has_distribution(
        domain.distributions, point
    ):
        return False
    if lacks(check, point):
        return False
    if not domain.d_k[0] <= point.d_k <= domain.d_k[1]:
        return False
    n_keys = point.n_keys
    return n_keys is None or domain.n_keys[0] <= n_keys <= domain.n_keys[1]


def lacks(check: Check, point: DesignPoint) -> str:
    """Tell why a point has no row of a check's quantity; empty where it has one."""
    if check.quantity in FORMAT_QUANTITIES:
        computed = {(f.name, way) for f, way in format_combinations(point)}
        if (check.number_format, check.softmax) in computed:
            return ""
        return (
            f"is not computed in {check.number_format} with the softmax "
            f"{check.softmax} at {point.n_keys} keys"
        )
    if point.n_keys is None or check.quantity in row_quantities(point):
        return ""
    needed = "planted keys: a dependence planted(rho)"
    if not ROW_QUANTITIES[check.quantity].planted:
        needed = "Gaussian keys, without dependence or initialisation"
    return f"needs {needed}, got {distributions_label(point)}, {point.dependence!r}"


def _has_distribution(distributions: tuple[str, ...], point: DesignPoint) -> bool:
    label = distributions_label(point)
    if (
        not distributions
    ):  # the premise of the texts: one distribution of mean 0 and variance 1
        return label in DISTRIBUTIONS
    return label in {canonical_distributions(named) for named in distributions}


def row_key(check: Check) -> RowKey:
    """Name the row that a check looks at."""
    return RowKey(
        check.divisor, check.quantity, check.summary, check.number_format, check.softmax
    )


def statistic_of(check: Check, case: Case) -> Statistic:
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
    return Statistic(relation, key, case.points)


def is_applicable(check: Check, case: Case) -> bool:
    """Tell whether distributions have the moments that the intervals need."""
    return all(has_interval(c, check.quantity) for c in case.points)


def estimate_in(
    check: Check, case: Case, summaries: Callable[[DesignPoint], Summaries]
) -> Estimate:
    """Return the estimate that a check compares in a case."""
    key = row_key(check)
    points = case.points
    if check.relation == "tends_to":  # the slope where d_k is largest
        far = points[-1].d_k / FAR
        points = tuple(c for c in points if c.d_k >= far)
    estimates = [summaries(c).estimate(key) for c in points]
    if check.relation in ("slope_between", "tends_to"):
        return log_log_slope([c.d_k for c in points], estimates)
    if check.relation == "ratio_of_ends_between":
        return ratio_of_ends(estimates)
    return estimates[0]


def exact_in(
    check: Check, case: Case, reference: Callable[[DesignPoint, RowKey], float | None]
) -> float | None:
    """Return the exact value of what a check compares in a case, where theory has it.

    Parameters
    ----------
    check : Check
    case : Case
    reference : callable
        Exact value of a row, None where there is none.
    """
    exact = [_exact_row(c, row_key(check), reference) for c in case.points]
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
    return log_log_slope([c.d_k for c in case.points], estimates).value


def _exact_row(
    point: DesignPoint,
    key: RowKey,
    reference: Callable[[DesignPoint, RowKey], float | None],
) -> float | None:
    """Return the exact value of a row, or of the ratio of two."""
    parts = [
        reference(point, key._replace(divisor=divisor))
        for divisor in key.divisor.split("/")
    ]
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    return parts[0] / parts[1] if parts[1] else None


def region_in(
    check: Check, case: Case, reference: Callable[[DesignPoint, RowKey], float | None]
) -> tuple[float, float] | None:
    """Return what the check's estimate may be in a case, both ends included.

    Parameters
    ----------
    check : Check
    case : Case
    reference : callable
        Exact value of a row, None where there is none.

    Returns
    -------
    (low, high), or None
        None where the check compares with a reference that does not exist.  Where it
        speaks of a limit, of the slope at the far end, which theory decides.
    """
    n_keys, d_k = case.place.n_keys, case.place.d_k
    if check.relation != "equals":
        low = level_at(check.low, UNBOUNDED[0], d_k, n_keys)
        return low, level_at(check.high, UNBOUNDED[1], d_k, n_keys)
    if check.expected == "reference":
        exact = reference(case.points[0], row_key(check))
        if exact is None:
            return None
        expected = exact
    else:
        expected = level_at(check.expected, 0.0, d_k, n_keys)
    margin = (check.tolerance or 0.0) * (abs(expected) or 1.0)
    return expected - margin, expected + margin
