"""The figure of training: steps to learn against d_k."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from pandas import DataFrame

from montecarlo.claims.training import STEPS as MOST_STEPS
from montecarlo.report.content.curves import TRAINING_START, CurveTables
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    ARM_LOOKS,
    DIVISOR_LABELS,
    Look,
    keep_looks,
)
from montecarlo.report.figures.specs import (
    HEAD_SIZE,
    TYPICAL_D_K,
    Fact,
    FigureSpec,
    pick_two,
)

if TYPE_CHECKING:  # slow to import
    from matplotlib.axes import Axes

OPTIMISERS = {
    "sgd": Label(message("Plain gradient descent")),
    "adam": Label(message("Adam")),
}
STEPS = Label(message("Steps (logarithmic)"))
#: Marks of runs that never learned lie above the last step, each arm's higher than the
#: one before by this factor.
LANE = 1.22
#: Factor between the x of arms at one d_k, so that their intervals do not overlap.
BESIDE = 1.07
STEP_TICKS = (3.0, 10.0, 30.0, 100.0, 300.0)
#: Arms that are drawn, with their labels; the evidence page has a table of all arms.
SHOWN = {
    **{name: DIVISOR_LABELS[name] for name in ("none", "sqrt")},
    "small-queries": Label(message("smaller $W_Q$")),
}
#: Points that labels are above the last mark, by rank of the mark from the top.
NAMES = (1.0, 24.0, -14.0)
#: The headline if undivided takes the most steps at every d_k, and at least `SLOWER`
#: times as many as the others from `TYPICAL_D_K` on; the headline otherwise.
ANSWERED = message("Undivided, learning takes longest")
ASKED = message("Steps to learn")
SLOWER = 1.334


def build_training(_: DataFrame, curves: CurveTables) -> Picture | None:
    """Return the figure of the steps until arms learn, against d_k.

    It has a panel for each optimiser.  None if the tables lack the data.
    """
    rows = curves[TRAINING_START]
    rows = rows[rows["arm"].isin(SHOWN)]
    titles = keep_looks(OPTIMISERS, rows["optimiser"])
    if not titles:
        return None
    never = rows["steps"].isna() & rows["summary"].eq("median")
    top = MOST_STEPS * LANE**4 if never.any() else 1.3 * rows["steps"].max()

    def plot(panel: Panel, mine: DataFrame) -> None:
        """Draw the steps of all arms with one optimiser into its panel.

        The y axis is logarithmic and ends at ``top`` steps.
        """
        panel.x, ends = HEAD_SIZE, []
        for place, arm in enumerate(SHOWN):
            look, steps = ARM_LOOKS[arm], mine[mine["arm"].eq(arm)]
            steps = steps.assign(x=steps["d_k"].astype(float) * BESIDE ** (place - 1))
            ends.append((*_plot_steps(panel.axes, steps, look, place + 1), arm))
        for up, (y, x, arm) in zip(NAMES, sorted(ends, reverse=True), strict=True):
            dx, colour = 4.0 if abs(up) > 1.0 else -12.0, ARM_LOOKS[arm].colour
            panel.notes.append(Note(SHOWN[arm], x, y, "end", dx, up, colour))
        draw.powers_of_two(panel.axes, mine["d_k"], columns=2)
        panel.axes.set(yscale="log", ylim=(STEP_TICKS[0], top))
        draw.mark_ticks(panel.axes.yaxis, STEP_TICKS)

    picture = draw.grid(rows, "optimiser", titles, 125.0, plot)
    picture.headline = Label(ANSWERED if _is_answered(rows) else ASKED)
    picture.panels[0].y = STEPS
    picture.share_axes()
    return picture


def _is_answered(rows: DataFrame) -> bool:
    """Return whether the headline's statement is true of the training record.

    Undivided must take longest of all arms at every d_k.  From `TYPICAL_D_K` on it must
    take at least `SLOWER` times as long as ``sqrt`` and ``small-queries``, which is
    more than the spacing of learning rates can explain.  False if an arm is missing.
    """
    medians = rows[rows["summary"].eq("median")]
    steps = medians.assign(steps=medians["steps"].fillna(np.inf)).pivot_table(
        "steps", ["optimiser", "d_k"], "arm"
    )
    if not {"none", "sqrt", "small-queries"} <= {*steps}:
        return False
    others = steps.drop(columns="none").max(axis=1)
    practice = steps.index.get_level_values("d_k") >= TYPICAL_D_K
    slower = steps["none"].ge(SLOWER * steps[["sqrt", "small-queries"]].max(axis=1))
    return bool(steps["none"].gt(others).all() and slower[practice].all())


def _plot_steps(
    axes: "Axes", rows: DataFrame, look: Look, lane: int
) -> tuple[float, float]:
    """Draw the median steps of an arm with intervals; return (y, x) of the last mark.

    ``rows`` has the columns x, summary and steps.  A median beyond the last step is a
    mark above the line of the last step.  ``lane`` sets the height of such marks: 1 for
    the lowest, another number for each arm.
    """
    wide = rows.pivot_table("steps", "x", "summary", dropna=False)
    wide = wide.reindex(columns=["median", "low", "high"]).astype(float)
    never = wide.index[wide["median"].isna()]
    if len(never):
        draw.mark_level(axes, MOST_STEPS)
        mark = replace(look, size=0.7 * look.size).mark
        height = [MOST_STEPS * LANE**lane] * len(never)
        axes.plot(never, height, linestyle="none", alpha=0.75, **mark)
    median = wide["median"]
    low, high = wide["low"].fillna(median), wide["high"].fillna(MOST_STEPS)
    axes.errorbar(
        wide.index,
        median,
        np.nan_to_num(draw.bars(median, low, high)),
        linestyle=look.dash,
        linewidth=1.2,
        elinewidth=1.0,
        **look.mark,
    )
    return float(median.fillna(MOST_STEPS).iloc[-1]), float(median.index[-1])


def pick_steps(_: DataFrame, curves: CurveTables) -> Fact | None:
    """Return the numbers of the caption by name: median steps of two arms.

    ``first`` is undivided and ``second`` divided by sqrt(d_k), for gradient descent.
    They are at ``d_k``, the largest one where both have a median, and ``n`` is 0.  None
    if there is no such d_k.
    """
    rows = curves[TRAINING_START].dropna(subset=["steps"])
    rows = rows[rows["optimiser"].eq("sgd") & rows["summary"].eq("median")]
    rows = rows.assign(estimate=rows["steps"], std_error=np.nan, n_keys=0)
    return pick_two(rows, "arm", "none", "sqrt")


TRAINING = FigureSpec(
    "training",
    build_training,
    shows="steps to learn against d_k",
    section="training",
    on_report=True,
    caption=message(
        "Median steps over seeds until the loss stays low, at the best learning rate "
        r"of each. Bars: pointwise $95\,\%%$ intervals."
    ),
    alternative=message(
        "At d_k = %(d_k)s, gradient descent takes %(first)s steps undivided and "
        "%(second)s divided by √d_k."
    ),
    fact=pick_steps,
)
