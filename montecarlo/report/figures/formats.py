"""Number formats: what they make of weights, with and without a score subtracted."""

from dataclasses import replace

from matplotlib.axes import Axes
from pandas import DataFrame

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.report.content.tables import with_interval
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Key, Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import DIVISOR_LOOKS, INK, Look, keep_looks
from montecarlo.report.figures.specs import Fact, FigureSpec, at_nearest, pair

#: What the report speaks of, or what is nearest to it.
D_K, N_KEYS = 64, 128
#: Coarse first; float64 is what they are compared with.
FORMATS_SHOWN = sorted(
    (one.name for one in NUMBER_FORMATS.values() if one.name != "float64"),
    key=lambda name: NUMBER_FORMATS[name].bits,
)
#: Unscaled rows in the upper half of a format's line, scaled ones in the lower half.
PLACES = {"none": -0.2, "sqrt": 0.2}
#: Softmax as it is written; as libraries compute it, the largest score is subtracted.
NAIVE, SHIFTED = "naive", "shifted"
WAYS = {
    SHIFTED: Label(message("largest score subtracted"), r"s - \max s", told=True),
    NAIVE: Label(message("nothing subtracted"), "s", told=True),
}
#: Points of a line.
LINE = 40.0
LEAST_ERROR, MOST_ERROR = 1e-8, 3.0
#: An error from which on weights are useless; it is 1 at most.
BROKEN = 0.5
BREAKS = {("float16", "none", NAIVE)}
ANSWERED = message(
    r"Here only $\mathrm{float16}$ overflows: unscaled, with no score subtracted"
)
ASKED = message("What number formats make of the weights")


def error_rows(measurements: DataFrame) -> DataFrame:
    """Return mean errors of weights by format, divisor and softmax, at one size."""
    rows = measurements[
        measurements["quantity"].eq("format_error")
        & measurements["distribution_k"].eq("gaussian")
        & measurements["dependence"].eq("none")
        & measurements["normalisation"].eq("none")
        & measurements["softmax"].isin((NAIVE, SHIFTED))
        & measurements["number_format"].isin(FORMATS_SHOWN)
        & measurements["divisor"].isin(PLACES)
        & measurements["summary"].eq("mean")
    ]
    rows = at_nearest(at_nearest(with_interval(rows), "n_keys", N_KEYS), "d_k", D_K)
    return rows.sort_values("number_format")


def build_formats(measurements: DataFrame, _: DataFrame) -> Picture | None:
    """Build a line for each format: errors of weights by divisor and softmax.

    The title has the answer where unscaled weights in float16 alone are useless.
    """
    rows = error_rows(measurements)
    if rows.empty:
        return None
    formats = [name for name in FORMATS_SHOWN if rows["number_format"].eq(name).any()]
    picture = Picture((1,), (LINE * len(formats),))
    (panel,) = picture.panels
    broken = rows.loc[
        rows["estimate"].gt(BROKEN), ["number_format", "divisor", "softmax"]
    ]
    answered = {*broken.itertuples(index=False, name=None)} == BREAKS
    picture.headings[0] = Label(ANSWERED if answered else ASKED)
    plot_errors(panel, rows, formats)
    picture.keys = [
        Key(label, _marked(Look(INK, "o"), way)) for way, label in WAYS.items()
    ]
    panel.x = Label(
        message("mean error of the weights of a row (total variation)"),
        r"\operatorname{E} \delta",
        told=True,
    )
    return picture


def _marked(look: Look, softmax: str) -> Look:
    """Return how a way of softmax is marked."""
    shifted = softmax == SHIFTED
    return replace(look, filled=shifted, size=6.0 if shifted else 10.0)


def plot_errors(panel: Panel, table: DataFrame, formats: list[str]) -> Axes:
    """Draw errors, filled where a score is subtracted; the first line says of what."""
    axes = panel.axes
    for divisor, look in keep_looks(DIVISOR_LOOKS, PLACES).items():
        for softmax in (NAIVE, SHIFTED):
            mine = table[table["divisor"].eq(divisor) & table["softmax"].eq(softmax)]
            lines = mine["number_format"].map(formats.index) + PLACES[divisor]
            mark = _marked(look, softmax).mark
            axes.plot(mine["estimate"], lines, linestyle="none", **mark)
        first = table[
            table["divisor"].eq(divisor) & table["number_format"].eq(formats[0])
        ]
        label = look.label._replace(told=True)
        least = (first["estimate"].min(), PLACES[divisor])
        panel.notes.append(Note(label, *least, "end", -9.0, colour=look.colour))
    draw.logarithmic(axes, LEAST_ERROR, MOST_ERROR, x=True)
    names = [rf"\mathrm{{{name}}}" for name in formats]
    axes.set_yticks(range(len(formats)), names)
    axes.set_ylim(len(formats) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    return axes


def pick_errors(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick errors of unscaled weights in float16, as written and as in libraries."""
    rows = error_rows(measurements)
    rows = rows[rows["number_format"].eq("float16") & rows["divisor"].eq("none")]
    naive, shifted = (rows[rows["softmax"].eq(name)] for name in (NAIVE, SHIFTED))
    if naive.empty or shifted.empty:
        return None
    return pair(naive, shifted, d_k=naive["d_k"].iloc[0], n=naive["n_keys"].iloc[0])


FORMATS = FigureSpec(
    "formats",
    build_formats,
    "errors of weights by number format",
    section="arithmetic",
    on_report=True,
    caption=message("Overflow counts as $1$. At $d_k =$ %(d_k)s with %(n)s keys."),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s the weights of unscaled rows in half "
        "precision are off by %(first)s with nothing subtracted, and by %(second)s "
        "with the largest score subtracted first."
    ),
    named=("float16_error_naive", "float16_error_shifted"),
    fact=pick_errors,
)
