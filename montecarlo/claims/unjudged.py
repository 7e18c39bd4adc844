"""What is asked and cannot be judged: known before sampling, and never a pass.

In: checks and a grid.  Out: a line for each part of a check's domain that has no place
on the grid, nothing to compare with, or distributions without the moments of an
interval.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import product

from montecarlo.claims.cases import (
    Case,
    cases_of,
    distributions_label,
    is_applicable,
    region_in,
)
from montecarlo.claims.checks import Check
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.design_points import DesignPoint

Exact = Callable[[DesignPoint, RowKey], float | None]


def gate_checks(catalogue: Catalogue) -> Iterator[tuple[str, Check]]:
    """Yield the checks whose outcome is a verdict, each with its place in the file."""
    for claim in catalogue.claim:
        for interpretation in claim.interpretation:
            for check in interpretation.check:
                yield f"claim {claim.id!r}, interpretation {interpretation.id!r}", check
    for self_check in catalogue.self_check:
        for check in self_check.check:
            yield f"self_check {self_check.id!r}", check


def unjudged(
    catalogue: Catalogue,
    points: Iterable[DesignPoint],
    divisors: Collection[str],
    reference: Exact,
) -> Iterator[str]:
    """Yield what is asked and will not be judged: where, of what, and why.

    Parameters
    ----------
    catalogue : Catalogue
    points : iterable of DesignPoint
        The grid.
    divisors : collection of str
        The divisors that are sampled.
    reference : callable
        (point, row) -> exact value or None.

    Notes
    -----
    Each distribution, dependence and initialisation that a domain names has to be
    judged at all of its places; of the distributions of a domain that names none, one
    has to be.
    """
    points = list(points)
    for where, check in gate_checks(catalogue):
        cases = cases_of(check, points, divisors)
        domain = check.domain
        for distribution, dependence, initialisation in product(
            domain.distributions or ("",), domain.dependence, domain.initialisation
        ):
            asked = [distribution or "all distributions", dependence, initialisation]
            named = ", ".join(part for part in asked if part not in ("none", ""))
            mine = [
                case
                for case in cases
                if (c := case.points[0]).dependence == dependence
                and c.initialisation == initialisation
                and distribution in ("", distributions_label(c))
            ]
            if why := _reason(check, mine, reference, all_of_them=bool(distribution)):
                yield f"{where}: {check.quantity} is not judged for {named}: {why}"
    if all(claim.kind in ("practice", "assumption") for claim in catalogue.claim):
        yield "nothing is judged: no claim is of a kind that can be"


def _reason(
    check: Check, cases: list[Case], reference: Exact, *, all_of_them: bool
) -> str:
    """Tell why cases cannot be judged; empty where they can."""
    if not cases:
        return "there is no such place"
    compared = [c for c in cases if region_in(check, c, reference) is not None]
    if not compared or (all_of_them and len(compared) < len(cases)):
        lacking = len(cases) - len(compared)
        return f"theory has no exact value at {lacking} of {len(cases)} places"
    if not any(is_applicable(check, case) for case in compared):
        return "the entries lack the moments that an interval needs"
    return ""
