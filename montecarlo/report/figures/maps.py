"""A map over d_k and n: the largest weight of a row."""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from pandas import DataFrame

from montecarlo.report.content.tables.rows import saturation_cells
from montecarlo.report.content.tables.topics import N_KEYS
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.attention import HEAD_SIZE
from montecarlo.report.figures.drawing import Key, Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import DIVISOR_LOOKS, INK, PAGE, SHADES, Look
from montecarlo.report.figures.specs import (
    MOST_D_K,
    Fact,
    FigureSpec,
    at_nearest,
    pair,
)

#: Points of a row of cells, and labels of d_k.
ROW, MOST_LABELS = 19.0, 6
#: From this shade on, numbers have the colour of the page.
MIDDLE = len(SHADES) // 2
LINE_POINTS = 17
LARGEST_WEIGHT = Label(
    message(r"mean largest weight, $0$ to $100\,\%%$"),
    r"\operatorname{E} p_{\max}",
)
#: The line runs off at n = 1, where a cell of n = 2 may end.
LEAST_KEYS = 1.05


def build_saturation(measurements: DataFrame, _: DataFrame) -> Picture | None:
    """Build the map of unscaled rows, with the limit 2 ln n, above that of scaled."""
    cells = saturation_cells(measurements)
    divisors = [d for d in ("none", "sqrt") if cells["divisor"].eq(d).any()]
    if not divisors:
        return None
    height = ROW * cells["n_keys"].nunique()
    picture = Picture((1,) * len(divisors), (height,) * len(divisors))
    for panel, divisor in zip(picture.panels, divisors, strict=True):
        mine = cells[cells["divisor"].eq(divisor)]
        plot_saturation(panel, mine, limit=divisor == "none")
        panel.title = DIVISOR_LOOKS[divisor].label
        panel.y = Label(message("keys of a row"), "n")
    picture.share_axes(HEAD_SIZE)
    picture.keys = [Key(LARGEST_WEIGHT, Look(INK, ""), "shades")]
    if "none" in divisors:
        limit = Label(symbol=r"d_k = 2\,\ln n")
        picture.keys.append(draw.line_key(draw.LIMIT_DASH, limit))
    return picture


def pick_saturations(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the ends of a line of the upper map, in percent as it shows them."""
    cells = saturation_cells(measurements)
    cells = cells[cells["divisor"].eq("none") & cells["d_k"].le(MOST_D_K)]
    line = at_nearest(cells, "n_keys", N_KEYS).sort_values("d_k")
    if line.empty:
        return None
    line = draw.rescale(line, lambda part: 100.0 * part)
    n, low, high = line["n_keys"].iloc[0], line["d_k"].min(), line["d_k"].max()
    return pair(line, line.iloc[-1:], n=n, low=low, d_k=high)


def plot_saturation(panel: Panel, table: DataFrame, *, limit: bool) -> Axes:
    """Draw mean largest weights as shades, with percentages, in cells of one size.

    Parameters
    ----------
    panel : Panel
    table : DataFrame
        Rows of one divisor of measurements.csv; a combination of d_k and n that it does
        not have stays empty.
    limit : bool
        Whether to draw the line d_k = 2 ln n, behind the numbers.
    """
    axes = panel.axes
    table = table.sort_values(["n_keys", "d_k"])
    value = table["estimate"].to_numpy()
    shade = np.minimum((value * len(SHADES)).astype(int), len(SHADES) - 1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    ends = (*_cell_ends(table["d_k"]), *_cell_ends(table["n_keys"]))
    draw.plot_cells(axes, *ends, shade, 0.8)
    d_ks = sorted(set(table["d_k"]))
    draw.mark_ticks(axes.xaxis, d_ks[:: -(-len(d_ks) // MOST_LABELS)])
    draw.mark_ticks(axes.yaxis, sorted(set(table["n_keys"])))
    if limit:
        _draw_limit(axes)
    for d_k, n_keys, part, number in zip(
        table["d_k"], table["n_keys"], value, shade, strict=True
    ):
        colour = INK if number < MIDDLE else PAGE
        label = Label(symbol=percent(part))
        panel.notes.append(Note(label, d_k, n_keys, "middle", colour=colour))
    return axes


def _draw_limit(axes: Axes) -> None:
    """Draw d_k = 2 ln n, on a ground of its own that tells it from every shade."""
    low, high = axes.get_ylim()
    n = np.geomspace(max(low, LEAST_KEYS), high, LINE_POINTS)
    axes.plot(2.0 * np.log(n), n, color=PAGE, linewidth=3.0, zorder=1.6)
    draw.plot_limit(axes, 2.0 * np.log(n), n)


def percent(part: float) -> str:
    """Write a part as a percentage: whole, but never 0 or 100 for what is not."""
    value = 100.0 * part
    return f"{value:.0f}" if 0.95 <= value < 99.5 else f"{value:.1f}"


def _cell_ends(
    sizes: Iterable[float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where the cells around sizes begin and end on a logarithmic scale.

    All cells are equally wide and the nearest two meet: what lies between sizes further
    apart was not measured, and stays empty.
    """
    logs = np.log2(np.asarray(list(sizes), dtype=float))
    half = 0.5 * np.diff(np.unique(logs)).min()
    return 2.0 ** (logs - half), 2.0 ** (logs + half)


SATURATION = FigureSpec(
    "saturation",
    build_saturation,
    "map of the largest weight over d_k and n",
    section="weights",
    caption=message(
        "Mean largest weight of a row in per cent, as shade and number. Dashed: beyond "
        "it unscaled attention saturates in the limit of large $n$."
    ),
    alternative=message(
        "The largest weight of an unscaled row of n = %(n)s keys is %(first)s %% on "
        "average at d_k = %(low)s and %(second)s %% at d_k = %(d_k)s."
    ),
    named=("weight_max_percent_at_least_d_k", "weight_max_percent_at_d_k"),
    fact=pick_saturations,
)
