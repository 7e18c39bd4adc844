"""What all figures are drawn with: pictures of panels, series, axes, legends, shades.

A `Picture` holds shapes and what is to be said about them.  Its layout leaves room for
the longest of all languages: words stand above panels, from the left, and may wrap.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
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

from montecarlo.report.content.tables.rows import has_interval, with_interval
from montecarlo.report.figures.labels import (
    Label,
    Run,
    break_lines,
    every_language,
    most_lines,
    text_runs,
    widest,
    width_of,
)
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
from montecarlo.report.language.catalogues import Language

STYLE = Path(__file__).with_name("figures.mplstyle")
#: Points.  On a phone 390 pixels wide a point is a pixel.
WIDTH, SIZE, LINE = 360.0, 11.0, 14.0
#: Points: around a figure, between columns and rows of panels, right of the last label.
MARGIN, BETWEEN, BELOW, RIGHT = 3.0, 8.0, 9.0, 10.0
#: Points from an axis to its labels, and from words to the panel below them.
APART, ABOVE = 5.0, 6.0
#: Labels of d_k or ranks that fit a panel, by the number of panels beside each other.
MOST_TICKS = {1: 8, 2: 4, 3: 3}
#: What holds for large n only is dashed like this in every figure.
LIMIT_DASH: Dash = (0, (4, 3))
LIMIT_WIDTH = 1.1
#: Points of a mark where panels are small.
MARK = 4.5
#: Points of what a legend shows before its words, and between its entries.
SWATCH, STRIP, GAP, AFTER = 20.0, 70.0, 5.0, 13.0


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


# --- What is said, and where --------------------------------------------------------


class Block(NamedTuple):
    """Words at a place: points from the left and the top of the figure."""

    label: Label
    x: float
    y: float  # of the first baseline, or of the last one
    width: float = np.inf  # lines are broken there
    anchor: str = "start"
    up: bool = False  # whether y is that of the last line
    colour: str = INK
    bold: bool = False
    title: Label | None = None  # on top of the first line
    title_bold: bool = False


class Key(NamedTuple):
    """An entry of a legend: a mark, a line, an area or a scale of shades."""

    label: Label
    look: Look
    line: bool = False
    mark: bool = True
    area: float = 0.0  # opacity
    strip: bool = False

    @property
    def width(self) -> float:
        """Points of what stands before the words."""
        if self.strip:
            return STRIP
        return SWATCH if self.line or self.area else 9.0


class Words(NamedTuple):
    """A line of text where it stands."""

    runs: list[Run]
    x: float
    y: float
    anchor: str = "start"
    colour: str = INK
    bold: bool = False


class Placed(NamedTuple):
    """The text of a figure in one language, and where its legend's entries stand."""

    words: list[Words]
    keys: list[tuple[float, float]]


class Layout(NamedTuple):
    """Where everything stands that a language has words for, in points."""

    width: float
    height: float
    blocks: tuple[Block, ...]
    keys: tuple[Key, ...]

    def place(self, language: Language | None) -> Placed:
        """Place words of a language, or symbols alone."""
        words = [one for block in self.blocks for one in _lines(block, language)]
        keys = []
        for key, x, y in _flow(self.keys, language):
            keys.append((x, y))
            runs = text_runs(key.label.written(language))
            words.append(Words(runs, x + key.width + GAP, y + 0.36 * SIZE))
        return Placed([one for one in words if one.runs], keys)


def _lines(block: Block, language: Language | None) -> Iterator[Words]:
    text = block.label.written(language)
    lines = break_lines(text, SIZE, block.width, bold=block.bold)
    first = block.y - LINE * (len(lines) - 1) if block.up else block.y
    if block.title:
        title = Block(block.title, block.x, first - LINE, block.width, up=True)
        yield from _lines(title._replace(bold=block.title_bold), language)
    for place, runs in enumerate(lines):
        y = first + LINE * place
        yield Words(runs, block.x, y, block.anchor, block.colour, block.bold)


def _flow(
    keys: Sequence[Key], language: Language | None
) -> Iterator[tuple[Key, float, float]]:
    """Yield where entries of a legend stand, line by line; y is their middle."""
    x, y = MARGIN, MARGIN + 0.5 * LINE
    for key in keys:
        runs = text_runs(key.label.written(language))
        width = key.width + GAP + width_of(runs, SIZE)
        if x > MARGIN and x + width > WIDTH - MARGIN:
            x, y = MARGIN, y + LINE
        yield key, x, y
        x += width + AFTER


# --- Pictures -----------------------------------------------------------------------


class Note(NamedTuple):
    """Words inside a panel, at a place of its data, moved by points."""

    label: Label
    x: float
    y: float
    anchor: str = "start"
    dx: float = 0.0
    dy: float = 0.0  # upwards
    colour: str = INK
    width: float = np.inf


@dataclass
class Panel:
    """Axes, and what is said of them: above them the title and the y axis."""

    axes: Axes
    title: Label | None = None
    y: Label | None = None
    x: Label | None = None
    notes: list[Note] = field(default_factory=list)

    def note(  # noqa: PLR0913, PLR0917 - where, and how
        self,
        label: Label,
        x: float,
        y: float,
        anchor: str = "start",
        dx: float = 0.0,
        dy: float = 0.0,
        colour: str = INK,
        width: float = np.inf,
    ) -> None:
        """Write words at a place of the data."""
        self.notes.append(Note(label, x, y, anchor, dx, dy, colour, width))


class Picture:
    """Panels in rows under one legend, drawn once for all languages.

    Parameters
    ----------
    columns : sequence of int
        Panels of each row.
    heights : sequence of float
        Points of the panels of each row.
    across : int, optional
        For how many panels beside each other there is room; by default as many as
        there are, in each row.
    """

    def __init__(
        self, columns: Sequence[int], heights: Sequence[float], across: int = 0
    ) -> None:
        self.heights, self.across = list(heights), across
        self.headings: list[Label | None] = [None] * len(columns)
        self.figure = Figure(figsize=(WIDTH / 72.0, sum(heights) / 36.0), dpi=72)
        self.rows = [
            [
                Panel(self.figure.add_axes((place / n, 0.2, 0.8 / n, 0.6)))
                for place in range(n)
            ]
            for n in columns
        ]
        self.keys: list[Key] = []

    @property
    def panels(self) -> list[Panel]:
        """All panels, row by row."""
        return [panel for row in self.rows for panel in row]

    def lay_out(self) -> Layout:
        """Set the places of panels, and return those of words.

        What matplotlib would write itself, labels of ticks, is written by us.
        """
        legends = (list(_flow(self.keys, one)) for one in every_language())
        y = MARGIN
        if self.keys:
            y = max(legend[-1][2] for legend in legends) + 0.5 * LINE + ABOVE
        blocks: list[Block] = []
        places, spans = [], []
        margins = self._margins()
        whole = WIDTH - 2.0 * MARGIN
        for row, heading, height in zip(
            self.rows, self.headings, self.heights, strict=True
        ):
            if heading:
                y += LINE * most_lines(heading, SIZE, whole, bold=True) + 2.0
                block = Block(heading, MARGIN, y - 5.0, whole, up=True, bold=True)
                blocks.append(block)
            across = self.across or len(row)
            width = (whole - BETWEEN * (across - 1)) / across
            y += max(_above(panel, width) for panel in row)
            for place, panel in enumerate(row):
                x = MARGIN + place * (width + BETWEEN)
                left = margins[len(row)][place]
                places.append((panel, x + left, y, width - left - RIGHT, height))
                spans.append(width)
                blocks += _headings(panel, x, y, width, bold=not any(self.headings))
            y += height
            below = max(_below(panel, width) for panel in row)
            y += below + BELOW
        full = y - BELOW + MARGIN
        self.figure.set_size_inches(WIDTH / 72.0, full / 72.0)
        for panel, x, top, width, height in places:
            panel.axes.set_position(
                (x / WIDTH, 1.0 - (top + height) / full, width / WIDTH, height / full)
            )
        for (panel, x, top, width, height), span in zip(places, spans, strict=True):
            blocks += _labels(panel, x, top + height, x + width, full, span)
            panel.axes.tick_params(labelbottom=False, labelleft=False)
        return Layout(WIDTH, full, tuple(blocks), tuple(self.keys))

    def _margins(self) -> dict[int, list[float]]:
        """Return the room for labels left of panels: as much in all of a column."""
        found: dict[int, list[float]] = {}
        for row in self.rows:
            widths = [
                widest([label for _, label in _ticks(panel.axes.yaxis)], SIZE)
                for panel in row
            ]
            had = found.get(len(row), [0.0] * len(row))
            found[len(row)] = [
                max(w + APART if w else RIGHT, h)
                for w, h in zip(widths, had, strict=True)
            ]
        return found


def _above(panel: Panel, width: float) -> float:
    """Return the height of the words above a panel."""
    lines = sum(
        most_lines(label, SIZE, width, bold=bold)
        for label, bold in ((panel.title, True), (panel.y, False))
        if label
    )
    return LINE * lines + (ABOVE if lines else 0.0)


def _headings(
    panel: Panel, x: float, top: float, width: float, *, bold: bool
) -> Iterator[Block]:
    """Yield title and name of the y axis: the title stands right above the name."""
    block = Block(panel.title or Label(), x, top - ABOVE, width, up=True, bold=bold)
    if panel.y:
        colour = MUTED if panel.title else INK
        block = block._replace(label=panel.y, bold=False, colour=colour)
        block = block._replace(title=panel.title, title_bold=bold)
    yield block


def _below(panel: Panel, width: float) -> float:
    """Return the height of labels and words below a panel."""
    height = LINE + 2.0 if list(_ticks(panel.axes.xaxis)) else 0.0
    if panel.x:
        height += LINE * most_lines(panel.x, SIZE, width - RIGHT)
    return height


def _labels(  # noqa: PLR0913, PLR0917 - what, and where
    panel: Panel, left: float, bottom: float, right: float, full: float, span: float
) -> Iterator[Block]:
    """Yield labels of ticks, the name of the x axis, and notes."""
    axes = panel.axes
    y = bottom + APART + 0.76 * SIZE
    ticks = list(_ticks(axes.xaxis))
    for at, label in ticks:
        x = float(axes.transData.transform((at, axes.get_ylim()[0]))[0])
        yield Block(label, x, y, anchor="middle")
    for at, label in _ticks(axes.yaxis):
        _, height = axes.transData.transform((axes.get_xlim()[0], at))
        middle = full - float(height) + 0.36 * SIZE
        yield Block(label, left - APART, middle, anchor="end")
    if panel.x:
        y += LINE if ticks else 0.0
        yield Block(panel.x, right, y, span - RIGHT, anchor="end")
    for note in panel.notes:
        x, height = axes.transData.transform((note.x, note.y))
        y = full - float(height) - note.dy + 0.36 * SIZE
        x = float(x) + note.dx
        yield Block(note.label, x, y, note.width, note.anchor, colour=note.colour)


def _ticks(axis: Axis) -> Iterator[tuple[float, Label]]:
    """Yield places and labels of the ticks that are seen."""
    side = "labelbottom" if isinstance(axis, XAxis) else "labelleft"
    if not axis.get_tick_params().get(side, True):
        return
    places = axis.get_majorticklocs()
    scale = axis.get_transform().transform
    low, high = sorted(scale(np.asarray(axis.get_view_interval())))
    slack = 1e-6 * (high - low)
    labels = axis.get_major_formatter().format_ticks(list(places))
    for at, label in zip(places, labels, strict=True):
        if label and low - slack <= scale(np.asarray(at)) <= high + slack:
            yield float(at), Label(symbol=label)


def draw_key(figure: Figure, key: Key, x: float, y: float, tag: str = "") -> None:
    """Draw what a legend's entry shows at a place: points from the left and the top."""
    height = 72.0 * figure.get_figheight()
    at, middle = np.array([0.0, 0.5, 1.0]) * key.width + x, height - y
    parts: list[Line2D | Rectangle] = []
    look = key.look
    if key.strip:
        for place, shade in enumerate(SHADES):
            step = STRIP / len(SHADES)
            corner = (x + place * step, middle - 4.0)
            parts.append(Rectangle(corner, step, 8.0, facecolor=shade, linewidth=0.0))
    elif key.area:
        patch = Rectangle((x, middle - 4.0), SWATCH, 8.0, facecolor=look.colour)
        patch.set(alpha=key.area, linewidth=0.0)
        parts.append(patch)
    if not key.strip and (key.line or key.mark):
        style = {**look.mark, "linewidth": 1.5, "linestyle": look.dash}
        style |= {} if key.line else {"linestyle": "none"}
        style |= {"markevery": [1]} if key.mark else {"marker": "none"}
        parts.append(Line2D(at, [middle] * 3, **style))
    for part in parts:
        part.set(transform=_points(figure), gid=tag or None)
        figure.add_artist(part)


def _points(figure: Figure) -> mpl.transforms.Transform:
    """Return what takes points from the lower left of a figure to its pixels."""
    return mpl.transforms.Affine2D().scale(1.0 / 72.0) + figure.dpi_scale_trans


def letters(n: int) -> list[str]:
    """Return what marks panels or lines that a caption names: (a), (b) and so on."""
    return [f"({ascii_lowercase[place]})" for place in range(n)]


# --- Series -------------------------------------------------------------------------


def rescale(table: DataFrame, scale: Callable[[Series], Series]) -> DataFrame:
    """Return a table whose estimates, intervals and references are in another unit."""
    columns = ("estimate", "std_error", "ci_low", "ci_high", "reference")
    return table.assign(**{n: scale(table[n]) for n in columns if n in table})


def plot_series(
    axes: Axes,
    table: DataFrame,
    column: str,
    looks: Mapping[str, Look],
    *parts: Callable[[Axes, DataFrame, Look], Axes],
) -> Axes:
    """Draw the rows of each series that a column names; by default points on a line."""
    for name, look in keep_looks(looks, table[column]).items():
        for plot in parts or (plot_line, plot_estimates):
            plot(axes, table[table[column].eq(name)], look)
    return axes


def plot_estimates(axes: Axes, table: DataFrame, look: Look, x: str = "d_k") -> Axes:
    """Draw estimates with their intervals against d_k, or another column.

    One whose interval has no bounds is open, with a dotted line through the panel.
    """
    bounded = with_interval(table).sort_values(x)
    axes.errorbar(
        bounded[x],
        bounded["estimate"],
        bars(bounded["estimate"], bounded["ci_low"], bounded["ci_high"]),
        linestyle="none",
        elinewidth=1.2,
        **look.mark,
    )
    others = table[table["estimate"].notna() & ~has_interval(table)]
    if len(others):
        mark = {**look.mark, "markerfacecolor": PAGE, "fillstyle": "full"}
        axes.plot(others[x], others["estimate"], linestyle="none", **mark)
        for at in others[x]:
            axes.axvline(at, color=look.colour, linewidth=1.0, linestyle=(0, (1, 2)))
    return axes


def bars(value: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Return how far intervals reach below and above values, shape (2, values).

    Rounding may put an interval of width 0 a hair beside its estimate.
    """
    low, value, high = (np.asarray(one, dtype=np.float64) for one in (low, value, high))
    return np.maximum([value - low, high - value], 0.0)


def plot_line(axes: Axes, table: DataFrame, look: Look) -> Axes:
    """Join exact values against d_k where theory has all of them, estimates otherwise.

    The line breaks where an estimate is missing, or its interval has no bounds.
    """
    table = table.sort_values("d_k")
    y = table["estimate"].where(has_interval(table))
    if "reference" in table and table["reference"].notna().all():
        y = table["reference"]
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
    most = MOST_TICKS[columns] - (1 if high > 14.0 else 0)
    step = max(1, -(-(last - first + 1) // most))
    axes.set_xscale("log", base=2)
    powers = [2.0**power for power in range(first, last + 1, step)]
    axes.xaxis.set_major_locator(FixedLocator(powers or [shown.min()]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    margin = 0.05 * (high - low) + 0.2
    axes.set_xlim(2.0 ** (low - margin), 2.0 ** (high + margin))


def decimal_power(value: float, _: object = None) -> str:
    """Write a power of ten: in full from 0.001 to 1000."""
    power = round(np.log10(value))
    return f"{value:g}" if -4 < power < 4 else f"10^{{{power}}}"


def logarithmic(
    axes: Axes, low: float | None = None, high: float | None = None, *, x: bool = False
) -> None:
    """Make the y or x axis logarithmic with few labels, between limits where given."""
    axis = axes.xaxis if x else axes.yaxis
    if x:
        axes.set_xscale("log")
        axes.set_xlim(low, high)
    else:
        axes.set_yscale("log")
        axes.set_ylim(low, high)
    axis.set_major_locator(LogLocator(numticks=5))
    axis.set_major_formatter(FuncFormatter(decimal_power))
    axis.set_minor_locator(NullLocator())


def few_ticks(axis: Axis, most: int = 4) -> None:
    """Let an axis have few labels, of round numbers."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda y, _: f"{round(y, 9):g}"))


def percent(axes: Axes, *, limits: bool = True) -> None:
    """Let the y axis show shares in per cent: all of it, or few labels."""
    if limits:
        axes.set_ylim(-0.03, 1.05)
        axes.set_yticks((0.0, 0.25, 0.5, 0.75, 1.0))
        shown = FuncFormatter(lambda y, _: "" if y in {0.25, 0.75} else f"{100 * y:g}")
    else:
        few_ticks(axes.yaxis)
        shown = FuncFormatter(lambda y, _: f"{round(100.0 * y, 9):g}")
    axes.yaxis.set_major_formatter(shown)


def hide_inner(picture: Picture, *, across: bool = True) -> None:
    """Let only the lowest panels have labels below, and the leftmost at the left."""
    for row in picture.rows[:-1]:
        for panel in row:
            panel.axes.tick_params(labelbottom=False)
    for row in picture.rows if across else ():
        for panel in row[1:]:
            panel.axes.tick_params(labelleft=False)


# --- Legends ------------------------------------------------------------------------


def keys_of(
    looks: Mapping[str, Look], names: Iterable[str], *, line: bool = False
) -> list[Key]:
    """Return the legend's entries of the series that there are."""
    kept = keep_looks(looks, names).values()
    return [Key(look.label, look, line=line) for look in kept]


def line_key(dash: Dash, label: Label, colour: str = INK) -> Key:
    """Return the legend's entry of a line without marks."""
    return Key(label, Look(colour, "", dash), line=True, mark=False)


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
