"""The distribution of the scaled score against the normal one: curves, gaps."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from montecarlo.report.content.tables.rows import (
    FEWEST_POINTS,
    plain_rows,
    with_interval,
)
from montecarlo.report.figures.drawing.palette import (
    BLUE,
    DISTRIBUTION_LOOKS,
    GAUSSIAN_LOOK,
    GREEN,
    INK,
    PURPLE,
    Dash,
)
from montecarlo.report.figures.drawing.panels import (
    in_percent,
    key_of,
    level,
    panels,
    plot_estimates,
    plot_reference,
    powers_of_two,
)
from montecarlo.results.table import SCORE_DISTRIBUTION

#: Colour and dash of the exact curves, by d_k.
CURVES: dict[int, tuple[str, Dash]] = {
    1: (INK, "-"),
    4: (GREEN, (0, (5, 1.6))),
    16: (PURPLE, (0, (5, 1.6, 1.2, 1.6))),
    64: (BLUE, (0, (1.4, 1.2))),
}
DISTRIBUTIONS = {"gaussian": GAUSSIAN_LOOK, **DISTRIBUTION_LOOKS}
MARK = 4.5


def gap_rows(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the gaps that are drawn, of q and k of one distribution."""
    rows = plain_rows(measurements, quantity="score_distribution_gap")
    rows = rows[
        rows["distribution_q"].eq(rows["distribution_k"])
        & rows["distribution_q"].isin(DISTRIBUTIONS)
    ]
    return with_interval(rows)


def build_score_distribution(
    measurements: pd.DataFrame,
    curves: pd.DataFrame,
) -> Figure | None:
    """Build distribution functions less the normal one, and gaps against d_k."""
    rows = gap_rows(measurements)
    if rows[rows["distribution_q"].eq("gaussian")]["d_k"].nunique() < FEWEST_POINTS:
        return None
    figure, (left, right) = panels(1, 2, 2.9)
    plot_curves(left, curves[curves["curve"].eq(SCORE_DISTRIBUTION)])
    plot_gaps(right, rows)
    powers_of_two(right, rows["d_k"], columns=2)
    lines = [
        Line2D([], [], color=colour, linestyle=dash, label=f"$d_k = {d_k}$")
        for d_k, (colour, dash) in CURVES.items()
    ]
    present = [
        look
        for distribution, look in DISTRIBUTIONS.items()
        if distribution in set(rows["distribution_q"])
    ]
    figure.legend(handles=lines, loc="outside upper center", ncols=len(lines))
    figure.legend(
        handles=[key_of(look) for look in present],
        loc="outside lower center",
        ncols=len(present),
        columnspacing=1.0,
        handlelength=1.0,
    )
    return figure


def plot_curves(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw the exact distribution function less the normal one, for Gaussian entries.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of curves.csv: ``d_k``, ``x`` and ``estimate``.

    Returns
    -------
    Axes
    """
    level(axes, 0.0)
    for d_k, (colour, dash) in CURVES.items():
        rows = table[table["d_k"].eq(d_k)]
        axes.plot(
            rows["x"], rows["estimate"], color=colour, linestyle=dash, linewidth=1.4
        )
    in_percent(axes)
    axes.set_xlabel("$x$")
    axes.set_ylabel(r"$F(x) - \Phi(x)\;/\;\%$")
    axes.set_xticks((-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0))
    return axes


def plot_gaps(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw the size of the measured gap at one place against d_k.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of ``score_distribution_gap`` with bounded intervals.

    Returns
    -------
    Axes
    """
    level(axes, 0.0)
    for distribution, look in DISTRIBUTIONS.items():
        rows = table[table["distribution_q"].eq(distribution)]
        plot_reference(axes, rows)
        if len(rows):
            plot_estimates(axes, rows, replace(look, size=MARK))
    in_percent(axes)
    axes.set_xlabel("$d_k$")
    axes.set_ylabel(r"$F(x^{\ast}) - \Phi(x^{\ast})\;/\;\%$")
    return axes
