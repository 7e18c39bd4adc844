"""Which design points of a grid lie in the domain that a check speaks of."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from montecarlo.attention.quantities import PAIR_QUANTITIES, beyond_table
from montecarlo.claims.checks import Check
from montecarlo.claims.recorded import RECORDED
from montecarlo.errors import InputError
from montecarlo.estimation.summaries import lacks
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.distributions import DISTRIBUTIONS, parse_distribution

Budget = TypeVar("Budget")


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
    return sorted(
        (
            point
            for point in points
            if (not point.has_rows) == pairs and _contains(check, point)
        ),
        key=lambda c: (*c.names, c.n_keys or 0, c.d_k),
    )


def ask_beyond_table(
    budgets: Mapping[DesignPoint, Budget], checks: Iterable[Check]
) -> dict[DesignPoint, Budget]:
    """Have points tell what checks ask of them that the table of a report lacks.

    Parameters
    ----------
    budgets : mapping
        The points of a grid to anything.
    checks : iterable of Check
    """
    also: dict[str, set[tuple[str, str]]] = {}
    for check in checks:
        if check.quantity in RECORDED:
            continue
        if asked := beyond_table(check.quantity, check.summary):
            for point in points_of(check, budgets):
                also.setdefault(point.name, set()).update(asked)
    return {
        replace(point, also=tuple(sorted(also.get(point.name, ())))): budget
        for point, budget in budgets.items()
    }


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
    _, _, dependence, initialisation = point.names
    if dependence not in domain.dependence:
        return False
    if initialisation not in domain.initialisation:
        return False
    if not _has_distribution(domain.distributions, point) or lacks(
        check.quantity, check.number_format, check.softmax, point
    ):
        return False
    if not domain.d_k[0] <= point.d_k <= domain.d_k[1]:
        return False
    n_keys = point.n_keys
    return n_keys is None or domain.n_keys[0] <= n_keys <= domain.n_keys[1]


def _has_distribution(distributions: tuple[str, ...], point: DesignPoint) -> bool:
    if not distributions:  # the premise of the texts: one of mean 0 and variance 1
        return point.label in DISTRIBUTIONS
    return point.label in {canonical_distributions(named) for named in distributions}
