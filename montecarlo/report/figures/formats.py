"""The figure of overflow in number formats: rows whose exponentials overflow."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from pandas import DataFrame

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.estimation.summaries import RowKey, has_row
from montecarlo.report.content.curves import CurveTables
from montecarlo.report.content.reading import gaussian_points
from montecarlo.report.content.tables import N_KEYS, nearest, with_interval
from montecarlo.report.figures.drawing import RIGHT, WITHIN, Note, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import FAILS, INK, MUTED, PAGE
from montecarlo.report.figures.specs import TYPICAL_D_K, Fact, FigureSpec, pair
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.rows import Row

SHOWN, DIVISORS = "float16", ("none", "sqrt")
FORMATS = [name for name in NUMBER_FORMATS if name != "float64"]
#: Ways to compute softmax: ``naive``, exp(x) as written; ``shifted``, after the largest
#: score of the row was subtracted.
WAYS = {
    "naive": Label(message("nothing subtracted")),
    "shifted": Label(message("largest score subtracted, as libraries do")),
}
#: Height of a line in points, and height of a bar as a part of it.
LINE, BAR = 36.0, 0.42
#: Shares of rows: nearly all, half, hardly any.
ALL, HALF, NONE = 0.99, 0.5, 0.01
ANSWERED = message(
    r"Undivided, $\mathrm{float16}$ overflows only if the largest score is not "
    "subtracted first"
)
ASKED = message(r"Rows that overflow in $\mathrm{float16}$")
ELSEWHERE = Label(
    message(
        r"Divided by $\sqrt{d_k}$, or in $\mathrm{bfloat16}$ or $\mathrm{float32}$, "
        "no row drawn overflows either way."
    )
)


def name_formats(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Yield (point, row key) for the rows of measurements.csv that the figure reads.

    They are shares of rows that overflow, by divisor, number format and softmax
    algorithm, at one design point: that nearest to `N_KEYS` and `TYPICAL_D_K`.
    """
    rows = gaussian_points(points, with_rows=True)
    there = [point for point in rows if point.formats]
    n_keys = nearest((point.n_keys or 0 for point in there), N_KEYS)
    there = [point for point in there if point.n_keys == n_keys]
    d_k = nearest((point.d_k for point in there), TYPICAL_D_K)
    for point, *key in product(there, DIVISORS, FORMATS, WAYS):
        divisor, name, way = key
        row = RowKey(divisor, "format_overflow", "mean", name, way)
        if point.d_k == d_k and has_row(point, row):
            yield point, row


def shown_rows(measurements: DataFrame) -> DataFrame:
    """Return the lines of measurements.csv that have a bar, one for each softmax.

    They are undivided, in the number format `SHOWN`.  The index is the softmax, in the
    order of `WAYS`; one without an estimate has no line.
    """
    rows = with_interval(measurements)
    rows = rows[rows["number_format"].eq(SHOWN) & rows["divisor"].eq("none")]
    return rows.set_index("softmax").reindex([*WAYS]).dropna(subset="estimate")


def build_formats(measurements: DataFrame, _: CurveTables) -> Picture | None:
    """Return the figure of the share of rows that overflow: a bar for each softmax.

    If no row overflows in other number formats or divided, a sentence says so.  The
    headline states the result if that is so, nearly all rows overflow if the largest
    score is not subtracted, and hardly any otherwise.  None if the table lacks the
    rows.
    """
    rows = shown_rows(measurements)
    if len(rows) < len(WAYS):
        return None
    shares = rows["estimate"]
    others = measurements[~measurements["row_id"].isin(rows["row_id"])]
    picture = Picture((1,), (LINE * (len(WAYS) + 0.5),))
    (panel,), axes = picture.panels, picture.panels[0].axes
    none_else = bool(others["estimate"].eq(0.0).all())
    answered = none_else and shares["naive"] >= ALL and shares["shifted"] <= NONE
    picture.headline = Label(ANSWERED if answered else ASKED)
    panel.y = Label(message("Undivided rows that overflow, in per cent"))
    axes.barh(range(len(WAYS)), shares, BAR, color=FAILS)
    for line, (label, share) in enumerate(zip(WAYS.values(), shares, strict=True)):
        panel.notes.append(Note(label, 0.0, line - 0.48, dx=-RIGHT))
        x, anchor, dx = (share, "end", -5.0) if share > HALF else (share, "start", 5.0)
        # a share below 1 is not shown as 100 %
        shown = "> 99.9" if 0.9995 <= share < 1.0 else f"{100.0 * share:.0f}"
        number = Label(symbol=rf"{shown}\,\%")
        colour = PAGE if share > HALF else INK
        panel.notes.append(Note(number, x, line, anchor, dx, colour=colour))
    if none_else:
        below = len(WAYS) - 0.4
        note = Note(ELSEWHERE, 0.0, below, dx=-RIGHT, colour=MUTED, width=WITHIN)
        panel.notes.append(note)
    axes.set(xlim=(0.0, 1.0), ylim=(len(WAYS) + 0.2, -0.8), xticks=(), yticks=())
    axes.spines[:].set_visible(False)
    return picture


def pick_overflows(measurements: DataFrame, _: CurveTables) -> Fact | None:
    """Return the numbers of the caption by name: per cent of rows that overflow.

    They are undivided and rounded down to a tenth: ``first`` without and ``second``
    with the largest score subtracted.  ``d_k`` and ``n`` are the sizes.  Errors only
    set the digits.  None if the table lacks the rows.
    """
    rows = shown_rows(measurements)
    if len(rows) < len(WAYS):
        return None
    # rounded down to a tenth: a share below 1 is not shown as 100 %
    percent = np.floor(1000.0 * rows["estimate"]) / 10.0
    rows = rows.assign(estimate=percent, std_error=1.0)
    return pair(rows, rows.iloc[1:], d_k=rows["d_k"].iloc[0], n=rows["n_keys"].iloc[0])


FORMATS_FIGURE = FigureSpec(
    "formats",
    build_formats,
    name_formats,
    "rows that overflow in half precision",
    section="arithmetic",
    on_report=True,
    caption=message(
        "Rows of %(n)s keys whose exponentials exceed the largest number of the "
        "format, at $d_k =$ %(d_k)s."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s, %(first)s %% of undivided rows "
        "overflow in half precision with nothing subtracted, and %(second)s %% with "
        "the largest score subtracted first."
    ),
    fact=pick_overflows,
)
