"""Cells in shades, and the bar that says what these mean."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colorbar import Colorbar
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.path import Path
from numpy.typing import NDArray

from montecarlo.report.figures.drawing.palette import LIGHT_PAGE, MUTED, SHADES


def plot_cells(
    axes: Axes, corners: NDArray[np.float64], shade: NDArray[np.int64], gap: float
) -> None:
    """Fill cells, those of one shade by one path.

    Parameters
    ----------
    axes : Axes
    corners : ndarray, shape (cells, 4, 2)
    shade : ndarray, shape (cells,)
        Places in `SHADES`.
    gap : float
        Points between cells.
    """
    present = np.unique(shade)
    axes.add_collection(
        PathCollection(
            [Path.make_compound_path_from_polys(corners[shade == s]) for s in present],
            facecolors=[SHADES[s] for s in present],
            edgecolors=LIGHT_PAGE,
            linewidths=gap,
        ),
        autolim=False,
    )
    axes.grid(visible=False)


def rectangles(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return corners of cells, shape (cells, 4, 2), from their four sides."""
    x = np.stack((left, right, right, left), axis=-1)
    y = np.stack((low, low, high, high), axis=-1)
    return np.stack((x, y), axis=-1)


def shade_bar(
    figure: Figure,
    axes: Axes | Sequence[Axes],
    levels: NDArray[np.float64],
    ticks: Sequence[float],
    aspect: float,
) -> Colorbar:
    """Draw the scale of the shades beside panels.

    Parameters
    ----------
    figure : Figure
    axes : Axes or sequence of Axes
    levels : ndarray, shape (shades + 1,)
        Borders of the shades, ascending.
    ticks : sequence of float
    aspect : float
        Length over width.
    """
    shades = ScalarMappable(BoundaryNorm(levels, len(SHADES)), ListedColormap(SHADES))
    bar = figure.colorbar(shades, ax=axes, ticks=ticks, aspect=aspect, pad=0.02)
    bar.outline.set(edgecolor=MUTED, linewidth=0.7)
    bar.ax.tick_params(length=0)
    return bar
