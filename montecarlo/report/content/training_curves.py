"""The curves of the figures of training, as lines of curves.csv."""

import math
from collections.abc import Iterator
from typing import cast

import pandas as pd
from msgspec.structs import replace

from montecarlo.records.training import ARM, SETTING, Record
from montecarlo.report.content.training import (
    TrainingView,
    median_with_ends,
    share_with_ends,
)
from montecarlo.study.columns import CurveLine

#: The curves of its figures; of the first two, `outcome` says which quantile it is, or
#: which end of an interval.
LOSS_CURVE, STEPS_CURVE = "training_loss", "training_steps"
#: Share of seeds that learn by rate; steps at the chosen rate by the first gradient.
SHARE_CURVE, START_CURVE = "training_share", "training_start"
#: One point: the steps after which runs end, and the loss at which one has learned.
BUDGET_CURVE = "training_budget"
#: d_k that curves of the loss are shown for, where the record has them.
LOSS_D_K = (64, 256)
#: From this step on, every fourth of the recorded steps is enough to draw them.
LATE, LATE_EVERY = 100, 20
#: Median, and the ends of its interval.
MEDIAN = ("median", "low", "high")


def training_curves(view: TrainingView, record: Record) -> Iterator[CurveLine]:
    """Yield the curves of the figures of training."""
    yield CurveLine(curve=BUDGET_CURVE, x=float(view.steps), estimate=view.learned)
    yield from _loss_curves(record.losses)
    for setting, runs in record.judged.groupby(SETTING):
        optimiser, arm, d_k, rate = cast("tuple[str, str, int, float]", setting)
        steps = runs["steps"].to_numpy()
        line = CurveLine(
            optimiser=optimiser,
            arm=arm,
            d_k=int(d_k),
            curve=SHARE_CURVE,
            n_replicates=view.seeds,
            x=rate,
            estimate=share_with_ends(steps)[0],
        )
        yield line
        yield from _with_ends(line, STEPS_CURVE, rate, median_with_ends(steps))
    for one in view.lines:
        line = CurveLine(
            optimiser=one.optimiser,
            arm=one.arm,
            d_k=one.d_k,
            curve=START_CURVE,
            n_replicates=view.seeds,
            x=one.gradient,
        )
        yield from _with_ends(line, START_CURVE, one.gradient, one.steps)


def _with_ends(
    line: CurveLine, curve: str, x: float, values: tuple[float | None, ...]
) -> Iterator[CurveLine]:
    for outcome, value in zip(MEDIAN, values, strict=True):
        yield replace(line, curve=curve, x=x, outcome=outcome, estimate=value)


def _loss_curves(losses: pd.DataFrame) -> Iterator[CurveLine]:
    """Yield quantiles of the loss by step, up to where they diverge."""
    drawn = losses["step"].lt(LATE) | losses["step"].mod(LATE_EVERY).eq(0)
    shown = losses[drawn & losses["d_k"].isin(LOSS_D_K)].sort_values([*ARM, "step"])
    for one in shown.to_dict("records"):
        for outcome in ("q10", "median", "q90"):
            if math.isfinite(one[outcome]):
                yield CurveLine(
                    optimiser=one["optimiser"],
                    arm=one["arm"],
                    d_k=one["d_k"],
                    curve=LOSS_CURVE,
                    outcome=outcome,
                    x=float(one["step"]),
                    estimate=one[outcome],
                )
