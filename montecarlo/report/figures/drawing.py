"""Drawing functions shared by all figures: layout of panels, series, axes and legends.

A `Picture` has panels (matplotlib axes) and labels.  It is drawn once, without words:
its `Layout` says where the words of a language go, and leaves room for the longest of
all languages.  Labels of axes stand above panels, flush left, and may wrap.  Series are
named beside their lines by a `Note`, or in a legend where there is no room for that.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame

from montecarlo.report.content.tables import has_bounded_interval, with_interval
from montecarlo.report.figures.labels import Label, Run, break_lines, most_lines, widest
from montecarlo.report.figures.palette import (
    INK,
    MUTED,
    PAGE,
    SHADES,
    Dash,
    Look,
    keep_looks,
    register_colours,
)
from montecarlo.report.language.catalogues import Language

# slow to import, and only drawing needs them: the process that plans a study does not
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("figures.mplstyle")
#: Width of a figure, size of its font and height of a line, in points.  On a phone 390
#: pixels wide a point is about a pixel.
WIDTH, SIZE, LINE = 360.0, 11.0, 14.0
#: Points: margin of a figure, distances between columns and between rows of panels, and
#: room at the right of a panel.
MARGIN, BETWEEN, BELOW, RIGHT = 3.0, 8.0, 9.0, 10.0
WITHIN = WIDTH - 2.0 * MARGIN
#: Points from an axis to the labels of its ticks, and from words to the panel below.
APART, ABOVE = 5.0, 6.0
#: Points to the baseline of text: from the middle of its line, and from an axis.
DOWN, BASE = 0.36 * SIZE, APART + 0.76 * SIZE
#: Most labels on the x axis of a panel, by the number of panels in its row.
MOST_TICKS = {1: 8, 2: 4, 3: 3}
#: Dashes of an asymptotic or expected value.
LIMIT_DASH: Dash = (0, (4, 3))
#: Width of a legend's swatch by its kind, and the gaps after a swatch and after a
#: label, in points.
SWATCHES = {"mark": 9.0, "line": 20.0, "area": 20.0, "shades": 130.0}
GAP, AFTER = 5.0, 13.0


@contextmanager
def house_style(theme: str = "light") -> Iterator[None]:
    """Within a with block, draw in the report's style with the colours of a theme.

    ``theme`` is ``light``, ``dark`` or ``print``.  After the block colours are light.
    """
    import matplotlib as mpl

    register_colours(theme)  # the file names them
    style = mpl.rc_params_from_file(STYLE, use_default_template=True)
    try:
        with mpl.rc_context(style):
            yield
    finally:
        register_colours("light")


# --- What is said, and where --------------------------------------------------------


class Text(NamedTuple):
    """A line of text in a figure, with its place in points from the left and the top.

    ``anchor`` is as in SVG: the place is the start, middle or end of the line.
    """

    runs: list[Run]
    x: float
    y: float
    anchor: str
    colour: str
    bold: bool


class Part(NamedTuple):
    """A label with its colour and weight; several make up a `Block`."""

    label: Label
    colour: str = INK
    bold: bool = False


class Block(NamedTuple):
    """Labels one below the other at a place in a figure, each wrapped to a width.

    ``x``, ``y`` and ``width`` are in points, from the left and the top of the figure.
    """

    parts: Sequence[Part]
    x: float
    y: float  # of the baseline of the first line, or of the last one
    width: float = np.inf
    anchor: str = "start"
    up: bool = False  # whether y is that of the last line: the block grows upwards

    def text_lines(self, language: Language) -> Iterator[Text]:
        """Yield the lines of text of the block in a language, with their places."""
        lines = [
            (runs, part)
            for part in self.parts
            for runs in break_lines(
                part.label.text_in(language), SIZE, self.width, bold=part.bold
            )
        ]
        first = self.y - LINE * (len(lines) - 1) if self.up else self.y
        for place, (runs, part) in enumerate(lines):
            y = first + LINE * place
            yield Text(runs, self.x, y, self.anchor, part.colour, part.bold)


class Layout(NamedTuple):
    """The blocks of text of a figure, and the figure's height and width in points."""

    height: float
    blocks: Sequence[Block]
    width: float = WIDTH

    def text_lines(self, language: Language) -> list[Text]:
        """Return all lines of text of the figure in a language, with their places."""
        return [line for block in self.blocks for line in block.text_lines(language)]


class Key(NamedTuple):
    """An entry of a legend: a label, and a swatch that shows how a series is drawn.

    ``marks`` are LaTeX below the left end, the middle and the right end of the swatch.
    """

    label: Label
    look: Look
    kind: Literal["mark", "line", "area", "shades"] = "mark"
    marks: Sequence[str] = ()

    def draw(self, figure: "Figure", x: float, y: float) -> None:
        """Draw the swatch into a figure, with the middle of its left end at (x, y).

        They are in points from the left and the bottom of the figure.
        """
        from matplotlib.lines import Line2D
        from matplotlib.patches import Rectangle
        from matplotlib.transforms import Affine2D

        width, look = SWATCHES[self.kind], self.look
        parts: list[Line2D | Rectangle] = []
        if self.kind in {"area", "shades"}:
            colours = SHADES if self.kind == "shades" else (look.colour,)
            step = width / len(colours)
            for place, colour in enumerate(colours):
                corner = (x + place * step, y - 4.0)
                parts.append(Rectangle(corner, step, 8.0, color=colour, linewidth=0.0))
        else:
            at = (x, x + 0.5 * width, x + width)
            line = Line2D(at, [y] * 3, linewidth=1.5, markevery=[1], **look.mark)
            line.set_linestyle(look.dash if self.kind == "line" else "none")
            parts.append(line)
        for part in parts:
            part.set_transform(Affine2D().scale(1.0 / 72.0) + figure.dpi_scale_trans)
            figure.add_artist(part)


class Note(NamedTuple):
    """A text inside a panel, at data coordinates x, y, moved by dx, dy points."""

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
    """Axes of a figure with their title, labels and notes.

    Title and label of the y axis stand above the axes.
    """

    axes: "Axes"
    title: Label | None = None
    y: Label | None = None
    x: Label | None = None
    notes: list[Note] = field(default_factory=list)

    def above(self, *, bold: bool) -> list[Part]:
        """Return the labels above the axes: the title, and the label of the y axis.

        ``bold`` says whether the title is bold.
        """
        title = [Part(self.title, bold=bold)] if self.title else []
        return [*title, Part(self.y, MUTED if title else INK)] if self.y else title


# --- Pictures -----------------------------------------------------------------------


class Picture:
    """A figure that is being drawn: rows of panels below a headline and a legend.

    Parameters
    ----------
    columns : sequence of int
        Number of panels in each row.
    heights : sequence of float
        Height of the panels in each row, in points.
    across : int
        Number of panels that a full row has room for; 0: as many as each row has.
    """

    def __init__(
        self, columns: Sequence[int], heights: Sequence[float], across: int = 0
    ) -> None:
        from matplotlib.figure import Figure

        self.heights, self.across = list(heights), across
        self.headline: Label | None = None
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
        """All panels of the figure, row by row."""
        return [panel for row in self.rows for panel in row]

    def share_axes(self, x: Label | None = None) -> None:
        """Share the y axis within each row, and remove tick labels that repeat.

        Tick labels remain below the last row and left of the first column.  ``x``, if
        given, labels the x axes of the last row.
        """
        for row in self.rows:
            for place, panel in enumerate(row):
                if place:
                    panel.axes.sharey(row[0].axes)
                    panel.axes.autoscale_view(scalex=False)
                lowest = row is self.rows[-1]
                panel.axes.tick_params(labelbottom=lowest, labelleft=place == 0)
                panel.x = x if x and lowest else panel.x

    def lay_out(self) -> Layout:
        """Place the panels, draw the legend's swatches, and return the layout of text.

        The layout has all text, also the tick labels, which matplotlib then does not
        draw.  Call it once, when the panels are complete: a second layout would lack
        the tick labels.
        """
        blocks: list[Block] = []
        y = MARGIN
        if self.headline:
            parts = [Part(self.headline, bold=True)]
            y += _height(parts, WITHIN)
            blocks.append(Block(parts, MARGIN, y - 3.0, WITHIN, up=True))
            y += ABOVE
        keys = list(self._place_keys(y))
        for key, x, y in keys:
            at = x + SWATCHES[key.kind] + GAP
            blocks.append(Block([Part(key.label)], at, y + DOWN))
            for number, mark in enumerate(key.marks):
                anchor = ("start", "middle", "end")[number]
                at, part = x + 0.5 * number * SWATCHES[key.kind], Part(Label("", mark))
                blocks.append(Block([part], at, y + DOWN + LINE, anchor=anchor))
        y = keys[-1][2] + 0.5 * LINE + ABOVE if keys else y
        y += LINE * any(key.marks for key in self.keys)
        places = []
        for row, height in zip(self.rows, self.heights, strict=True):
            across = self.across or len(row)
            span = (WITHIN - BETWEEN * (across - 1)) / across
            above = [panel.above(bold=self.headline is None) for panel in row]
            y += max(_height(parts, span) + ABOVE * bool(parts) for parts in above)
            below = 0.0
            for place, (panel, parts) in enumerate(zip(row, above, strict=True)):
                x = MARGIN + place * (span + BETWEEN)
                left = x + self._margin(len(row), place)
                right = x + span - RIGHT
                blocks.append(Block(parts, x, y - ABOVE, span, up=True))
                blocks += _text_blocks(panel, left, right, y, height)
                places.append((panel.axes, left, right - left, y + height, height))
                ticks = LINE if list(_ticks(panel.axes.xaxis)) else 0.0
                names = [Part(panel.x)] if panel.x else []
                under = y + height + BASE + ticks
                blocks.append(Block(names, right, under, span - RIGHT, "end"))
                named = _height(names, span - RIGHT)
                below = max(below, named + (ticks and ticks + 2.0))
            y += height + below + BELOW
        full = y - BELOW + MARGIN
        self.figure.set_size_inches(WIDTH / 72.0, full / 72.0)
        for axes, left, width, bottom, height in places:
            axes.tick_params(labelbottom=False, labelleft=False)
            axes.set_position(
                (left / WIDTH, 1.0 - bottom / full, width / WIDTH, height / full)
            )
        for key, x, middle in keys:
            key.draw(self.figure, x, full - middle)
        return Layout(full, blocks)

    def _place_keys(self, top: float) -> Iterator[tuple[Key, float, float]]:
        """Yield (entry of the legend, x, y), with the entry's left middle in points.

        ``top`` is the upper edge of the legend.
        """
        x, y = MARGIN, top + 0.5 * LINE
        for key in self.keys:
            width = SWATCHES[key.kind] + GAP + widest(key.label, SIZE)
            if x > MARGIN and x + width > WIDTH - MARGIN:
                x, y = MARGIN, y + LINE
            yield key, x, y
            x += width + AFTER

    def _margin(self, columns: int, place: int) -> float:
        """Return the room in points for the tick labels left of a column of panels.

        That is the width of the widest label and a gap, or `RIGHT` without labels.
        ``place`` is the index of the column in the rows that have ``columns`` panels.
        """
        column = [row[place].axes for row in self.rows if len(row) == columns]
        labels = [label for axes in column for _, label in _ticks(axes.yaxis)]
        most = max((widest(label, SIZE) for label in labels), default=0.0)
        return most + APART if most else RIGHT


def grid(
    rows: DataFrame,
    column: str,
    values: Mapping[Any, Label],
    height: float,
    plot: Callable[[Panel, DataFrame], object],
) -> Picture:
    """Return a figure with a row of panels, one for each value of a column.

    Parameters
    ----------
    rows : DataFrame
        The data of all panels.
    column : str
    values : mapping
        Value of the column -> title of its panel.
    height : float
        Height of the panels, in points.
    plot : callable
        Draws the lines of a table that have one value into the panel.
    """
    picture = Picture((len(values),), (height,))
    for panel, (value, title) in zip(picture.panels, values.items(), strict=True):
        panel.title = title
        plot(panel, rows[rows[column].eq(value)])
    return picture


def _height(parts: Sequence[Part], width: float) -> float:
    """Return the height in points of labels one below the other, wrapped at a width.

    It is that in the language which needs the most lines.
    """
    return LINE * sum(
        most_lines(part.label, SIZE, width, bold=part.bold) for part in parts
    )


def _text_blocks(
    panel: Panel, left: float, right: float, top: float, height: float
) -> Iterator[Block]:
    """Yield the tick labels and notes of a panel as blocks of text.

    ``left``, ``right``, ``top`` and ``height`` are the position and size of the axes,
    in points.
    """
    axes = panel.axes

    def place(x: float, y: float) -> tuple[float, float]:
        """Return data coordinates of ``axes`` as points in the figure.

        They are counted from its left and its top.
        """
        across, up = (axes.transScale + axes.transLimits).transform((x, y))
        return left + across * (right - left), top + (1.0 - up) * height

    low, bottom = axes.get_xlim()[0], axes.get_ylim()[0]
    y = top + height + BASE
    for at, label in _ticks(axes.xaxis):
        yield Block([Part(label)], place(at, bottom)[0], y, anchor="middle")
    for at, label in _ticks(axes.yaxis):
        yield Block([Part(label)], left - APART, place(low, at)[1] + DOWN, anchor="end")
    for note in panel.notes:
        x, y = place(note.x, note.y)
        part = Part(note.label, note.colour)
        yield Block([part], x + note.dx, y - note.dy + DOWN, note.width, note.anchor)


def _ticks(axis: "Axis") -> Iterator[tuple[float, Label]]:
    """Yield (position in data coordinates, label) of each visible tick of an axis.

    Nothing is yielded if the axis shows no labels.
    """
    side = "labelbottom" if axis is axis.axes.xaxis else "labelleft"
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


def spread_labels(
    starts: Iterable[float], labels: Sequence[Label], width: float
) -> list[float]:
    """Return the x of each of several labels in one line, in points, without overlap.

    ``starts`` are where labels should start.  They are moved only as far as the other
    labels and the ``width`` of the line require.  If the labels are too long for the
    line, the first x is negative.
    """
    sizes = [widest(label, SIZE) + AFTER for label in labels]
    places, free = [], 0.0
    for start, size in zip(starts, sizes, strict=True):
        places.append(max(start, free))
        free = places[-1] + size
    free = width + AFTER
    for place, size in reversed([*enumerate(sizes)]):
        places[place] = free = min(places[place], free - size)
    return places


def letters(n: int) -> list[str]:
    """Return the names of n panels, at most 26, as a list: ``["(a)", "(b)", ...]``."""
    return [f"({ascii_lowercase[place]})" for place in range(n)]


# --- Series -------------------------------------------------------------------------


def plot_series(
    axes: "Axes", table: DataFrame, column: str, looks: Mapping[str, Look]
) -> None:
    """Draw a series against d_k for each value of a column: a line, and estimates.

    Values without an entry in ``looks`` are not drawn.
    """
    for name, look in keep_looks(looks, table[column]).items():
        rows = table[table[column].eq(name)]
        plot_line(axes, rows, look)
        plot_estimates(axes, rows, look)


def plot_estimates(axes: "Axes", table: DataFrame, look: Look, x: str = "d_k") -> None:
    """Draw estimates with 95 % intervals as marks, against the column ``x``.

    If the interval is unbounded, the mark is open, on a dotted vertical line.
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
    others = table[table["estimate"].notna() & ~has_bounded_interval(table)]
    if len(others):
        mark = {**look.mark, "markerfacecolor": PAGE}
        axes.plot(others[x], others["estimate"], linestyle="none", **mark)
    for at in others[x]:
        axes.axvline(at, color=look.colour, linewidth=1.0, linestyle=(0, (1, 2)))


def bars(value: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Return the lengths of error bars, below and above the values: (2, n_values).

    They are at least 0: rounding may move an interval of width 0 off its estimate.
    """
    low, value, high = (np.asarray(one, dtype=np.float64) for one in (low, value, high))
    return np.maximum([value - low, high - value], 0.0)


def plot_line(axes: "Axes", table: DataFrame, look: Look) -> None:
    """Draw a line against d_k through exact values, or else through estimates.

    Exact values are used if all are known.  A line of estimates breaks where an
    estimate is missing or its interval is unbounded.
    """
    table = table.sort_values("d_k")
    y = table["estimate"].where(has_bounded_interval(table))
    if "reference" in table and table["reference"].notna().all():
        y = table["reference"]
    axes.plot(table["d_k"], y, color=look.colour, linestyle=look.dash, zorder=1.8)


def mark_level(axes: "Axes", value: float) -> None:
    """Draw a horizontal reference line at y = ``value``."""
    axes.axhline(value, color=MUTED, linewidth=1.1, zorder=1.5)


# --- Axes ---------------------------------------------------------------------------


def mark_ticks(axis: "Axis", places: Iterable[float], write: str = "{:.0f}") -> None:
    """Set the ticks of an axis to given values, with labels in the format ``write``."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: write.format(x)))
    axis.set_minor_locator(NullLocator())


def powers_of_two(axes: "Axes", values: Iterable[float], columns: int) -> None:
    """Make the x axis logarithmic with ticks at powers of 2.

    Parameters
    ----------
    axes : Axes
    values : iterable of float
        The values on the axis.
    columns : int
        Number of panels in the row, which limits the number of labels.
    """
    shown = np.asarray(list(values), dtype=float)
    low, high = np.log2(shown.min()), np.log2(shown.max())
    first, last = int(np.ceil(low)), int(np.floor(high))
    most = MOST_TICKS[columns] - (1 if high > 14.0 else 0)
    step = max(1, -(-(last - first + 1) // most))
    axes.set_xscale("log", base=2)
    powers = [2.0**power for power in range(first, last + 1, step)]
    mark_ticks(axes.xaxis, powers or [shown.min()])
    margin = 0.05 * (high - low) + 0.2
    axes.set_xlim(2.0 ** (low - margin), 2.0 ** (high + margin))


def room_right(axes: "Axes", share: float) -> None:
    """Extend a logarithmic x axis, so that a share of it at the right is free for text.

    ``share`` is a part of the extended axis, below 1.
    """
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** (share / (1.0 - share)))


def decimal_power(value: float, _: object = None) -> str:
    """Return LaTeX for a power of ten, or a plain number from 0.001 to 1000.

    ``10^{4}`` for 10000, ``100`` for 100.
    """
    power = round(np.log10(value))
    return f"{value:g}" if -4 < power < 4 else f"10^{{{power}}}"


def logarithmic(
    axes: "Axes",
    low: float | None = None,
    high: float | None = None,
    *,
    x: bool = False,
) -> None:
    """Make the y axis, or with ``x`` the x axis, logarithmic with few ticks.

    Ticks are powers of ten.  ``low`` and ``high`` are the ends of the axis; by default
    they follow from the data.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    name, axis = ("x", axes.xaxis) if x else ("y", axes.yaxis)
    axes.set(**{f"{name}scale": "log", f"{name}lim": (low, high)})
    axis.set_major_locator(LogLocator(numticks=5))
    axis.set_major_formatter(FuncFormatter(decimal_power))
    axis.set_minor_locator(NullLocator())


def few_ticks(axis: "Axis") -> None:
    """Give an axis at most five ticks, at round numbers."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda y, _: f"{round(y, 9):g}"))


def percent(axes: "Axes") -> None:
    """Scale the y axis for shares from 0 to 1, with tick labels in per cent."""
    axes.set_ylim(-0.03, 1.05)
    axes.set_yticks((0.0, 0.25, 0.5, 0.75, 1.0), ("0", "", "50", "", "100"))


# --- Legends ------------------------------------------------------------------------


def keys_of(looks: Mapping[str, Look], names: Iterable[str]) -> list[Key]:
    """Return the entries of a legend for the looks whose names are in ``names``.

    They are in the order of ``looks``.
    """
    return [Key(look.label, look) for look in keep_looks(looks, names).values()]
