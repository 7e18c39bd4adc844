"""The size of scores: their variance against d_k."""

from collections.abc import Iterator, Sequence

from pandas import DataFrame

from montecarlo.report.content.curves import Curves
from montecarlo.report.content.reading import every_row, gaussian_points
from montecarlo.report.content.tables import FEWEST_POINTS, with_interval
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Note, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import DIVISOR_LOOKS, MUTED
from montecarlo.report.figures.specs import (
    HEAD_SIZE,
    MOST_D_K,
    Fact,
    FigureSpec,
    pick_two,
)
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.rows import Row

#: How many points the words of each line are above its last mark.
VARIANCE_DIVISORS = {"none": 0.0, "sqrt": 13.0}
#: By how much every estimate may be off where the headline has the answer.
NEAR = 0.05
ANSWERED = message(
    r"Undivided, the variance is $d_k$; divided by $\sqrt{d_k}$, it is $1$"
)
ASKED = message("The variance of the scores")


def name_variances(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name the variances of Gaussian scores, raw and divided by the root."""
    pairs = gaussian_points(points, with_rows=False)
    return every_row(pairs, ["score_variance"], ["value"], VARIANCE_DIVISORS)


def build_variance(measurements: DataFrame, _: Curves) -> Picture | None:
    """Build the variance of scores against d_k: a straight line and a flat one.

    Marks are estimates with their intervals, lines are exact.
    """
    rows = with_interval(measurements).sort_values("d_k")
    if rows["d_k"].nunique() < FEWEST_POINTS:
        return None
    picture = Picture((1,), (98.0,))
    (panel,) = picture.panels
    off = (rows["estimate"] / rows["reference"] - 1.0).abs().max()
    picture.headline = Label(ANSWERED if off <= NEAR else ASKED)
    panel.y = Label(
        message("Variance of the scores (logarithmic)"),
        r"\operatorname{Var}(q\cdot k/c)",
    )
    panel.x = HEAD_SIZE
    for divisor, up in VARIANCE_DIVISORS.items():
        look, mine = DIVISOR_LOOKS[divisor], rows[rows["divisor"].eq(divisor)]
        panel.axes.plot(mine["d_k"], mine["reference"], color=MUTED, lw=1.1, zorder=1.6)
        draw.plot_estimates(panel.axes, mine, look)
        for at in zip(mine["d_k"][-1:], mine["estimate"][-1:], strict=True):
            note = Note(look.label, *at, "end", 4.0 if up else -12.0, up, look.colour)
            panel.notes.append(note)
    draw.logarithmic(panel.axes)
    draw.powers_of_two(panel.axes, rows["d_k"], columns=1)
    return picture


def pick_variances(measurements: DataFrame, _: Curves) -> Fact | None:
    """Pick the variances of Gaussian scores under two divisors."""
    rows = measurements[measurements["d_k"].le(MOST_D_K)]
    return pick_two(rows, "divisor", "none", "sqrt")


VARIANCE = FigureSpec(
    "variance",
    build_variance,
    name_variances,
    "variance of the scores against d_k, undivided and divided",
    section="variance",
    on_report=True,
    caption=message(
        "Lines: exact. Marks: measured, with $95\\,\\%%$ intervals, which most of them "
        "hide. Gaussian entries."
    ),
    alternative=message(
        "At d_k = %(d_k)s the variance of the scores is %(first)s undivided and "
        "%(second)s divided by √d_k."
    ),
    fact=pick_variances,
)
