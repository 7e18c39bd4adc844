"""The tables of pages: a few rows of the results, picked and never changed."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.quantities import SATURATED
from montecarlo.report.content.tables.rows import (
    FEWEST_POINTS,
    gaussian_rows,
    largest_scores,
    nearest,
    saturation_cells,
)
from montecarlo.report.language.symbols import divisor_symbol, row_symbol
from montecarlo.study.presets import PRACTICE_D_K, PRACTICE_N_KEYS

#: Rows of a topic's table at most: every d_k of a fine grid would be too many.
MOST_ROWS = 8
#: Number of keys that the tables of rows are made for, where the grid has it.
N_KEYS = 128
#: d_k that the table of initialisations is made for.
AUDIT_D_K = 64
#: Gradients of saturated rows whose means and medians are shown.
GRADIENTS = ("jacobian_trace", "jacobian_frobenius", "gradient_query")
#: What divisors make of a row: ranks whose mean weights are shown, the largest first,
#: and quantities beside them, by their means.
RANKS = (1, 2)
BESIDE = ("entropy", "jacobian_frobenius", "gradient_query")
#: The d_k of that, where the grid has it; its n is among so many, the largest.
DIVISOR_D_K = 64
MOST_KEYS = 3


class TableCell(NamedTuple):
    """One estimate of a table, with the exact value where there is one."""

    value: float
    error: float | None = None
    row: str = ""
    reference: float | None = None


#: The cells of a line of a table, one a column; None where one is missing.
Cells = tuple[TableCell | None, ...]


class TopicTable(NamedTuple):
    """Columns as LaTeX, or as names of number formats, and a line for each size."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, Cells], ...]  # each with its d_k, or its number of keys
    n_keys: int | None = None  # of all rows
    head: str = "d_k"  # what the rows are of, as LaTeX
    d_k: int | None = None  # of all rows


def topic_tables(measurements: pd.DataFrame) -> dict[str, TopicTable]:
    """Pick the tables of all topics that measurements.csv has rows for."""
    gaussian = gaussian_rows(measurements)
    pairs = gaussian[gaussian["n_keys"].isna()]
    variance = [("score_variance", "value", divisor) for divisor in DIVISORS]
    tables = {"variance": _table(pairs, variance)}
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
    tables["largest-score"] = largest_score_table(measurements)
    tables["tails"] = tail_table(measurements)
    return {topic: table for topic, table in tables.items() if table.rows}


def saturation_table(measurements: pd.DataFrame) -> TopicTable:
    """Pick the mean largest weights of undivided rows, one column for each n."""
    rows = saturation_cells(measurements)
    rows = rows[rows["divisor"] == "none"]
    cells = read_cells(rows, "d_k", "n_keys")
    sizes = thin(sorted({int(n_keys) for n_keys in rows["n_keys"]}))
    return TopicTable(tuple(f"n = {n}" for n in sizes), _lines(cells, sizes))


def largest_score_table(measurements: pd.DataFrame) -> TopicTable:
    """Set the mean largest scaled score beside sqrt(2 ln n), one row for each n."""
    rows = []
    d_k = None
    for row in largest_scores(measurements).to_dict("records"):
        d_k = int(row["d_k"])
        mean, n_keys = read_cell(row), int(row["n_keys"])
        limit = math.sqrt(2.0 * math.log(n_keys))
        ratio = limit / mean.value
        error = None if mean.error is None else ratio * mean.error / mean.value
        rows.append((n_keys, (mean, TableCell(limit), TableCell(ratio, error))))
    mean_symbol = row_symbol("score_max", "mean", "sqrt")
    limit_symbol = r"\sqrt{2\ln n}"
    ratio_symbol = rf"{limit_symbol}\,/\operatorname{{E}}\, s_{{\max}}"
    columns = (mean_symbol, limit_symbol, ratio_symbol)
    return TopicTable(columns, tuple(rows), head="n", d_k=d_k)


def tail_table(measurements: pd.DataFrame) -> TopicTable:
    """Pick the overflow probabilities of single scores, one column a number format."""
    tails = measurements[measurements["quantity"] == "overflow_probability"]
    formats = tuple(tails["number_format"].unique())
    return TopicTable(
        formats, _lines(read_cells(tails, "d_k", "number_format"), formats)
    )


class AuditRow(NamedTuple):
    """One initialisation."""

    initialisation: str
    entry: TableCell
    score: TableCell
    frozen_below: float


def audit_table(measurements: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pick entry and scaled score variances of every initialisation, at one d_k.

    Returns
    -------
    DataFrame, DataFrame
        Rows of entries and of scores, one for each initialisation, by rising variance
        of the scores.
    """
    projected = measurements[
        measurements["initialisation"].notna()
        & measurements["initialisation"].ne("")
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
    return entries.loc[scores.index], scores


def audit_rows(measurements: pd.DataFrame) -> list[AuditRow]:
    """Return the table of initialisations, in that order."""
    entries, scores = audit_table(measurements)
    return [
        AuditRow(
            str(initialisation),
            read_cell(entry),
            read_cell(score),
            math.exp(0.5 * score["estimate"]),
        )
        for initialisation, entry, score in zip(
            scores.index,
            entries.to_dict("records"),
            scores.to_dict("records"),
            strict=True,
        )
    ]


def read_cell(row: Mapping[Hashable, Any]) -> TableCell:
    """Turn a line of measurements.csv, or of a curve, into a cell."""
    error, reference = (
        None if pd.isna(value) else value
        for value in (row["std_error"], row.get("reference"))
    )
    return TableCell(row["estimate"], error, row.get("row_id", ""), reference)


def read_cells(rows: pd.DataFrame, *names: str) -> dict[Any, TableCell]:
    """Return cells by what their lines have in some columns."""
    keys = rows[list(names)].itertuples(index=False, name=None)
    return dict(zip(keys, map(read_cell, rows.to_dict("records")), strict=True))


def _table(
    rows: pd.DataFrame,
    columns: Sequence[tuple[str, str, str]],
    n_keys: int | None = None,
) -> TopicTable:
    """Return a table with the columns of quantity, summary, divisor that there are."""
    rows = rows[rows["quantity"].isin([quantity for quantity, *_ in columns])]
    named = read_cells(rows, "d_k", "quantity", "summary", "divisor")
    cells = {(d_k, tuple(column)): cell for (d_k, *column), cell in named.items()}
    cells = {key: cell for key, cell in cells.items() if key[1] in columns}
    present = [column for column in columns if any(key[1] == column for key in cells)]
    symbols = tuple(row_symbol(*column) for column in present)
    return TopicTable(symbols, _lines(cells, present), n_keys)


def _lines(
    cells: Mapping[Any, TableCell], columns: Sequence[object]
) -> tuple[tuple[int, Cells], ...]:
    """Return the lines of cells that are known by size and column."""
    return tuple(
        (size, tuple(cells.get((size, column)) for column in columns))
        for size in thin(sorted({int(size) for size, _ in cells}))
    )


def thin(sizes: list[int]) -> list[int]:
    """Keep every second, third... size, counted from the largest."""
    step = -(-len(sizes) // MOST_ROWS)
    return sizes[::-1][::step][::-1] if sizes else []


class SaturatedRow(NamedTuple):
    """What rows of one size come to: a share, then means and medians of gradients.

    ``threshold`` is what the largest weight is at least; None: all rows, divided by
    sqrt(d_k), without a share: the yardstick of what is small.
    """

    d_k: int
    n_keys: int
    threshold: float | None
    cells: Cells


def saturated_rows(measurements: pd.DataFrame) -> list[SaturatedRow]:
    """Pick how many rows are saturated, and how small their gradients are.

    At the sizes of practice that the results have; of the numbers of keys, the
    smallest and the largest are shown.
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
    table = []
    for n_keys, d_k in sorted(sizes):
        for name, threshold in (*SATURATED.items(), ("", None)):
            divisor, suffix = ("none", f"_{name}") if name else ("sqrt", "")
            share = found.get((d_k, n_keys, divisor, name, "mean"))
            given = [
                found.get((d_k, n_keys, divisor, f"{gradient}{suffix}", summary))
                for gradient in GRADIENTS
                for summary in ("mean", "median")
            ]
            table.append(SaturatedRow(d_k, n_keys, threshold, (share, *given)))
    return table


#: What one divisor makes of a row: its symbol as LaTeX, and a cell for each column.
DivisorRow = tuple[str, Cells]


class DivisorTable(NamedTuple):
    """What each divisor makes of a row, at one n and d_k."""

    n_keys: int
    d_k: int
    columns: tuple[str, ...]  # LaTeX
    rows: tuple[DivisorRow, ...]


def divisor_table(
    measurements: pd.DataFrame, curves: pd.DataFrame
) -> DivisorTable | None:
    """Pick the rows of Gaussian queries and keys at one size; None without a grid."""
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
        return None
    n_keys = nearest(keys, N_KEYS) or 0
    d_k = nearest(thin(sorted(common)), DIVISOR_D_K) or 0
    asked = (*RANKS, *BESIDE)
    rows = [
        (name, tuple(cells.get((n_keys, d_k, name, what)) for what in asked))
        for name in DIVISORS
    ]
    columns = [rf"\operatorname{{E}}\, p_{{({rank})}}" for rank in RANKS]
    columns += [
        row_symbol(name, "mean", "none").partition(r"\;\;")[0] for name in BESIDE
    ]
    shown = tuple((divisor_symbol(name), found) for name, found in rows if any(found))
    return DivisorTable(n_keys, d_k, tuple(columns), shown)
