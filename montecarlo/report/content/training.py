"""What the pages show of training: how each arm fared, and what a divisor is worth.

From judged seeds alone; rates were chosen on others.  A run that has not learned when
it ends would need more steps than it had, and so may a median, or an end of its
interval, be beyond them: None.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import cache
from itertools import product
from typing import cast

import numpy as np
import pandas as pd
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.stats import binomtest

from montecarlo.estimation.estimates import POINTWISE, median_estimate
from montecarlo.records.training import ARM, ARMS, RATES, SETTING, Record, Runs
from montecarlo.report.content.published import Published, read_published
from montecarlo.study.curves import CurveLine

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

#: A number, and the ends of its interval.
WithEnds = tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class ArmLine:
    """How an arm fared with an optimiser at one d_k, at the rate chosen for it.

    Attributes
    ----------
    optimiser : str
        `sgd`: plain gradient descent; or `adam`.
    arm : str
        A key of `montecarlo.records.training.ARMS`.
    d_k : int
    rate : float
        Of learning.
    rates : int
        At how many of the rates tried more than half of the seeds learn.
    tried : int
        Rates tried.
    largest : bool
        Whether the rate chosen is the largest of them: one beyond may be better.
    steps : tuple of float or None
        Median steps until learned, and the ends of its interval.
    share : (float, float, float)
        Of seeds that learn, and the ends of its interval.
    left : float or None
        Median loss at the end; None: infinite.
    gradient : float
        Median norm of the first gradient by W_Q and W_K.
    """

    optimiser: str
    arm: str
    d_k: int
    rate: float
    rates: int
    tried: int
    largest: bool
    steps: WithEnds
    share: tuple[float, float, float]
    left: float | None
    gradient: float


@dataclass(frozen=True, slots=True)
class Theorem:
    """What was measured of the divisor being no freedom of its own.

    Attributes
    ----------
    steps : int
        That rescaled runs were trained for.
    exact, others : tuple of float
        Factors with which plain gradient descent gave equal weights, to the bit, and
        those with which it did not.
    off_sgd, off_adam : float
        Largest relative difference of a loss, with these others and with Adam, rounded
        up to two digits.
    """

    steps: int
    exact: tuple[float, ...]
    others: tuple[float, ...]
    off_sgd: float
    off_adam: float


@dataclass(frozen=True, slots=True)
class LanguageLine:
    """How an arm fared in the language model at one d_k, at the rate chosen for it.

    Attributes
    ----------
    arm : str
        A key of `montecarlo.records.training.ARMS`.
    d_k : int
    rate : float
        Of learning.
    learned : int
        Seeds that came below the level.
    steps : float or None
        Median steps until then; None: beyond the last.
    held_out : (float, float, float)
        Loss on text that was not learned from: median, least and largest of the seeds.
    """

    arm: str
    d_k: int
    rate: float
    learned: int
    steps: float | None
    held_out: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class LanguageView:
    """The record of the language model as the pages show it.

    Attributes
    ----------
    seeds, tuning : int
        Seeds that are shown, and others on which rates were chosen.
    steps : int
        After which a run ends.
    learned : float
        A run has learned when the mean loss of some steps comes below this.
    lines : tuple of LanguageLine
        One for each d_k and arm.
    """

    seeds: int
    tuning: int
    steps: int
    learned: float
    lines: tuple[LanguageLine, ...]

    def count(self, arm: str) -> tuple[int, int]:
        """Return how many runs of an arm learned, and of how many."""
        mine = [line.learned for line in self.lines if line.arm == arm]
        return sum(mine), self.seeds * len(mine)


@dataclass(frozen=True, slots=True)
class TrainingView:
    """The record of training as the pages show it.

    Attributes
    ----------
    seeds, tuning : int
        Seeds that are judged, and others on which rates were chosen.
    steps : int
        After which a run ends.
    learned : float
        A run has learned when its loss stays below this.
    n_keys, n_queries : int
        Tokens and queries of a sequence.
    lines : tuple of ArmLine
        One for each optimiser, d_k and arm.
    theorem : Theorem
        What was measured of it.
    published : tuple of Published
        What it is held against.
    language : LanguageView or None
        A second task.
    """

    seeds: int
    tuning: int
    steps: int
    learned: float
    n_keys: int
    n_queries: int
    lines: tuple[ArmLine, ...]
    theorem: Theorem
    published: tuple[Published, ...]
    language: LanguageView | None = None

    @property
    def sizes(self) -> list[int]:
        """Every d_k, in ascending order."""
        return sorted({line.d_k for line in self.lines})

    def count(self, optimiser: str, arm: str) -> int:
        """Return how many runs of an arm learned, at any d_k."""
        mine = [self.line(optimiser, arm, d_k) for d_k in self.sizes]
        return round(sum(line.share[0] * self.seeds for line in mine))

    def line(self, optimiser: str, arm: str, d_k: int) -> ArmLine:
        """Return how an arm fared."""
        wanted = (optimiser, arm, d_k)
        return next(
            one for one in self.lines if (one.optimiser, one.arm, one.d_k) == wanted
        )


def view_training(record: Record, language: Runs | None = None) -> TrainingView:
    """Return what the pages show of a record, and of that of the language model."""
    settings = dict(iter(record.judged.groupby(SETTING)))
    configuration = record.about["configuration"]
    lines = []
    for optimiser, d_k, arm in product(RATES, configuration["d_k"], ARMS):
        rate = record.chosen[optimiser, arm, d_k]
        runs = settings[optimiser, arm, d_k, rate]
        medians = [
            some["steps"].median()
            for key, some in settings.items()
            if key[:-1] == (optimiser, arm, d_k)
        ]
        tried = configuration["rates"][optimiser]
        lines.append(
            ArmLine(
                optimiser,
                arm,
                d_k,
                rate,
                rates=int(np.isfinite(medians).sum()),
                tried=len(tried),
                largest=rate == max(tried),
                steps=median_with_ends(runs["steps"].to_numpy()),
                share=share_with_ends(runs["steps"].to_numpy()),
                left=_finite(float(runs["final_loss"].median())),
                gradient=float(runs["gradient"].median()),
            )
        )
    return TrainingView(
        len(record.seeds["judged"]),
        len(record.seeds["tuning"]),
        configuration["steps"],
        configuration["learned"],
        configuration["n_keys"],
        configuration["n_queries"],
        tuple(lines),
        view_theorem(record),
        read_published(),
        None if language is None else view_language(language),
    )


def view_theorem(record: Record) -> Theorem:
    """Return what rescaled runs came to, over all d_k that were tried."""
    sgd = [one for one in record.rescaled if one.optimiser == "sgd"]
    factors = sorted({one.factor for one in sgd})
    apart = {one.factor for one in sgd if one.weights != 0.0}
    return Theorem(
        record.rescaled[0].steps,
        tuple(c for c in factors if c not in apart),
        tuple(c for c in factors if c in apart),
        _round_up(max((one.loss for one in sgd if one.factor in apart), default=0.0)),
        _round_up(max(one.loss for one in record.rescaled if one.optimiser == "adam")),
    )


def view_language(record: Runs) -> LanguageView:
    """Return what the pages show of the language model."""
    settings = dict(iter(record.judged.groupby(SETTING)))
    configuration = record.about["configuration"]
    lines = []
    for d_k, arm in product(configuration["d_k"], configuration["arms"]):
        key = configuration["optimiser"], arm, d_k
        runs = settings[*key, record.chosen[key]]
        learned = int(np.isfinite(runs["steps"]).sum())
        steps = _finite(float(runs["steps"].median()))
        of_seeds = runs["held_out"]
        held_out = (
            float(of_seeds.median()),
            float(of_seeds.min()),
            float(of_seeds.max()),
        )
        lines.append(
            LanguageLine(arm, d_k, record.chosen[key], learned, steps, held_out)
        )
    return LanguageView(
        len(record.seeds["judged"]),
        len(record.seeds["tuning"]),
        configuration["steps"],
        configuration["learned"],
        tuple(lines),
    )


def median_with_ends(steps: NDArray[np.float64]) -> WithEnds:
    """Return the median of steps, of which never is infinite, with an interval."""
    median = median_estimate(steps)
    low, high = (_finite(end) for end in median.interval(POINTWISE))
    return _finite(median.value), low, high


def share_with_ends(steps: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the share of runs that learned, and the ends of its exact interval."""
    return _share_with_ends(int(np.isfinite(steps).sum()), steps.size)


@cache
def _share_with_ends(hits: int, n: int) -> tuple[float, float, float]:
    learned = binomtest(hits, n)
    ends = learned.proportion_ci(1.0 - 2.0 * POINTWISE, method="exact")
    return float(learned.statistic), float(ends.low), float(ends.high)


def _round_up(value: float) -> float:
    """Return a bound with two digits, above the value."""
    found = Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(value)
    return float(found)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
    line: CurveLine, curve: str, x: float, values: WithEnds
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
