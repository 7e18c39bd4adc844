"""The judge's report card: actual error rates against stated ones, and power."""

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from montecarlo.calibration.card import ALLOWED, read_card
from montecarlo.calibration.rates import RATES
from montecarlo.report.figures.drawing import key_of, level, panels
from montecarlo.report.figures.palette import (
    GAUSSIAN_LOOK,
    GRID,
    INK,
    LAW_LOOKS,
    REFUTED,
    SUPPORTED,
    VERMILLION,
    Dash,
    Look,
)
from montecarlo.report.report_card import Grade, view_card

#: Below and above this a ratio is drawn on the edge.
LEAST, MOST = 0.1, 1000.0
MARK = 4.5
#: Distances of a claim from the truth, in tolerances: farther off all are decided.
SHOWN = (0.65, 1.35)
SHARES_OF = ("score_variance", "none")
DASHES: tuple[Dash, ...] = ((0, (2, 1.5)), "-")


def build_report_card(
    measurements: pd.DataFrame,  # noqa: ARG001 - builders share one signature
    curves: pd.DataFrame,  # noqa: ARG001
) -> Figure | None:
    """Build the card that came with the package, whatever the results."""
    card = read_card()
    view = view_card(card)
    if card is None or view is None:
        return None
    figure, (left, right) = panels(1, 2, 2.9)
    looks = {"gaussian": GAUSSIAN_LOOK, **LAW_LOOKS}
    keys = []
    for grade in view.grades:
        look = looks.get(grade.law)
        if look is None or grade.context:
            continue
        colour = INK if grade.judged else VERMILLION
        shown = replace(look, colour=colour, size=MARK)
        plot_grade(left, grade, shown, view.decision_error)
        keys.append(key_of(shown))
    _finish_rates(left)
    plot_power(right, card.power)
    figure.legend(handles=keys, loc="outside upper center", ncols=6)
    return figure


def plot_grade(axes: Axes, grade: Grade, look: Look, error_rate: float) -> Axes:
    """Draw how many times as often as stated a law's worst intervals miss.

    Parameters
    ----------
    axes : Axes
    grade : Grade
    look : Look
    error_rate : float
        To where the model is drawn.

    Returns
    -------
    Axes
    """
    worst = np.clip(grade.worst, LEAST, MOST)
    axes.plot(
        RATES,
        worst,
        color=look.colour,
        marker=look.marker,
        markersize=look.size,
        markerfacecolor=look.colour if look.filled else "none",
        linewidth=1.0,
    )
    beyond = np.clip([grade.worst[-1], grade.extrapolated], LEAST, MOST)
    axes.plot(
        [RATES[-1], error_rate],
        beyond,
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


def plot_power(axes: Axes, power: pd.DataFrame) -> Axes:
    """Draw shares of claims supported and refuted, by distance from the truth.

    Parameters
    ----------
    axes : Axes
    power : DataFrame
        Of a card.

    Returns
    -------
    Axes
    """
    quantity, divisor = SHARES_OF
    here = power[power["law"].eq("gaussian") & power["d_k"].eq(64)]
    here = here[here["quantity"].eq(quantity) & here["divisor"].eq(divisor)]
    keys = []
    groups = sorted(here.groupby("replicates"), key=lambda pair: int(str(pair[0])))
    for (replicates, lines), dash in zip(groups, DASHES, strict=False):
        ordered = lines.sort_values("distance")
        for name, colour in (("supported", SUPPORTED), ("refuted", REFUTED)):
            share = ordered[name] / ordered["samples"]
            axes.plot(ordered["distance"], share, color=colour, linestyle=dash)
        keys.append(Line2D([], [], color=INK, linestyle=dash, label=f"{replicates}"))
    for colour, sign in ((SUPPORTED, "✓"), (REFUTED, "✗")):
        keys.append(Line2D([], [], color=colour, label=sign))
    axes.axvline(1.0, color=INK, linewidth=0.8)
    axes.set_xlim(*SHOWN)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(r"$\Delta\,/\,\tau$")
    axes.legend(handles=keys, loc="center left", ncols=1)
    return axes
