"""The tables of pages: a few rows of the results, picked and never changed.

Figures pick theirs by the same functions; nothing is estimated here.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.quantities import SATURATED, is_share, quantile_level
from montecarlo.estimation.intervals import factor_of
from montecarlo.report.language.symbols import divisor_symbol, row_symbol
from montecarlo.study.presets import PRACTICE_D_K, PRACTICE_N_KEYS

#: A panel over d_k needs at least so many of them.
FEWEST_POINTS = 2
#: Rows of a topic's table at most: every d_k of a fine grid would be too many.
MOST_ROWS = 8
#: Number of keys that the tables of rows are made for, where the grid has it.
N_KEYS = 128
#: d_k that the tables of initialisations and, where the grid has it, of divisors are
#: made for; n of the latter is among so many, the largest.
AUDIT_D_K = DIVISOR_D_K = 64
MOST_KEYS = 3
#: Gradients of saturated rows whose means and medians are shown.
GRADIENTS = ("jacobian_trace", "jacobian_frobenius", "gradient_query")
#: What divisors make of a row: ranks whose mean weights are shown, the largest first,
#: and quantities beside them, by their means.
RANKS = (1, 2)
BESIDE = ("entropy", "jacobian_frobenius", "gradient_query")


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


def make_tables(measurements: pd.DataFrame, curves: pd.DataFrame) -> dict[str, Table]:
    """Pick all tables that there are rows for, by id."""
    gaussian = gaussian_rows(measurements)
    pairs = gaussian[gaussian["n_keys"].isna()]
    variance = [("score_variance", "value", divisor) for divisor in DIVISORS]
    tables = {"audit": audit_rows(measurements), "variance": _table(pairs, variance)}
    sizes = sorted({int(n_keys) for n_keys in gaussian["n_keys"].dropna()})
    if sizes:
        n_keys = min(sizes, key=lambda n: abs(n - N_KEYS))
        rows = gaussian[gaussian["n_keys"] == n_keys]
        weights = [("effective_keys", "mean", divisor) for divisor in DIVISORS]
        tables["weights"] = _table(rows, weights, n_keys)
        gradients = [
            ("jacobian_frobenius", summary, divisor)
            for divisor in ("none", "sqrt")
            for summary in ("mean", "median", "q10")
        ]
        tables["gradients"] = _table(rows, gradients, n_keys)
    tables["saturation"] = saturation_table(measurements)
    tables["tails"] = tail_table(measurements)
    tables["saturated"] = saturated_rows(measurements)
    tables["divisors"] = divisor_table(measurements, curves)
    return {name: table for name, table in tables.items() if table.rows}


def saturation_table(measurements: pd.DataFrame) -> Table:
    """Pick the mean largest weights of undivided rows, one column for each n."""
    rows = saturation_cells(measurements)
    cells = read_cells(rows, "d_k", "n_keys")
    sizes = thin(sorted({int(n_keys) for n_keys in rows["n_keys"]}))
    return Table(tuple(f"n = {n}" for n in sizes), _lines(cells, sizes))


def tail_table(measurements: pd.DataFrame) -> Table:
    """Pick the overflow probabilities of single scores, one column a number format."""
    tails = measurements[measurements["quantity"] == "overflow_probability"]
    formats = tuple(tails["number_format"].unique())
    return Table(formats, _lines(read_cells(tails, "d_k", "number_format"), formats))


def audit_rows(measurements: pd.DataFrame) -> Table:
    """Pick entry and scaled score variances of every initialisation, at one d_k.

    By rising variance V of the scores; last e^(V/2).
    """
    projected = measurements[
        measurements["initialisation"].notna()
        & measurements["initialisation"].ne("")
        & measurements["normalisation"].eq("none")
        & measurements["d_k"].eq(AUDIT_D_K)
    ]
    entries, scores = (
        projected[projected["quantity"].eq(quantity) & projected["divisor"].eq(divisor)]
        .drop_duplicates("initialisation")
        .set_index("initialisation")
        for quantity, divisor in (
            ("entry_variance_q", "none"),
            ("score_variance", "sqrt"),
        )
    )
    scores = scores[scores.index.isin(entries.index)]
    scores = scores.sort_index().sort_values("estimate", kind="stable")
    rows = []
    by_name = entries.to_dict("index")
    for name, score in scores.to_dict("index").items():
        entry, cell = read_cell(by_name[name]), read_cell(score)
        rows.append((name, (entry, cell, TableCell(math.exp(0.5 * cell.value)))))
    return Table((), tuple(rows))


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


def _table(
    rows: pd.DataFrame,
    columns: Sequence[tuple[str, str, str]],
    n_keys: int | None = None,
) -> Table:
    """Return a table with the columns of quantity, summary, divisor that there are."""
    rows = rows[rows["quantity"].isin([quantity for quantity, *_ in columns])]
    named = read_cells(rows, "d_k", "quantity", "summary", "divisor")
    cells = {
        (d_k, column): cell
        for (d_k, *column_), cell in named.items()
        if (column := tuple(column_)) in columns
    }
    present = [column for column in columns if any(key[1] == column for key in cells)]
    symbols = tuple(row_symbol(*column) for column in present)
    return Table(symbols, _lines(cells, present), n_keys)


def _lines(
    cells: Mapping[Any, TableCell], columns: Sequence[object]
) -> tuple[tuple[int, tuple[TableCell | None, ...]], ...]:
    """Return the lines of cells that are known by size and column."""
    return tuple(
        (size, tuple(cells.get((size, column)) for column in columns))
        for size in thin(sorted({int(size) for size, _ in cells}))
    )


def thin(sizes: list[int]) -> list[int]:
    """Keep every second, third... size, counted from the largest."""
    step = -(-len(sizes) // MOST_ROWS)
    return sizes[::-1][::step][::-1] if sizes else []


def saturated_rows(measurements: pd.DataFrame) -> Table:
    """Pick how many rows are saturated, and means and medians of their gradients.

    At the sizes of practice that the results have; of the numbers of keys, the
    smallest and the largest are shown.  A line is of a d_k, an n, and what the largest
    weight is at least; None: all rows, divided by sqrt(d_k), without a share: the
    yardstick of what is small.
    """
    rows = gaussian_rows(measurements)
    inside = rows["d_k"].isin(PRACTICE_D_K) & rows["n_keys"].isin(PRACTICE_N_KEYS)
    rows = rows[inside & rows["divisor"].isin(("none", "sqrt"))]
    rows = rows[rows["n_keys"].isin((rows["n_keys"].min(), rows["n_keys"].max()))]
    found = read_cells(
        rows[rows["estimate"].notna()],  # there may be no rows to tell it from
        *("d_k", "n_keys", "divisor", "quantity", "summary"),
    )
    sizes = {(int(n), int(d)) for d, n in zip(rows["d_k"], rows["n_keys"], strict=True)}
    lines = []
    for n_keys, d_k in sorted(sizes):
        for name, threshold in (*SATURATED.items(), ("", None)):
            divisor, suffix = ("none", f"_{name}") if name else ("sqrt", "")
            asked = [(name, "mean")]
            for gradient in GRADIENTS:
                asked += [(f"{gradient}{suffix}", one) for one in ("mean", "median")]
            cells = (found.get((d_k, n_keys, divisor, *what)) for what in asked)
            lines.append(((d_k, n_keys, threshold), tuple(cells)))
    return Table((), tuple(lines))


def divisor_table(measurements: pd.DataFrame, curves: pd.DataFrame) -> Table:
    """Pick what each divisor makes of a row at one size; no rows without a grid."""
    weights = gaussian_rows(curves, curve="weight_by_rank")
    weights = weights[weights["x"].isin(RANKS)]
    means = gaussian_rows(measurements, summary="mean")
    means = means[means["quantity"].isin(BESIDE) & means["divisor"].isin(DIVISORS)]
    size = ("n_keys", "d_k", "divisor")
    cells = read_cells(weights, *size, "x") | read_cells(means, *size, "quantity")
    sizes: dict[int, set[int]] = {}
    for n_keys, d_k, *_ in cells:
        sizes.setdefault(int(n_keys), set()).add(int(d_k))
    most = max((len(found) for found in sizes.values()), default=0)
    # an n with far fewer d_k stands apart from the grid: an edge of it
    keys = [n for n in sorted(sizes) if len(sizes[n]) > most / 2][-MOST_KEYS:]
    common = set.intersection(*(sizes[n] for n in keys)) if keys else set()
    if len(common) < FEWEST_POINTS:
        return Table((), ())
    n_keys = nearest(keys, N_KEYS) or 0
    d_k = nearest(thin(sorted(common)), DIVISOR_D_K) or 0
    asked = (*RANKS, *BESIDE)
    rows = {
        divisor_symbol(name): tuple(cells.get((n_keys, d_k, name, a)) for a in asked)
        for name in DIVISORS
    }
    columns = [rf"\operatorname{{E}}\, p_{{({rank})}}" for rank in RANKS]
    columns += [
        row_symbol(name, "mean", "none").partition(r"\;\;")[0] for name in BESIDE
    ]
    shown = tuple((symbol, found) for symbol, found in rows.items() if any(found))
    return Table(tuple(columns), shown, n_keys, d_k=d_k)


# --- Rows ---------------------------------------------------------------------------


def plain_rows(table: pd.DataFrame, **values: str | int) -> pd.DataFrame:
    """Return the rows of what is drawn independently, and multiplied as it is.

    Without dependence, initialisation, normalisation or reduced number format.
    """
    wanted = dict.fromkeys(("dependence", "normalisation"), "none")
    wanted |= {"number_format": "float64", "softmax": "shifted"}
    keep = table["initialisation"].isna() | table["initialisation"].eq("")
    for column, value in (wanted | values).items():
        if column in table.columns:
            keep &= table[column].eq(value)
    return table[keep]


def gaussian_rows(table: pd.DataFrame, **values: str | int) -> pd.DataFrame:
    """Return the plain rows of standard Gaussian queries and keys."""
    return plain_rows(
        table, distribution_q="gaussian", distribution_k="gaussian", **values
    )


def with_interval(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with an estimate and a bounded interval.

    Others are no points of a figure, and no line of one is drawn through their places.
    """
    return table[has_interval(table)]


def has_interval(table: pd.DataFrame) -> "pd.Series[bool]":
    """Tell of each row whether it has an estimate and a bounded interval."""
    numbers = table[["estimate", "ci_low", "ci_high"]]
    return (numbers.abs() < np.inf).all(axis=1)


def key_counts(table: pd.DataFrame, wanted: Iterable[int], most: int) -> list[int]:
    """Return the numbers of keys that panels over d_k are drawn for, so many at most.

    The table has rows of one quantity; what is ``wanted`` is taken first.
    """
    points = table.groupby("n_keys")["d_k"].nunique()
    there = [int(n) for n in points.index[points >= FEWEST_POINTS]]
    first = [n for n in wanted if n in there]
    others = [n for n in there if n not in first]
    return sorted((first + others)[:most])


def saturation_cells(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the mean largest weights that a table over d_k and n has cells for.

    An n, or d_k, with less than half as many cells as the fullest one stands apart and
    is left out; there are none without several of both.
    """
    rows = gaussian_rows(
        measurements, quantity="weight_max", summary="mean", divisor="none"
    )
    rows = with_interval(rows)
    for line, along in (("n_keys", "d_k"), ("d_k", "n_keys")):
        cells = rows.groupby(line)[along].transform("nunique")
        rows = rows[cells >= max(FEWEST_POINTS, 0.5 * cells.max())]
    is_map = rows[["d_k", "n_keys"]].nunique().min() >= FEWEST_POINTS
    return rows if is_map else rows.iloc[:0]


def nearest(values: Iterable[float], wanted: float) -> int | None:
    """Return the value nearest to the wanted one on a logarithmic scale."""
    found = sorted({int(value) for value in values})
    return min(found, key=lambda v: abs(np.log(v / wanted)), default=None)
