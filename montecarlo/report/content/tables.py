"""The tables of pages: a few rows of the results, picked and never changed.

Figures pick theirs by the same functions; nothing is estimated here.
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

#: A panel over d_k needs at least so many of them.
FEWEST_POINTS = 2
#: Rows of a topic's table at most: every d_k of a fine grid would be too many.
MOST_ROWS = 8
#: The size that sentences speak of, and that the tables of initialisations and of
#: divisors are made for.
SAID_D_K = 64
#: Number of keys that the tables of rows are made for, where the grid has it.
N_KEYS = 128
#: d_k of the table that a report opens with.
OPENING_D_K = (64, 256, 1024)
#: Gradients of saturated rows whose means and medians are shown.
GRADIENTS = ("jacobian_trace", "jacobian_frobenius", "gradient_query")
#: What divisors make of a row, by the means of these.
DIVIDED = (
    *("weight_max", "weight_second"),
    *("entropy", "jacobian_frobenius", "gradient_query"),
)


class TableCell(NamedTuple):
    """One estimate of a table, with the exact value where there is one.

    What is known to a bin of a histogram has no error, but the ``ends`` of that; a
    share that may be 0, or 1, has one end; a quantile that is known to a ``factor`` has
    that.
    """

    value: float
    error: float | None = None
    row: str = ""
    reference: float | None = None
    ends: tuple[float | None, float | None] | None = None
    factor: float | None = None


class Table(NamedTuple):
    """Columns as LaTeX or names, and for each line what it is of and its cells."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, tuple[TableCell | None, ...]], ...]
    n_keys: int | None = None  # of all rows
    d_k: int | None = None  # of all rows


def make_tables(
    measurements: pd.DataFrame,
    points: Sequence[DesignPoint],
    divisors: Collection[str],
) -> dict[str, Table]:
    """Make all tables that there are rows for, by id.

    Raises
    ------
    InputError
        If a row that one of them names, of these points, is not there.
    """
    made = {
        name: make(read_rows(measurements, reader, points, divisors))
        for name, (reader, make) in TABLES.items()
    }
    made["tails"] = tail_table(measurements)
    return {name: table for name, table in made.items() if table.rows}


# --- Of a column for each row of a point --------------------------------------------


def thin_points(points: Sequence[DesignPoint]) -> list[DesignPoint]:
    """Return the points of the d_k that a table has lines for."""
    sizes = thin(sorted({point.d_k for point in points}))
    return [point for point in points if point.d_k in sizes]


def _pairs(points: Sequence[DesignPoint]) -> list[DesignPoint]:
    return thin_points(gaussian_points(points, with_rows=False))


def _rows(points: Sequence[DesignPoint]) -> list[DesignPoint]:
    """Return Gaussian rows of one number of keys."""
    rows = gaussian_points(points, with_rows=True)
    sizes = sorted({point.n_keys or 0 for point in rows})
    n_keys = min(sizes, default=0, key=lambda n: abs(n - N_KEYS))
    return thin_points([point for point in rows if point.n_keys == n_keys])


def _opening(points: Sequence[DesignPoint]) -> list[DesignPoint]:
    """Return the points that a report opens with."""
    rows = gaussian_points(points, with_rows=True)
    return [p for p in rows if p.d_k in OPENING_D_K and p.n_keys == N_KEYS]


class Columns(NamedTuple):
    """A table over d_k with a column for each of some rows.

    Attributes
    ----------
    choose : callable
        The points of which it has lines.
    keys : sequence of RowKey
    """

    choose: Callable[[Sequence[DesignPoint]], list[DesignPoint]]
    keys: Sequence[RowKey]

    def name(self, points: Sequence[DesignPoint]) -> Iterator[Row]:
        """Name its rows."""
        return product(self.choose(points), self.keys)

    def make(self, rows: pd.DataFrame) -> Table:
        """Make it of these."""
        found = read_cells(rows, "d_k", "divisor", "quantity", "summary")
        cells = {(d_k, RowKey(*key)): cell for (d_k, *key), cell in found.items()}
        there = [key for key in self.keys if any(key == one for _, one in cells)]
        symbols = tuple(row_symbol(k.quantity, k.summary, k.divisor) for k in there)
        n_keys = rows["n_keys"].dropna()
        n = None if n_keys.empty else int(n_keys.iloc[0])
        return Table(symbols, _lines(cells, there), n)


COLUMNS = {
    "variance": Columns(
        _pairs, [RowKey(divisor, "score_variance", "value") for divisor in DIVISORS]
    ),
    "weights": Columns(
        _rows, [RowKey(divisor, "effective_keys", "mean") for divisor in DIVISORS]
    ),
    "passed-on": Columns(
        _opening, [RowKey("none/sqrt", "gradient_query_undivided", "median")]
    ),
    "gradients": Columns(
        _rows,
        [
            RowKey(divisor, "jacobian_frobenius", summary)
            for divisor in ("none", "sqrt")
            for summary in ("mean", "median", "q10")
        ],
    ),
}


# --- Overflow, and initialisations --------------------------------------------------


def tail_table(measurements: pd.DataFrame) -> Table:
    """Pick the overflow probabilities of single scores, one column a number format."""
    tails = measurements[measurements["quantity"] == "overflow_probability"]
    formats = tuple(tails["number_format"].unique())
    return Table(formats, _lines(read_cells(tails, "d_k", "number_format"), formats))


#: Of each initialisation: variances of entries, and of scaled scores.
AUDITED = (
    RowKey("none", "entry_variance_q", "value"),
    RowKey("sqrt", "score_variance", "value"),
)


def name_audited(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name the variances of every initialisation, at one d_k."""
    for point in points:
        if (
            point.initialisation is not None
            and point.d_k == SAID_D_K
            and not (point.has_rows or point.is_normalised)
        ):
            yield from ((point, key) for key in AUDITED)


def audit_table(rows: pd.DataFrame) -> Table:
    """Make the table of initialisations, by rising variance V of the scores.

    Last e^(V/2).
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
    """Turn a line of measurements.csv, or of a curve, into a cell."""
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
    """Return cells by what their lines have in some columns."""
    keys = rows[list(names)].itertuples(index=False, name=None)
    return dict(zip(keys, map(read_cell, rows.to_dict("records")), strict=True))


def _lines(
    cells: Mapping[Any, TableCell], columns: Sequence[object]
) -> tuple[tuple[int, tuple[TableCell | None, ...]], ...]:
    """Return the lines of cells that are known by size and column."""
    return tuple(
        (size, tuple(cells.get((size, column)) for column in columns))
        for size in thin(sorted({int(size) for size, _ in cells}))
    )


def thin(sizes: list[int]) -> list[int]:
    """Keep every second, third... size, among them that of sentences, or the last."""
    step = max(1, -(-len(sizes) // MOST_ROWS))
    kept = sizes.index(SAID_D_K) if SAID_D_K in sizes else len(sizes) - 1
    return sizes[kept % step :: step] if sizes else []


# --- Saturated rows -----------------------------------------------------------------


def _columns_of(name: str) -> list[tuple[str, str]]:
    """Name the columns of a line: of all rows, or of those that an indicator picks."""
    suffix = f"_{name}" if name else ""
    columns = [(name, "mean")] if name else []
    for gradient in GRADIENTS:
        columns += [(f"{gradient}{suffix}", one) for one in ("mean", "median")]
    return columns


def name_saturated(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name how many rows are saturated, and their gradients.

    At the sizes of practice; of the numbers of keys, the smallest and the largest.
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
            for quantity, summary in _columns_of(name):
                yield point, RowKey(divisor, quantity, summary)


def saturated_table(rows: pd.DataFrame) -> Table:
    """Make the table of saturated rows, and means and medians of their gradients.

    A line is of a d_k, an n, and what the largest weight is at least; None: all rows,
    divided by sqrt(d_k), without a share: the yardstick of what is small.
    """
    found = read_cells(
        rows[rows["estimate"].notna()],  # there may be no rows to tell it from
        *("d_k", "n_keys", "divisor", "quantity", "summary"),
    )
    sizes = {(int(n), int(d)) for d, n in zip(rows["d_k"], rows["n_keys"], strict=True)}
    lines = []
    for n_keys, d_k in sorted(sizes):
        for name, threshold in (*SATURATED.items(), ("", None)):
            divisor = "none" if name else "sqrt"
            asked = _columns_of(name) if name else [("", "mean"), *_columns_of(name)]
            cells = (found.get((d_k, n_keys, divisor, *what)) for what in asked)
            lines.append(((d_k, n_keys, threshold), tuple(cells)))
    return Table((), tuple(lines))


# --- What divisors make of a row ----------------------------------------------------


def name_divided(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name what each divisor makes of a row, at one size."""
    rows = gaussian_points(points, with_rows=True)
    one = [p for p in rows if (p.d_k, p.n_keys) == (SAID_D_K, N_KEYS)]
    return every_row(one, DIVIDED, ["mean"], DIVISORS)


def divisor_table(rows: pd.DataFrame) -> Table:
    """Make the table of divisors: a line for each, a column for each quantity."""
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


#: Of each table: what names its rows, and what makes it of these.
TABLES: dict[str, tuple[Reader, Callable[[pd.DataFrame], Table]]] = {
    "audit": (name_audited, audit_table),
    **{name: (one.name, one.make) for name, one in COLUMNS.items()},
    "saturated": (name_saturated, saturated_table),
    "divisors": (name_divided, divisor_table),
}


# --- Rows ---------------------------------------------------------------------------


def with_interval(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with an estimate and a bounded interval.

    Others are no points of a figure, and no line of one is drawn through their places.
    """
    return table[has_interval(table)]


def has_interval(table: pd.DataFrame) -> "pd.Series[bool]":
    """Tell of each row whether it has an estimate and a bounded interval."""
    numbers = table[["estimate", "ci_low", "ci_high"]]
    return (numbers.abs() < np.inf).all(axis=1)


def of_key_counts(
    points: Sequence[DesignPoint], wanted: Iterable[int], most: int
) -> list[DesignPoint]:
    """Return the points of so many numbers of keys, at most, that have a line over d_k.

    What is ``wanted`` is taken first.
    """
    counts = Counter(point.n_keys for point in points)
    there = [n for n in sorted(filter(None, counts)) if counts[n] >= FEWEST_POINTS]
    first = [n for n in wanted if n in there]
    chosen = [*first, *(n for n in there if n not in first)][:most]
    return [point for point in points if point.n_keys in chosen]


def nearest(values: Iterable[float], wanted: float) -> int | None:
    """Return the value nearest to the wanted one on a logarithmic scale."""
    found = sorted({int(value) for value in values})
    return min(found, key=lambda v: abs(np.log(v / wanted)), default=None)
