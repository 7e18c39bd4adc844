"""What softmax makes of the scores: weights by rank, effective keys, largest weight."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.claims.yardsticks import BALANCED, NEAR_UNIFORM, ONE_HOT
from montecarlo.report.content.tables.rows import (
    gaussian_rows,
    key_counts,
    with_interval,
)
from montecarlo.report.figures.captions.picking import (
    at_nearest,
    gaussian_panel,
    pair,
    pick_two,
)
from montecarlo.report.figures.drawing.palette import DIVISOR_LOOKS, INK, MUTED, Look
from montecarlo.report.figures.drawing.panels import (
    LIMIT_DASH,
    LIMIT_WIDTH,
    keys_of,
    legend_above,
    level,
    logarithmic,
    plot_estimates,
    plot_line,
    plot_panels,
    plot_series,
    rescale,
)
from montecarlo.report.figures.drawing.specs import Fact, FigureSpec, message

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


def rank_rows(_: DataFrame, curves: DataFrame) -> DataFrame:
    """Return the mean weights by rank that are drawn: of one n, the nearest to 128."""
    rows = at_nearest(
        gaussian_rows(curves, curve="weight_by_rank"), "n_keys", RANK_KEYS
    )
    return rows[rows["d_k"].isin(RANK_D_K)]


def effective_key_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return the mean effective keys of rows of Gaussian entries."""
    return gaussian_rows(measurements, quantity="effective_keys", summary="mean")


def weight_max_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return all summaries of the largest weight, unscaled and by sqrt(d_k)."""
    rows = gaussian_rows(measurements, quantity="weight_max")
    return rows[rows["divisor"].isin(("none", "sqrt"))]


def build_weights_by_rank(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build the mean weight of the key at each rank, one panel per d_k."""
    rows = rank_rows(measurements, curves)
    parts = [
        (f"$n = {n_keys:.0f}$,  $d_k = {d_k:.0f}$", mine)
        for (n_keys, d_k), mine in rows.groupby(["n_keys", "d_k"])
    ]
    if not parts:
        return None
    figure = plot_panels(
        plot_weights_by_rank,
        parts,
        rows["x"],
        [r"$\mathrm{E}\,p_{(r)}$"] * len(parts),
        columns=2,
        height=2.5,
        x="$r$",
    )
    legend_above(figure, keys_of(DIVISOR_LOOKS, rows["divisor"], line=True))
    return figure


def plot_weights_by_rank(axes: Axes, table: DataFrame) -> Axes:
    """Draw mean weights of one n and d_k against rank, and the equal weight 1/n."""
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


def pick_first_ranks(measurements: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the mean largest weights under two divisors, at the largest d_k drawn."""
    rows = rank_rows(measurements, curves)
    first = rows[rows["x"].eq(1.0)]
    first = first[first["d_k"].eq(first["d_k"].max())]
    none, root = (first[first["divisor"].eq(name)] for name in ("none", "sqrt"))
    if none.empty or root.empty:
        return None
    return pair(none, root, d_k=first["d_k"].iloc[0])


def build_effective_keys(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build the part of the keys that a row attends to, one panel per n."""
    rows = effective_key_rows(measurements, curves)
    return _build_by_keys(rows, plot_effective_keys, r"$\mathrm{E}\,e^H/\,n$")


def plot_effective_keys(axes: Axes, table: DataFrame) -> Axes:
    """Draw effective keys over one n against d_k, with the balanced band and 2 ln n."""
    n_keys = float(table["n_keys"].iloc[0])
    table = rescale(table, lambda keys: keys / n_keys)
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
    plot_series(axes, table, "divisor", DIVISOR_LOOKS, plot_line, plot_estimates)
    return _set_unit_interval(axes)


def pick_effective_keys(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the mean effective keys over n under two divisors."""
    rows = gaussian_panel(measurements)
    rows = rescale(rows, lambda keys: keys / rows["n_keys"])
    return pick_two(
        rows, ("effective_keys", "mean", "none"), ("effective_keys", "mean", "sqrt")
    )


def build_weight_max(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build the median of the largest weight between its outer tenths, per n."""
    rows = weight_max_rows(measurements, curves)
    if not rows["summary"].eq("median").any():
        return None
    return _build_by_keys(rows, _plot_weight_max, r"$Q_{0.5}\,(p_{\max})$")


def _plot_weight_max(axes: Axes, table: DataFrame) -> Axes:
    """Draw the median of the largest weight and the band from q10 to q90."""
    level(axes, ONE_HOT)
    looks = DIVISOR_LOOKS
    plot_series(axes, table, "divisor", looks, _plot_band)
    median = table[table["summary"].eq("median")]
    plot_series(axes, median, "divisor", looks, plot_line, plot_estimates)
    return _set_unit_interval(axes)


def _plot_band(axes: Axes, rows: DataFrame, look: Look) -> Axes:
    wide = rows.pivot_table(
        index="d_k", columns="summary", values="estimate", dropna=False
    )
    if {"q10", "q90"} <= set(wide.columns):
        axes.fill_between(
            wide.index,
            wide["q10"],
            wide["q90"],
            color=look.colour,
            alpha=0.2,
            linewidth=0.0,
        )
    return axes


def pick_weight_max(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the median largest weight under two divisors."""
    rows = gaussian_panel(measurements)
    return pick_two(
        rows, ("weight_max", "median", "none"), ("weight_max", "median", "sqrt")
    )


def _build_by_keys(
    drawn: DataFrame, plot: Callable[[Axes, DataFrame], Axes], y: str
) -> Figure | None:
    """Build one panel over d_k for each n; None without any."""
    counts = key_counts(with_interval(drawn), PANEL_KEYS, MOST_PANELS)
    if not counts:
        return None
    parts = [(f"$n = {n}$", drawn[drawn["n_keys"].eq(n)]) for n in counts]
    figure = plot_panels(
        plot, parts, drawn["d_k"], [y] * len(parts), columns=2, height=2.4
    )
    legend_above(figure, keys_of(DIVISOR_LOOKS, drawn["divisor"], line=True))
    return figure


def _set_unit_interval(axes: Axes) -> Axes:
    axes.set_ylim(-0.03, 1.05)
    axes.set_yticks((0.0, 0.25, 0.5, 0.75, 1.0), ("0", "", "0.5", "", "1"))
    return axes


WEIGHTS_BY_RANK = FigureSpec(
    "weights-by-rank",
    build_weights_by_rank,
    "weights of a row from the largest down",
    section="weights",
    caption=message(
        "Mean weight of the key at each rank of a row of $n$ keys, from the largest "
        "down, for several divisors. Horizontal line: $1/n$."
    ),
    alternative=message(
        "At d_k = %(d_k)s the largest weight of a row is %(first)s on average unscaled "
        "and %(second)s divided by √d_k."
    ),
    named=("weight_max_unscaled", "weight_max_scaled"),
    fact=pick_first_ranks,
    series={"divisors": rank_rows},
)
EFFECTIVE_KEYS = FigureSpec(
    "effective-keys",
    build_effective_keys,
    "keys that a row spreads over, against d_k",
    section="weights",
    caption=message(
        "Effective keys as a part of $n$, against $d_k$, for several $n$ and several "
        r"divisors. Bars: pointwise $95\,\%%$ intervals. Shaded: what counts as "
        r"balanced here. Vertical line: $d_k = 2\ln n$, beyond which unscaled "
        "attention saturates in the limit of large $n$."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s a row uses %(first)s of its keys unscaled and "
        "%(second)s divided by √d_k."
    ),
    named=("effective_keys_share_unscaled", "effective_keys_share_scaled"),
    fact=pick_effective_keys,
    series={"divisors": effective_key_rows},
)
WEIGHT_MAX = FigureSpec(
    "weight-max",
    build_weight_max,
    "largest weight of a row, against d_k",
    section="weights",
    caption=message(
        "The largest weight of a row against $d_k$, unscaled and divided by "
        r"$\sqrt{d_k}$: median, and the range from the $10\,\%%$ to the $90\,\%%$ "
        "quantile. Horizontal line: what counts as one-hot here."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s the median of the largest weight is %(first)s "
        "unscaled and %(second)s divided by √d_k."
    ),
    named=("weight_max_median_unscaled", "weight_max_median_scaled"),
    fact=pick_weight_max,
    series={"divisors": weight_max_rows},
)
