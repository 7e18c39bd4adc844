"""Cells: the places of the grid where a check is decided, and the statistic in each.

A cell is a condition, or a series of conditions along d_k.  Its statistic is one
estimate; checks that look at the same statistic share one share of the error rate.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from montecarlo.attention.number_formats import FORMAT_QUANTITIES
from montecarlo.attention.pairs import PAIR_QUANTITIES
from montecarlo.attention.rows import ROW_QUANTITIES
from montecarlo.claims.checks import UNBOUNDED, Check, level_at
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.slopes import log_log_slope, ratio_of_ends
from montecarlo.estimation.summaries import RowKey, Summaries, has_interval
from montecarlo.sampling.conditions import Condition
from montecarlo.sampling.laws import LAWS, parse_law
from montecarlo.sampling.replicates import format_combinations, row_quantities

#: The far end of a series: from the largest d_k down to a quarter of it.
FAR = 4


class Place(NamedTuple):
    """Where a cell lies; what it lacks is None."""

    law: str  # "q * k" where they differ
    n_keys: int | None
    d_k: int | None
    context: str = ""  # dependence, setup, or number format and softmax


@dataclass(frozen=True, slots=True)
class Cell:
    """A place and the conditions that are looked at there, by rising d_k."""

    place: Place
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Statistic:
    """One estimate that checks may share."""

    relation: str
    key: RowKey
    conditions: tuple[Condition, ...]


def cells_of(
    check: Check, conditions: Iterable[Condition], divisors: Collection[str]
) -> list[Cell]:
    """Return the cells of a check's domain that a grid has.

    Parameters
    ----------
    check : Check
    conditions : iterable of Condition
        The grid.
    divisors : collection of str
        The divisors that are sampled.

    Returns
    -------
    list of Cell
        By law, number of keys and d_k.
    """
    if not set(check.divisor.split("/")) <= set(divisors):
        return []
    inside = conditions_of(check, conditions)
    if not check.along_d_k:
        return [Cell(_place(check, c), (c,)) for c in inside]
    series: dict[Place, list[Condition]] = {}
    for condition in inside:
        place = _place(check, condition)._replace(d_k=None)
        series.setdefault(place, []).append(condition)
    return [Cell(p, tuple(members)) for p, members in series.items() if members[1:]]


def conditions_of(check: Check, conditions: Iterable[Condition]) -> list[Condition]:
    """Return the conditions of a check's domain that a grid has.

    Parameters
    ----------
    check : Check
    conditions : iterable of Condition
        The grid.

    Returns
    -------
    list of Condition
        By law, number of keys and d_k.
    """
    pairs = check.quantity in PAIR_QUANTITIES
    return sorted(
        (
            condition
            for condition in conditions
            if (condition.n_keys is None) == pairs and _contains(check, condition)
        ),
        key=lambda c: (c.law_q, c.law_k, c.dependence, c.setup, c.n_keys or 0, c.d_k),
    )


def _place(check: Check, condition: Condition) -> Place:
    context = condition.setup
    if condition.dependence != "none":
        context = condition.dependence
    if check.quantity in FORMAT_QUANTITIES:
        context = f"{check.number_format} {check.softmax}"
    return Place(laws_label(condition), condition.n_keys, condition.d_k, context)


def laws_label(condition: Condition) -> str:
    """Name the laws of a condition: one name where q and k share it."""
    if condition.law_q == condition.law_k:
        return condition.law_k
    return f"{condition.law_q} * {condition.law_k}"


def canonical_laws(named: str) -> str:
    """Return the canonical form of a law, or of a pair of laws ``q * k``.

    Raises
    ------
    ValueError
        If a law is not known, or there are more than two.
    """
    names = [parse_law(part.strip()).name for part in named.split("*")]
    if len(names) > 2:
        raise ValueError(f"laws must be one law or a pair 'q * k', got {named!r}")
    return names[0] if names[0] == names[-1] else " * ".join(names)


def _contains(check: Check, condition: Condition) -> bool:
    domain = check.domain
    if condition.dependence not in domain.dependence:
        return False
    if condition.setup not in domain.setup or not _has_law(domain.laws, condition):
        return False
    if lacks(check, condition):
        return False
    if not domain.d_k[0] <= condition.d_k <= domain.d_k[1]:
        return False
    n_keys = condition.n_keys
    return n_keys is None or domain.n_keys[0] <= n_keys <= domain.n_keys[1]


def lacks(check: Check, condition: Condition) -> str:
    """Tell why a condition has no row of a check's quantity; empty where it has one."""
    if check.quantity in FORMAT_QUANTITIES:
        computed = {(f.name, way) for f, way in format_combinations(condition)}
        if (check.number_format, check.softmax) in computed:
            return ""
        return (
            f"is not computed in {check.number_format} with the softmax "
            f"{check.softmax} at {condition.n_keys} keys"
        )
    if condition.n_keys is None or check.quantity in row_quantities(condition):
        return ""
    needed = "planted keys: a dependence planted(rho)"
    if not ROW_QUANTITIES[check.quantity].planted:
        needed = "Gaussian keys, without dependence or setup"
    return f"needs {needed}, got {laws_label(condition)}, {condition.dependence!r}"


def _has_law(laws: tuple[str, ...], condition: Condition) -> bool:
    label = laws_label(condition)
    if not laws:  # the premise of the texts: one law of mean 0 and variance 1
        return label in LAWS
    return label in {canonical_laws(named) for named in laws}


def row_key(check: Check) -> RowKey:
    """Name the row that a check looks at."""
    return RowKey(
        check.divisor, check.quantity, check.summary, check.number_format, check.softmax
    )


def statistic_of(check: Check, cell: Cell) -> Statistic:
    """Return the statistic of a cell, the same for checks that share it.

    Quantities of pairs under another divisor are the same row times a known factor, and
    so are their intervals.  The standard deviation is a known function of the variance,
    but its interval is not that function of the variance's: it has a share of its own.
    """
    key = row_key(check)
    quantity = PAIR_QUANTITIES.get(check.quantity)
    if quantity is not None:
        key = RowKey("none", quantity.name, "value")
    relation = check.relation if check.along_d_k else "value"
    return Statistic(relation, key, cell.conditions)


def is_applicable(check: Check, cell: Cell) -> bool:
    """Tell whether the laws have the moments that the check's intervals need."""
    return all(has_interval(c, check.quantity) for c in cell.conditions)


def estimate_in(
    check: Check, cell: Cell, summaries: Callable[[Condition], Summaries]
) -> Estimate:
    """Return the estimate that a check compares in a cell."""
    key = row_key(check)
    conditions = cell.conditions
    if check.relation == "tends_to":  # the slope where d_k is largest
        far = conditions[-1].d_k / FAR
        conditions = tuple(c for c in conditions if c.d_k >= far)
    estimates = [summaries(c).estimate(key) for c in conditions]
    if check.relation in ("slope_between", "tends_to"):
        return log_log_slope([c.d_k for c in conditions], estimates)
    if check.relation == "ratio_of_ends_between":
        return ratio_of_ends(estimates)
    return estimates[0]


def exact_in(
    check: Check, cell: Cell, reference: Callable[[Condition, RowKey], float | None]
) -> float | None:
    """Return the exact value of what a check compares in a cell, where theory has it.

    Parameters
    ----------
    check : Check
    cell : Cell
    reference : callable
        Exact value of a row, None where there is none.
    """
    exact = [_exact_row(c, row_key(check), reference) for c in cell.conditions]
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
    return log_log_slope([c.d_k for c in cell.conditions], estimates).value


def _exact_row(
    condition: Condition,
    key: RowKey,
    reference: Callable[[Condition, RowKey], float | None],
) -> float | None:
    """Return the exact value of a row, or of the ratio of two."""
    parts = [
        reference(condition, key._replace(divisor=divisor))
        for divisor in key.divisor.split("/")
    ]
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    return parts[0] / parts[1] if parts[1] else None


def window_in(
    check: Check, cell: Cell, reference: Callable[[Condition, RowKey], float | None]
) -> tuple[float, float] | None:
    """Return what the check's estimate may be in a cell, both ends included.

    Parameters
    ----------
    check : Check
    cell : Cell
    reference : callable
        Exact value of a row, None where there is none.

    Returns
    -------
    (low, high), or None
        None where the check compares with a reference that does not exist.  Where it
        speaks of a limit, of the slope at the far end, which theory decides.
    """
    n_keys, d_k = cell.place.n_keys, cell.place.d_k
    if check.relation != "equals":
        low = level_at(check.low, UNBOUNDED[0], d_k, n_keys)
        return low, level_at(check.high, UNBOUNDED[1], d_k, n_keys)
    if check.expected == "reference":
        exact = reference(cell.conditions[0], row_key(check))
        if exact is None:
            return None
        expected = exact
    else:
        expected = level_at(check.expected, 0.0, d_k, n_keys)
    margin = (check.tolerance or 0.0) * (abs(expected) or 1.0)
    return expected - margin, expected + margin
