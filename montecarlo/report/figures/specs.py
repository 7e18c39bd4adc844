"""What a figure of the report is, and the numbers that its alternative text names.

Tables of results come in; a `Picture` goes out.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from pandas import DataFrame

from montecarlo.claims.schema import Topic
from montecarlo.report.content.tables.rows import FEWEST_POINTS, gaussian_rows, nearest
from montecarlo.report.content.tables.topics import N_KEYS
from montecarlo.report.figures.drawing import Picture

#: These take measurements and curves.
Builder = Callable[[DataFrame, DataFrame], Picture | None]
Fact = Mapping[str, float]
FactPicker = Callable[[DataFrame, DataFrame], Fact | None]
#: Where figures stand, from the top of a page: before all topics, with one, after them.
Section = Literal["answer", Topic, "method"]
SECTIONS: tuple[Section, ...] = get_args(Section)
#: The largest d_k that a domain reaches; beyond it a grid has edges only.
MOST_D_K = 1024


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure of the report; its functions are sent to workers by their names.

    Attributes
    ----------
    id : str
        Its name in pages and file names.
    build : callable
        Returns a Picture, or None where the results lack what it shows.
    shows : str
        What it shows, for a list on a terminal.
    section : str, optional
        Where it stands, after those before it in the table of figures; None: nowhere.
    on_report : bool
        Whether it stands on the report itself; otherwise on its evidence.
    own_section : str, optional
        Where it stands on the one page of a user's own claims, if elsewhere.
    caption, alternative : str
        What pages say below it and in its place, each a `message`.
    fact : callable, optional
        Returns the numbers that these name, or None without them; ``NAME_error`` says
        which digits of ``NAME`` are shown.
    named : (str, str)
        What ``first`` and ``second`` of its fact are, for data.
    constants : mapping
        What else they name: the same for all results.
    """

    id: str
    build: Builder
    shows: str = ""
    section: Section | None = None
    on_report: bool = False
    own_section: Section | None = None
    caption: str = ""
    alternative: str = ""
    fact: FactPicker | None = None
    named: tuple[str, str] = ("first", "second")
    constants: Mapping[str, float | str] = field(default_factory=dict)


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

    Returns
    -------
    mapping or None
        With ``d_k``, and ``n``, which is 0 for pairs; None where no d_k has both.
    """
    one, two = (rows[rows[column].eq(name)] for name in (first, second))
    d_k = max({*one["d_k"]} & {*two["d_k"]}, default=0)
    one, two = (part[part["d_k"].eq(d_k)] for part in (one, two))
    return pair(one, two, d_k=d_k, n=one["n_keys"].fillna(0).iloc[0]) if d_k else None


def of_curve(curves: DataFrame, *kinds: str) -> DataFrame:
    """Return the lines of some kinds of curve."""
    return curves[curves["curve"].isin(kinds)]


def at_nearest(rows: DataFrame, column: str, wanted: float) -> DataFrame:
    """Return the rows whose d_k, or n, is the nearest to a wanted one."""
    return rows[rows[column].eq(nearest(rows[column].dropna(), wanted) or 0)]


def panel_of(measurements: DataFrame, **values: str) -> DataFrame:
    """Return Gaussian rows with such values, of one n that has a panel over d_k."""
    rows = gaussian_rows(measurements)
    rows = rows[rows["d_k"].le(MOST_D_K) & rows["n_keys"].notna()]
    points = rows.groupby("n_keys")["d_k"].transform("nunique")
    rows = at_nearest(rows[points >= FEWEST_POINTS], "n_keys", N_KEYS)
    for column, value in values.items():
        rows = rows[rows[column].eq(value)]
    return rows
