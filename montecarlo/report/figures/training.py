"""What training says: steps to learn by d_k, and by learning rate."""

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from pandas import DataFrame

from montecarlo.report.content.training import (
    BUDGET_CURVE,
    SHARE_CURVE,
    START_CURVE,
    STEPS_CURVE,
)
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import ARM_LOOKS, Look, keep_looks
from montecarlo.report.figures.specs import (
    HEAD_SIZE,
    Fact,
    FigureSpec,
    of_curve,
    pick_two,
)

OPTIMISERS = {
    "sgd": Label(message("Plain gradient descent")),
    "adam": Label(message("Adam")),
}
STEPS = Label(message("Steps to learn"), "T")
#: The d_k that a column of panels has, where the record has them.
PANEL_D_K = (64, 256)
#: Each arm has a lane for what takes more steps than runs have, so many times higher.
LANE = 1.22
#: Between arms at one d_k, a factor: intervals would hide each other.
BESIDE = 1.07
STEP_TICKS = (3.0, 10.0, 30.0, 100.0, 300.0)
#: Half of the seeds: a median is known.
HALF = 0.5
#: The title, where it is so at every d_k that is shown, and from this one on by so many
#: times the steps.
ANSWERED = message("Unscaled takes longest, unless $W_Q$ starts smaller")
ASKED = message("Steps to learn, by divisor")
PRACTICE, SLOWER = 64, 1.25


# --- Steps against d_k --------------------------------------------------------------


def build_training(_: DataFrame, curves: DataFrame) -> Picture | None:
    """Build the steps to learn against d_k, a panel for each optimiser."""
    rows, budget = of_curve(curves, START_CURVE), of_curve(curves, BUDGET_CURVE)
    titles = {
        name: OPTIMISERS[name] for name in OPTIMISERS if name in {*rows["optimiser"]}
    }
    if not titles or budget.empty:
        return None

    def plot(panel: Panel, mine: DataFrame) -> None:
        for place, (arm, look) in enumerate(ARM_LOOKS.items()):
            rows = mine[mine["arm"].eq(arm)]
            rows = rows.assign(x=rows["d_k"].astype(float) * BESIDE ** (place - 1.5))
            _plot_steps(panel.axes, rows, budget, look, place + 1)
        draw.powers_of_two(panel.axes, mine["d_k"], columns=2)
        panel.axes.set_xticks(sorted(set(mine["d_k"])))

    picture = draw.grid([(None, rows)], "optimiser", titles, 150.0, plot, HEAD_SIZE)
    picture.headings[0] = Label(ANSWERED if _is_answered(rows) else ASKED)
    picture.panels[0].y = STEPS
    picture.keys = draw.keys_of(ARM_LOOKS, rows["arm"], line=True)
    return picture


def _is_answered(rows: DataFrame) -> bool:
    """Tell whether unscaled takes longest, but with a smaller W_Q is like scaled."""
    medians = rows[rows["outcome"].eq("median")]
    steps = medians.assign(estimate=medians["estimate"].fillna(np.inf)).pivot_table(
        "estimate", ["optimiser", "d_k"], "arm"
    )
    if not {"none", "sqrt", "small-queries"} <= {*steps}:
        return False
    others, scaled = steps.drop(columns="none").max(axis=1), SLOWER * steps["sqrt"]
    practice = steps.index.get_level_values("d_k") >= PRACTICE
    slower = steps["none"].ge(scaled) & steps["small-queries"].le(scaled)
    return bool(steps["none"].gt(others).all() and slower[practice].all())


def _plot_steps(
    axes: Axes, rows: DataFrame, budget: DataFrame, look: Look, lane: int
) -> None:
    """Draw median steps with their intervals; what is beyond the budget in its lane."""
    steps = float(budget["x"].iloc[0])
    wide = rows.pivot_table("estimate", "x", "outcome", dropna=False)
    wide = wide.reindex(columns=["median", "low", "high"]).astype(float)
    never = wide.index[wide["median"].isna()]
    if len(never):
        draw.level(axes, steps)
        mark = replace(look, size=0.7 * look.size).mark
        height = [steps * LANE**lane] * len(never)
        axes.plot(never, height, linestyle="none", alpha=0.75, **mark)
    median = wide["median"]
    low, high = wide["low"].fillna(median), wide["high"].fillna(steps)
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


def pick_steps(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the median steps of two arms, with plain gradient descent."""
    rows = of_curve(curves, START_CURVE).dropna(subset=["estimate"])
    rows = rows[rows["optimiser"].eq("sgd") & rows["outcome"].eq("median")]
    return pick_two(rows, "arm", "none", "sqrt")


TRAINING = FigureSpec(
    "training",
    build_training,
    "steps to learn against d_k",
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
    named=("median_steps_unscaled", "median_steps_scaled"),
    fact=pick_steps,
)

# --- Steps by rate ------------------------------------------------------------------


def build_rates(_: DataFrame, curves: DataFrame) -> Picture | None:
    """Build steps by rate: a row of panels for each optimiser, a column a d_k."""
    budget = of_curve(curves, BUDGET_CURVE)

    def plot(panel: Panel, rows: DataFrame) -> None:
        for lane, (arm, look) in enumerate(ARM_LOOKS.items(), start=1):
            _plot_steps(panel.axes, rows[rows["arm"].eq(arm)], budget, look, lane)
        draw.logarithmic(panel.axes, x=True, most=4)

    rows = of_curve(curves, STEPS_CURVE)
    titles = {
        d_k: Label(symbol=f"d_k = {d_k}") for d_k in PANEL_D_K if d_k in {*rows["d_k"]}
    }
    parts = [
        (label, rows[rows["optimiser"].eq(name)])
        for name, label in keep_looks(OPTIMISERS, rows["optimiser"]).items()
    ]
    if budget.empty or not parts or not titles:
        return None
    rate = Label(message("learning rate"), r"\eta")
    picture = draw.grid(parts, "d_k", titles, 100.0, plot, rate)
    for line in picture.rows:
        line[0].y = STEPS
    for panel in picture.panels:  # optimisers have their own rates
        panel.axes.tick_params(labelbottom=True)
    picture.keys = draw.keys_of(ARM_LOOKS, rows["arm"], line=True)
    return picture


def pick_rates(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick at how many rates more than half of the seeds learn."""
    rows = of_curve(curves, SHARE_CURVE)
    rows = rows[rows["optimiser"].eq("sgd")]
    learned = rows.assign(estimate=rows["estimate"].gt(HALF))
    counts = learned.groupby(["arm", "d_k"])["estimate"].transform("sum")
    return pick_two(rows.assign(estimate=counts), "arm", "none", "sqrt")


TRAINING_RATES = FigureSpec(
    "training-rates",
    build_rates,
    "steps until learned, by learning rate",
    section="training",
    caption=message(
        "Median steps until the loss stays low, by learning rate. Marks above the "
        "horizontal line, the steps after which runs end: half of the seeds or more "
        "have not learned."
    ),
    alternative=message(
        "At d_k = %(d_k)s more than half of the seeds learn, with gradient descent, at "
        "%(first)s rates unscaled and at %(second)s divided by √d_k."
    ),
    named=("rates_that_learn_unscaled", "rates_that_learn_scaled"),
    fact=pick_rates,
)
