"""What a figure of the report is, and the numbers that its words name.

Tables of results come in; a `Picture` goes out.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from pandas import DataFrame

from montecarlo.claims.schema import Topic
from montecarlo.report.content.curves import Curves
from montecarlo.report.content.reading import Reader, no_rows
from montecarlo.report.content.tables import nearest
from montecarlo.report.figures.drawing import Picture
from montecarlo.report.figures.labels import Label, message

#: These take measurements and curves.
Builder = Callable[[DataFrame, Curves], Picture | None]
Fact = Mapping[str, float]
FactPicker = Callable[[DataFrame, Curves], Fact | None]
#: Where figures stand, from the top of a page: before all topics, with one, after them.
Section = Literal["answer", Topic, "method"]
SECTIONS: tuple[Section, ...] = get_args(Section)
#: Sizes that lines of rows are drawn between; heads of practice begin in the middle.
LEAST_D_K, PRACTICE_D_K, MOST_D_K = 16, 64, 1024
HEAD_SIZE = Label(message("$d_k$ (logarithmic)"))
OF_KEYS = message("%(symbol)s keys")


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure of the report; its functions are sent to workers by their names.

    Caption and alternative text, which pages have below it and in its place, are each a
    `message`, and name numbers of ``fact``: ``NAME_error`` says which digits of
    ``NAME`` are shown.  Without a fact there is no figure.
    """

    id: str  # its name in pages and file names
    build: Builder  # None where the results lack what it shows
    rows: Reader = no_rows  # what it reads of measurements, of some points
    shows: str = ""  # for a list on a terminal
    section: Section | None = None  # where it stands; None: nowhere
    on_report: bool = False  # or on its evidence
    caption: str = ""
    alternative: str = ""
    fact: FactPicker | None = None

    def write_numbers(self, fact: Fact, write: Callable[..., str]) -> dict[str, str]:
        """Write what its words name; ``write`` takes a number and its error."""
        return {
            name: write(one, fact.get(f"{name}_error")) for name, one in fact.items()
        }


# --- Picking the two numbers of a fact ----------------------------------------------


def pair(first: DataFrame, second: DataFrame, **sizes: float) -> Fact:
    """Return the first rows of two tables as a fact: numbers, known errors, sizes."""
    fact = {name: float(size) for name, size in sizes.items()}
    for name, rows in (("first", first), ("second", second)):
        fact[name] = float(rows["estimate"].iloc[0])
        if math.isfinite(error := float(rows["std_error"].iloc[0])):
            fact[f"{name}_error"] = error
    return fact


def pick_two(rows: DataFrame, column: str, first: str, second: str) -> Fact | None:
    """Pick the rows that a column tells apart, at the largest d_k of both.

    With ``d_k``, and ``n``, which is 0 for pairs; None where no d_k has both.
    """
    one, two = (rows[rows[column].eq(name)] for name in (first, second))
    d_k = max({*one["d_k"]} & {*two["d_k"]}, default=0)
    one, two = (part[part["d_k"].eq(d_k)] for part in (one, two))
    return pair(one, two, d_k=d_k, n=one["n_keys"].fillna(0).iloc[0]) if d_k else None


def at_nearest(rows: DataFrame, column: str, wanted: float) -> DataFrame:
    """Return the rows whose d_k, or n, is the nearest to a wanted one."""
    return rows[rows[column].eq(nearest(rows[column].dropna(), wanted) or 0)]
