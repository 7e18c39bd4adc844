"""The distribution of the scaled score against the normal one: curves, gaps."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.report.content.tables.rows import (
    FEWEST_POINTS,
    gaussian_rows,
    plain_rows,
    with_interval,
)
from montecarlo.report.figures.captions.picking import MOST_D_K, pair
from montecarlo.report.figures.drawing.palette import (
    BLUE,
    DISTRIBUTION_LOOKS,
    GREEN,
    INK,
    PURPLE,
    Dash,
    resize,
)
from montecarlo.report.figures.drawing.panels import (
    in_percent,
    keys_of,
    legend_above,
    legend_below,
    level,
    line_key,
    panels,
    plot_estimates,
    plot_reference,
    plot_series,
    powers_of_two,
)
from montecarlo.report.figures.drawing.specs import Fact, FigureSpec, message
from montecarlo.study.table import SCORE_DISTRIBUTION

#: Colour and dash of the exact curves, by d_k.
CURVES: dict[int, tuple[str, Dash]] = {
    1: (INK, "-"),
    4: (GREEN, (0, (5, 1.6))),
    16: (PURPLE, (0, (5, 1.6, 1.2, 1.6))),
    64: (BLUE, (0, (1.4, 1.2))),
}
MARK = 4.5


def gap_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return the gaps that are drawn, of q and k of one distribution."""
    rows = plain_rows(measurements, quantity="score_distribution_gap")
    rows = rows[
        rows["distribution_q"].eq(rows["distribution_k"])
        & rows["distribution_q"].isin(DISTRIBUTION_LOOKS)
    ]
    return with_interval(rows)


def build_score_distribution(
    measurements: DataFrame, curves: DataFrame
) -> Figure | None:
    """Build distribution functions less the normal one, and gaps against d_k."""
    rows = gap_rows(measurements, curves)
    if gaussian_rows(rows)["d_k"].nunique() < FEWEST_POINTS:
        return None
    figure, (left, right) = panels(1, 2, 2.9)
    _plot_curves(left, curves[curves["curve"].eq(SCORE_DISTRIBUTION)])
    _plot_gaps(right, rows)
    powers_of_two(right, rows["d_k"], columns=2)
    lines = [
        line_key(dash, f"$d_k = {d_k}$", colour)
        for d_k, (colour, dash) in CURVES.items()
    ]
    legend_above(figure, lines)
    distributions = keys_of(DISTRIBUTION_LOOKS, rows["distribution_q"])
    legend_below(figure, distributions, columnspacing=1.0, handlelength=1.0)
    return figure


def _plot_curves(axes: Axes, table: DataFrame) -> None:
    """Draw exact distribution functions less the normal one, for Gaussian entries."""
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


def _plot_gaps(axes: Axes, table: DataFrame) -> None:
    """Draw the size of the measured gap at one place against d_k."""
    level(axes, 0.0)
    looks = resize(DISTRIBUTION_LOOKS, MARK)
    plot_series(axes, table, "distribution_q", looks, plot_reference, plot_estimates)
    in_percent(axes)
    axes.set_xlabel("$d_k$")
    axes.set_ylabel(r"$F(x^{\ast}) - \Phi(x^{\ast})\;/\;\%$")


def pick_gaps(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the gap from the normal distribution at the ends of the grid."""
    rows = gaussian_rows(measurements, quantity="score_distribution_gap")
    rows = with_interval(rows[rows["d_k"].le(MOST_D_K)]).sort_values("d_k")
    if rows["d_k"].nunique() < 2:
        return None
    low, high = rows["d_k"].min(), rows["d_k"].max()
    return pair(rows.iloc[:1], rows.iloc[-1:], low=low, d_k=high)


SCORE_DISTRIBUTION_FIGURE = FigureSpec(
    "score-distribution",
    build_score_distribution,
    "distribution of the scaled score against the normal distribution",
    section="variance",
    caption=message(
        "Left: the exact distribution function $F$ of a score divided by "
        r"$\sqrt{d_k}$, less that of $\mathcal{N}(0, 1)$, for Gaussian entries and "
        r"four $d_k$. Right: the same difference at one point $x^{\ast}$ against "
        r"$d_k$, for several distributions of the entries, with pointwise $95\,\%%$ "
        "intervals; grey line: exact theory for Gaussian entries."
    ),
    alternative=message(
        "The distribution function of a scaled score lies %(first)s above the normal "
        "one at d_k = %(low)s and %(second)s at d_k = %(d_k)s."
    ),
    named=("distribution_gap_at_least_d_k", "distribution_gap_at_d_k"),
    fact=pick_gaps,
    series={"distributions": gap_rows},
)
