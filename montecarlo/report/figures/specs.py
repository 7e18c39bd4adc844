"""Definition of a figure, and functions that pick the numbers of its caption."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from pandas import DataFrame

from montecarlo.claims.schema import Topic
from montecarlo.report.content.curves import CurveTables
from montecarlo.report.content.reading import Reader, no_rows
from montecarlo.report.content.tables import nearest
from montecarlo.report.figures.drawing import Picture
from montecarlo.report.figures.labels import Label, message

#: Name of a placeholder in caption and alternative text -> its number.
Fact = Mapping[str, float]
#: Sections with figures, in the order of a page: the answer, the topics, the method.
Section = Literal["answer", Topic, "method"]
SECTIONS: tuple[Section, ...] = get_args(Section)
#: d_k at the ends of axes, and the smallest d_k of heads in practice.
LEAST_D_K, TYPICAL_D_K, MOST_D_K = 16, 64, 1024
HEAD_SIZE = Label(message("$d_k$ (logarithmic)"))
OF_KEYS = message("%(symbol)s keys")


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """Definition of a figure of the report: what it reads, how it is drawn, its words.

    Its functions are defined in modules, so that workers can import them.  ``build``
    draws it, and ``fact`` returns its numbers, from rows of measurements.csv and the
    curves; both return None if these lack its data.  Caption and alternative text are
    messages with placeholders for the numbers; ``NAME_error`` decides how many digits
    of ``NAME`` are shown.  A figure is left out if ``fact`` returns None.
    """

    id: str  # its name in pages and file names
    build: Callable[[DataFrame, CurveTables], Picture | None]
    rows: Reader = no_rows  # the rows of measurements.csv that it reads
    shows: str = ""  # description for lists on the terminal
    section: Section | None = None  # its place on pages; None: it has none
    on_report: bool = False  # otherwise on the evidence page
    caption: str = ""
    alternative: str = ""
    fact: Callable[[DataFrame, CurveTables], Fact | None] | None = None

    def write_numbers(self, fact: Fact, write: Callable[..., str]) -> dict[str, str]:
        """Return the numbers of a caption as text: name -> ``write(number, error)``.

        ``fact`` has the numbers by name.  ``error`` is the number ``NAME_error`` in
        ``fact``, or None if there is none.
        """
        return {
            name: write(one, fact.get(f"{name}_error")) for name, one in fact.items()
        }


# --- Picking the two numbers of a fact ----------------------------------------------


def pair(first: DataFrame, second: DataFrame, **sizes: float) -> Fact:
    """Return the numbers of a caption by name, from the first lines of two tables.

    In the result ``first`` and ``second`` are the estimates, ``first_error`` and
    ``second_error`` their standard errors, if finite.  ``sizes`` are added as floats.
    """
    fact = {name: float(size) for name, size in sizes.items()}
    for name, rows in (("first", first), ("second", second)):
        fact[name] = float(rows["estimate"].iloc[0])
        if math.isfinite(error := float(rows["std_error"].iloc[0])):
            fact[f"{name}_error"] = error
    return fact


def pick_two(rows: DataFrame, column: str, first: str, second: str) -> Fact | None:
    """Return the numbers of a caption: estimates for two values of a column.

    The values are ``first`` and ``second``.  The result is that of `pair`, with
    ``d_k``, the largest one that both values have, and ``n``, the number of keys, or 0
    if there are no attention rows.  None if no d_k has both values.
    """
    one, two = (rows[rows[column].eq(name)] for name in (first, second))
    d_k = max({*one["d_k"]} & {*two["d_k"]}, default=0)
    one, two = (part[part["d_k"].eq(d_k)] for part in (one, two))
    return pair(one, two, d_k=d_k, n=one["n_keys"].fillna(0).iloc[0]) if d_k else None


def at_nearest(rows: DataFrame, column: str, target: float) -> DataFrame:
    """Return the lines of a table in which a column is nearest to ``target``.

    Distances are on a logarithmic scale.
    """
    return rows[rows[column].eq(nearest(rows[column].dropna(), target) or 0)]
