"""Number formats: where the exponential overflows, and what rounding leaves."""

from dataclasses import replace

from matplotlib.axes import Axes
from pandas import DataFrame

from montecarlo.report.content.tables.rows import with_interval
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.attention import HEAD_SIZE
from montecarlo.report.figures.drawing import Key, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    DIVISOR_LOOKS,
    FORMAT_LOOKS,
    INK,
    Look,
    resize,
)
from montecarlo.report.figures.specs import Fact, FigureSpec, at_nearest, pick_two

N_KEYS = 128
LOOKS = resize(FORMAT_LOOKS, draw.MARK)
#: A dash for each divisor.
DASHES = {"none": draw.LIMIT_DASH, "sqrt": "-"}
#: Probabilities below this happen nowhere.
LEAST_PROBABILITY = 1e-32
LEAST_ERROR = 1e-8


def tail_rows(measurements: DataFrame) -> DataFrame:
    """Return the probabilities of overflow that measurements.csv has."""
    return measurements[measurements["quantity"].eq("overflow_probability")]


def error_rows(measurements: DataFrame) -> DataFrame:
    """Return mean errors of weights by format and divisor, of one n.

    Of softmax as libraries compute it: the largest score is subtracted first.
    """
    rows = measurements[
        measurements["quantity"].eq("format_error")
        & measurements["distribution_k"].eq("gaussian")
        & measurements["dependence"].eq("none")
        & measurements["softmax"].eq("shifted")
        & measurements["number_format"].isin(FORMAT_LOOKS)
        & measurements["divisor"].isin(DASHES)
        & measurements["summary"].eq("mean")
    ]
    return at_nearest(with_interval(rows), "n_keys", N_KEYS)


def build_formats(measurements: DataFrame, _: DataFrame) -> Picture | None:
    """Build overflow probabilities and errors of weights against d_k, by format."""
    tails, errors = tail_rows(measurements), error_rows(measurements)
    if tails.empty or errors.empty:
        return None
    picture = Picture((2,), (150.0,))
    left, right = picture.panels
    draw.plot_series(left.axes, tails, "number_format", LOOKS)
    draw.logarithmic(left.axes, LEAST_PROBABILITY, 3.0)
    draw.powers_of_two(left.axes, tails["d_k"], columns=2)
    plot_errors(right.axes, errors)
    draw.powers_of_two(right.axes, errors["d_k"], columns=2)
    left.title = Label(message("Overflow"))
    left.y = Label(
        message("probability that the exponential of an unscaled score is infinite"),
        r"P(e^{q\cdot k} = \infty)",
        told=True,
    )
    right.title = Label(message("Rounding"))
    right.y = Label(
        message("mean error of the weights, half the sum of the absolute ones"),
        r"\operatorname{E} \delta",
        told=True,
    )
    for panel in picture.panels:
        panel.x = HEAD_SIZE
    picture.keys = draw.keys_of(LOOKS, tails["number_format"])
    picture.keys += [
        Key(DIVISOR_LOOKS[name].label, Look(INK, "", dash), line=True, mark=False)
        for name, dash in DASHES.items()
        if errors["divisor"].eq(name).any()
    ]
    return picture


def plot_errors(axes: Axes, table: DataFrame) -> None:
    """Draw mean errors of weights against d_k, a dash for each divisor."""
    for name, dash in DASHES.items():
        rows = table[table["divisor"].eq(name)]
        looks = {one: replace(look, dash=dash) for one, look in LOOKS.items()}
        draw.plot_series(axes, rows, "number_format", looks)
    draw.logarithmic(axes, LEAST_ERROR, 1.0)


def pick_overflows(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick overflow probabilities of two formats at the smallest d_k they share."""
    rows = tail_rows(measurements)
    return pick_two(rows, "number_format", "float16", "float32", min)


FORMATS = FigureSpec(
    "formats",
    build_formats,
    "overflow and resolution by number format",
    section="arithmetic",
    on_report=True,
    caption=message(
        "Left: unscaled scores, nothing subtracted; lines are exact. Right: weights as "
        "libraries compute them: the error is that of the format, not of the scale."
    ),
    alternative=message(
        "At d_k = %(d_k)s the exponential of an unscaled score overflows with "
        "probability %(first)s in %(half)s and %(second)s in %(single)s."
    ),
    named=("overflow_probability_float16", "overflow_probability_float32"),
    fact=pick_overflows,
    constants={"half": "float16", "single": "float32"},
)
