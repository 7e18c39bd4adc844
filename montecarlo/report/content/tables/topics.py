"""The table of each topic: a few rows of measurements.csv, picked and never changed."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from montecarlo.attention.divisors import DIVISORS
from montecarlo.report.content.tables.rows import (
    gaussian_rows,
    largest_scores,
    saturation_cells,
)
from montecarlo.report.language.symbols import row_symbol

#: Rows of a topic's table at most: every d_k of a fine grid would be too many.
MOST_ROWS = 8
#: Number of keys that the tables of rows are made for, where the grid has it.
N_KEYS = 128
#: d_k that the table of initialisations is made for.
AUDIT_D_K = 64


@dataclass(frozen=True, slots=True)
class TableCell:
    """One estimate of a table, with the exact value where there is one."""

    value: float
    error: float | None = None
    row: str = ""
    reference: float | None = None


#: The cells of a line of a table, one a column; None where one is missing.
Cells = tuple[TableCell | None, ...]


@dataclass(frozen=True, slots=True)
class TopicTable:
    """Columns as LaTeX, or as names of number formats, and a line for each size."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, Cells], ...]  # each with its d_k, or its number of keys
    n_keys: int | None = None  # of all rows
    head: str = "d_k"  # what the rows are of, as LaTeX


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
    for row in largest_scores(measurements).to_dict("records"):
        mean, n_keys = read_cell(row), int(row["n_keys"])
        limit = math.sqrt(2.0 * math.log(n_keys))
        ratio = limit / mean.value
        error = None if mean.error is None else ratio * mean.error / mean.value
        rows.append((n_keys, (mean, TableCell(limit), TableCell(ratio, error))))
    mean_symbol = row_symbol("score_max", "mean", "sqrt")
    limit_symbol = r"\sqrt{2\ln n}"
    ratio_symbol = rf"{limit_symbol}\,/\operatorname{{E}}\, s_{{\max}}"
    columns = (mean_symbol, limit_symbol, ratio_symbol)
    return TopicTable(columns, tuple(rows), head="n")


def tail_table(measurements: pd.DataFrame) -> TopicTable:
    """Pick the overflow probabilities of single scores, one column a number format."""
    tails = measurements[measurements["quantity"] == "overflow_probability"]
    formats = tuple(tails["number_format"].unique())
    return TopicTable(
        formats, _lines(read_cells(tails, "d_k", "number_format"), formats)
    )


@dataclass(frozen=True, slots=True)
class AuditRow:
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
    """Turn a line of measurements.csv, or of curves.csv, into a cell."""
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
