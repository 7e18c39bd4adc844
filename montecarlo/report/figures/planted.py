"""The planted key: what each divisor leaves of it, by how far query and key agree."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.report.content.tables.rows import FEWEST_POINTS, with_interval
from montecarlo.report.figures.captions.picking import at_nearest, pair
from montecarlo.report.figures.drawing.palette import DIVISOR_LOOKS, resize
from montecarlo.report.figures.drawing.panels import (
    keys_of,
    legend_above,
    plot_estimates,
    plot_line,
    plot_panels,
    plot_series,
    symbol_of,
)
from montecarlo.report.figures.drawing.specs import Fact, FigureSpec, message
from montecarlo.sampling.design_points import parse_dependence

#: Quantities, each with its label.
QUANTITIES = {
    "planted_weight": rf"$\mathrm{{E}}\,{symbol_of('planted_weight')}$",
    "planted_rank_first": r"$P(p_{\ast} = p_{\max})$",
}
MOST_COLUMNS = 3
MARK = 4.5
#: What its alternative text speaks of, where the grid has it.
FACT_D_K = 64


def planted_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return mean weights and ranks of planted keys, with ``alignment``.

    Of the number of keys that has most of them, one alignment after another.
    """
    names = measurements["dependence"]
    rows = measurements[
        names.str.startswith("planted")
        & measurements["quantity"].isin(QUANTITIES)
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
        for quantity in QUANTITIES
        for alignment in shown
    ]
    figure = plot_panels(
        _plot_planted,
        parts,
        rows["d_k"],
        list(QUANTITIES.values()),
        columns=len(shown),
        height=2.2,
    )
    legend_above(figure, keys_of(DIVISOR_LOOKS, rows["divisor"], line=True))
    return figure


def _plot_planted(axes: Axes, table: DataFrame) -> Axes:
    """Draw one mean of the planted key against d_k, for each divisor.

    Ranks are the same for every divisor, so that marks cover each other.
    """
    looks = resize(DIVISOR_LOOKS, MARK)
    plot_series(axes, table, "divisor", looks, plot_line, plot_estimates)
    axes.set_ylim(-0.04, 1.06)
    axes.set_yticks((0.0, 0.5, 1.0), ("0", "0.5", "1"))
    return axes


def pick_planted_weights(measurements: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the weight of the planted key under two divisors, at a common d_k."""
    rows = with_interval(planted_rows(measurements, curves))
    rows = rows[rows["quantity"].eq("planted_weight")]
    rows = rows[rows["alignment"].eq(rows["alignment"].max())]
    rows = at_nearest(rows, "d_k", FACT_D_K)
    root, linear = (rows[rows["divisor"].eq(name)] for name in ("sqrt", "linear"))
    if root.empty or linear.empty:
        return None
    size, rho = (rows[name].iloc[0] for name in ("d_k", "alignment"))
    return pair(root, linear, d_k=size, rho=rho)


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
