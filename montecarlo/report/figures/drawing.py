"""What all figures are drawn with: the style, panels, series, shades and legends."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colorbar import Colorbar
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path as Outline
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
)
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame, Series

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.report.content.tables.rows import has_interval, with_interval
from montecarlo.report.figures.palette import (
    INK,
    MUTED,
    PAGE,
    SHADES,
    Dash,
    Look,
    keep_looks,
    name_colours,
)

STYLE = Path(__file__).with_name("figures.mplstyle")
#: Inches.  Shown 700 pixels wide, small print is then 16 pixels high; at 320, 7.
WIDTH = 6.0
#: Inches around the panels of a figure.
AROUND = 0.35
#: Labels of d_k or ranks that fit a panel, by the number of panels beside each other.
MOST_TICKS = {1: 8, 2: 5, 3: 4}
#: What holds for large n only is dashed like this in every figure.
LIMIT_DASH: Dash = (0, (4, 3))
LIMIT_WIDTH = 1.1
#: Points of a mark where panels are small.
MARK = 4.5


@contextmanager
def house_style(theme: str = "light") -> Iterator[None]:
    """Draw in the style of the report and in a theme, whatever the user's style is."""
    style = mpl.rc_params_from_file(STYLE, use_default_template=True)
    with mpl.rc_context(style):
        name_colours(theme)
        try:
            yield
        finally:
            name_colours("light")


# --- Panels -------------------------------------------------------------------------


def letters(n: int) -> list[str]:
    """Return what marks panels or lines that a caption names: (a), (b) and so on."""
    return [f"({ascii_lowercase[place]})" for place in range(n)]


def panels(
    rows: int,
    columns: int,
    height: float,
    kind: type[Figure] = Figure,
    **layout: Any,  # noqa: ANN401 - passed on to matplotlib
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure and its panels, row by row of some inches each."""
    figure = kind(figsize=(WIDTH, rows * height + AROUND), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **layout)
    return figure, list(axes.flat)


def panels_for(
    count: int, columns: int, height: float, kind: type[Figure] = Figure
) -> tuple[Figure, list[Axes]]:
    """Return panels for so many items: at most so many columns, none left empty."""
    columns = min(columns, count)
    figure, axes = panels(-(-count // columns), columns, height, kind)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def plot_panels(  # noqa: PLR0913 - what, on which scales, and where
    plot: Callable[[Axes, DataFrame], Axes],
    parts: Sequence[tuple[str, DataFrame]],
    values: Iterable[float],
    y: str | Sequence[str],
    *,
    columns: int,
    height: float,
    x: str = "$d_k$",
) -> Figure:
    """Build a panel for each title and table, all on the same scales.

    Parameters
    ----------
    plot : callable
        Draws a table into a panel.
    parts : sequence of (str, DataFrame)
        Row by row.
    values : iterable of float
        What stands on the x axis, at powers of 2.
    y : str or sequence of str
        A label for every row, or one for each.
    columns : int
        Panels beside each other at most.
    height : float
        Inches of a row.
    x : str
        The label under the lowest panel of each column.
    """
    columns = min(columns, len(parts))
    figure, axes = panels_for(len(parts), columns, height)
    for number, (one, (title, table)) in enumerate(zip(axes, parts, strict=True)):
        plot(one, table)
        powers_of_two(one, values, columns)
        one.set_title(title)
        if number + columns >= len(axes):
            one.set_xlabel(x)
        else:
            one.tick_params(bottom=False, labelbottom=False)
        if number % columns == 0:
            one.set_ylabel(y if isinstance(y, str) else y[number // columns])
        else:
            one.tick_params(left=False, labelleft=False)
    return figure


# --- Series -------------------------------------------------------------------------


def rescale(table: DataFrame, scale: Callable[[Series], Series]) -> DataFrame:
    """Return a table whose estimates, errors and intervals are in another unit."""
    columns = ("estimate", "std_error", "ci_low", "ci_high")
    return table.assign(**{n: scale(table[n]) for n in columns if n in table})


def plot_series(
    axes: Axes,
    table: DataFrame,
    column: str,
    looks: Mapping[str, Look],
    *parts: Callable[[Axes, DataFrame, Look], Axes],
) -> Axes:
    """Draw the rows of each series that a column names; by default joined estimates."""
    for name, look in keep_looks(looks, table[column]).items():
        for plot in parts or (plot_line, plot_estimates):
            plot(axes, table[table[column].eq(name)], look)
    return axes


def plot_estimates(axes: Axes, table: DataFrame, look: Look, x: str = "d_k") -> Axes:
    """Draw estimates with their intervals against d_k, or another column.

    Those whose interval has no bounds are left out.
    """
    table = with_interval(table).sort_values(x)
    axes.errorbar(
        table[x],
        table["estimate"],
        bars(table["estimate"], table["ci_low"], table["ci_high"]),
        linestyle="none",
        elinewidth=1.2,
        **look.mark,
    )
    return axes


def bars(value: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Return how far intervals reach below and above values, shape (2, values).

    Rounding may put an interval of width 0 a hair beside its estimate.
    """
    low, value, high = (np.asarray(one, dtype=np.float64) for one in (low, value, high))
    return np.maximum([value - low, high - value], 0.0)


def plot_line(axes: Axes, table: DataFrame, look: Look) -> Axes:
    """Join the estimates against d_k, to guide the eye.

    The line breaks where one is missing, or its interval has no bounds.
    """
    table = table.sort_values("d_k")
    y = table["estimate"].where(has_interval(table))
    axes.plot(table["d_k"], y, color=look.colour, linestyle=look.dash, zorder=1.8)
    return axes


def plot_reference(axes: Axes, table: DataFrame, _: Look | None = None) -> Axes:
    """Draw the exact values that theory gives against d_k, grey under the points."""
    table = table.sort_values("d_k")
    if table["reference"].notna().any():
        axes.plot(
            table["d_k"], table["reference"], color=MUTED, linewidth=1.1, zorder=1.6
        )
    return axes


def plot_band(axes: Axes, wide: DataFrame, look: Look) -> Axes:
    """Fill what lies between the outer tenths, columns ``q10`` and ``q90``."""
    axes.fill_between(
        wide.index, wide["q10"], wide["q90"], color=look.colour, alpha=0.2, linewidth=0
    )
    return axes


def plot_limit(axes: Axes, x: ArrayLike, y: ArrayLike) -> None:
    """Draw what a quantity comes to for large n."""
    axes.plot(x, y, color=INK, linewidth=LIMIT_WIDTH, linestyle=LIMIT_DASH, zorder=1.7)


def level(axes: Axes, value: float) -> None:
    """Mark a level that estimates are to be compared with."""
    axes.axhline(value, color=MUTED, linewidth=1.1, zorder=1.5)


# --- Axes ---------------------------------------------------------------------------


def powers_of_two(axes: Axes, values: Iterable[float], columns: int) -> None:
    """Make the x axis logarithmic with labels at powers of 2.

    There are as many as fit one of so many panels beside each other.
    """
    shown = np.asarray(list(values), dtype=float)
    low, high = np.log2(shown.min()), np.log2(shown.max())
    first, last = int(np.ceil(low)), int(np.floor(high))
    step = max(1, -(-(last - first + 1) // MOST_TICKS[columns]))
    axes.set_xscale("log", base=2)
    powers = [2.0**power for power in range(first, last + 1, step)]
    axes.xaxis.set_major_locator(FixedLocator(powers or [shown.min()]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    margin = 0.05 * (high - low) + 0.2
    axes.set_xlim(2.0 ** (low - margin), 2.0 ** (high + margin))


def logarithmic(
    axes: Axes, low: float | None = None, high: float | None = None
) -> None:
    """Make the y axis logarithmic with few labels, between limits where given."""
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(LogLocator(numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())


def in_percent(axes: Axes) -> None:
    """Write the values of the y axis in percent: few of them need a decimal sign."""
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda y, _: f"{100.0 * y:g}".replace("-", "\N{MINUS SIGN}"))
    )


def unit_interval(axes: Axes, low: float, high: float, step: float = 0.5) -> None:
    """Let the y axis show shares: labels at 0, 0.5 and 1, ticks at every step."""
    ticks = np.arange(0.0, 1.0 + step, step)
    axes.set_ylim(low, high)
    axes.set_yticks(ticks, ["" if tick % 0.5 else f"{tick:g}" for tick in ticks])


# --- Legends ------------------------------------------------------------------------


def key_of(look: Look, *, line: bool = False) -> Line2D:
    """Return the legend's entry of a series."""
    mark = {**look.mark, "markersize": None}  # the legend's own
    dash = look.dash if line else "none"
    return Line2D([], [], linestyle=dash, label=look.symbol, **mark)


def keys_of(
    looks: Mapping[str, Look], names: Iterable[str], *, line: bool = False
) -> list[Line2D]:
    """Return the legend's entries of the series that there are."""
    return [key_of(look, line=line) for look in keep_looks(looks, names).values()]


def line_key(dash: Dash, symbol: str, colour: str = INK) -> Line2D:
    """Return the legend's entry of a line without marks."""
    return Line2D([], [], color=colour, linestyle=dash, label=symbol)


def limit_key(symbol: str) -> Line2D:
    """Return the legend's entry of what `plot_limit` draws."""
    return Line2D(
        [], [], color=INK, linewidth=LIMIT_WIDTH, linestyle=LIMIT_DASH, label=symbol
    )


def legend_above(
    figure: Figure, keys: Sequence[Artist], columns: int = 0, **style: float
) -> None:
    """Put one legend above all panels."""
    columns = columns or len(keys)
    figure.legend(handles=keys, loc="outside upper center", ncols=columns, **style)


def legend_below(figure: Figure, keys: Sequence[Artist], **style: float) -> None:
    """Put a second legend below all panels."""
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), **style)


#: What mathtext lacks, and what it has for it.
_SPELLED = {
    r"\lVert": r"\|",
    r"\rVert": r"\|",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\mathbb{1}": "1",
    r"\ge": r"\geq",
    r"\left(": "(",
    r"\right)": ")",
}


def symbol_of(quantity: str) -> str:
    """Return a quantity's symbol in the part of LaTeX that mathtext knows."""
    symbol = QUANTITIES[quantity].symbol
    for known, spelled in _SPELLED.items():
        symbol = symbol.replace(known, spelled)
    return symbol


# --- Shades -------------------------------------------------------------------------


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
    outlines = [
        Outline.make_compound_path_from_polys(corners[shade == s]) for s in present
    ]
    axes.add_collection(
        PathCollection(
            outlines,
            facecolors=[SHADES[s] for s in present],
            edgecolors=PAGE,
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
