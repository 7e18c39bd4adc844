"""The size of scores: their variance and their distribution."""

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from pandas import DataFrame

from montecarlo.report.content.curves import SCORE_DISTRIBUTION, Curves
from montecarlo.report.content.reading import every_row, gaussian_points
from montecarlo.report.content.tables import (
    FEWEST_POINTS,
    gaussian_rows,
    with_interval,
)
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Key, Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    BLUE,
    DISTRIBUTION_LOOKS,
    DIVISOR_LOOKS,
    GREEN,
    INK,
    MUTED,
    PURPLE,
    Look,
    keep_looks,
)
from montecarlo.report.figures.specs import (
    HEAD_SIZE,
    MOST_D_K,
    Fact,
    FigureSpec,
    pair,
    pick_two,
)
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.rows import Row

# --- The variance against d_k -------------------------------------------------------

#: By how many points the words of each are beside the end of its line.
VARIANCE_DIVISORS = {"none": (-12.0, 0.0), "sqrt": (4.0, 13.0)}
#: Distributions stand beside each other, this factor of d_k apart.
APART = 1.085


def name_variances(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name the variances of scores, of q and k of one distribution that has a look."""
    pairs = [
        point
        for point in points
        if not point.has_rows
        and point.is_independent
        and point.label in DISTRIBUTION_LOOKS
    ]
    return every_row(pairs, ["score_variance"], ["value"], VARIANCE_DIVISORS)


def build_variance(measurements: DataFrame, _: Curves) -> Picture | None:
    """Build the variance with and without the divisor, and below it over theory."""
    rows = with_interval(measurements)
    if gaussian_rows(rows)["d_k"].nunique() < FEWEST_POINTS:
        return None
    picture = Picture((1, 1), (165.0, 72.0))
    above, below = picture.panels
    plot_variance(above, rows)
    plot_relative_variance(below.axes, rows)
    for panel in picture.panels:
        draw.powers_of_two(panel.axes, rows["d_k"], columns=1)
    picture.share_axes(HEAD_SIZE)
    above.title = Label(
        message("Variance of the scores"), r"\operatorname{Var}(q\cdot k/c)"
    )
    below.title = Label(message("Unscaled variance over $d_k$"))
    picture.keys = draw.keys_of(DISTRIBUTION_LOOKS, rows["distribution_q"])
    return picture


def plot_variance(panel: Panel, table: DataFrame) -> None:
    """Draw the variance of scores against d_k, unscaled and divided by sqrt(d_k).

    Gaussian estimates are filled marks with intervals, other distributions rings around
    them; each line says which divisor it is of.
    """
    axes = panel.axes
    for divisor, (dx, dy) in VARIANCE_DIVISORS.items():
        look = DIVISOR_LOOKS[divisor]
        rows = table[table["divisor"].eq(divisor)].sort_values("d_k")
        gaussian = gaussian_rows(rows)
        others = rows.drop(gaussian.index)
        exact = gaussian.dropna(subset="reference")
        axes.plot(exact["d_k"], exact["reference"], color=MUTED, lw=1.1, zorder=1.6)
        draw.plot_estimates(axes, gaussian, look)
        ring = Look(look.colour, "o", filled=False, size=9.0)
        axes.plot(others["d_k"], others["estimate"], ls="none", mew=0.8, **ring.mark)
        for at in zip(gaussian["d_k"][-1:], gaussian["estimate"][-1:], strict=True):
            panel.notes.append(Note(look.label, *at, "end", dx, dy, look.colour))
    draw.logarithmic(axes)


def plot_relative_variance(axes: Axes, table: DataFrame) -> None:
    """Draw variance over its exact value, where intervals can be seen.

    Of raw scores, since a divisor divides estimate, interval and exact value alike.
    """
    raw = table[table["divisor"].eq("none") & table["reference"].notna()]
    looks = keep_looks(DISTRIBUTION_LOOKS, raw["distribution_q"])
    ratio = draw.rescale(raw, lambda value: value / raw["reference"])
    for place, (distribution, look) in enumerate(looks.items()):
        rows = ratio[ratio["distribution_q"].eq(distribution)]
        draw.plot_estimates(axes, rows.assign(d_k=rows["d_k"] * APART**place), look)
    draw.level(axes, 1.0)
    draw.few_ticks(axes.yaxis)
    axes.grid(visible=False, axis="x")


def pick_variances(measurements: DataFrame, _: Curves) -> Fact | None:
    """Pick the variances of Gaussian scores under two divisors."""
    rows = gaussian_rows(measurements)
    rows = rows[rows["d_k"].le(MOST_D_K)]
    return pick_two(rows, "divisor", "none", "sqrt")


VARIANCE = FigureSpec(
    "variance",
    build_variance,
    name_variances,
    "variance of the scores against d_k under several divisors",
    section="variance",
    on_report=True,
    caption=message(
        "Lines: exact theory. Filled marks: Gaussian entries; rings and open marks: "
        r"other distributions. Bars, below: pointwise $95\,\%%$ intervals."
    ),
    alternative=message(
        "At d_k = %(d_k)s the variance of the scores is %(first)s unscaled and "
        "%(second)s divided by √d_k."
    ),
    fact=pick_variances,
)

# --- The distribution of the scaled score against the normal one --------------------

#: The exact curves, by d_k.
CURVES = {
    1: Look(INK, ""),
    4: Look(GREEN, "", (0, (5, 1.6))),
    16: Look(PURPLE, "", (0, (5, 1.6, 1.2, 1.6))),
    64: Look(BLUE, "", (0, (1.4, 1.2))),
}


def build_score_distribution(_: DataFrame, curves: Curves) -> Picture | None:
    """Build distribution functions less the normal one, one for each d_k."""
    exact = curves[SCORE_DISTRIBUTION]
    if exact.empty:
        return None
    picture = Picture((1,), (150.0,))
    (panel,) = picture.panels
    for d_k, look in CURVES.items():
        mine = exact[exact["d_k"].eq(d_k)].sort_values("score")
        (line,) = panel.axes.plot(mine["score"], mine["distribution_gap"])
        line.set(color=look.colour, linestyle=look.dash, linewidth=1.6, zorder=2.0)
        picture.keys.append(Key(Label(symbol=f"d_k = {d_k}"), look, "line"))
    draw.mark_ticks(panel.axes.xaxis, (-2.0, 0.0, 2.0))
    draw.level(panel.axes, 0.0)
    draw.few_ticks(panel.axes.yaxis, unit=0.01)
    picture.headings[0] = Label(
        message("The larger $d_k$ is, the closer a scaled score is to normal")
    )
    panel.y = Label(message("Above the normal one, in per cent"), r"F(x) - \Phi(x)")
    panel.x = Label(message("scaled score"), "x")
    return picture


def name_gaps(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name the gap from the normal distribution at the ends of the grid."""
    pairs = gaussian_points(points, with_rows=False)
    sizes = sorted(point.d_k for point in pairs if point.d_k <= MOST_D_K)
    ends = [point for point in pairs if point.d_k in (*sizes[:1], *sizes[-1:])]
    return every_row(ends, ["score_distribution_gap"], ["value"], ["none"])


def pick_gaps(measurements: DataFrame, _: Curves) -> Fact | None:
    """Pick both gaps, the smaller d_k first."""
    rows = with_interval(measurements).sort_values("d_k")
    if rows["d_k"].nunique() < 2:
        return None
    return pair(rows, rows.iloc[-1:], low=rows["d_k"].min(), d_k=rows["d_k"].max())


SCORE_DISTRIBUTION_FIGURE = FigureSpec(
    "score-distribution",
    build_score_distribution,
    name_gaps,
    "distribution of the scaled score against the normal distribution",
    section="variance",
    caption=message(
        "How far the distribution function of a scaled score lies above the normal "
        "one, exact, for Gaussian entries."
    ),
    alternative=message(
        "The distribution function of a scaled score lies %(first)s above the normal "
        "one at d_k = %(low)s and %(second)s at d_k = %(d_k)s."
    ),
    fact=pick_gaps,
)
