"""The figure of `observe`: measured and expected divisors of the heads of a model.

It belongs to no page, so its words are English, like the output on the terminal.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pandas import DataFrame

from montecarlo.model.answers import ScaleAnswer
from montecarlo.model.scales import scales_table
from montecarlo.report.content.curves import CurveTables
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Key, Picture
from montecarlo.report.figures.files import draw as draw_figure
from montecarlo.report.figures.files import on_light_ground
from montecarlo.report.figures.labels import Label
from montecarlo.report.figures.palette import INK, MUTED, VERMILLION, Look
from montecarlo.report.figures.specs import FigureSpec
from montecarlo.report.language.catalogues import SOURCE, read_language
from montecarlo.study.folder import write_text

if TYPE_CHECKING:  # slow to import
    from matplotlib.axes import Axes

#: Most labels of layers on the x axis.
MOST_LAYERS = 12
#: Most labels of divisors on the y axis; smallest distance of their logarithms.
MOST_MARKS, APART = 6, 0.15


def draw_scales(answer: ScaleAnswer, folder: Path) -> None:
    """Draw the figure of `observe` and write it as SVG into ``folder``/figures.

    Without heads nothing is written.
    """
    scales = scales_table(answer.scales.heads)
    expected = [answer.expected.at(layer).value for layer in scales["layer"]]
    drawing = draw_figure(APPLIED_SCALES, scales.assign(expected=expected), {})
    if drawing is not None:
        svg = on_light_ground(drawing.svg_in(read_language(SOURCE)))
        write_text(folder / "figures" / f"{APPLIED_SCALES.id}.svg", svg)


def build_scales(scales: DataFrame, _: CurveTables) -> Picture | None:
    """Return the figure of the divisors of all heads, by layer.

    Parameters
    ----------
    scales : DataFrame
        As from `montecarlo.model.scales.scales_table`, with the column ``expected``:
        the expected divisor, NaN where the configuration does not determine it.

    Returns
    -------
    Picture or None
        None if the table is empty.
    """
    if scales.empty:
        return None
    picture = Picture((1,), (150.0,))
    (panel,) = picture.panels
    picture.keys = plot_scales(panel.axes, scales)
    panel.x = Label("layer")
    panel.y = Label("divisor of the scores, with 95 % intervals")
    return picture


def plot_scales(axes: "Axes", scales: DataFrame) -> list[Key]:
    """Draw the divisor of each head with its interval; return the legend's entries.

    ``scales`` is as for `build_scales`.  The y axis is logarithmic.  A head whose
    divisor is not determined has a mark at the top.  Expected divisors are dashed
    lines.
    """
    layers = sorted(set(scales["layer"]))
    order = scales.groupby("layer").cumcount()
    place = scales["layer"].map(layers.index) + (order + 0.5) / (order.max() + 1) - 0.5
    told = scales["outcome"].eq("scale") & scales["implied_scale"].gt(0.0)
    uniform = scales["outcome"].eq("uniform")
    divisors = scales["implied_divisor"].where(told)
    expected = scales.groupby("layer")["expected"].first().dropna()
    every = [*expected.unique(), *divisors.dropna()]
    high = max(every, default=1.0) * 1.5
    draw.logarithmic(axes, min(every, default=1.0) / 1.5, high)
    shown: list[float] = []
    for one in every:  # those that are far enough from the ones before
        if all(abs(np.log(one / other)) > APART for other in shown):
            shown.append(one)
    draw.mark_ticks(axes.yaxis, shown[:MOST_MARKS], "{:.3g}")
    keys = []
    for layer, divisor in expected.items():
        middle = layers.index(layer)
        axes.plot(
            [middle - 0.5, middle + 0.5],
            [divisor, divisor],
            color=MUTED,
            linewidth=1.2,
            linestyle=draw.LIMIT_DASH,
        )
    if len(expected):
        told_by = ", ".join(f"{one:.4g}" for one in expected.unique()[:MOST_MARKS])
        label = Label(f"expected: {told_by}")
        keys.append(Key(label, Look(MUTED, "", draw.LIMIT_DASH), "line"))
    # an interval that reaches the scale 0 is open upwards
    tops = (1.0 / scales["ci_low"]).where(scales["ci_low"].gt(0.0), high)
    bars = draw.bars(divisors, 1.0 / scales["ci_high"], tops)
    mark = Look(INK, "o", size=3.2).mark
    axes.errorbar(place, divisors, bars, linestyle="none", elinewidth=0.9, **mark)
    for which, marker, words in (
        (uniform, "^", "all keys alike"),
        (~told & ~uniform, "x", "none above 0"),
    ):
        if which.any():
            look = Look(VERMILLION, marker, size=4.0)
            top = np.full(which.sum(), high / 1.15)
            axes.plot(place[which], top, linestyle="none", **look.mark)
            keys.append(Key(Label(words), look))
    step = -(-len(layers) // MOST_LAYERS)
    axes.set_xticks(range(0, len(layers), step), [str(one) for one in layers[::step]])
    axes.set_xlim(-0.5, len(layers) - 0.5)
    return keys


APPLIED_SCALES = FigureSpec("applied-scales", build_scales)
