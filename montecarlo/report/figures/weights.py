"""What softmax makes of the scores: weights by rank, effective keys, largest weight."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from montecarlo.claims.yardsticks import BALANCED, NEAR_UNIFORM, ONE_HOT
from montecarlo.report.content.tables.rows import (
    gaussian_rows,
    key_counts,
    nearest,
    with_interval,
)
from montecarlo.report.figures.drawing.palette import DIVISOR_LOOKS, INK, MUTED, Look
from montecarlo.report.figures.drawing.panels import (
    LIMIT_DASH,
    LIMIT_WIDTH,
    key_of,
    label_edges,
    legend_above,
    level,
    logarithmic,
    panels_for,
    plot_estimates,
    plot_line,
    powers_of_two,
)

Plot = Callable[[Axes, pd.DataFrame], Axes]
#: Panels of weights by rank, where the grid has them.
RANK_KEYS = 128
RANK_D_K = (16, 64, 256, 1024)
#: Mean weights below this are cut off: they are nobody's concern.
LEAST_WEIGHT = 1e-6
#: A standard error times this is half a pointwise 95 % interval.
NORMAL_95 = 1.96
#: Panels over d_k, where the grid has them.
PANEL_KEYS = (8, 32, 128, 512)
MOST_PANELS = 4


def rank_rows(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the mean weights by rank that are drawn: of one n, the nearest to 128."""
    rows = gaussian_rows(curves, curve="weight_by_rank")
    n_keys = nearest(rows["n_keys"].dropna(), RANK_KEYS)
    return rows[rows["n_keys"].eq(n_keys or 0) & rows["d_k"].isin(RANK_D_K)]


def effective_key_rows(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the mean effective keys of rows of Gaussian entries."""
    return gaussian_rows(measurements, quantity="effective_keys", summary="mean")


def weight_max_rows(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return all summaries of the largest weight, unscaled and by sqrt(d_k)."""
    rows = gaussian_rows(measurements, quantity="weight_max")
    return rows[rows["divisor"].isin(("none", "sqrt"))]


def build_weights_by_rank(
    measurements: pd.DataFrame,  # noqa: ARG001 - builders share one signature
    curves: pd.DataFrame,
) -> Figure | None:
    """Build the mean weight of the key at each rank, one panel per d_k."""
    rows = rank_rows(curves)
    d_ks = [d_k for d_k in RANK_D_K if rows["d_k"].eq(d_k).any()]
    if not d_ks:
        return None
    n_keys = int(rows["n_keys"].iloc[0])
    columns = min(2, len(d_ks))
    figure, axes = panels_for(len(d_ks), columns, 2.5)
    for one, d_k in zip(axes, d_ks, strict=True):
        plot_weights_by_rank(one, rows[rows["d_k"].eq(d_k)])
        powers_of_two(one, rows["x"], columns)
        one.set_title(f"$n = {n_keys}$,  $d_k = {d_k}$")
    label_edges(axes, columns, "$r$", r"$\mathrm{E}\,p_{(r)}$")
    legend_above(figure, _divisor_keys(rows))
    return figure


def plot_weights_by_rank(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw mean weights against rank, with the equal weight 1/n as a line.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of curves.csv of one n and d_k: ``n_keys``, ``divisor``, ``x``,
        ``estimate``, ``std_error``.

    Returns
    -------
    Axes
    """
    for divisor, look in DIVISOR_LOOKS.items():
        rows = table[table["divisor"].eq(divisor)].sort_values("x")
        rows = rows[rows["estimate"].ge(LEAST_WEIGHT / 10.0)]
        half = NORMAL_95 * rows["std_error"].to_numpy()
        # A logarithmic axis has no place for a bar that reaches 0.
        least = np.minimum(half, 0.9 * rows["estimate"].to_numpy())
        axes.errorbar(
            rows["x"],
            rows["estimate"],
            (least, half),
            color=look.colour,
            marker=look.marker,
            markersize=4.0,
            linewidth=1.2,
        )
    if len(table):
        level(axes, 1.0 / float(table["n_keys"].iloc[0]))
    logarithmic(axes, LEAST_WEIGHT, 1.6)
    return axes


def build_effective_keys(
    measurements: pd.DataFrame,
    curves: pd.DataFrame,  # noqa: ARG001 - builders share one signature
) -> Figure | None:
    """Build the part of the keys that a row attends to, one panel per n."""
    rows = effective_key_rows(measurements)
    figure = _panels_by_keys(rows, plot_effective_keys, r"$\mathrm{E}\,e^H/\,n$")
    if figure is not None:
        legend_above(figure, _divisor_keys(rows))
    return figure


def plot_effective_keys(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw effective keys over n against d_k, with the balanced band and 2 ln n.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of one n of measurements.csv.

    Returns
    -------
    Axes
    """
    n_keys = float(table["n_keys"].iloc[0])
    columns = ["estimate", "ci_low", "ci_high"]
    table = table.assign(**{name: table[name] / n_keys for name in columns})
    axes.axhspan(
        BALANCED, NEAR_UNIFORM, color=MUTED, alpha=0.13, linewidth=0.0, zorder=0.5
    )
    axes.axvline(
        2.0 * np.log(n_keys),
        color=INK,
        linewidth=LIMIT_WIDTH,
        linestyle=LIMIT_DASH,
        zorder=1.5,
    )
    for divisor, look in DIVISOR_LOOKS.items():
        rows = table[table["divisor"].eq(divisor)]
        plot_line(axes, rows, look)
        plot_estimates(axes, rows, look)
    _unit_interval(axes)
    return axes


def build_weight_max(
    measurements: pd.DataFrame,
    curves: pd.DataFrame,  # noqa: ARG001 - builders share one signature
) -> Figure | None:
    """Build the median of the largest weight between its outer tenths, per n."""
    rows = weight_max_rows(measurements)
    if set(rows["summary"]).isdisjoint({"median"}):
        return None
    figure = _panels_by_keys(rows, plot_weight_max, r"$Q_{0.5}\,(p_{\max})$")
    if figure is not None:
        legend_above(figure, _divisor_keys(rows))
    return figure


def plot_weight_max(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw the median of the largest weight and the band from q10 to q90.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of one n of measurements.csv, summaries ``median``, ``q10``, ``q90``.

    Returns
    -------
    Axes
    """
    level(axes, ONE_HOT)
    for divisor, look in DIVISOR_LOOKS.items():
        rows = table[table["divisor"].eq(divisor)]
        if rows.empty:
            continue
        _plot_band(axes, rows, look)
        median = rows[rows["summary"].eq("median")]
        plot_line(axes, median, look)
        plot_estimates(axes, median, look)
    _unit_interval(axes)
    return axes


def _plot_band(axes: Axes, rows: pd.DataFrame, look: Look) -> None:
    wide = rows.pivot_table(index="d_k", columns="summary", values="estimate")
    if {"q10", "q90"} <= set(wide.columns):
        axes.fill_between(
            wide.index,
            wide["q10"],
            wide["q90"],
            color=look.colour,
            alpha=0.2,
            linewidth=0.0,
        )


def _panels_by_keys(rows: pd.DataFrame, plot: Plot, y: str) -> Figure | None:
    """Build one panel over d_k for each n; None without any."""
    rows = with_interval(rows)
    counts = key_counts(rows, PANEL_KEYS, MOST_PANELS)
    if not counts:
        return None
    columns = min(2, len(counts))
    figure, axes = panels_for(len(counts), columns, 2.4)
    for one, n_keys in zip(axes, counts, strict=True):
        mine = rows[rows["n_keys"].eq(n_keys)]
        plot(one, mine)
        powers_of_two(one, rows["d_k"], columns)
        one.set_title(f"$n = {n_keys}$")
    label_edges(axes, columns, "$d_k$", y)
    return figure


def _unit_interval(axes: Axes) -> None:
    axes.set_ylim(-0.03, 1.05)
    axes.set_yticks((0.0, 0.25, 0.5, 0.75, 1.0), ("0", "", "0.5", "", "1"))


def _divisor_keys(rows: pd.DataFrame) -> list[Line2D]:
    present = set(rows["divisor"])
    looks = [look for name, look in DIVISOR_LOOKS.items() if name in present]
    return [key_of(look, line=True) for look in looks]
