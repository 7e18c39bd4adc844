"""Number formats: what they make of weights, with and without a score subtracted."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from pandas import DataFrame

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.estimation.summaries import RowKey, has_row
from montecarlo.report.content.curves import Curves
from montecarlo.report.content.reading import gaussian_points
from montecarlo.report.content.tables import nearest, with_interval
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Note, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import DIVISOR_LOOKS, FAILS, keep_looks
from montecarlo.report.figures.specs import Fact, FigureSpec, pair
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.rows import Row

#: What the report speaks of, or what is nearest to it.
D_K, N_KEYS = 64, 128
#: Coarse first; float64 is what they are compared with.
FORMATS_SHOWN = sorted(
    (one.name for one in NUMBER_FORMATS.values() if one.name != "float64"),
    key=lambda name: NUMBER_FORMATS[name].bits,
)
#: Unscaled rows in the upper half of a format's line, scaled ones in the lower half.
PLACES = {"none": -0.21, "sqrt": 0.21}
#: Softmax as it is written; as libraries compute it, the largest score is subtracted.
NAIVE, SHIFTED = "naive", "shifted"
WAYS = {
    NAIVE: Label(message("no score subtracted")),
    SHIFTED: Label(message("largest score subtracted, as libraries do")),
}
#: Points of a line, and the height of a bar in it.
LINE, BAR = 30.0, 0.34
MOST_PLACES = 8
LEAST_ERROR = 10.0**-MOST_PLACES
HALF = 0.5
OVERFLOW = Label(message("overflow: no place correct"))
PLACES_NAME = Label(
    message("correct decimal places of the weights"),
    r"-\log_{10}\,\operatorname{E}\,\delta",
)
BREAKS = {("float16", "none", NAIVE)}
ANSWERED = message(
    r"Here only $\mathrm{float16}$ overflows: unscaled, with no score subtracted"
)
ASKED = message("What number formats make of the weights")


def name_formats(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name errors and overflows by format, divisor and softmax, at one size."""
    rows = gaussian_points(points, with_rows=True)
    there = [point for point in rows if point.formats]
    n_keys = nearest((point.n_keys or 0 for point in there), N_KEYS)
    there = [point for point in there if point.n_keys == n_keys]
    d_k = nearest((point.d_k for point in there), D_K)
    keys = [
        RowKey(divisor, quantity, "mean", name, way)
        for quantity, name, way, divisor in product(
            ("format_error", "format_overflow"), FORMATS_SHOWN, WAYS, PLACES
        )
    ]
    for point in there:
        for key in keys:
            if point.d_k == d_k and has_row(point, key):
                yield point, key


def format_rows(measurements: DataFrame, quantity: str) -> DataFrame:
    """Return means of a quantity by format, divisor and softmax."""
    rows = measurements[measurements["quantity"].eq(quantity)]
    return with_interval(rows).sort_values("number_format")


def build_formats(measurements: DataFrame, _: Curves) -> Picture | None:
    """Build the correct places of weights by format and divisor, a panel for each way.

    The title has the answer where unscaled rows in float16 alone overflow.
    """
    rows = format_rows(measurements, "format_error")
    if rows.empty:
        return None
    over = format_rows(measurements, "format_overflow")
    over = over[over["estimate"].gt(HALF)]
    broken = {
        *zip(over["number_format"], over["divisor"], over["softmax"], strict=True)
    }
    formats = [name for name in FORMATS_SHOWN if rows["number_format"].eq(name).any()]
    picture = Picture((1,) * len(WAYS), (LINE * len(formats),) * len(WAYS))
    picture.headings[0] = Label(ANSWERED if broken == BREAKS else ASKED)
    for panel, (way, title) in zip(picture.panels, WAYS.items(), strict=True):
        panel.title, axes = title, panel.axes
        for divisor, look in keep_looks(DIVISOR_LOOKS, PLACES).items():
            mine, lost = (
                table[table["softmax"].eq(way) & table["divisor"].eq(divisor)]
                for table in (rows, over)
            )
            lines = mine["number_format"].map(formats.index) + PLACES[divisor]
            places = -np.log10(mine["estimate"].clip(lower=LEAST_ERROR))
            axes.barh(lines, places, BAR, color=look.colour)
            if way == NAIVE and len(mine):
                label, line = look.label._replace(symbol=""), lines.min()
                at = places[lines.idxmin()], line
                panel.notes.append(Note(label, *at, dx=5.0, colour=look.colour))
            for line in lost["number_format"].map(formats.index) + PLACES[divisor]:
                axes.plot(0.0, line, "X", color=FAILS, ms=8.0, clip_on=False)
                panel.notes.append(Note(OVERFLOW, 0.0, line, dx=9.0, colour=FAILS))
        names = [rf"\mathrm{{{name}}}" for name in formats]
        axes.set_yticks(range(len(formats)), names)
        axes.set(xlim=(0.0, MOST_PLACES), ylim=(len(formats) - HALF, -HALF))
        axes.grid(visible=False, axis="y")
        draw.mark_ticks(axes.xaxis, range(0, MOST_PLACES + 1, 2))
    picture.share_axes(PLACES_NAME)
    return picture


def pick_errors(measurements: DataFrame, _: Curves) -> Fact | None:
    """Pick errors of unscaled weights in float16, as written and as in libraries."""
    rows = format_rows(measurements, "format_error")
    rows = rows[rows["number_format"].eq("float16") & rows["divisor"].eq("none")]
    naive, shifted = (rows[rows["softmax"].eq(name)] for name in (NAIVE, SHIFTED))
    if naive.empty or shifted.empty:
        return None
    return pair(naive, shifted, d_k=naive["d_k"].iloc[0], n=naive["n_keys"].iloc[0])


FORMATS = FigureSpec(
    "formats",
    build_formats,
    name_formats,
    "errors of weights by number format",
    section="arithmetic",
    on_report=True,
    caption=message(
        r"$\delta$: half the sum of the absolute errors of the weights of a row; "
        r"sums in the same format. "
        r"$d_k =$ %(d_k)s, %(n)s keys."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s the weights of unscaled rows in half "
        "precision are off by %(first)s with nothing subtracted, and by %(second)s "
        "with the largest score subtracted first."
    ),
    fact=pick_errors,
)
