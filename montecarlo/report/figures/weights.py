"""What softmax makes of the scores: weights by rank, effective keys, largest weight.

And what becomes of a planted key, by how far query and key agree.
"""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.claims.yardsticks import BALANCED, NEAR_UNIFORM, ONE_HOT
from montecarlo.report.content.tables.rows import (
    FEWEST_POINTS,
    gaussian_rows,
    key_counts,
    with_interval,
)
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.palette import (
    DIVISOR_LOOKS,
    INK,
    MUTED,
    Look,
    resize,
)
from montecarlo.report.figures.specs import (
    Fact,
    FigureSpec,
    at_nearest,
    message,
    panel_of,
    pick_two,
)
from montecarlo.sampling.design_points import parse_dependence

# --- Weights of a row from the largest down -----------------------------------------

#: Panels of weights by rank, where the grid has them.
RANK_KEYS = 128
RANK_D_K = (16, 64, 256, 1024)
#: Mean weights below this are cut off: they are nobody's concern.
LEAST_WEIGHT = 1e-6
#: A standard error times this is half a pointwise 95 % interval.
NORMAL_95 = 1.96


def rank_rows(_: DataFrame, curves: DataFrame) -> DataFrame:
    """Return the mean weights by rank that are drawn: of one n, the nearest to 128."""
    rows = at_nearest(
        gaussian_rows(curves, curve="weight_by_rank"), "n_keys", RANK_KEYS
    )
    return rows[rows["d_k"].isin(RANK_D_K)]


def build_weights_by_rank(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build the mean weight of the key at each rank, one panel per d_k."""
    rows = rank_rows(measurements, curves)
    parts = [
        (f"$n = {n_keys:.0f}$,  $d_k = {d_k:.0f}$", mine)
        for (n_keys, d_k), mine in rows.groupby(["n_keys", "d_k"])
    ]
    if not parts:
        return None
    y = r"$\mathrm{E}\,p_{(r)}$"
    figure = draw.plot_panels(
        plot_weights_by_rank, parts, rows["x"], y, columns=2, height=2.5, x="$r$"
    )
    draw.legend_above(figure, draw.keys_of(DIVISOR_LOOKS, rows["divisor"], line=True))
    return figure


def plot_weights_by_rank(axes: Axes, table: DataFrame) -> Axes:
    """Draw mean weights of one n and d_k against rank, and the equal weight 1/n."""
    for divisor, look in resize(DIVISOR_LOOKS, 4.0).items():
        rows = table[table["divisor"].eq(divisor)].sort_values("x")
        rows = rows[rows["estimate"].ge(LEAST_WEIGHT / 10.0)]
        half = NORMAL_95 * rows["std_error"].to_numpy()
        # A logarithmic axis has no place for a bar that reaches 0.
        least = np.minimum(half, 0.9 * rows["estimate"].to_numpy())
        axes.errorbar(
            rows["x"], rows["estimate"], (least, half), linewidth=1.2, **look.mark
        )
    if len(table):
        draw.level(axes, 1.0 / float(table["n_keys"].iloc[0]))
    draw.logarithmic(axes, LEAST_WEIGHT, 1.6)
    return axes


def pick_first_ranks(measurements: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the mean largest weights under two divisors, at the largest d_k drawn."""
    rows = rank_rows(measurements, curves)
    return pick_two(rows[rows["x"].eq(1.0)], "divisor", "none", "sqrt")


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

# --- Effective keys and the largest weight against d_k ------------------------------

#: Panels over d_k, where the grid has them.
PANEL_KEYS = (8, 32, 128, 512)
MOST_PANELS = 4


def _plot_divisors(axes: Axes, table: DataFrame) -> Axes:
    return draw.plot_series(axes, table, "divisor", DIVISOR_LOOKS)


def _build_by_keys(
    drawn: DataFrame, y: str, plot: Callable[[Axes, DataFrame], Axes] = _plot_divisors
) -> Figure | None:
    """Build one panel over d_k for each n; None without any."""
    counts = key_counts(with_interval(drawn), PANEL_KEYS, MOST_PANELS)
    if not counts:
        return None
    parts = [(f"$n = {n}$", drawn[drawn["n_keys"].eq(n)]) for n in counts]
    figure = draw.plot_panels(plot, parts, drawn["d_k"], y, columns=2, height=2.4)
    draw.legend_above(figure, draw.keys_of(DIVISOR_LOOKS, drawn["divisor"], line=True))
    return figure


def effective_key_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return the mean effective keys of rows of Gaussian entries."""
    return gaussian_rows(measurements, quantity="effective_keys", summary="mean")


def build_effective_keys(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build the part of the keys that a row attends to, one panel per n."""
    rows = effective_key_rows(measurements, curves)
    return _build_by_keys(rows, r"$\mathrm{E}\,e^H/\,n$", plot_effective_keys)


def plot_effective_keys(axes: Axes, table: DataFrame) -> Axes:
    """Draw effective keys over one n against d_k, with the balanced band and 2 ln n."""
    n_keys = float(table["n_keys"].iloc[0])
    axes.axhspan(
        BALANCED, NEAR_UNIFORM, color=MUTED, alpha=0.13, linewidth=0.0, zorder=0.5
    )
    axes.axvline(
        2.0 * np.log(n_keys),
        color=INK,
        linewidth=draw.LIMIT_WIDTH,
        linestyle=draw.LIMIT_DASH,
        zorder=1.5,
    )
    table = draw.rescale(table, lambda keys: keys / n_keys)
    draw.plot_series(axes, table, "divisor", DIVISOR_LOOKS)
    draw.unit_interval(axes, -0.03, 1.05, 0.25)
    return axes


def pick_effective_keys(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the mean effective keys over n under two divisors."""
    rows = panel_of(measurements, quantity="effective_keys", summary="mean")
    rows = draw.rescale(rows, lambda keys: keys / rows["n_keys"])
    return pick_two(rows, "divisor", "none", "sqrt")


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


def weight_max_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return all summaries of the largest weight, unscaled and by sqrt(d_k)."""
    rows = gaussian_rows(measurements, quantity="weight_max")
    return rows[rows["divisor"].isin(("none", "sqrt"))]


def build_weight_max(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build the median of the largest weight between its outer tenths, per n."""
    rows = weight_max_rows(measurements, curves)
    if not rows["summary"].eq("median").any():
        return None
    return _build_by_keys(rows, r"$Q_{0.5}\,(p_{\max})$", _plot_weight_max)


def _plot_weight_max(axes: Axes, table: DataFrame) -> Axes:
    """Draw the median of the largest weight and the band from q10 to q90."""
    draw.level(axes, ONE_HOT)
    draw.plot_series(axes, table, "divisor", DIVISOR_LOOKS, _plot_band)
    median = table[table["summary"].eq("median")]
    draw.plot_series(axes, median, "divisor", DIVISOR_LOOKS)
    draw.unit_interval(axes, -0.03, 1.05, 0.25)
    return axes


def _plot_band(axes: Axes, rows: DataFrame, look: Look) -> Axes:
    wide = rows.pivot_table(
        index="d_k", columns="summary", values="estimate", dropna=False
    )
    there = {"q10", "q90"} <= set(wide.columns)
    return draw.plot_band(axes, wide, look) if there else axes


def pick_weight_max(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the median largest weight under two divisors."""
    rows = panel_of(measurements, quantity="weight_max", summary="median")
    return pick_two(rows, "divisor", "none", "sqrt")


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

# --- The planted key ----------------------------------------------------------------

#: Quantities, each with its label.
PLANTED_LABELS = {
    "planted_weight": rf"$\mathrm{{E}}\,{draw.symbol_of('planted_weight')}$",
    "planted_rank_first": r"$P(p_{\ast} = p_{\max})$",
}
MOST_COLUMNS = 3
#: What its alternative text speaks of, where the grid has it.
FACT_D_K = 64


def planted_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return mean weights and ranks of planted keys, with ``alignment``.

    Of the number of keys that has most of them, one alignment after another.
    """
    rows = measurements[
        measurements["dependence"].str.startswith("planted")
        & measurements["quantity"].isin(PLANTED_LABELS)
        & measurements["summary"].eq("mean")
        & measurements["divisor"].isin(DIVISOR_LOOKS)
    ]
    if rows.empty:
        return rows.assign(alignment=0.0)
    rows = rows[rows["n_keys"].eq(rows["n_keys"].mode().max())]
    alignment = [parse_dependence(name).rho for name in rows["dependence"]]
    return rows.assign(alignment=alignment).sort_values(["alignment", "d_k"])


def build_planted(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build one column of panels for each alignment: weight above, rank below."""
    rows = planted_rows(measurements, curves)
    sizes = with_interval(rows).groupby("alignment")["d_k"].nunique()
    shown = [a for a in sizes.index if sizes[a] >= FEWEST_POINTS][-MOST_COLUMNS:]
    if not shown:
        return None
    parts = [
        (
            rf"$\rho = {alignment:g}$" if quantity == "planted_weight" else "",
            rows[rows["quantity"].eq(quantity) & rows["alignment"].eq(alignment)],
        )
        for quantity in PLANTED_LABELS
        for alignment in shown
    ]
    labels = list(PLANTED_LABELS.values())
    figure = draw.plot_panels(
        _plot_planted, parts, rows["d_k"], labels, columns=len(shown), height=2.2
    )
    draw.legend_above(figure, draw.keys_of(DIVISOR_LOOKS, rows["divisor"], line=True))
    return figure


def _plot_planted(axes: Axes, table: DataFrame) -> Axes:
    """Draw one mean of the planted key against d_k, for each divisor.

    Ranks are the same for every divisor, so that marks cover each other.
    """
    draw.plot_series(axes, table, "divisor", resize(DIVISOR_LOOKS, draw.MARK))
    draw.unit_interval(axes, -0.04, 1.06)
    return axes


def pick_planted_weights(measurements: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the weight of the planted key under two divisors, at a common d_k."""
    rows = with_interval(planted_rows(measurements, curves))
    rows = rows[rows["quantity"].eq("planted_weight")]
    rows = rows[rows["alignment"].eq(rows["alignment"].max())]
    rows = at_nearest(rows, "d_k", FACT_D_K)
    fact = pick_two(rows, "divisor", "sqrt", "linear")
    return fact and {**fact, "rho": float(rows["alignment"].iloc[0])}


PLANTED = FigureSpec(
    "planted",
    build_planted,
    "planted key by alignment: its weight and its rank",
    section="weights",
    on_report=True,
    caption=message(
        "One key of each row is planted: its entries correlate with those of the "
        r"query, by $\rho$. Above: its mean weight $p_{\ast}$ against $d_k$ for "
        "several divisors; below: how often it has the largest weight of its row. "
        r"Bars: pointwise $95\,\%%$ intervals."
    ),
    alternative=message(
        "At d_k = %(d_k)s and a correlation of %(rho)s the planted key gets a weight "
        "of %(first)s divided by √d_k and of %(second)s divided by d_k."
    ),
    named=("planted_weight_sqrt", "planted_weight_linear"),
    fact=pick_planted_weights,
    series={"divisors": planted_rows},
)
