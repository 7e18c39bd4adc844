"""Which figures and tables stand on which page, and their numbers.

They are counted through: those of the report first, then those of its evidence, so that
a number names the same figure on both pages and in every language.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

#: Topics in the order of their sections, each with what stands there; what stands
#: before them has none, what stands after them has the method's.
Order = Mapping[str, tuple[str, ...]]
METHOD = "method"
REPORT_FIGURES: Order = {
    "": ("attention", "texts"),
    "weights": ("planted",),
    "gradients": ("gradients",),
}
EVIDENCE_FIGURES: Order = {
    "premise": ("audit",),
    "variance": ("variance", "score-distribution"),
    "weights": (
        *("effective-keys", "weights-by-rank", "weight-max", "saturation"),
        *("entropy", "largest-score", "thresholds"),
    ),
    "gradients": ("gradient-ratio",),
    "arithmetic": ("formats",),
    METHOD: ("z-scores", "report-card"),
}
#: A user's own claims have one page.
OWN_FIGURES: Order = {
    "": ("texts", "thresholds"),
    "premise": ("audit",),
    "variance": ("variance", "score-distribution"),
    "weights": (
        *("attention", "effective-keys", "weights-by-rank", "weight-max"),
        *("saturation", "entropy", "planted", "largest-score"),
    ),
    "gradients": ("gradients", "gradient-ratio"),
    "arithmetic": ("formats",),
    METHOD: ("z-scores", "report-card"),
}
REPORT_TABLES: Order = {"weights": ("divisors",)}
EVIDENCE_TABLES: Order = {
    "premise": ("audit", "models"),
    "variance": ("variance",),
    "weights": ("saturation", "largest-score", "weights"),
    "gradients": ("gradients", "saturated"),
    "arithmetic": ("tails",),
    "practice": ("records",),
    METHOD: ("self-checks", "sensitivity", "report-card", "power"),
}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of figures and of tables, by id."""

    figures: Mapping[str, int]
    tables: Mapping[str, int]


def number_all(
    figures: Collection[str],
    tables: Collection[str],
    topics: Collection[str],
    *,
    own: bool,
) -> Numbers:
    """Count the figures and tables that there are, in the sections that there are."""
    there = {"", METHOD, *topics}
    of_figures = (OWN_FIGURES,) if own else (REPORT_FIGURES, EVIDENCE_FIGURES)
    of_tables = (EVIDENCE_TABLES,) if own else (REPORT_TABLES, EVIDENCE_TABLES)
    return Numbers(_count(of_figures, figures, there), _count(of_tables, tables, there))


def _count(
    orders: tuple[Order, ...], ids: Collection[str], topics: Collection[str]
) -> dict[str, int]:
    """Return the number of each that is there, in an order."""
    found = [
        name
        for order in orders
        for topic, names in order.items()
        for name in names
        if topic in topics and name in ids
    ]
    return {name: number for number, name in enumerate(found, start=1)}
