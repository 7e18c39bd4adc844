"""Which figures and tables stand on which page, and their numbers.

They are counted through: those of the report first, then those of its evidence, so that
a number names the same figure on both pages and in every language.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from montecarlo.report.figures import EVERY_FIGURE
from montecarlo.report.figures.specs import SECTIONS

#: Sections in their order, each with what stands there.
Order = Mapping[str, tuple[str, ...]]
REPORT_TABLES: Order = {"weights": ("divisors",)}
EVIDENCE_TABLES: Order = {
    "premise": ("audit", "models"),
    "variance": ("variance",),
    "weights": ("saturation", "largest-score", "weights"),
    "gradients": ("gradients", "saturated"),
    "arithmetic": ("tails",),
    "practice": ("training", "language", "published", "records"),
    "method": ("self-checks", "sensitivity", "report-card", "power"),
}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of figures and of tables, by id."""

    figures: Mapping[str, int]
    tables: Mapping[str, int]


def place_figures(*, own: bool, on_report: bool) -> Order:
    """Return which figures stand where: on the report or, otherwise, its evidence.

    A user's ``own`` claims have one page, which is both.
    """
    shown = [s for s in EVERY_FIGURE.values() if own or s.on_report == on_report]
    return {
        section: tuple(
            spec.id
            for spec in shown
            if section == ((own and spec.own_section) or spec.section)
        )
        for section in SECTIONS
    }


def number_all(
    figures: Collection[str],
    tables: Collection[str],
    topics: Collection[str],
    *,
    own: bool,
) -> Numbers:
    """Count the figures and tables that there are, in the sections that there are."""
    there = {"answer", "method", *topics}
    pages = (True,) if own else (True, False)
    of_figures = [place_figures(own=own, on_report=page) for page in pages]
    of_tables = [EVIDENCE_TABLES] if own else [REPORT_TABLES, EVIDENCE_TABLES]
    return Numbers(_count(of_figures, figures, there), _count(of_tables, tables, there))


def _count(
    orders: list[Order], ids: Collection[str], topics: Collection[str]
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
