"""Values to try: for each d_k and n what each divisor makes of a row, as measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from montecarlo.attention.divisors import DIVISORS
from montecarlo.report.content.tables.rows import FEWEST_POINTS, gaussian_rows, nearest
from montecarlo.report.content.tables.topics import (
    N_KEYS,
    Cells,
    TableCell,
    read_cells,
    thin,
)
from montecarlo.report.language.symbols import divisor_symbol, row_symbol

#: Ranks whose mean weights are shown, the largest first.
RANKS = (1, 2)
#: Quantities beside them, by their means.
QUANTITIES = ("entropy", "jacobian_frobenius", "gradient_query")
#: What is shown first, where the grid has it.
FIRST_D_K = 64
#: So many numbers of keys, the largest of the grid.
MOST_KEYS = 3


#: What one divisor makes of a row: its symbol as LaTeX, and a cell for each column.
DivisorRow = tuple[str, Cells]


@dataclass(frozen=True, slots=True)
class Explorer:
    """Rows by n, then by d_k."""

    columns: tuple[str, ...]  # LaTeX
    tables: tuple[tuple[int, tuple[tuple[int, tuple[DivisorRow, ...]], ...]], ...]
    first: tuple[int, int]  # the n and d_k to begin with
    dimensions: tuple[int, ...]  # every d_k; each n has all of them


def read_explorer(measurements: pd.DataFrame, curves: pd.DataFrame) -> Explorer | None:
    """Pick the rows of the grid of Gaussian queries and keys; None without several."""
    cells = {**_weights(curves), **_means(measurements)}
    sizes: dict[int, set[int]] = {}
    for n_keys, d_k, *_ in cells:
        sizes.setdefault(int(n_keys), set()).add(int(d_k))
    most = max((len(found) for found in sizes.values()), default=0)
    # an n with far fewer d_k stands apart from the grid: an edge of it
    keys = [n for n in sorted(sizes) if len(sizes[n]) > most / 2][-MOST_KEYS:]
    common = set.intersection(*(sizes[n] for n in keys)) if keys else set()
    if len(common) < FEWEST_POINTS:
        return None
    shown = thin(sorted(common))
    tables = tuple(
        (n, tuple((d_k, _rows(cells, n, d_k)) for d_k in shown)) for n in keys
    )
    first = (nearest(keys, N_KEYS) or 0, nearest(shown, FIRST_D_K) or 0)
    columns = [rf"\operatorname{{E}}\, p_{{({rank})}}" for rank in RANKS]
    columns += [
        row_symbol(name, "mean", "none").partition(r"\;\;")[0] for name in QUANTITIES
    ]
    return Explorer(tuple(columns), tables, first, tuple(shown))


def _weights(curves: pd.DataFrame) -> dict[Any, TableCell]:
    """Pick mean weights by n, d_k, divisor and rank."""
    rows = gaussian_rows(curves, curve="weight_by_rank")
    return read_cells(rows[rows["x"].isin(RANKS)], "n_keys", "d_k", "divisor", "x")


def _means(measurements: pd.DataFrame) -> dict[Any, TableCell]:
    """Pick mean quantities by n, d_k, divisor and name."""
    rows = gaussian_rows(measurements, summary="mean")
    rows = rows[rows["quantity"].isin(QUANTITIES) & rows["divisor"].isin(DIVISORS)]
    return read_cells(rows, "n_keys", "d_k", "divisor", "quantity")


def _rows(cells: Mapping[Any, TableCell], n: int, d_k: int) -> tuple[DivisorRow, ...]:
    """Return a row for each divisor that there is anything of."""
    rows = [
        (
            divisor_symbol(name),
            tuple(cells.get((n, d_k, name, what)) for what in (*RANKS, *QUANTITIES)),
        )
        for name in DIVISORS
    ]
    return tuple(row for row in rows if any(row[1]))
