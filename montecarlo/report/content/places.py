"""Where a check was made, taken apart so that a page can name it in words."""

from dataclasses import dataclass
from functools import lru_cache

from montecarlo.sampling.design_points import (
    Dependence,
    Initialisation,
    parse_dependence,
    parse_initialisation,
)
from montecarlo.sampling.distributions import Distribution, parse_distribution


@dataclass(frozen=True, slots=True)
class Place:
    """Where a check was made: all but its sizes; nowhere, for what is on record."""

    distributions: tuple[Distribution, ...]  # one, or that of queries and that of keys
    dependence: Dependence | None = None
    initialisation: Initialisation | None = None
    number_format: str = ""  # empty where none is compared
    softmax: str = ""


@lru_cache(maxsize=1024)
def parse_place(distribution: str, context: str) -> Place:
    """Take apart what a case of claims.json calls its distribution and its context."""
    if not distribution:
        return Place(())
    distributions = tuple(map(parse_distribution, distribution.split(" * ")))
    if not context:
        return Place(distributions)
    if context.startswith("init("):
        return Place(distributions, initialisation=parse_initialisation(context))
    if "(" in context:
        return Place(distributions, dependence=parse_dependence(context))
    number_format, _, softmax = context.partition(" ")
    return Place(distributions, number_format=number_format, softmax=softmax)
