"""Figures of the scale that a model applies: every head's divisor, and one row's fit.

In: a line per head, and the points of a row with what was expected.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator
from pandas import DataFrame

from montecarlo.applied.steps import FROZEN, HOT
from montecarlo.report.content.observed.record import Observed
from montecarlo.report.figures.drawing.palette import BLUE, INK, MUTED, VERMILLION
from montecarlo.report.figures.drawing.panels import logarithmic, panels
from montecarlo.report.figures.drawing.specs import FigureSpec

#: Dashes of what was expected.
DASHES = (0, (4, 3))
MOST_LAYERS = 12
#: Divisors on the axis at most, and how far apart their logarithms are at least.
MOST_MARKS, APART = 6, 0.15


def tables_of(observed: Observed) -> tuple[DataFrame, DataFrame]:
    """Return heads, and points of the row, each with the scale that was expected.

    The row has the scale that was told beside it.
    """
    applied = observed.record["applied"]
    expected = 1.0 / applied["expected_divisor"]
    divisor = applied["findings"][0]["divisor"]
    told = 1.0 / divisor if divisor else np.nan
    return (
        observed.scales.assign(expected=expected),
        observed.row.assign(expected=expected, told=told),
    )


def build_scales(scales: DataFrame, _: DataFrame) -> Figure | None:
    """Build the divisors of all heads, layer by layer, beside the one expected."""
    figure, (axes,) = panels(1, 1, 2.6)
    plot_scales(axes, scales)
    axes.set_xlabel(r"$\ell$")
    axes.set_ylabel(r"$1/\lambda$")
    return figure


def plot_scales(axes: Axes, scales: DataFrame) -> Axes:
    """Draw each head's divisor with its interval; at the top where none is told."""
    layers = sorted(set(scales["layer"]))
    order = scales.groupby("layer").cumcount()
    place = scales["layer"].map(layers.index) + (order + 0.5) / (order.max() + 1) - 0.5
    told = scales["outcome"].eq("scale") & scales["implied_scale"].gt(0.0)
    divisors = scales["implied_divisor"].where(told)
    expected = 1.0 / float(scales["expected"].iloc[0])
    low = np.fmin(divisors.min(), expected) / 1.5
    high = np.fmax(divisors.max(), expected) * 1.5
    axes.set_yscale("log")
    logarithmic(axes, low, high)
    _mark_divisors(axes, [expected, *divisors.dropna()])
    axes.axhline(expected, color=MUTED, linewidth=1.2, linestyle=DASHES)
    errors = [
        divisors - 1.0 / scales["ci_high"].where(told),
        1.0 / scales["ci_low"].where(told) - divisors,
    ]
    axes.errorbar(
        place,
        divisors,
        np.clip(np.stack(errors), 0.0, None),
        color=INK,
        marker="o",
        markersize=3.2,
        linestyle="none",
        linewidth=0.9,
    )
    uniform = scales["outcome"].eq("uniform")
    for shown, marker in ((uniform, "^"), (~told & ~uniform, "x")):
        axes.plot(
            place[shown],
            np.full(shown.sum(), high / 1.15),
            color=VERMILLION,
            marker=marker,
            markersize=4.0,
            linestyle="none",
        )
    step = -(-len(layers) // MOST_LAYERS)
    axes.xaxis.set_major_locator(FixedLocator(range(0, len(layers), step)))
    axes.set_xticklabels([str(layer) for layer in layers[::step]])
    axes.set_xlim(-0.5, len(layers) - 0.5)
    return axes


def _mark_divisors(axes: Axes, divisors: list[float]) -> None:
    """Write divisors on the axis, the first ones that are apart from each other."""
    shown: list[float] = []
    for one in divisors:
        apart = all(abs(np.log(one / other)) > APART for other in shown)
        if apart and len(shown) < MOST_MARKS:
            shown.append(one)
    axes.yaxis.set_major_locator(FixedLocator(shown))
    axes.yaxis.set_major_formatter(FixedFormatter([f"{one:.3g}" for one in shown]))
    axes.yaxis.set_minor_locator(NullLocator())


def build_row(_scales: DataFrame, row: DataFrame) -> Figure | None:
    """Build one row: logarithms of weights against scores, and lines beside them."""
    if row["score"].isna().all():
        return None
    figure, (axes,) = panels(1, 1, 2.8)
    plot_row(axes, row)
    axes.set_xlabel(r"$q\cdot k_j$")
    axes.set_ylabel(r"$\ln p_j$")
    return figure


def plot_row(axes: Axes, row: DataFrame) -> Axes:
    """Draw the points of a row, and lines through their middle."""
    scores, logs = row["score"].to_numpy(), row["log_weight"].to_numpy()
    middle, height = np.median(scores), np.median(logs)
    ends = np.array([scores.min(), scores.max()])
    for name, colour, dashes in (("expected", MUTED, DASHES), ("told", BLUE, "-")):
        slope = float(row[name].iloc[0])
        if np.isfinite(slope):
            line = height + slope * (ends - middle)
            axes.plot(ends, line, color=colour, linestyle=dashes, linewidth=1.4)
    axes.plot(scores, logs, color=INK, marker="o", markersize=3.0, linestyle="none")
    room = 0.08 * max(float(np.ptp(logs)), 1.0)  # even rows are no noise enlarged
    axes.ticklabel_format(useOffset=False)
    axes.set_ylim(logs.min() - room, logs.max() + room)
    return axes


def build_steps(steps: DataFrame, _: DataFrame) -> Figure | None:
    """Build largest scores and entropies over the steps of training."""
    figure, axes = panels(1, 2, 2.6)
    shown = (
        ("score_max", r"$\max\,|\lambda\, q\cdot k|$", HOT),
        ("entropy_share", r"$H/\ln n$", FROZEN),
    )
    for one, (name, symbol, border) in zip(axes, shown, strict=True):
        plot_steps(one, steps, name, border)
        one.set_ylabel(symbol)
        one.set_xlabel("$t$")
    logarithmic(axes[0])
    axes[1].set_ylim(0.0, 1.02)
    return figure


def plot_steps(axes: Axes, steps: DataFrame, name: str, border: float) -> Axes:
    """Draw the smallest, the median and the largest head, and a border of practice."""
    heads = steps.groupby("step")[name]
    for values, colour in (
        (heads.min(), MUTED),
        (heads.max(), MUTED),
        (heads.median(), INK),
    ):
        axes.plot(values.index, values, color=colour, marker="o", markersize=3.0)
    axes.axhline(border, color=VERMILLION, linewidth=1.0, linestyle=DASHES)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return axes


STEP_FIGURES = {"steps": FigureSpec("steps", build_steps)}
APPLIED_FIGURES = {
    spec.id: spec
    for spec in (
        FigureSpec("applied-scales", build_scales),
        FigureSpec("applied-row", build_row),
    )
}
