"""The table of each topic: a few rows of measurements.csv, picked and never changed."""

import math
from collections.abc import Hashable, Sequence
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
    error: float | None
    reference: float | None
    row: str


@dataclass(frozen=True, slots=True)
class TopicTable:
    """Columns as LaTeX, and for each size one cell a column (None where missing)."""

    columns: tuple[str, ...]
    #: Each with its d_k, or its number of keys.
    rows: tuple[tuple[int, tuple[TableCell | None, ...]], ...]
    #: The number of keys of all rows, None where they have several or none.
    n_keys: int | None
    head: str = "d_k"  # what the rows are of, as LaTeX


def topic_tables(measurements: pd.DataFrame) -> dict[str, TopicTable]:
    """Pick the tables of all topics.

    Parameters
    ----------
    measurements : DataFrame
        measurements.csv.

    Returns
    -------
    dict
        Topic to its table; topics that the results have no rows for are left out.
    """
    gaussian = gaussian_rows(measurements)
    pairs = gaussian[gaussian["n_keys"].isna()]
    sizes = sorted(gaussian["n_keys"].dropna().unique())
    tables = {}
    variance = [("score_variance", "value", divisor) for divisor in DIVISORS]
    tables["variance"] = _table(pairs, variance, None)
    if sizes:
        n_keys = int(min(sizes, key=lambda n: abs(n - N_KEYS)))
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
    return {topic: table for topic, table in tables.items() if table.rows}


def saturation_table(measurements: pd.DataFrame) -> TopicTable:
    """Pick the mean largest weights of undivided rows, one column for each n."""
    rows = saturation_cells(measurements)
    rows = rows[rows["divisor"] == "none"]
    cells = {
        (int(row["d_k"]), int(row["n_keys"])): read_cell(row)
        for row in rows.to_dict("records")
    }
    sizes = thinned(sorted({n_keys for _, n_keys in cells}))
    return TopicTable(
        tuple(f"n = {n_keys}" for n_keys in sizes),
        tuple(
            (d_k, tuple(cells.get((d_k, n_keys)) for n_keys in sizes))
            for d_k in thinned(sorted({d_k for d_k, _ in cells}))
        ),
        None,
    )


def largest_score_table(measurements: pd.DataFrame) -> TopicTable:
    """Set the mean largest scaled score beside sqrt(2 ln n), one row for each n."""
    rows = []
    for row in largest_scores(measurements).to_dict("records"):
        mean, n_keys = read_cell(row), int(row["n_keys"])
        limit = math.sqrt(2.0 * math.log(n_keys))
        ratio = limit / mean.value
        error = None if mean.error is None else ratio * mean.error / mean.value
        cells = (
            mean,
            TableCell(limit, None, None, ""),
            TableCell(ratio, error, None, ""),
        )
        rows.append((n_keys, cells))
    mean_symbol = row_symbol("score_max", "mean", "sqrt")
    limit_symbol = r"\sqrt{2\ln n}"
    ratio_symbol = rf"{limit_symbol}\,/\operatorname{{E}}\, s_{{\max}}"
    columns = (mean_symbol, limit_symbol, ratio_symbol)
    return TopicTable(columns, tuple(rows), None, "n")


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One initialisation."""

    initialisation: str
    entry: TableCell
    score: TableCell
    frozen_below: float


def audit_table(measurements: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pick entry and scaled score variances of every initialisation, at one d_k.

    Parameters
    ----------
    measurements : DataFrame
        measurements.csv.

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


@dataclass(frozen=True, slots=True)
class TailTable:
    """Overflow probabilities: formats as columns, one line for each d_k."""

    formats: tuple[str, ...]
    rows: tuple[tuple[int, tuple[TableCell | None, ...]], ...]


def tail_table(measurements: pd.DataFrame) -> TailTable | None:
    """Pick the overflow probabilities of single scores, None where there are none."""
    tails = measurements[measurements["quantity"] == "overflow_probability"]
    if tails.empty:
        return None
    cells = {
        (int(row["d_k"]), row["number_format"]): read_cell(row)
        for row in tails.to_dict("records")
    }
    formats = tuple(tails["number_format"].unique())
    sizes = sorted({d_k for d_k, _ in cells})
    return TailTable(
        formats, tuple((d, tuple(cells.get((d, f)) for f in formats)) for d in sizes)
    )


def read_cell(row: dict[Hashable, Any]) -> TableCell:
    """Turn a row of measurements.csv into a cell, its exact value included."""
    return TableCell(
        row["estimate"],
        None if pd.isna(row["std_error"]) else row["std_error"],
        None if pd.isna(row["reference"]) else row["reference"],
        row["row_id"],
    )


def _table(
    rows: pd.DataFrame, columns: Sequence[tuple[str, str, str]], n_keys: int | None
) -> TopicTable:
    cells: dict[tuple[int, tuple[str, str, str]], TableCell] = {}
    for row in rows.to_dict("records"):
        key = (row["quantity"], row["summary"], row["divisor"])
        if key in columns:
            cells[int(row["d_k"]), key] = read_cell(row)
    present = [c for c in columns if any(key == c for _, key in cells)]
    sizes = sorted({d_k for d_k, _ in cells})
    return TopicTable(
        tuple(row_symbol(*column) for column in present),
        tuple(
            (d_k, tuple(cells.get((d_k, column)) for column in present))
            for d_k in thinned(sizes)
        ),
        n_keys,
    )


def thinned(sizes: list[int]) -> list[int]:
    """Keep every second, third... size, counted from the largest."""
    step = -(-len(sizes) // MOST_ROWS)
    return sizes[::-1][::step][::-1] if sizes else []
