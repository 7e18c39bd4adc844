"""The public function `figure`: estimates from `montecarlo.grid` over d_k or n."""

from collections.abc import Iterator
from io import BytesIO
from itertools import cycle
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, ScalarFormatter
from pandas import DataFrame, Series, isna

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.errors import InputError, show
from montecarlo.names import look_up
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.palette import MARKERS, MUTED, SERIES_COLOURS, Look
from montecarlo.sampling.rare_events import OVERFLOW
from montecarlo.study.measured import plain_words, summary_words

#: Columns that can be the x axis, and columns that can differ between series.
SIZES = ("d_k", "n_keys")
VARIED = (
    *("divisor", "distribution_q", "distribution_k", "dependence", "initialisation"),
    *("normalisation", "mask", "number_format", "softmax", *SIZES),
)
#: Further columns that a frame must have.
COLUMNS = ("quantity", "summary", "estimate", "ci_low", "ci_high", "reference")
#: Ratios of largest to smallest value from which the x and the y axis are logarithmic.
WIDE, TALL = 8.0, 30.0
#: Most sizes that each have a tick.
FEW = 6
#: Most series of a panel: each has a mark of its own.
MOST_SERIES = len(MARKERS)
#: Characters of a title that fit the width of a figure.
TITLE_WIDTH = 72
LABELS = {"d_k": "$d_k$", "n_keys": "$n$"}
#: Prefixes of values in a legend, by column.
_PLAIN = {"distribution_q": "q ", "distribution_k": "k ", "mask": "mask "}
#: Values that a figure does not mention where no row has another.
_USUAL = {"none", "", "float64", "shifted"}


class Picture(Figure):
    """A matplotlib figure that notebooks show as PNG, whatever the backend."""

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG, for notebooks."""
        content = BytesIO()
        self.savefig(content, format="png", dpi=120)
        return content.getvalue()


def figure(frame: DataFrame, x: str | None = None) -> Figure:
    """Draw estimates with their 95 % intervals and exact values over d_k or n.

    Parameters
    ----------
    frame : DataFrame
        From `montecarlo.grid`, or rows of measurements.csv.  Each quantity and summary
        gets a panel, each combination of the other columns that vary a series.  Rows
        of overflow probabilities are left out.
    x : str, optional
        ``d_k`` or ``n_keys``; by default the one with more values, or ``d_k``.

    Returns
    -------
    matplotlib.figure.Figure
        ``figure(frame).savefig("sweep.svg")`` writes it.

    Raises
    ------
    InputError
        If the frame is no DataFrame, has no row to draw, lacks a column other than
        ``mask``, or has an unknown quantity; if ``x`` is another name; or if there are
        more than `MOST_SERIES` series.

    Examples
    --------
    >>> from montecarlo import figure, grid
    >>> frame = grid(d_k=[4, 16], n_keys=[8], quantity=["entropy"], most=64)
    >>> len(figure(frame).axes)
    1
    """
    frame = _require_frame(frame, x)
    x = x or max(SIZES, key=lambda size: frame[size].nunique())
    varied = frame[[name for name in VARIED if name != x]].nunique().gt(1)
    names = list(varied.index[varied])
    labels = frame.apply(lambda row: ", ".join(_describe_series(row, names)), axis=1)
    if labels.nunique() > MOST_SERIES:
        raise InputError(
            f"frame must have at most {MOST_SERIES} series, got {labels.nunique()}: "
            f"by {', '.join(names)}"
        )
    table = frame.assign(label=labels)
    coloured = names[0] if names else "label"
    colours = dict(zip(table[coloured].unique(), cycle(SERIES_COLOURS), strict=False))
    first_of = dict(zip(table["label"], table[coloured], strict=True))
    looks = {
        label: Look(colours[first], marker)
        for marker, (label, first) in zip(MARKERS, first_of.items(), strict=False)
    }
    groups = table.groupby(["quantity", "summary"], sort=False)
    parts = [(str(quantity), str(part), rows) for (quantity, part), rows in groups]
    columns = min(2, len(parts))
    lines = -(-len(parts) // columns)
    with draw.house_style():
        keys = [
            Line2D([], [], linestyle="none", label=label, **look.mark)
            for label, look in looks.items()
            if names
        ]
        if frame["reference"].notna().any():
            keys.append(Line2D([], [], color=MUTED, label="exact"))
        in_a_line = 2 if len(names) > 1 else 3
        room = 0.24 * -(-len(keys) // in_a_line)  # for the legend
        size = (6.0, 2.7 * lines + 0.55 + room)
        drawn = Picture(figsize=size, layout="constrained")
        panels = drawn.subplots(lines, columns, squeeze=False).ravel()
        for spare in panels[len(parts) :]:
            spare.remove()
        for one, (quantity, summary, rows) in zip(panels, parts, strict=False):
            _plot_panel(one, rows, x, looks)
            words = plain_words(QUANTITIES[quantity].words)
            if summary not in {"mean", "value"}:
                words += f", {summary_words(summary)}"
            one.set_title(fill(words, TITLE_WIDTH // columns), fontsize="small")
            one.set_ylabel(f"${symbol_of(quantity)}$")
            one.set_xlabel(LABELS[x])
        shared = _describe_shared(frame, [x, *names])
        drawn.suptitle(fill(shared, TITLE_WIDTH), fontsize="small", color=MUTED)
        if keys:
            drawn.legend(
                handles=keys,
                loc="outside lower center",
                ncols=min(in_a_line, len(keys)),
                fontsize="small",
            )
    return drawn


def _require_frame(frame: DataFrame, x: str | None) -> DataFrame:
    """Return the rows of a frame that `figure` can draw, with a column ``mask``.

    Rows of overflow probabilities are left out.  A missing column ``mask`` is added as
    ``none``.  ``x`` must be None, ``d_k`` or ``n_keys``.

    Raises
    ------
    InputError
        If the frame or ``x`` is invalid.
    """
    if not isinstance(frame, DataFrame):
        raise InputError(f"frame must be a DataFrame, got {show(frame)}")
    if "mask" not in frame:  # as in a measurements.csv where there is none
        frame = frame.assign(mask="none")
    if lacking := {*COLUMNS, *VARIED} - {*frame.columns}:
        names = ", ".join(sorted(lacking))
        raise InputError(
            f"frame must have the columns of what grid returns, got none of {names}"
        )
    frame = frame[frame["quantity"].ne(OVERFLOW)]
    if frame.empty:
        raise InputError("frame must hold rows as grid returns them, got no row")
    for name in frame["quantity"].unique():
        look_up("quantity", str(name), QUANTITIES)
    if x is not None:
        look_up("x", x, LABELS)
    return frame


def _plot_panel(axes: Axes, rows: DataFrame, x: str, looks: dict[str, Look]) -> None:
    """Draw the series of a panel; axes with a wide range of values are logarithmic.

    ``x`` is the column of the x axis.  ``looks`` maps labels of series to their looks.
    """
    for label, look in looks.items():
        series = rows[rows["label"].eq(label)].dropna(subset=[x]).sort_values(x)
        series = series.astype({x: float})
        exact = series["reference"].astype(float)
        alone = len(series) == 1  # a line would not be seen
        axes.plot(
            series[x], exact, "_" if alone else "-", color=MUTED, lw=1.0, markersize=14
        )
        draw.plot_estimates(axes, series, look, x)
    sizes = rows[x].dropna().astype(float)
    if sizes.max() >= WIDE * sizes.min():
        draw.powers_of_two(axes, sizes, 2)
    elif sizes.nunique() <= FEW:
        draw.mark_ticks(axes.xaxis, sizes.unique())
    values = rows["estimate"].astype(float)
    if values.min() > 0.0 and values.max() >= TALL * values.min():
        draw.logarithmic(axes)
        if values.max() < 100.0 * values.min():  # powers of ten alone would be too few
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))
    else:
        axes.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))


def _describe_series(row: "Series[Any]", names: list[str]) -> Iterator[str]:
    """Yield parts of the label of a series, such as ``$n$ = 128`` or ``mask causal``.

    ``names`` are the columns that differ between series, and ``row`` is any row of the
    series.  Sizes and divisors are written with an equals sign.  Values of
    distribution_q, distribution_k and mask have a prefix; those of other columns stand
    alone.  A missing value has no part.
    """
    for name in names:
        value = row[name]
        if isna(value):  # pairs have no keys
            continue
        if name == "divisor":
            parts = str(value).split("/")
            if set(parts) <= DIVISORS.keys():
                yield " over ".join(f"$c = {DIVISORS[part].symbol}$" for part in parts)
            else:
                yield f"c = {value}"  # as it was typed
        elif name in SIZES:
            yield f"{LABELS[name]} = {int(value)}"
        else:
            yield f"{_PLAIN.get(name, '')}{value}"


def _describe_shared(frame: DataFrame, names: list[str]) -> str:
    """Return what all rows share, and what bars are, as text with LaTeX.

    Such as ``gaussian entries, $n$ = 300; bars: 95 % intervals``.  ``names`` are the
    columns that the figure shows elsewhere.
    """
    row = frame.bfill().iloc[0]  # pairs have no number of keys
    rest = [column for column in VARIED if column not in names]
    rest = [c for c in rest if c == "divisor" or str(row[c]) not in _USUAL]
    sides = {"distribution_q", "distribution_k"}
    parts = []
    if sides <= {*rest} and row["distribution_q"] == row["distribution_k"]:
        parts = [f"{row['distribution_q']} entries"]
        rest = [column for column in rest if column not in sides]
    return f"{', '.join([*parts, *_describe_series(row, rest)])}; bars: 95 % intervals"


#: LaTeX that mathtext lacks, and its replacement.
_SPELLED = {r"\lVert": r"\|", r"\rVert": r"\|", r"\lvert": "|", r"\rvert": "|"}
_SPELLED |= {r"\mathbb{1}": "1", r"\ge": r"\geq", r"\left(": "(", r"\right)": ")"}


def symbol_of(quantity: str) -> str:
    r"""Return LaTeX for the symbol of a quantity, as matplotlib's mathtext reads it.

    Without dollar signs: ``\| J\|_F``.
    """
    symbol = QUANTITIES[quantity].symbol
    for known, spelled in _SPELLED.items():
        symbol = symbol.replace(known, spelled)
    return symbol
