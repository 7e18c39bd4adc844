"""The judge's report card: actual error rates against stated ones, and power."""

from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from pandas import DataFrame

from montecarlo.records.calibration import ALLOWED
from montecarlo.report.content.report_card import (
    EXTRAPOLATED_CURVE,
    POWER_CURVE,
    RATE_CURVE,
)
from montecarlo.report.figures.drawing.palette import (
    DISTRIBUTION_LOOKS,
    GRID,
    INK,
    REFUTED,
    SUPPORTED,
    VERMILLION,
    Dash,
    Look,
)
from montecarlo.report.figures.drawing.panels import (
    keys_of,
    legend_above,
    level,
    line_key,
    panels,
    plot_series,
)
from montecarlo.report.figures.drawing.specs import Fact, FigureSpec, message

#: Below and above this a ratio is drawn on the edge.
LEAST, MOST = 0.1, 1000.0
MARK = 4.5
#: Distances of a claim from the truth, in tolerances: farther off all are decided.
SHOWN = (0.5, 1.5)
COLOURS = {"supported": SUPPORTED, "refuted": REFUTED}
DASHES: tuple[Dash, ...] = ((0, (2, 1.5)), "-")


def card_rows(_: DataFrame, curves: DataFrame) -> DataFrame:
    """Return the error rates of curves.csv that are drawn: of independent entries."""
    rates = curves["curve"].isin((RATE_CURVE, EXTRAPOLATED_CURVE))
    return curves[rates & curves["dependence"].eq("none")]


def build_report_card(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build actual over stated error rates by distribution, and power beside them."""
    rates = card_rows(measurements, curves)
    power = curves[curves["curve"].eq(POWER_CURVE)]
    if rates.empty or power.empty:
        return None
    figure, (left, right) = panels(1, 2, 2.9)
    keys = []
    for judged, colour in (("judged", INK), ("shown", VERMILLION)):
        of_kind = rates[rates["outcome"].eq(judged)]
        looks = {
            name: replace(look, colour=colour, size=MARK)
            for name, look in DISTRIBUTION_LOOKS.items()
        }
        plot_series(left, of_kind, "distribution_k", looks, _plot_rates)
        keys += keys_of(looks, of_kind["distribution_k"])
    _finish_rates(left)
    _plot_power(right, power)
    legend_above(figure, keys, 6)
    return figure


def _plot_rates(axes: Axes, table: DataFrame, look: Look) -> Axes:
    """Draw how many times as often as stated a distribution's worst intervals miss."""
    table = table.sort_values("x", ascending=False)
    ratio = table["estimate"].clip(LEAST, MOST)
    counted = table["curve"].eq(RATE_CURVE)
    axes.plot(table["x"][counted], ratio[counted], linewidth=1.0, **look.mark)
    axes.plot(
        table["x"].iloc[-2:],
        ratio.iloc[-2:],
        color=look.colour,
        linestyle=(0, (1.5, 1.5)),
        linewidth=1.0,
    )
    return axes


def _finish_rates(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.invert_xaxis()
    axes.xaxis.set_major_locator(LogLocator(numticks=6))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    level(axes, 1.0)
    low, _ = axes.get_ylim()
    axes.axhspan(low, ALLOWED, color=GRID, alpha=0.5, linewidth=0)
    axes.set_ylim(bottom=low)
    axes.set_xlabel(r"$\alpha$")
    axes.set_ylabel(r"$\hat\alpha\,/\,\alpha$")


def _plot_power(axes: Axes, table: DataFrame) -> None:
    """Draw shares of claims supported and refuted, by distance from the truth."""
    replicates, outcomes = table["n_replicates"].astype(int), table["outcome"]
    keys = []
    for n, dash in zip(sorted(set(replicates)), DASHES, strict=False):
        for name, colour in COLOURS.items():
            line = table[replicates.eq(n) & outcomes.eq(name)].sort_values("x")
            axes.plot(line["x"], line["estimate"], color=colour, linestyle=dash)
        keys.append(line_key(dash, f"{n}"))
    signs = zip(COLOURS.values(), "✓✗", strict=True)
    keys += [line_key("-", sign, colour) for colour, sign in signs]
    axes.axvline(1.0, color=INK, linewidth=0.8)
    axes.set_xlim(*SHOWN)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(r"$\Delta\,/\,\tau$")
    axes.legend(handles=keys, loc="lower left", handlelength=1.2)


def pick_rates(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the worst ratios at the largest and the smallest rate that was counted."""
    judged = curves[curves["curve"].eq(RATE_CURVE) & curves["outcome"].eq("judged")]
    if judged.empty:
        return None
    worst = judged.groupby("x")["estimate"].max().sort_index(ascending=False)
    return {"first": float(worst.iloc[0]), "second": float(worst.iloc[-1])}


REPORT_CARD = FigureSpec(
    "report-card",
    build_report_card,
    "actual error rates of the judge, and its power",
    section="method",
    caption=message(
        "Left: how many times as often as stated intervals miss on their worse side, "
        r"$\hat\alpha/\alpha$, against the stated rate $\alpha$, for the worst "
        "combination of $d_k$ and quantity of each distribution. Dotted: extrapolated "
        "to the rate of this report by a power law fitted to the counts. Shaded: at "
        "most %(allowed)s times. Orange: rows that are not judged. Right: shares of "
        "claims about the variance that come out supported (✓) and refuted (✗), "
        r"against the distance $\Delta$ of the claimed value from the truth, in "
        r"tolerances $\tau$; left of the line the claim is true. Dashed and full: few "
        "and many replicates."
    ),
    alternative=message(
        "Of all judged distributions the worst misses %(first)s times as often as "
        "stated at the largest rate counted, and %(second)s times at the smallest."
    ),
    named=("worst_ratio_at_largest_rate", "worst_ratio_at_smallest_rate"),
    fact=pick_rates,
    constants={"allowed": ALLOWED},
    series={"distributions": card_rows},
)
