"""Where a check was made, taken apart so that a page can name it in words."""

import re
from dataclasses import dataclass
from functools import lru_cache

from montecarlo.sampling.dependence import Dependence, parse_dependence
from montecarlo.sampling.initialisations import Initialisation, parse_initialisation

_DISTRIBUTION = re.compile(r"(?P<family>\w+)(?:\((?P<parameters>[^)]*)\))?")
#: Parameters of a distribution, as LaTeX.
_GREEK = {"mean": r"\mu", "std": r"\sigma"}


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of entries: its family, and what was shifted or rescaled."""

    family: str
    parameters: tuple[str, ...]  # LaTeX


@dataclass(frozen=True, slots=True)
class Place:
    """Where a check was made: all but its sizes."""

    distributions: tuple[Distribution, ...]  # one, or that of queries and that of keys
    dependence: Dependence | None = None
    initialisation: Initialisation | None = None
    number_format: str = ""  # empty where none is compared
    softmax: str = ""


@lru_cache(maxsize=1024)
def parse_place(distribution: str, context: str) -> Place:
    """Take apart what a case of claims.json calls its distribution and its context."""
    distributions = tuple(
        _distribution(part.strip()) for part in distribution.split(" * ")
    )
    if not context:
        return Place(distributions)
    if context.startswith("init("):
        return Place(distributions, initialisation=parse_initialisation(context))
    if "(" in context:
        return Place(distributions, dependence=parse_dependence(context))
    number_format, _, softmax = context.partition(" ")
    return Place(distributions, number_format=number_format, softmax=softmax)


def _distribution(name: str) -> Distribution:
    """Take apart ``family(mean=...,std=...)``."""
    match = _DISTRIBUTION.fullmatch(name)
    if match is None:
        raise ValueError(f"distribution must be a name with parameters, got {name!r}")
    given = (part.split("=") for part in (match["parameters"] or "").split(",") if part)
    parameters = (f"{_GREEK[key]} = {float(value):g}" for key, value in given)
    return Distribution(match["family"], tuple(parameters))
