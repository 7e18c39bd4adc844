"""The table of saturated rows: how many there are, and how small their gradients are.

Beside each size stand all rows divided by sqrt(d_k): the yardstick of what is small.
"""

from dataclasses import dataclass

import pandas as pd

from montecarlo.attention.quantities import SATURATED
from montecarlo.report.content.tables.rows import gaussian_rows
from montecarlo.report.content.tables.topics import Cells, read_cells
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
    cells: Cells


def saturated_rows(measurements: pd.DataFrame) -> list[SaturatedRow]:
    """Pick the table at the sizes of practice that the results have.

    Of the numbers of keys, the smallest and the largest are shown.
    """
    rows = gaussian_rows(measurements)
    inside = rows["d_k"].isin(PRACTICE_D_K) & rows["n_keys"].isin(PRACTICE_N_KEYS)
    rows = rows[inside & rows["divisor"].isin(("none", "sqrt"))]
    rows = rows[rows["n_keys"].isin((rows["n_keys"].min(), rows["n_keys"].max()))]
    sizes = sorted(
        {(int(n), int(d)) for d, n in zip(rows["d_k"], rows["n_keys"], strict=True)}
    )
    found = read_cells(
        rows[rows["estimate"].notna()],  # there may be no rows to tell it from
        *("d_k", "n_keys", "divisor", "quantity", "summary"),
    )
    table = []
    for n_keys, d_k in sizes:
        for name, threshold in (*SATURATED.items(), ("", None)):
            divisor, suffix = ("none", f"_{name}") if name else ("sqrt", "")
            share = found.get((d_k, n_keys, divisor, name, "mean"))
            given = [
                found.get((d_k, n_keys, divisor, f"{gradient}{suffix}", summary))
                for gradient in GRADIENTS
                for summary in SUMMARIES
            ]
            table.append(SaturatedRow(d_k, n_keys, threshold, (share, *given)))
    return table
