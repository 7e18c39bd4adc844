"""The judge's report card: actual error rates against stated ones, and power."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from montecarlo.calibration.card import ALLOWED
from montecarlo.report.content.report_card import (
    EXTRAPOLATED_CURVE,
    POWER_CURVE,
    RATE_CURVE,
)
from montecarlo.report.figures.drawing.palette import (
    DISTRIBUTION_LOOKS,
    GAUSSIAN_LOOK,
    GRID,
    INK,
    REFUTED,
    SUPPORTED,
    VERMILLION,
    Dash,
    Look,
)
from montecarlo.report.figures.drawing.panels import key_of, level, panels

#: Below and above this a ratio is drawn on the edge.
LEAST, MOST = 0.1, 1000.0
MARK = 4.5
#: Distances of a claim from the truth, in tolerances: farther off all are decided.
SHOWN = (0.5, 1.5)
COLOURS = {"supported": SUPPORTED, "refuted": REFUTED}
DASHES: tuple[Dash, ...] = ((0, (2, 1.5)), "-")


def build_report_card(
    measurements: pd.DataFrame,  # noqa: ARG001 - builders share one signature
    curves: pd.DataFrame,
) -> Figure | None:
    """Build actual over stated error rates by distribution, and power beside them."""
    rates, power = card_rows(curves), curves[curves["curve"].eq(POWER_CURVE)]
    if rates.empty or power.empty:
        return None
    figure, (left, right) = panels(1, 2, 2.9)
    looks = {"gaussian": GAUSSIAN_LOOK, **DISTRIBUTION_LOOKS}
    keys = []
    for judged, colour in (("judged", INK), ("shown", VERMILLION)):
        of_kind = rates[rates["outcome"].eq(judged)]
        for distribution, look in looks.items():
            rows = of_kind[of_kind["distribution_k"].eq(distribution)]
            if len(rows):
                shown = replace(look, colour=colour, size=MARK)
                plot_rates(left, rows, shown)
                keys.append(key_of(shown))
    _finish_rates(left)
    plot_power(right, power)
    figure.legend(handles=keys, loc="outside upper center", ncols=6)
    return figure


def card_rows(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the error rates of curves.csv that are drawn: of independent entries."""
    rates = curves["curve"].isin((RATE_CURVE, EXTRAPOLATED_CURVE))
    return curves[rates & curves["dependence"].eq("none")]


def plot_rates(axes: Axes, table: pd.DataFrame, look: Look) -> Axes:
    """Draw how many times as often as stated a distribution's worst intervals miss.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of curves.csv: ``x`` is the stated rate, ``estimate`` the ratio.
    look : Look

    Returns
    -------
    Axes
    """
    table = table.sort_values("x", ascending=False)
    ratio = table["estimate"].clip(LEAST, MOST)
    counted = table["curve"].eq(RATE_CURVE)
    axes.plot(
        table["x"][counted],
        ratio[counted],
        linewidth=1.0,
        **look.mark,
    )
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


def plot_power(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw shares of claims supported and refuted, by distance from the truth.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of curves.csv: ``x`` is the distance in tolerances.

    Returns
    -------
    Axes
    """
    replicates, outcomes = table["n_replicates"].astype(int), table["outcome"]
    keys = []
    for n, dash in zip(sorted(set(replicates)), DASHES, strict=False):
        for name, colour in COLOURS.items():
            line = table[replicates.eq(n) & outcomes.eq(name)].sort_values("x")
            axes.plot(line["x"], line["estimate"], color=colour, linestyle=dash)
        keys.append(Line2D([], [], color=INK, linestyle=dash, label=f"{n}"))
    for (_, colour), sign in zip(COLOURS.items(), "✓✗", strict=True):
        keys.append(Line2D([], [], color=colour, label=sign))
    axes.axvline(1.0, color=INK, linewidth=0.8)
    axes.set_xlim(*SHOWN)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(r"$\Delta\,/\,\tau$")
    axes.legend(handles=keys, loc="lower left", handlelength=1.2)
    return axes
