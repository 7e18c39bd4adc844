"""The table of saturated rows: how many there are, and how small their gradients are.

Beside each size stand all rows divided by sqrt(d_k): the yardstick of what is small.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from montecarlo.attention.rows import SATURATED
from montecarlo.report.content.tables.rows import gaussian_rows
from montecarlo.report.content.tables.topics import TableCell, read_cell
from montecarlo.study.presets import PRACTICE_D_K, PRACTICE_N_KEYS

#: Gradients whose means and medians are shown.
GRADIENTS = ("jacobian_trace", "jacobian_frobenius", "gradient_query")
SUMMARIES = ("mean", "median")


@dataclass(frozen=True, slots=True)
class SaturatedRow:
    """What rows of one size come to: a share, then means and medians of gradients.

    ``threshold`` is what the largest weight is at least; None: all rows, divided by
    sqrt(d_k), without a share.
    """

    d_k: int
    n_keys: int
    threshold: float | None
    cells: tuple[TableCell | None, ...]


def saturated_rows(measurements: pd.DataFrame) -> list[SaturatedRow]:
    """Pick the table at the sizes of practice that the results have.

    Parameters
    ----------
    measurements : DataFrame
        measurements.csv.
    """
    rows = gaussian_rows(measurements)
    inside = rows["d_k"].isin(PRACTICE_D_K) & rows["n_keys"].isin(PRACTICE_N_KEYS)
    found = {
        (int(r["d_k"]), int(r["n_keys"]), r["divisor"], r["quantity"], r["summary"]): r
        for r in rows[inside & rows["divisor"].isin(("none", "sqrt"))].to_dict(
            "records"
        )
    }
    sizes = sorted({(n_keys, d_k) for d_k, n_keys, *_ in found})
    table = []
    for n_keys, d_k in sizes:
        place = d_k, n_keys
        for name, threshold in SATURATED.items():
            share = _cell(found, (*place, "none", name, "mean"))
            given = [
                _cell(found, (*place, "none", f"{gradient}_{name}", summary))
                for gradient in GRADIENTS
                for summary in SUMMARIES
            ]
            table.append(SaturatedRow(*place, threshold, (share, *given)))
        scaled = [
            _cell(found, (*place, "sqrt", gradient, summary))
            for gradient in GRADIENTS
            for summary in SUMMARIES
        ]
        table.append(SaturatedRow(*place, None, (None, *scaled)))
    return table


def _cell(
    found: Mapping[tuple[int, int, str, str, str], dict[Hashable, Any]],
    key: tuple[int, int, str, str, str],
) -> TableCell | None:
    """Return a cell; None where there are no rows to tell it from."""
    row = found.get(key)
    return None if row is None or pd.isna(row["estimate"]) else read_cell(row)
