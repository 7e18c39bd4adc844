"""Which figures and tables stand on which page, and their numbers.

They are counted through: those of the report first, then those of its evidence, so that
a number names the same figure on both pages and in every language.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

#: In the order in which they stand.
REPORT_FIGURES = (
    *("attention", "texts", "variance", "weight-max", "planted"),
    *("gradients", "formats"),
)
EVIDENCE_FIGURES = (
    *("audit", "score-law", "effective-keys", "weights-by-rank", "saturation"),
    *("entropy", "largest-score", "gradient-ratio", "thresholds"),
    *("z-scores", "report-card"),
)
#: A user's own claims have one page.
OWN_FIGURES = (
    *("texts", "audit", "variance", "score-law", "attention", "effective-keys"),
    *("weights-by-rank", "weight-max", "saturation", "entropy", "planted"),
    *("largest-score", "gradients", "gradient-ratio", "formats", "thresholds"),
    *("z-scores", "report-card"),
)
REPORT_TABLES = ("divisors",)
EVIDENCE_TABLES = (
    *("audit", "models", "records", "variance", "saturation", "largest-score"),
    *("weights", "gradients", "tails", "self-checks", "report-card", "power"),
)
OWN_TABLES = REPORT_TABLES + EVIDENCE_TABLES


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of figures and of tables, by id."""

    figures: Mapping[str, int]
    tables: Mapping[str, int]


def number_all(
    figures: Collection[str], tables: Collection[str], *, own: bool
) -> Numbers:
    """Count the figures and tables that there are.

    Parameters
    ----------
    figures, tables : collection of str
        Their ids.
    own : bool
        Whether the report is of a user's own claims.
    """
    if own:
        return Numbers(_count(OWN_FIGURES, figures), _count(OWN_TABLES, tables))
    return Numbers(
        _count(REPORT_FIGURES + EVIDENCE_FIGURES, figures),
        _count(REPORT_TABLES + EVIDENCE_TABLES, tables),
    )


def _count(order: Iterable[str], there: Collection[str]) -> dict[str, int]:
    """Number what is there, in an order."""
    found = (name for name in order if name in there)
    return {name: number for number, name in enumerate(found, start=1)}
