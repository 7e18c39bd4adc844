"""Which gradient vanishes: four gradients, with and without the divisor."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from montecarlo.report.content.tables.rows import (
    gaussian_rows,
    key_counts,
    nearest,
    with_interval,
)
from montecarlo.report.figures.drawing.palette import (
    DIVISOR_LOOKS,
    GRADIENT_LOOKS,
    INK,
    Dash,
    Look,
)
from montecarlo.report.figures.drawing.panels import (
    WIDTH,
    key_of,
    label_edges,
    legend_above,
    level,
    logarithmic,
    panels,
    plot_estimates,
    plot_line,
    plot_reference,
    powers_of_two,
    symbol_of,
)

QUANTITIES = tuple(GRADIENT_LOOKS)
DIVISORS = ("none", "sqrt")
#: Size of marks in small panels, in points.
MARK = 4.0
PANEL_KEYS = (32, 128, 512)
RATIO_KEYS = 128
#: Quantiles fall far below this; the means would then be flat lines.
LEAST_GRADIENT, MOST_GRADIENT = 1e-4, 6.0
#: Summaries by dash; only the mean has marks and intervals, else nothing can be seen.
DASHES: dict[str, Dash] = {
    "mean": "-",
    "median": (0, (5, 2)),
    "q10": (0, (1.3, 1.5)),
}
SUMMARY_SYMBOLS = {"mean": r"$\mathrm{E}$", "median": "$Q_{0.5}$", "q10": "$Q_{0.1}$"}


def gradient_rows(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the summaries of gradients that panels over d_k are drawn from."""
    rows = gaussian_rows(measurements)
    return rows[
        rows["quantity"].isin(QUANTITIES)
        & rows["divisor"].isin(DIVISORS)
        & rows["summary"].isin(DASHES)
    ]


def build_gradients(
    measurements: pd.DataFrame,
    curves: pd.DataFrame,  # noqa: ARG001 - builders share one signature
) -> Figure | None:
    """Build one row of panels per gradient, one column per n."""
    rows = gradient_rows(measurements)
    counts = key_counts(rows, PANEL_KEYS, len(PANEL_KEYS))
    present = [name for name in QUANTITIES if rows["quantity"].eq(name).any()]
    if not counts or not present:
        return None
    columns = len(counts)
    figure, axes = panels(len(present), columns, 1.75)
    for row, quantity in enumerate(present):
        line = axes[row * columns : (row + 1) * columns]
        mine = rows[rows["quantity"].eq(quantity)]
        for one, n_keys in zip(line, counts, strict=True):
            plot_gradients(one, mine[mine["n_keys"].eq(n_keys)])
            powers_of_two(one, rows["d_k"], columns)
            lowest = row == len(present) - 1
            one.tick_params(bottom=lowest, labelbottom=lowest)
            if row == 0:
                one.set_title(f"$n = {n_keys}$")
        label_edges(line, columns, "", f"${symbol_of(quantity)}$")
    for one in axes[-columns:]:
        one.set_xlabel("$d_k$")
    there = set(rows["divisor"])
    divisors = [key_of(DIVISOR_LOOKS[d], line=True) for d in DIVISORS if d in there]
    legend_above(figure, [*divisors, *_summary_keys()])
    return figure


def plot_gradients(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw mean, median and 10 % quantile of one gradient against d_k.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of one quantity and n of measurements.csv.

    Returns
    -------
    Axes
    """
    for divisor in DIVISORS:
        rows = table[table["divisor"].eq(divisor)]
        look = replace(DIVISOR_LOOKS[divisor], size=MARK)
        for summary, dash in DASHES.items():
            mine = rows[rows["summary"].eq(summary)]
            if mine["reference"].notna().all():
                plot_reference(axes, mine)
            else:
                plot_line(axes, mine, replace(look, dash=dash))
        mean = with_interval(rows[rows["summary"].eq("mean")])
        plot_estimates(axes, mean, look)
    logarithmic(axes, LEAST_GRADIENT, MOST_GRADIENT)
    return axes


def build_gradient_ratio(
    measurements: pd.DataFrame,
    curves: pd.DataFrame,  # noqa: ARG001 - builders share one signature
) -> Figure | None:
    """Build the mean gradients without the divisor over those with it."""
    rows = gaussian_rows(measurements, divisor="none/sqrt", summary="mean")
    rows = with_interval(rows[rows["quantity"].isin(QUANTITIES)])
    n_keys = nearest(key_counts(rows, (RATIO_KEYS,), len(rows)), RATIO_KEYS)
    if n_keys is None:
        return None
    rows = rows[rows["n_keys"].eq(n_keys)]
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    axes = plot_gradient_ratio(figure.subplots(), rows)
    axes.set_title(f"$n = {n_keys}$")
    powers_of_two(axes, rows["d_k"], columns=1)
    present = set(rows["quantity"])
    legend_above(
        figure,
        [key_of(_named(name), line=True) for name in QUANTITIES if name in present],
    )
    return figure


def plot_gradient_ratio(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw ratios of mean gradients against d_k.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of divisor ``none/sqrt`` and of one n of measurements.csv.

    Returns
    -------
    Axes
    """
    level(axes, 1.0)
    for quantity, look in GRADIENT_LOOKS.items():
        rows = table[table["quantity"].eq(quantity)]
        plot_line(axes, rows, look)
        plot_estimates(axes, rows, look)
    logarithmic(axes)
    axes.set_xlabel("$d_k$")
    axes.set_ylabel(r"$\mathrm{E}\,(c=1)\;/\;\mathrm{E}\,(c=\sqrt{d_k})$")
    return axes


def _named(quantity: str) -> Look:
    return replace(GRADIENT_LOOKS[quantity], symbol=f"${symbol_of(quantity)}$")


def _summary_keys() -> list[Line2D]:
    return [
        Line2D([], [], color=INK, linestyle=dash, label=SUMMARY_SYMBOLS[summary])
        for summary, dash in DASHES.items()
    ]
