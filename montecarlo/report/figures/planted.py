"""The planted key: what each divisor leaves of it, by how far query and key agree."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from montecarlo.report.content.tables.rows import FEWEST_POINTS, with_interval
from montecarlo.report.figures.drawing.palette import DIVISOR_LOOKS
from montecarlo.report.figures.drawing.panels import (
    key_of,
    label_edges,
    legend_above,
    panels,
    plot_estimates,
    plot_line,
    powers_of_two,
    symbol_of,
)
from montecarlo.sampling.dependence import parse_dependence

QUANTITIES = ("planted_weight", "planted_rank_first")
MOST_COLUMNS = 3
MARK = 4.5


def planted_rows(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return mean weights and ranks of planted keys, with ``alignment``.

    Parameters
    ----------
    measurements : DataFrame
        measurements.csv.

    Returns
    -------
    DataFrame
        Rows of the number of keys that has most of them, one alignment after another.
    """
    names = measurements["dependence"]
    rows = measurements[
        names.str.startswith("planted")
        & measurements["quantity"].isin(QUANTITIES)
        & measurements["summary"].eq("mean")
        & measurements["divisor"].isin(DIVISOR_LOOKS)
    ]
    rows = with_interval(rows)
    if rows.empty:
        return rows.assign(alignment=0.0)
    rows = rows[rows["n_keys"].eq(rows["n_keys"].mode().max())]
    alignment = [parse_dependence(name).rho for name in rows["dependence"]]
    return rows.assign(alignment=alignment).sort_values(["alignment", "d_k"])


def build_planted(
    measurements: pd.DataFrame,
    curves: pd.DataFrame,  # noqa: ARG001 - builders share one signature
) -> Figure | None:
    """Build one column of panels for each alignment: weight above, rank below."""
    rows = planted_rows(measurements)
    sizes = rows.groupby("alignment")["d_k"].nunique()
    shown = [a for a in sizes.index if sizes[a] >= FEWEST_POINTS][-MOST_COLUMNS:]
    if not shown:
        return None
    columns = len(shown)
    figure, axes = panels(len(QUANTITIES), columns, 2.2)
    for place, quantity in enumerate(QUANTITIES):
        line = axes[place * columns : (place + 1) * columns]
        for one, alignment in zip(line, shown, strict=True):
            mine = rows[rows["alignment"].eq(alignment)]
            plot_planted(one, mine[mine["quantity"].eq(quantity)])
            powers_of_two(one, rows["d_k"], columns)
            if place == 0:
                one.set_title(rf"$\rho = {alignment:g}$")
                one.tick_params(bottom=False, labelbottom=False)
        label_edges(line, columns, "", rf"$\mathrm{{E}}\,{symbol_of(quantity)}$")
    axes[columns].set_ylabel(r"$P(p_{\ast} = p_{\max})$")
    for one in axes[-columns:]:
        one.set_xlabel("$d_k$")
    present = set(rows["divisor"])
    legend_above(
        figure,
        [key_of(look, line=True) for d, look in DIVISOR_LOOKS.items() if d in present],
    )
    return figure


def plot_planted(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw one mean of the planted key against d_k, for each divisor.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of one quantity and alignment of measurements.csv.

    Returns
    -------
    Axes
        Ranks are the same for every divisor, so that marks cover each other.
    """
    for divisor, look in DIVISOR_LOOKS.items():
        rows = table[table["divisor"].eq(divisor)]
        if len(rows):
            plot_line(axes, rows, look)
            plot_estimates(axes, rows, replace(look, size=MARK))
    axes.set_ylim(-0.04, 1.06)
    axes.set_yticks((0.0, 0.5, 1.0), ("0", "0.5", "1"))
    return axes
