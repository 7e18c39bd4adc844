"""Number formats: where the exponential overflows, and what rounding leaves."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.report.content.tables.rows import with_interval
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.palette import DIVISOR_LOOKS, FORMAT_LOOKS, resize
from montecarlo.report.figures.specs import (
    Fact,
    FigureSpec,
    at_nearest,
    message,
    pick_two,
)

D_K, N_KEYS = 64, 128
#: Between the divisors of a number format, and the divisor that has its middle.
STEP, MIDDLE = 0.8 / len(DIVISOR_LOOKS), (len(DIVISOR_LOOKS) - 1) / 2


def _bits(name: str) -> int:
    return NUMBER_FORMATS[name].bits


def tail_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return the probabilities of overflow that measurements.csv has."""
    return measurements[measurements["quantity"].eq("overflow_probability")]


def error_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return mean errors of weights by format and divisor, at one d_k and n.

    Of softmax as libraries compute it: the largest score is subtracted first.
    """
    rows = measurements[
        measurements["quantity"].eq("format_error")
        & measurements["softmax"].eq("shifted")
        & measurements["number_format"].isin(FORMAT_LOOKS)
        & measurements["d_k"].eq(D_K)
        & measurements["summary"].eq("mean")
    ]
    return at_nearest(with_interval(rows), "n_keys", N_KEYS)


def build_formats(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build overflow probabilities against d_k, and errors of weights by rounding."""
    tails, errors = tail_rows(measurements, curves), error_rows(measurements, curves)
    if tails.empty or errors.empty:
        return None
    figure, (left, right) = draw.panels(1, 2, 2.9)
    _plot_overflow(left, tails)
    _plot_errors(right, errors)
    right.set_title(f"$d_k = {D_K}$")
    draw.legend_above(figure, draw.keys_of(FORMAT_LOOKS, tails["number_format"]))
    draw.legend_below(figure, draw.keys_of(DIVISOR_LOOKS, errors["divisor"]))
    return figure


def _plot_overflow(axes: Axes, table: DataFrame) -> None:
    """Draw probabilities that one exponential overflows, with exact values as lines."""
    looks = resize(FORMAT_LOOKS, draw.MARK)
    parts = (draw.plot_reference, draw.plot_estimates)
    draw.plot_series(axes, table, "number_format", looks, *parts)
    draw.logarithmic(axes)
    draw.powers_of_two(axes, table["d_k"], columns=2)
    axes.set_xlabel("$d_k$")
    axes.set_ylabel(r"$P(e^{q\cdot k} = \infty)$")


def _plot_errors(axes: Axes, table: DataFrame) -> None:
    """Draw errors of weights by the rounding u of their format, with u as a line."""
    names = sorted(set(table["number_format"]), key=_bits, reverse=True)
    column = table["number_format"].map({name: i for i, name in enumerate(names)})
    for place, (divisor, look) in enumerate(resize(DIVISOR_LOOKS, draw.MARK).items()):
        rows = table[table["divisor"].eq(divisor)]
        # beside each other, or they would cover each other
        rows = rows.assign(column=column[rows.index] + STEP * (place - MIDDLE))
        draw.plot_estimates(axes, rows, look, "column")
    for i, name in enumerate(names):
        u = 2.0 ** -_bits(name)
        draw.plot_limit(axes, (i - 0.45, i + 0.45), (u, u))
    draw.logarithmic(axes)
    axes.set_xticks(range(len(names)), [f"$2^{{-{_bits(f)}}}$" for f in names])
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("$u$")
    axes.set_ylabel(r"$\mathrm{E}\,\delta$")


def pick_overflows(measurements: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick overflow probabilities of two formats at the smallest d_k they share."""
    rows = tail_rows(measurements, curves)
    return pick_two(rows, "number_format", "float16", "float32", min)


FORMATS = FigureSpec(
    "formats",
    build_formats,
    "overflow and resolution by number format",
    section="arithmetic",
    caption=message(
        "Left: probability that the exponential of one unscaled score overflows, "
        "against $d_k$, both axes logarithmic, with exact theory as grey lines; "
        r"formats are named by their rounding $u$. Right: mean error $\delta$ of the "
        "weights, half the sum of the absolute errors, against $u$ for several "
        r"divisors, drawn beside each other; dashed: $\delta = u$."
    ),
    alternative=message(
        "At d_k = %(d_k)s the exponential of an unscaled score overflows with "
        "probability %(first)s in %(half)s and %(second)s in %(single)s."
    ),
    named=("overflow_probability_float16", "overflow_probability_float32"),
    fact=pick_overflows,
    constants={"half": "float16", "single": "float32"},
    series={"divisors": error_rows, "formats": tail_rows},
)
