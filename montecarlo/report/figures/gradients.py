"""What becomes of gradients: their distribution over rows, and their size by d_k."""

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from pandas import DataFrame

from montecarlo.report.content.tables.rows import gaussian_rows, key_counts
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.attention import HEAD_SIZE
from montecarlo.report.figures.drawing import Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    BLUE,
    DIVISOR_LOOKS,
    INK,
    Dash,
    Look,
    keep_looks,
    resize,
)
from montecarlo.report.figures.specs import (
    Fact,
    FigureSpec,
    of_curve,
    panel_of,
    pick_two,
)
from montecarlo.study.table import ROW_CURVES, ROWS_D_K

DIVISORS = resize(keep_looks(DIVISOR_LOOKS, ("none", "sqrt")), draw.MARK)
SHARES = {
    "jacobian_frobenius": message(
        "Rows whose softmax Jacobian exceeds a size, in per cent"
    ),
    "gradient_query_undivided": message(
        "Rows whose gradient by the query, without $1/c$, exceeds a size, in per cent"
    ),
}
SIZES = {
    "jacobian_frobenius": Label(message("Jacobian of softmax"), r"\lVert J\rVert_F"),
    "gradient_query_undivided": Label(
        message("Gradient by the query, without $1/c$"), r"\lVert K^{\top} J v\rVert"
    ),
}
#: Smallest and largest gradients that have a place.
ENDS = {"jacobian_frobenius": (1e-3, 1.0), "gradient_query_undivided": (1e-2, 10.0)}
#: The scaled gradient with its factor 1/c.
WITH_FACTOR: Dash = (0, (2, 1.5))
MOST_PANELS = 2
#: Points of the border of what is filled.
FILLED = 60

# --- Distribution over rows ---------------------------------------------------------


def row_curves(curves: DataFrame) -> DataFrame:
    """Return the distribution functions of gradients over rows."""
    return of_curve(curves, *(f"rows_{quantity}" for quantity in ROW_CURVES))


def build_gradients(measurements: DataFrame, curves: DataFrame) -> Picture | None:
    """Build the share of rows above a gradient: a row of panels for each quantity.

    And a column for each n; a dot marks the unscaled rows above the scaled mean.
    """
    rows = row_curves(curves)
    counts = sorted({int(n) for n in rows["n_keys"].dropna()})[:MOST_PANELS]
    if not counts:
        return None
    picture = Picture((len(counts),) * 2, (105.0, 105.0))
    picture.headings = [Label(SHARES[quantity]) for quantity in ROW_CURVES]
    for line, quantity in zip(picture.rows, ROW_CURVES, strict=True):
        mine = rows[rows["curve"].eq(f"rows_{quantity}")]
        for panel, n_keys in zip(line, counts, strict=True):
            here = mine[mine["n_keys"].eq(n_keys)]
            plot_rows(panel, here, quantity, above_mean(measurements, here, quantity))
            panel.title = Label(symbol=rf"n = {n_keys}")
            panel.x = Label(symbol=SIZES[quantity].symbol)
    draw.hide_inner(picture)
    for panel in picture.panels:
        panel.axes.tick_params(labelbottom=True)
    picture.keys = draw.keys_of(DIVISORS, rows["divisor"], line=True)
    picture.keys = [key._replace(mark=False) for key in picture.keys]
    picture.keys += [
        draw.line_key(
            WITH_FACTOR,
            Label(
                message("divided, with its factor $1/c = 1/8$"),
                r"1/c = 1/8",
                told=True,
            ),
            BLUE,
        )
    ]
    return picture


def above_mean(
    measurements: DataFrame, table: DataFrame, quantity: str
) -> tuple[float, float] | None:
    """Return the mean of scaled rows, and the share of unscaled rows above it.

    The share is as measured, or else read off the curve; None where one is lacking.
    """
    rows = gaussian_rows(measurements, quantity=quantity, d_k=ROWS_D_K)
    rows = rows[rows["n_keys"].isin(table["n_keys"])]
    means = rows[rows["divisor"].eq("sqrt") & rows["summary"].eq("mean")]["estimate"]
    mine = table[table["divisor"].eq("none")].sort_values("x")
    if means.empty or mine.empty:
        return None
    mean = float(means.iloc[0])
    paired = rows["divisor"].eq("none/sqrt") & rows["summary"].eq("share_above")
    measured = rows[paired]["estimate"]
    if len(measured):
        return mean, float(measured.iloc[0])
    below = np.interp(np.log(mean), np.log(mine["x"]), mine["estimate"])
    return mean, 1.0 - float(below)


def plot_rows(
    panel: Panel, table: DataFrame, quantity: str, above: tuple[float, float] | None
) -> None:
    """Draw the share of rows above each size; dot: unscaled ones above a mean."""
    axes, (low, high) = panel.axes, ENDS[quantity]
    for divisor, look in keep_looks(DIVISORS, table["divisor"]).items():
        mine = table[table["divisor"].eq(divisor)].sort_values("x")
        last = mine["x"].iloc[-1]
        x = np.array([low / 10.0, *mine["x"], last * last / mine["x"].iloc[-2]])
        x = np.maximum.accumulate(x)
        y = np.array([1.0, *(1.0 - mine["estimate"]), 0.0])
        axes.plot([*x, high], [*y, 0.0], color=look.colour)
        if divisor == "none" and above:
            right = np.geomspace(above[0], high, FILLED)
            height = np.interp(np.log(right), np.log(x), y)
            axes.fill_between(right, height, color=look.colour, alpha=0.2, linewidth=0)
        elif divisor != "none" and quantity != "jacobian_frobenius":
            factor = 1.0 / np.sqrt(ROWS_D_K)
            axes.plot(x * factor, y, color=look.colour, linestyle=WITH_FACTOR)
    draw.logarithmic(axes, low, high, x=True)
    draw.percent(axes)
    axes.grid(visible=False, axis="x")
    if above is None:
        return
    mean, share = above
    axes.plot([mean, mean], [0.0, share], color=INK, linewidth=1.2)
    axes.plot([mean], [share], **Look(INK, "o", size=5.5).mark)
    label = Label(symbol=rf"{100.0 * share:.0f}\,\%")
    panel.note(label, mean, share, dx=5.0, dy=7.0)


def pick_row_shares(measurements: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the shares of unscaled rows whose Jacobian exceeds the scaled mean."""
    rows = of_curve(curves, f"rows_{ROW_CURVES[0]}")
    parts = [part for _, part in rows.groupby("n_keys")]
    found = [above_mean(measurements, part, ROW_CURVES[0]) for part in parts]
    if not found or found[0] is None or found[-1] is None:
        return None
    return {
        "first": 100.0 * found[0][1],
        "second": 100.0 * found[-1][1],
        "d_k": float(ROWS_D_K),
        "fewest": float(parts[0]["n_keys"].iloc[0]),
        "n": float(parts[-1]["n_keys"].iloc[0]),
    }


GRADIENTS = FigureSpec(
    "gradients",
    build_gradients,
    "how gradients are distributed over rows, unscaled and scaled",
    section="gradients",
    on_report=True,
    caption=message(
        "Share of rows whose gradient exceeds a size, at $d_k = 64$. Dot: unscaled "
        "rows above the scaled mean. Dashed: the same with the factor $1/c$ that "
        "dividing itself brings."
    ),
    alternative=message(
        "At d_k = %(d_k)s, %(first)s %% of unscaled rows have a Jacobian larger than "
        "the scaled mean at n = %(fewest)s, and %(second)s %% at n = %(n)s."
    ),
    named=("percent_above_at_fewest_keys", "percent_above_at_most_keys"),
    fact=pick_row_shares,
    constants={"first_error": 10.0, "second_error": 10.0},
)

# --- Size against d_k ---------------------------------------------------------------

PANEL_KEYS = (128, 16384)
#: Means would otherwise be flat lines.
LEAST_GRADIENT, MOST_GRADIENT = 1e-3, 10.0
#: Summaries by dash.
DASHES: dict[str, Dash] = {"mean": "-", "median": (0, (5, 2))}
SUMMARIES = {
    "mean": Label(message("mean"), r"\operatorname{E}"),
    "median": Label(message("median"), "Q_{0.5}"),
}


def size_rows(measurements: DataFrame) -> DataFrame:
    """Return the means and medians of gradients that panels are drawn from."""
    rows = gaussian_rows(measurements)
    return rows[
        rows["quantity"].isin(SIZES)
        & rows["divisor"].isin(DIVISORS)
        & rows["summary"].isin(DASHES)
    ]


def build_gradient_sizes(measurements: DataFrame, _: DataFrame) -> Picture | None:
    """Build one row of panels per gradient, one column per n."""
    rows = size_rows(measurements)
    jacobian = rows[rows["quantity"].eq("jacobian_frobenius")]
    counts = key_counts(jacobian, PANEL_KEYS, MOST_PANELS)
    quantities = [name for name in SIZES if rows["quantity"].eq(name).any()]
    if not counts:
        return None
    picture = Picture((len(counts),) * len(quantities), (110.0,) * len(quantities))
    picture.headings = [SIZES[quantity] for quantity in quantities]
    for line, quantity in zip(picture.rows, quantities, strict=True):
        mine = rows[rows["quantity"].eq(quantity)]
        for panel, n_keys in zip(line, counts, strict=True):
            plot_sizes(panel.axes, mine[mine["n_keys"].eq(n_keys)])
            panel.title = Label(symbol=f"n = {n_keys}")
            draw.powers_of_two(panel.axes, rows["d_k"], columns=len(counts))
    for panel in picture.rows[-1]:
        panel.x = HEAD_SIZE
    draw.hide_inner(picture)
    picture.keys = draw.keys_of(DIVISORS, rows["divisor"])
    picture.keys += [
        draw.line_key(dash, SUMMARIES[name]) for name, dash in DASHES.items()
    ]
    return picture


def plot_sizes(axes: Axes, table: DataFrame) -> Axes:
    """Draw mean and median of one gradient against d_k."""
    for divisor, look in keep_looks(DIVISORS, table["divisor"]).items():
        for summary, dash in DASHES.items():
            of = table["divisor"].eq(divisor) & table["summary"].eq(summary)
            draw.plot_line(axes, table[of], replace(look, dash=dash))
        mean = table["divisor"].eq(divisor) & table["summary"].eq("mean")
        draw.plot_estimates(axes, table[mean], look)
    draw.logarithmic(axes, LEAST_GRADIENT, MOST_GRADIENT)
    return axes


def pick_gradients(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the mean and the median of one gradient of unscaled scores."""
    rows = panel_of(measurements, quantity="jacobian_frobenius", divisor="none")
    return pick_two(rows, "summary", "mean", "median")


GRADIENT_SIZES = FigureSpec(
    "gradient-sizes",
    build_gradient_sizes,
    "mean and median gradients against d_k",
    section="gradients",
    caption=message(
        "Where lines cross, mean or median of unscaled rows falls below that of scaled "
        r"ones. Both axes are logarithmic; bars: $95\,\%%$ intervals of the means."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s the Frobenius norm of the unscaled Jacobian is "
        "%(first)s on average, and %(second)s in the median."
    ),
    named=("jacobian_frobenius_mean", "jacobian_frobenius_median"),
    fact=pick_gradients,
)
