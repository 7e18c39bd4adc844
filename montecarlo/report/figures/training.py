"""What training says: loss by step, steps by rate, steps by the first gradient."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.records.training import RATES
from montecarlo.report.content.training import (
    BUDGET_CURVE,
    LOSS_CURVE,
    SHARE_CURVE,
    START_CURVE,
    STEPS_CURVE,
)
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.palette import ARM_LOOKS, Look, resize
from montecarlo.report.figures.specs import Fact, FigureSpec, message, pick_two

#: Lines of panels, from above.
OPTIMISERS = tuple(RATES)
LOOKS = resize(ARM_LOOKS, 4.0)
#: Every which point of a curve of the loss has a mark.
MARK_EVERY = 6
#: Each arm has a lane for what takes more steps than runs have, so many times higher.
LANE = 1.22
#: Sizes of marks, from the smallest d_k on, in points.
SIZES = (3.5, 5.0, 6.5)
#: Losses below this are cut off; labels of steps.
LEAST_LOSS, MOST_LOSS = 3e-4, 10.0
STEP_TICKS = (3.0, 10.0, 30.0, 100.0, 300.0)
#: Half of the seeds: a median is known.
HALF = 0.5

Plot = Callable[[Axes, DataFrame, DataFrame], None]


def loss_rows(_: DataFrame, curves: DataFrame) -> DataFrame:
    """Return the quantiles of the loss by step."""
    return curves[curves["curve"].eq(LOSS_CURVE)]


def rate_rows(_: DataFrame, curves: DataFrame) -> DataFrame:
    """Return the median steps by rate, with the ends of their intervals."""
    return curves[curves["curve"].eq(STEPS_CURVE)]


def start_rows(_: DataFrame, curves: DataFrame) -> DataFrame:
    """Return the median steps by the first gradient, with the ends of intervals."""
    return curves[curves["curve"].eq(START_CURVE)]


def build_losses(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build the loss by step: a line of panels for each optimiser, a column a d_k."""
    rows = loss_rows(measurements, curves)
    return _build(rows, curves, _plot_losses, "$t$", "$L$")


def _plot_losses(axes: Axes, table: DataFrame, budget: DataFrame) -> None:
    draw.level(axes, float(budget["estimate"].iloc[0]))
    draw.plot_series(axes, table, "arm", LOOKS, _plot_loss)
    draw.logarithmic(axes, LEAST_LOSS, MOST_LOSS)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(4))


def _plot_loss(axes: Axes, rows: DataFrame, look: Look) -> Axes:
    """Draw the median, and the band between the outer tenths."""
    wide = _by_outcome(rows)
    draw.plot_band(axes, wide, look)
    axes.plot(wide["median"], markevery=MARK_EVERY, linestyle=look.dash, **look.mark)
    return axes


def _by_outcome(rows: DataFrame) -> DataFrame:
    """Return estimates against x, a column for each outcome, such as a quantile."""
    return rows.pivot_table(
        index="x", columns="outcome", values="estimate", dropna=False
    )


def build_rates(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build steps by rate: a line of panels for each optimiser, a column a d_k."""
    rows = rate_rows(measurements, curves)
    return _build(rows, curves, _plot_rates, r"$\eta$", "$T$")


def _plot_rates(axes: Axes, table: DataFrame, budget: DataFrame) -> None:
    _set_scales(axes)
    _plot_steps(axes, table, float(budget["x"].iloc[0]), LOOKS)


def build_starts(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build steps by the first gradient: a panel for each optimiser."""
    rows = start_rows(measurements, curves)
    return _build(rows, curves, _plot_starts, r"$\|g_0\|$", "$T$", apart=False)


def _plot_starts(axes: Axes, table: DataFrame, budget: DataFrame) -> None:
    _set_scales(axes)
    for size, d_k in zip(SIZES, sorted(set(table["d_k"])), strict=False):
        mine = table[table["d_k"].eq(d_k)]
        _plot_steps(axes, mine, float(budget["x"].iloc[0]), resize(LOOKS, size))
    draw.plot_series(
        axes, table[table["outcome"].eq("median")], "arm", LOOKS, _join_sizes
    )


def _join_sizes(axes: Axes, rows: DataFrame, look: Look) -> Axes:
    rows = rows.sort_values("d_k")
    axes.plot(rows["x"], rows["estimate"], color=look.colour, linestyle=look.dash)
    return axes


def _plot_steps(
    axes: Axes, table: DataFrame, budget: float, looks: dict[str, Look]
) -> None:
    """Draw median steps with their intervals; what is beyond the budget in its lane."""
    draw.level(axes, budget)
    for lane, (arm, look) in enumerate(looks.items(), start=1):
        rows = table[table["arm"].eq(arm)]
        wide = _by_outcome(rows).reindex(columns=["median", "low", "high"])
        never = wide.index[wide["median"].isna()]
        axes.plot(
            never,
            [budget * LANE**lane] * len(never),
            linestyle="none",
            alpha=0.75,
            **replace(look, size=0.7 * look.size).mark,
        )
        median = wide["median"]
        low, high = wide["low"].fillna(median), wide["high"].fillna(budget)
        axes.errorbar(
            wide.index,
            median,
            np.nan_to_num(draw.bars(median, low, high)),
            linestyle=look.dash,
            linewidth=1.1,
            elinewidth=1.0,
            **look.mark,
        )


def _set_scales(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(ticker.LogLocator(numticks=4))
    axes.yaxis.set_major_locator(ticker.FixedLocator(STEP_TICKS))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:g}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(ticker.NullLocator())


def _build(  # noqa: PLR0913 - what, in which panels, on which axes
    rows: DataFrame,
    curves: DataFrame,
    plot: Plot,
    x: str,
    y: str,
    *,
    apart: bool = True,
) -> Figure | None:
    """Build a line of panels for each optimiser and a column for each d_k.

    With all d_k in one panel a column for each optimiser; None without rows.
    """
    sizes = sorted({int(d_k) for d_k in rows["d_k"]}) if apart else []
    budget = curves[curves["curve"].eq(BUDGET_CURVE)]
    optimisers = [name for name in OPTIMISERS if rows["optimiser"].eq(name).any()]
    if not optimisers or budget.empty:
        return None
    lines = len(optimisers) if sizes else 1
    columns = len(sizes) or len(optimisers)
    figure, axes = draw.panels(lines, columns, 2.4 if sizes else 3.0)
    for number, one in enumerate(axes):
        line, column = divmod(number, columns)
        mine = rows[rows["optimiser"].eq(optimisers[line if sizes else column])]
        if sizes:
            mine = mine[mine["d_k"].eq(sizes[column])]
            if line == 0:
                one.set_title(f"$d_k = {sizes[column]}$")
        plot(one, mine, budget)
        if line == lines - 1:
            one.set_xlabel(x)
        if column == 0:
            one.set_ylabel(y)
        else:
            one.tick_params(labelleft=False)
    low, high = zip(*(one.get_ylim() for one in axes), strict=True)
    for one in axes:
        one.set_ylim(min(low), max(high))
    draw.legend_above(figure, draw.keys_of(ARM_LOOKS, rows["arm"], line=True))
    return figure


def pick_losses(measurements: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the median losses at the end of two arms, with plain gradient descent."""
    rows = _of_descent(loss_rows(measurements, curves))
    return pick_two(rows[rows["x"].eq(rows["x"].max())], "arm", "none", "sqrt")


def pick_rates(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick at how many rates more than half of the seeds learn."""
    rows = curves[curves["curve"].eq(SHARE_CURVE) & curves["optimiser"].eq("sgd")]
    learned = rows.assign(estimate=rows["estimate"].gt(HALF))
    counts = learned.groupby(["arm", "d_k"])["estimate"].transform("sum")
    return pick_two(rows.assign(estimate=counts), "arm", "none", "sqrt")


def pick_starts(measurements: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick the first gradients of two arms."""
    rows = _of_descent(start_rows(measurements, curves))
    return pick_two(rows.assign(estimate=rows["x"]), "arm", "none", "sqrt")


def _of_descent(rows: DataFrame) -> DataFrame:
    """Return the medians of plain gradient descent."""
    return rows[rows["optimiser"].eq("sgd") & rows["outcome"].eq("median")]


TRAINING_LOSS = FigureSpec(
    "training-loss",
    build_losses,
    "loss by step, for each divisor",
    section="training",
    caption=message(
        "The loss $L$ of a batch by step $t$, at the rate chosen for each arm, for "
        r"several $d_k$: median over seeds, and the range from the $10\,\%%$ to the "
        r"$90\,\%%$ quantile. Above: plain gradient descent; below: Adam. Horizontal "
        "line: the loss below which it has to stay."
    ),
    alternative=message(
        "At d_k = %(d_k)s the median loss at the last step of gradient descent shown "
        "is %(first)s unscaled and %(second)s divided by √d_k."
    ),
    named=("median_loss_unscaled", "median_loss_scaled"),
    fact=pick_losses,
    series={"arms": loss_rows},
)
TRAINING_RATES = FigureSpec(
    "training-rates",
    build_rates,
    "steps until learned, by learning rate",
    section="training",
    caption=message(
        "Median steps $T$ until the loss is low for good, by the learning rate "
        r"$\eta$, with pointwise $95\,\%%$ intervals, one column for each $d_k$. "
        "Above: plain gradient descent; below: Adam. Horizontal line: the steps after "
        "which runs end; marks above it: rates at which half of the seeds or more "
        "have not learned."
    ),
    alternative=message(
        "At d_k = %(d_k)s more than half of the seeds learn, with gradient descent, at "
        "%(first)s rates unscaled and at %(second)s divided by √d_k."
    ),
    named=("rates_that_learn_unscaled", "rates_that_learn_scaled"),
    fact=pick_rates,
    series={"arms": rate_rows},
)
TRAINING_STARTS = FigureSpec(
    "training-starts",
    build_starts,
    "steps until learned, by the first gradient",
    section="training",
    caption=message(
        "Median steps $T$ until the loss is low for good, at the rate chosen for each "
        r"arm, by the norm of the first gradient $\lVert g_0\rVert$, with pointwise "
        r"$95\,\%%$ intervals. Left: plain gradient descent; right: Adam. The larger "
        "the mark, the larger is $d_k$. Horizontal line: the steps after which runs "
        "end."
    ),
    alternative=message(
        "At d_k = %(d_k)s the norm of the first gradient is %(first)s unscaled and "
        "%(second)s divided by √d_k."
    ),
    named=("first_gradient_norm_unscaled", "first_gradient_norm_scaled"),
    fact=pick_starts,
    series={"arms": start_rows},
)
