"""The tables of pages, made from rows of measurements.csv.

A table selects rows and arranges them; nothing is estimated here.  Figures select their
rows with the functions in the last section.
"""

import math
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.quantities import SATURATED, is_share, quantile_level
from montecarlo.estimation.intervals import factor_of
from montecarlo.estimation.summaries import RowKey
from montecarlo.report.content.reading import (
    Reader,
    every_row,
    gaussian_points,
    read_rows,
)
from montecarlo.report.language.symbols import divisor_symbol, row_symbol
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.presets import PRACTICE_D_K, PRACTICE_N_KEYS
from montecarlo.study.rows import Row

#: Fewest values of d_k for a line over d_k.
FEWEST_POINTS = 2
#: Most lines of a table over d_k; of a fine grid only some d_k are shown.
MOST_ROWS = 8
#: The d_k of sentences on pages, and of the tables of initialisations and divisors.
SENTENCE_D_K = 64
#: Number of keys in tables of attention rows; the nearest one of the grid is taken.
N_KEYS = 128
#: Gradient quantities in the table of saturated rows.
GRADIENTS = ("jacobian_trace", "jacobian_frobenius", "gradient_query")
#: Quantities whose means are in the table of divisors.
DIVIDED = (
    *("weight_max", "weight_second"),
    *("entropy", "jacobian_frobenius", "gradient_query"),
)


class TableCell(NamedTuple):
    """One estimate in a table.

    Attributes
    ----------
    value : float
    error : float or None
        Standard error; None for a quantile of which only the bin is known.
    row : str
        Row id in measurements.csv, by which the estimate is found there.
    reference : float or None
        Exact value.
    ends : tuple or None
        For a quantile of which only the bin is known, the ends of the bin.  For a share
        whose interval begins at 0, (None, upper end); if it ends at 1, (lower end,
        None).
    factor : float or None
        Ratio of the ends of a quantile's interval, if it is shown.
    """

    value: float
    error: float | None = None
    row: str = ""
    reference: float | None = None
    ends: tuple[float | None, float | None] | None = None
    factor: float | None = None


class Table(NamedTuple):
    """A table of a page: headings in ``columns``, and lines in ``rows``.

    A line is (head, cells).  The head is a size, a name, or a tuple of these.  There is
    a cell for each column, None if there is no estimate.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, tuple[TableCell | None, ...]], ...]
    n_keys: int | None = None  # where all lines have the same
    d_k: int | None = None  # likewise


def make_tables(
    measurements: pd.DataFrame,
    points: Sequence[DesignPoint],
    divisors: Collection[str],
) -> dict[str, Table]:
    """Return the tables of the pages: id -> table.

    Ids are the keys of `TABLES`, and ``tails``.  Tables without lines are left out.

    Parameters
    ----------
    measurements : DataFrame
        All of measurements.csv.
    points : sequence of DesignPoint
        The points of the study.
    divisors : collection of str
        The divisors of the study.

    Raises
    ------
    InputError
        If a row that a table needs at one of these points is missing.
    """
    made = {
        name: make(read_rows(measurements, reader, points, divisors))
        for name, (reader, make) in TABLES.items()
    }
    made["tails"] = tail_table(measurements)
    return {name: table for name, table in made.items() if table.rows}


# --- Tables over d_k ----------------------------------------------------------------


def thin_points(points: Sequence[DesignPoint]) -> list[DesignPoint]:
    """Return the points for tables over d_k: those with d_k that `thin_out` selects."""
    sizes = thin_out(sorted({point.d_k for point in points}))
    return [point for point in points if point.d_k in sizes]


def _of_pairs(points: Sequence[DesignPoint]) -> list[DesignPoint]:
    """Return the Gaussian points without attention rows for tables over d_k.

    They sample pairs of a query and a key, and are thinned out by `thin_points`.
    """
    return thin_points(gaussian_points(points, with_rows=False))


def _of_rows(points: Sequence[DesignPoint]) -> list[DesignPoint]:
    """Return the Gaussian points with attention rows for tables over d_k.

    They have the number of keys that is nearest to `N_KEYS`, and are thinned out by
    `thin_points`.
    """
    rows = gaussian_points(points, with_rows=True)
    sizes = sorted({point.n_keys or 0 for point in rows})
    n_keys = min(sizes, default=0, key=lambda n: abs(n - N_KEYS))
    return thin_points([point for point in rows if point.n_keys == n_keys])


class Columns(NamedTuple):
    """Definition of a table with a line for each d_k.

    Attributes
    ----------
    choose : callable
        Selects the points, one for each line, from those of a study.
    keys : sequence of RowKey
        Divisor, quantity and summary for each column.
    """

    choose: Callable[[Sequence[DesignPoint]], list[DesignPoint]]
    keys: Sequence[RowKey]

    def name_rows(self, points: Sequence[DesignPoint]) -> Iterator[Row]:
        """Yield (point, row key) of the rows of measurements.csv that the table reads.

        ``points`` are those of the study.
        """
        return product(self.choose(points), self.keys)

    def make(self, rows: pd.DataFrame) -> Table:
        """Return the table from the lines of measurements.csv that it reads.

        Headings are LaTeX.  Columns without any estimate are left out.
        """
        found = read_cells(rows, "d_k", "divisor", "quantity", "summary")
        cells = {(d_k, RowKey(*key)): cell for (d_k, *key), cell in found.items()}
        there = [key for key in self.keys if any(key == one for _, one in cells)]
        symbols = tuple(row_symbol(k.quantity, k.summary, k.divisor) for k in there)
        n_keys = rows["n_keys"].dropna()
        n = None if n_keys.empty else int(n_keys.iloc[0])
        return Table(symbols, _lines(cells, there), n)


COLUMNS = {
    "variance": Columns(
        _of_pairs, [RowKey(divisor, "score_variance", "value") for divisor in DIVISORS]
    ),
    "weights": Columns(
        _of_rows, [RowKey(divisor, "effective_keys", "mean") for divisor in DIVISORS]
    ),
    "gradients": Columns(
        _of_rows,
        [
            RowKey(divisor, "jacobian_frobenius", summary)
            for divisor in ("none", "sqrt")
            for summary in ("mean", "median", "q10")
        ],
    ),
}


# --- Overflow, and initialisations --------------------------------------------------


def tail_table(measurements: pd.DataFrame) -> Table:
    """Return the table of the probabilities that exp of a score overflows.

    It has a line for each d_k and a column for each number format.  ``measurements`` is
    all of measurements.csv.
    """
    tails = measurements[measurements["quantity"] == "overflow_probability"]
    formats = tuple(tails["number_format"].unique())
    return Table(formats, _lines(read_cells(tails, "d_k", "number_format"), formats))


#: Rows of each initialisation: variances of query entries and of scaled scores.
AUDITED = (
    RowKey("none", "entry_variance_q", "value"),
    RowKey("sqrt", "score_variance", "value"),
)


def name_audited(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Yield (point, row key) for the rows that the table of initialisations reads.

    They are the rows `AUDITED` at each of the points that have an initialisation, no
    attention rows, no normalisation, and d_k = `SENTENCE_D_K`.
    """
    for point in points:
        if (
            point.initialisation is not None
            and point.d_k == SENTENCE_D_K
            and not (point.has_rows or point.is_normalised)
        ):
            yield from ((point, key) for key in AUDITED)


def audit_table(rows: pd.DataFrame) -> Table:
    """Return the table of initialisations, sorted by their score variance V.

    A line is (initialisation, cells); the cells are the variance of an entry of q, V,
    and e^(V/2).  The table has no headings.
    """
    entries, scores = (
        rows[rows["quantity"].eq(key.quantity)].set_index("initialisation")
        for key in AUDITED
    )
    scores = scores.sort_index().sort_values("estimate", kind="stable")
    lines = []
    by_name = entries.to_dict("index")
    for name, score in scores.to_dict("index").items():
        entry, cell = read_cell(by_name[name]), read_cell(score)
        lines.append((name, (entry, cell, TableCell(math.exp(0.5 * cell.value)))))
    return Table((), tuple(lines))


def read_cell(row: Mapping[Hashable, Any]) -> TableCell:
    """Return the table cell with the estimate of a line of measurements.csv.

    ``row`` maps names of columns to values.  It must have ``estimate`` and
    ``std_error``, which may be NaN; other columns may be missing.
    """
    error, reference = (
        None if pd.isna(value) else value
        for value in (row["std_error"], row.get("reference"))
    )
    low, high = row.get("ci_low", math.nan), row.get("ci_high", math.nan)
    ends: tuple[float | None, float | None] | None = None
    factor = None
    quantity, summary = str(row.get("quantity", "")), str(row.get("summary", ""))
    if error is None and math.isfinite(high - low):
        ends = low, high
    elif summary == "mean" and is_share(quantity) and (low == 0.0) != (high == 1.0):
        ends = (None, high) if low == 0.0 else (low, None)
    elif quantile_level(summary) is not None:
        factor = factor_of(low, high)
    name = row.get("row_id", "")
    return TableCell(row["estimate"], error, name, reference, ends, factor)


def read_cells(rows: pd.DataFrame, *names: str) -> dict[Any, TableCell]:
    """Return a table cell for each line of a table of measurements, by some columns.

    The key of a cell is the tuple of the line's values in the columns ``names``:
    ``(64, "sqrt")`` for ``d_k`` and ``divisor``.
    """
    keys = rows[list(names)].itertuples(index=False, name=None)
    return dict(zip(keys, map(read_cell, rows.to_dict("records")), strict=True))


def _lines(
    cells: Mapping[Any, TableCell], columns: Sequence[object]
) -> tuple[tuple[int, tuple[TableCell | None, ...]], ...]:
    """Return the lines of a `Table` by size, ascending, thinned out by `thin_out`.

    A line is (size, a cell for each of ``columns``).  ``cells`` are by (size, column);
    for a missing key the cell is None.
    """
    return tuple(
        (size, tuple(cells.get((size, column)) for column in columns))
        for size in thin_out(sorted({int(size) for size, _ in cells}))
    )


def thin_out(sizes: list[int]) -> list[int]:
    """Return every k-th of ascending sizes, so that at most `MOST_ROWS` remain.

    `SENTENCE_D_K` remains if it is among them, and otherwise the last size.
    """
    step = max(1, -(-len(sizes) // MOST_ROWS))
    kept = sizes.index(SENTENCE_D_K) if SENTENCE_D_K in sizes else len(sizes) - 1
    return sizes[kept % step :: step] if sizes else []


# --- Saturated rows -----------------------------------------------------------------


def _saturated_columns(name: str) -> list[tuple[str, str]]:
    """Return (quantity, summary) of each column of the table of saturated rows.

    Such as ``("jacobian_trace_saturated", "mean")``.  ``name`` is the indicator by
    which rows are selected, such as ``saturated``, or empty for all rows.
    """
    suffix = f"_{name}" if name else ""
    columns = [(name, "mean")] if name else []
    for gradient in GRADIENTS:
        columns += [(f"{gradient}{suffix}", one) for one in ("mean", "median")]
    return columns


def name_saturated(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Yield (point, row key) for the rows that the table of saturated rows reads.

    They are shares of saturated rows and summaries of their gradients, undivided, and
    for comparison summaries of the gradients of all rows, divided by sqrt(d_k).  The
    points have Gaussian entries, a d_k of `PRACTICE_D_K`, and the smallest or largest
    number of keys of `PRACTICE_N_KEYS` in the study.
    """
    rows = [
        point
        for point in gaussian_points(points, with_rows=True)
        if point.d_k in PRACTICE_D_K and point.n_keys in PRACTICE_N_KEYS
    ]
    ends = sorted(point.n_keys or 0 for point in rows)
    for point in rows:
        for name in (*SATURATED, "") if point.n_keys in (ends[0], ends[-1]) else ():
            divisor = "none" if name else "sqrt"
            for quantity, summary in _saturated_columns(name):
                yield point, RowKey(divisor, quantity, summary)


def saturated_table(rows: pd.DataFrame) -> Table:
    """Return the table of saturated rows: their share, and their gradients.

    The head of a line is (d_k, number of keys, threshold that the largest weight
    reaches).  Its cells are the share, and mean and median of each of `GRADIENTS`.  For
    comparison, a line with the threshold None is over all rows, divided by sqrt(d_k),
    and has no share.  The table has no headings.
    """
    found = read_cells(
        rows[rows["estimate"].notna()],  # NaN if no row is saturated
        *("d_k", "n_keys", "divisor", "quantity", "summary"),
    )
    sizes = {(int(n), int(d)) for d, n in zip(rows["d_k"], rows["n_keys"], strict=True)}
    lines = []
    for n_keys, d_k in sorted(sizes):
        for name, threshold in (*SATURATED.items(), ("", None)):
            divisor = "none" if name else "sqrt"
            columns = [("", "mean")] * (not name) + _saturated_columns(name)
            cells = (found.get((d_k, n_keys, divisor, *what)) for what in columns)
            lines.append(((d_k, n_keys, threshold), tuple(cells)))
    return Table((), tuple(lines))


# --- What divisors make of a row ----------------------------------------------------


def name_divided(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Yield (point, row key) of the rows that the table of divisors reads.

    They are the means of `DIVIDED` at the Gaussian point with d_k = `SENTENCE_D_K` and
    `N_KEYS` keys; there are none if the study lacks it.
    """
    rows = gaussian_points(points, with_rows=True)
    one = [p for p in rows if (p.d_k, p.n_keys) == (SENTENCE_D_K, N_KEYS)]
    return every_row(one, DIVIDED, ["mean"], DIVISORS)


def divisor_table(rows: pd.DataFrame) -> Table:
    """Return the table of mean quantities, with a line for each divisor.

    A line is (LaTeX of the divisor, a cell for each of `DIVIDED`).  The table is empty
    if there are no rows.
    """
    if rows.empty:
        return Table((), ())
    cells = read_cells(rows, "divisor", "quantity")
    lines = tuple(
        (divisor_symbol(name), line)
        for name in DIVISORS
        if any(line := tuple(cells.get((name, one)) for one in DIVIDED))
    )
    columns = tuple(
        row_symbol(name, "mean", "none").partition(r"\;\;")[0] for name in DIVIDED
    )
    n_keys, d_k = (int(rows[size].iloc[0]) for size in ("n_keys", "d_k"))
    return Table(columns, lines, n_keys, d_k=d_k)


#: Id of a table -> (function that names its rows, function that makes it of them).
TABLES: dict[str, tuple[Reader, Callable[[pd.DataFrame], Table]]] = {
    "audit": (name_audited, audit_table),
    **{name: (one.name_rows, one.make) for name, one in COLUMNS.items()},
    "saturated": (name_saturated, saturated_table),
    "divisors": (name_divided, divisor_table),
}


# --- Rows ---------------------------------------------------------------------------


def with_interval(table: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of a table whose estimate and interval are finite.

    Figures draw these, and no line across a missing one.
    """
    return table[has_bounded_interval(table)]


def has_bounded_interval(table: pd.DataFrame) -> "pd.Series[bool]":
    """Return which lines of a table have a finite estimate and a finite interval."""
    return (table[["estimate", "ci_low", "ci_high"]].abs() < np.inf).all(axis=1)


def of_key_counts(
    points: Sequence[DesignPoint], preferred: Iterable[int], most: int
) -> list[DesignPoint]:
    """Return the points with selected numbers of keys, at most ``most`` such numbers.

    Numbers in ``preferred`` are selected first, then the smallest others.  Numbers with
    fewer than `FEWEST_POINTS` points are left out, and so are points without rows.
    """
    counts = Counter(point.n_keys for point in points)
    there = [n for n in sorted(filter(None, counts)) if counts[n] >= FEWEST_POINTS]
    first = [n for n in preferred if n in there]
    chosen = [*first, *(n for n in there if n not in first)][:most]
    return [point for point in points if point.n_keys in chosen]


def nearest(values: Iterable[float], target: float) -> int | None:
    """Return the value nearest to ``target`` on a logarithmic scale, as an int.

    None if there are no values.
    """
    found = sorted({int(value) for value in values})
    return min(found, key=lambda v: abs(np.log(v / target)), default=None)
