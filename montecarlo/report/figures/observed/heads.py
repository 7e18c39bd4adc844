"""Figures of a model observed: maps of layers and heads, predictions, stacked parts.

What comes in is the table of an observation, as it stands on disk.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedFormatter, NullLocator
from numpy.typing import NDArray
from pandas import DataFrame

from montecarlo.observation.head_quantities import PARTS
from montecarlo.observation.observing import ALL
from montecarlo.report.figures.drawing.palette import (
    BLUE,
    GREEN,
    INK,
    LIGHT_PAGE,
    MUTED,
    OCHRE,
    PURPLE,
    SHADES,
    VERMILLION,
)
from montecarlo.report.figures.drawing.panels import (
    WIDTH,
    legend_above,
    logarithmic,
    panels,
)
from montecarlo.report.figures.drawing.shades import plot_cells, rectangles, shade_bar
from montecarlo.report.figures.drawing.specs import FigureSpec

#: Quantity, its symbol, and whether its scale is logarithmic; else it is a part of 1.
MAPS = (
    ("scaled_row_variance", r"$S^2/c^2$", True),
    ("effective_share", r"$e^H/n$", False),
    ("saturated_rows", r"$P(p_{\max} \geq 0.9)$", False),
)
#: Inches of a layer's row of cells, of what is around them, and of all rows at most.
ROW, AROUND, MOST_HEIGHT = 0.17, 0.45, 2.2
#: Numbers on an axis of layers or heads at most.
MOST_NUMBERS = 12
#: Parts of the variance: symbol and colour.
PART_LOOKS = {
    "entries": (r"$d_k\,\sigma_q^2\sigma_k^2$", BLUE),
    "anisotropy": (
        r"$\mathrm{tr}\,\Sigma_q\Sigma_k - d_k\,\sigma_q^2\sigma_k^2$",
        OCHRE,
    ),
    "mean_q": (r"$\mu_q^{\top}\Sigma_k\mu_q$", VERMILLION),
    "mean_k": (r"$\mu_k^{\top}\Sigma_q\mu_k$", PURPLE),
    "sequence": (r"$\Delta_{=}$", GREEN),
    "mask": (r"$\Delta_{\leq}$", MUTED),
}
#: Bars beside each other at most; of more heads the mean of each layer is shown.
MOST_BARS = 128


def heads_of(table: DataFrame) -> DataFrame:
    """Return one row per head and one column per quantity, layer by layer."""
    heads = table[table["layer"].ne(ALL)]
    wide = heads.pivot_table(
        index=["layer", "head"], columns="quantity", values="value", sort=False
    ).reset_index()
    places = {"layer": wide["layer"].astype(int), "head": wide["head"].astype(int)}
    return wide.assign(**places).sort_values(["layer", "head"], ignore_index=True)


def build_maps(measurements: DataFrame, _: DataFrame) -> Figure | None:
    """Build the maps of spread, effective keys and saturation over layers and heads."""
    heads = heads_of(measurements)
    layers = sorted(set(heads["layer"]))
    height = min(ROW * max(len(layers), 3), MOST_HEIGHT) + AROUND
    figure, axes = panels(len(MAPS), 1, height)
    for one, (name, symbol, is_log) in zip(axes, MAPS, strict=True):
        values = heads[name].to_numpy()
        levels = _levels(values) if is_log else np.linspace(0.0, 1.0, len(SHADES) + 1)
        plot_map(one, heads, name, levels)
        one.set_ylabel(r"$\ell$")
        ticks = _ticks(levels, 1.0 if is_log else 0.5)
        bar = shade_bar(figure, one, levels, ticks, 6.5 * height)
        bar.set_label(symbol)
        bar.ax.yaxis.set_major_formatter(FixedFormatter([f"{t:.3g}" for t in ticks]))
    axes[-1].set_xlabel("$h$")
    for one in axes[:-1]:
        one.tick_params(labelbottom=False)
    return figure


def plot_map(
    axes: Axes, heads: DataFrame, name: str, levels: NDArray[np.float64]
) -> Axes:
    """Draw a quantity of each head as a shade between levels, layers upward."""
    rows, columns = (sorted(set(heads[axis])) for axis in ("layer", "head"))
    x = heads["head"].map({head: i for i, head in enumerate(columns)}).to_numpy()
    y = heads["layer"].map({layer: i for i, layer in enumerate(rows)}).to_numpy()
    shade = np.clip(
        np.searchsorted(levels, heads[name], "right") - 1, 0, len(SHADES) - 1
    )
    plot_cells(axes, rectangles(x - 0.5, x + 0.5, y - 0.5, y + 0.5), shade, 0.6)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(-0.5, len(rows) - 0.5)
    _number(axes.xaxis, range(len(columns)), columns)
    _number(axes.yaxis, range(len(rows)), rows)
    return axes


def _number(axis: Axis, places: Sequence[float], labels: Sequence[int]) -> None:
    """Write numbers on an axis of layers or heads, as many as can be read."""
    step = -(-len(labels) // MOST_NUMBERS)
    axis.set_ticks(places[::step], [str(label) for label in labels[::step]])


def _levels(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return borders of shades, even in the logarithm, around all values and 1."""
    positive = values[values > 0.0]
    low = min(1.0, positive.min() if len(positive) else 1.0)
    high = max(1.0, values.max())
    if high / low < 1.2:
        low, high = low / 1.1, high * 1.1
    return np.geomspace(low, high, len(SHADES) + 1)


def _ticks(levels: NDArray[np.float64], between: float) -> list[float]:
    """Return the ends of a scale, and what is marked between them if it is."""
    low, high = float(levels[0]), float(levels[-1])
    return [low, between, high] if low < between < high else [low, high]


def build_predicted(measurements: DataFrame, _: DataFrame) -> Figure | None:
    """Build observed against predicted: variances, and effective keys."""
    heads = heads_of(measurements)
    compared = "effective_keys_permuted" in heads
    figure, axes = panels(1, 2 if compared else 1, 2.8)
    pairs = [
        (
            "part_entries",
            "score_variance",
            r"$d_k\,\sigma_q^2\sigma_k^2$",
            r"$\mathrm{Var}(q\cdot k)$",
        ),
        ("effective_keys_permuted", "effective_keys", r"$e^H\;(k \perp q)$", "$e^H$"),
    ]
    for one, (x, y, x_symbol, y_symbol) in zip(axes, pairs, strict=False):
        plot_pairs(one, heads, x, y)
        one.set_xlabel(x_symbol)
        one.set_ylabel(y_symbol)
    return figure


def plot_pairs(axes: Axes, heads: DataFrame, x: str, y: str) -> Axes:
    """Draw one quantity of each head against another, both logarithmic, and y = x."""
    axes.plot(
        heads[x], heads[y], color=INK, marker="o", markersize=3.5, linestyle="none"
    )
    both = heads[[x, y]].to_numpy()
    low, high = both.min() / 1.3, both.max() * 1.3
    axes.plot([low, high], [low, high], color=MUTED, linewidth=1.1, zorder=1.5)
    axes.set_xscale("log")
    logarithmic(axes, low, high)
    axes.set_xlim(low, high)
    axes.xaxis.set_minor_locator(NullLocator())
    return axes


def build_parts(measurements: DataFrame, _: DataFrame) -> Figure | None:
    """Build the parts of the variance of each head as stacked bars that add up to 1."""
    heads = heads_of(measurements)
    shares = heads[["layer"]].assign(
        **{n: heads[f"part_{n}"] / heads["score_variance"] for n in PARTS}
    )
    if len(shares) > MOST_BARS:
        shares = shares.groupby("layer", as_index=False).mean()
    shown = [name for name in PARTS if (shares[name] != 0.0).any()]
    figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
    axes = figure.subplots()
    up, down = np.zeros(len(shares)), np.zeros(len(shares))
    place = np.arange(len(shares))
    for name in shown:
        share = shares[name].to_numpy()
        bottom = np.where(share >= 0.0, up, down)
        colour = PART_LOOKS[name][1]
        axes.bar(
            place, share, 1.0, bottom, color=colour, edgecolor=LIGHT_PAGE, linewidth=0.3
        )
        up += np.maximum(share, 0.0)
        down += np.minimum(share, 0.0)
    axes.axhline(1.0, color=INK, linewidth=0.9)
    axes.axhline(0.0, color=INK, linewidth=0.9)
    axes.grid(visible=False)
    axes.set_xlim(-0.5, len(shares) - 0.5)
    _mark_layers(axes, shares["layer"].to_numpy())
    axes.set_xlabel(r"$\ell$")
    axes.set_ylabel(r"$/\;\mathrm{Var}(q\cdot k)$")
    keys = [Patch(color=PART_LOOKS[n][1], label=PART_LOOKS[n][0]) for n in shown]
    legend_above(figure, keys, 3)
    return figure


def _mark_layers(axes: Axes, layers: NDArray[np.int64]) -> None:
    """Write layers under the middle of their bars, and draw a line between them."""
    names = sorted(set(layers))
    middles = [float(np.flatnonzero(layers == name).mean()) for name in names]
    _number(axes.xaxis, middles, names)
    if len(names) < len(layers):
        for border in np.flatnonzero(np.diff(layers)):
            axes.axvline(border + 0.5, color=LIGHT_PAGE, linewidth=1.6)


OBSERVED_FIGURES = {
    spec.id: spec
    for spec in (
        FigureSpec("observed-maps", build_maps),
        FigureSpec("observed-predicted", build_predicted),
        FigureSpec("observed-parts", build_parts),
    )
}
