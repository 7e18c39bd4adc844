"""What training says: steps to learn by d_k."""

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from pandas import DataFrame

from montecarlo.claims.training import STEPS as MOST_STEPS
from montecarlo.report.content.curves import TRAINING_START, Curves
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import ARM_LOOKS, Look
from montecarlo.report.figures.specs import (
    HEAD_SIZE,
    Fact,
    FigureSpec,
    pick_two,
)

OPTIMISERS = {
    "sgd": Label(message("Plain gradient descent")),
    "adam": Label(message("Adam")),
}
STEPS = Label(message("Steps to learn"), "T")
#: Each arm has a lane for what takes more steps than runs have, so many times higher.
LANE = 1.22
#: Between arms at one d_k, a factor: intervals would hide each other.
BESIDE = 1.07
STEP_TICKS = (3.0, 10.0, 30.0, 100.0, 300.0)
#: The title, where it is so at every d_k that is shown, and from this one on by so many
#: times the steps.
ANSWERED = message("Unscaled takes longest, unless $W_Q$ starts smaller")
ASKED = message("Steps to learn, by divisor")
PRACTICE, SLOWER = 64, 1.25


def build_training(_: DataFrame, curves: Curves) -> Picture | None:
    """Build the steps to learn against d_k, a panel for each optimiser."""
    rows = curves[TRAINING_START]
    titles = {
        name: OPTIMISERS[name] for name in OPTIMISERS if name in {*rows["optimiser"]}
    }
    if not titles:
        return None

    def plot(panel: Panel, mine: DataFrame) -> None:
        for place, (arm, look) in enumerate(ARM_LOOKS.items()):
            rows = mine[mine["arm"].eq(arm)]
            rows = rows.assign(x=rows["d_k"].astype(float) * BESIDE ** (place - 1.5))
            _plot_steps(panel.axes, rows, look, place + 1)
        draw.powers_of_two(panel.axes, mine["d_k"], columns=2)
        panel.axes.set_xticks(sorted(set(mine["d_k"])))

    picture = draw.grid([(None, rows)], "optimiser", titles, 150.0, plot, HEAD_SIZE)
    picture.headings[0] = Label(ANSWERED if _is_answered(rows) else ASKED)
    picture.panels[0].y = STEPS
    picture.keys = draw.keys_of(ARM_LOOKS, rows["arm"], line=True)
    return picture


def _is_answered(rows: DataFrame) -> bool:
    """Tell whether unscaled takes longest, but with a smaller W_Q is like scaled."""
    medians = rows[rows["summary"].eq("median")]
    steps = medians.assign(steps=medians["steps"].fillna(np.inf)).pivot_table(
        "steps", ["optimiser", "d_k"], "arm"
    )
    if not {"none", "sqrt", "small-queries"} <= {*steps}:
        return False
    others, scaled = steps.drop(columns="none").max(axis=1), SLOWER * steps["sqrt"]
    practice = steps.index.get_level_values("d_k") >= PRACTICE
    slower = steps["none"].ge(scaled) & steps["small-queries"].le(scaled)
    return bool(steps["none"].gt(others).all() and slower[practice].all())


def _plot_steps(axes: Axes, rows: DataFrame, look: Look, lane: int) -> None:
    """Draw median steps with their intervals; what is beyond a run in its lane."""
    wide = rows.pivot_table("steps", "x", "summary", dropna=False)
    wide = wide.reindex(columns=["median", "low", "high"]).astype(float)
    never = wide.index[wide["median"].isna()]
    if len(never):
        draw.level(axes, MOST_STEPS)
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
    axes.set_yscale("log")
    draw.mark_ticks(axes.yaxis, STEP_TICKS)


def pick_steps(_: DataFrame, curves: Curves) -> Fact | None:
    """Pick the median steps of two arms, with plain gradient descent."""
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
        "At d_k = %(d_k)s, gradient descent takes %(first)s steps unscaled and "
        "%(second)s divided by √d_k."
    ),
    fact=pick_steps,
)
