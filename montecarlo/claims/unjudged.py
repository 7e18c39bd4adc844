"""What is asked and cannot be judged: known before sampling, and never a pass.

In: checks and a grid.  Out: a line for each part of a check's domain that has no place
on the grid, nothing to compare with, or distributions without the moments of an
interval.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from montecarlo.claims.checks import Check
from montecarlo.claims.outcomes import Located
from montecarlo.claims.recorded import RECORDED, Recorded
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.simulation import Simulation, cases_of, is_applicable


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
    Each distribution, dependence and initialisation that a domain names has to be
    judged in all of its cases; of the distributions of a domain that names none, one
    has to be.
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
        for distribution, dependence, initialisation in product(
            domain.distributions or ("",), domain.dependence, domain.initialisation
        ):
            asked = [distribution or "all distributions", dependence, initialisation]
            named = ", ".join(part for part in asked if part not in ("none", ""))
            mine = [
                case
                for case in cases
                if (case.dependence, case.initialisation)
                == (dependence, initialisation)
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
