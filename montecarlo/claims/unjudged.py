"""What is asked and cannot be judged: known before sampling, and never a pass.

In: checks and a grid.  Out: a line for each part of a check's domain that has no place
on the grid, nothing to compare with, or laws without the moments of an interval.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import product

from montecarlo.claims.cells import (
    Cell,
    cells_of,
    is_applicable,
    laws_label,
    window_in,
)
from montecarlo.claims.checks import Check
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.conditions import Condition

Exact = Callable[[Condition, RowKey], float | None]


def gate_checks(catalogue: Catalogue) -> Iterator[tuple[str, Check]]:
    """Yield the checks whose outcome is a verdict, each with its place in the file."""
    for claim in catalogue.claim:
        for reading in claim.reading:
            for check in reading.check:
                yield f"claim {claim.id!r}, reading {reading.id!r}", check
    for self_check in catalogue.self_check:
        for check in self_check.check:
            yield f"self_check {self_check.id!r}", check


def unjudged(
    catalogue: Catalogue,
    conditions: Iterable[Condition],
    divisors: Collection[str],
    reference: Exact,
) -> Iterator[str]:
    """Yield what is asked and will not be judged: where, of what, and why.

    Parameters
    ----------
    catalogue : Catalogue
    conditions : iterable of Condition
        The grid.
    divisors : collection of str
        The divisors that are sampled.
    reference : callable
        (condition, row) -> exact value or None.

    Notes
    -----
    Each law, dependence and setup that a domain names has to be judged at all of its
    places; of the laws of a domain that names none, one has to be.
    """
    conditions = list(conditions)
    for where, check in gate_checks(catalogue):
        cells = cells_of(check, conditions, divisors)
        domain = check.domain
        for law, dependence, setup in product(
            domain.laws or ("",), domain.dependence, domain.setup
        ):
            asked = [law or "all laws", dependence, setup]
            named = ", ".join(part for part in asked if part not in ("none", ""))
            mine = [
                cell
                for cell in cells
                if (c := cell.conditions[0]).dependence == dependence
                and c.setup == setup
                and law in ("", laws_label(c))
            ]
            if why := _reason(check, mine, reference, all_of_them=bool(law)):
                yield f"{where}: {check.quantity} is not judged for {named}: {why}"
    if all(claim.kind in ("practice", "assumption") for claim in catalogue.claim):
        yield "nothing is judged: no claim is of a kind that can be"


def _reason(
    check: Check, cells: list[Cell], reference: Exact, *, all_of_them: bool
) -> str:
    """Tell why cells cannot be judged; empty where they can."""
    if not cells:
        return "there is no such place"
    compared = [c for c in cells if window_in(check, c, reference) is not None]
    if not compared or (all_of_them and len(compared) < len(cells)):
        lacking = len(cells) - len(compared)
        return f"theory has no exact value at {lacking} of {len(cells)} places"
    if not any(is_applicable(check, cell) for cell in compared):
        return "the entries lack the moments that an interval needs"
    return ""
