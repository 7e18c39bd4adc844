"""Which gradient vanishes: four gradients, with and without the divisor."""

from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.report.content.tables.rows import (
    gaussian_rows,
    key_counts,
    nearest,
    with_interval,
)
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.palette import (
    DIVISOR_LOOKS,
    GRADIENT_LOOKS,
    Dash,
    Look,
    keep_looks,
    resize,
)
from montecarlo.report.figures.specs import (
    Fact,
    FigureSpec,
    message,
    panel_of,
    pick_two,
)

QUANTITIES = tuple(GRADIENT_LOOKS)
#: Marks are smaller in small panels.
DIVISORS = resize(keep_looks(DIVISOR_LOOKS, ("none", "sqrt")), 4.0)
PANEL_KEYS = (32, 128, 512)
RATIO_KEYS = 128
#: Quantiles fall far below this; the means would then be flat lines.
LEAST_GRADIENT, MOST_GRADIENT = 1e-4, 6.0
#: Summaries by dash; only the mean has marks and intervals, else nothing can be seen.
DASHES: dict[str, Dash] = {"mean": "-", "median": (0, (5, 2)), "q10": (0, (1.3, 1.5))}
SUMMARY_SYMBOLS = {"mean": r"$\mathrm{E}$", "median": "$Q_{0.5}$", "q10": "$Q_{0.1}$"}


def gradient_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return the summaries of gradients that panels over d_k are drawn from."""
    rows = gaussian_rows(measurements)
    return rows[
        rows["quantity"].isin(QUANTITIES)
        & rows["divisor"].isin(DIVISORS)
        & rows["summary"].isin(DASHES)
    ]


def build_gradients(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build one row of panels per gradient, one column per n."""
    rows = gradient_rows(measurements, curves)
    counts = key_counts(rows, PANEL_KEYS, len(PANEL_KEYS))
    quantities = keep_looks(GRADIENT_LOOKS, rows["quantity"])
    if not counts:
        return None
    parts = [
        (
            f"$n = {n}$" if place == 0 else "",
            rows[rows["quantity"].eq(quantity) & rows["n_keys"].eq(n)],
        )
        for place, quantity in enumerate(quantities)
        for n in counts
    ]
    figure = draw.plot_panels(
        plot_gradients,
        parts,
        rows["d_k"],
        [f"${draw.symbol_of(quantity)}$" for quantity in quantities],
        columns=len(counts),
        height=1.75,
    )
    divisors = draw.keys_of(DIVISORS, rows["divisor"], line=True)
    summaries = [
        draw.line_key(dash, SUMMARY_SYMBOLS[name]) for name, dash in DASHES.items()
    ]
    draw.legend_above(figure, [*divisors, *summaries])
    return figure


def plot_gradients(axes: Axes, table: DataFrame) -> Axes:
    """Draw mean, median and 10 % quantile of one gradient against d_k."""
    draw.plot_series(axes, table, "divisor", DIVISORS, _plot_summaries)
    draw.logarithmic(axes, LEAST_GRADIENT, MOST_GRADIENT)
    return axes


def _plot_summaries(axes: Axes, rows: DataFrame, look: Look) -> Axes:
    for summary, dash in DASHES.items():
        mine = rows[rows["summary"].eq(summary)]
        if mine["reference"].notna().all():
            draw.plot_reference(axes, mine)
        else:
            draw.plot_line(axes, mine, replace(look, dash=dash))
    return draw.plot_estimates(axes, rows[rows["summary"].eq("mean")], look)


def pick_gradients(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the mean and the median of one gradient of unscaled scores."""
    rows = panel_of(measurements, quantity="jacobian_frobenius", divisor="none")
    return pick_two(rows, "summary", "mean", "median")


def build_gradient_ratio(measurements: DataFrame, _: DataFrame) -> Figure | None:
    """Build the mean gradients without the divisor over those with it."""
    rows = gaussian_rows(measurements, divisor="none/sqrt", summary="mean")
    rows = rows[rows["quantity"].isin(QUANTITIES)]
    counts = key_counts(with_interval(rows), (RATIO_KEYS,), len(rows))
    n_keys = nearest(counts, RATIO_KEYS)
    if n_keys is None:
        return None
    rows = rows[rows["n_keys"].eq(n_keys)]
    figure, (axes,) = draw.panels(1, 1, 3.55)
    plot_gradient_ratio(axes, rows)
    axes.set_title(f"$n = {n_keys}$")
    draw.powers_of_two(axes, rows["d_k"], columns=1)
    looks = {
        name: replace(look, symbol=f"${draw.symbol_of(name)}$")
        for name, look in GRADIENT_LOOKS.items()
    }
    draw.legend_above(figure, draw.keys_of(looks, rows["quantity"], line=True))
    return figure


def plot_gradient_ratio(axes: Axes, table: DataFrame) -> Axes:
    """Draw ratios of mean gradients of one n against d_k."""
    draw.level(axes, 1.0)
    draw.plot_series(axes, table, "quantity", GRADIENT_LOOKS)
    draw.logarithmic(axes)
    axes.set_xlabel("$d_k$")
    axes.set_ylabel(r"$\mathrm{E}\,(c=1)\;/\;\mathrm{E}\,(c=\sqrt{d_k})$")
    return axes


def pick_gradient_ratios(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the ratios of two gradients."""
    rows = panel_of(measurements, summary="mean", divisor="none/sqrt")
    return pick_two(rows, "quantity", "jacobian_trace", "gradient_query")


GRADIENTS = FigureSpec(
    "gradients",
    build_gradients,
    "four gradients: mean, median and lowest tenth",
    section="gradients",
    on_report=True,
    caption=message(
        "Gradients against $d_k$, both axes logarithmic: one line of panels for each "
        "gradient, one column for each $n$. Solid: mean; dashed: median; dotted: "
        r"$10\,\%%$ quantile. Grey line in the first panels: exact theory for the mean."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s the Frobenius norm of the unscaled Jacobian is "
        "%(first)s on average, and %(second)s in the median."
    ),
    named=("jacobian_frobenius_mean", "jacobian_frobenius_median"),
    fact=pick_gradients,
    series={"divisors": gradient_rows},
)
GRADIENT_RATIO = FigureSpec(
    "gradient-ratio",
    build_gradient_ratio,
    "gradients without the divisor over those with it",
    section="gradients",
    caption=message(
        r"Mean gradient unscaled over mean gradient divided by $\sqrt{d_k}$, from the "
        r"same draws, with pointwise $95\,\%%$ intervals. Above the line at $1$ the "
        "unscaled gradient is the larger one."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s the mean trace is %(first)s times, the mean "
        "gradient by the query %(second)s times as large unscaled as divided by √d_k."
    ),
    named=("jacobian_trace_ratio", "gradient_query_ratio"),
    fact=pick_gradient_ratios,
)
