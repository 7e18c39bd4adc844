"""Summaries of the training records for pages.

An arm is a way to scale scores and start weights, trained with one optimiser at one
d_k.  Its learning rate was chosen on tuning seeds; summaries are over other, judged
seeds.  Steps are censored: a run that has not learned when it ends would need more
steps than it had.  So a median of steps, or an end of its interval, may lie beyond the
last step; then it is None.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.claims.outcomes import finite_or_none
from montecarlo.claims.training import (
    ARM,
    ARMS,
    FOLDER,
    RATES,
    Record,
    read_about,
    read_record,
    read_table,
)
from montecarlo.estimation.estimates import clopper_pearson, median_estimate
from montecarlo.estimation.intervals import POINTWISE

#: Folder of the language model's record, which ``studies.language_model`` writes.
LANGUAGE_FOLDER = Path(__file__).parent
#: Names of the three numbers for an arm: the median and the ends of its interval.
MEDIAN = ("median", "low", "high")

#: An estimate and the ends of its interval; None: beyond the last step.
WithInterval = tuple[float | None, float | None, float | None]


class LanguageRecord(NamedTuple):
    """The record of the runs of the language model, with judged seeds.

    Attributes
    ----------
    runs : DataFrame
        One line for each arm, d_k and seed, at the learning rate chosen for that arm
        and d_k.  Columns arm, d_k, rate, seed, steps (until learned), held_out (loss),
        gradient_queries and gradient_keys (norms of the first gradients).
    about : dict
        ``configuration``, ``seeds``, versions and command.
    """

    runs: pd.DataFrame
    about: Mapping[str, Any]


@cache
def read_language(folder: Path = LANGUAGE_FOLDER) -> LanguageRecord:
    """Return the record of the language model that a folder has.

    Raises
    ------
    InputError
        If a file is missing.
    """
    return LanguageRecord(
        read_table(folder, "language"), read_about(folder, "language")
    )


@dataclass(frozen=True, slots=True)
class ArmLine:
    """Summary of the runs of an arm with one optimiser and d_k, at the chosen rate."""

    #: ``sgd``, plain gradient descent, or ``adam``
    optimiser: str
    arm: str
    d_k: int
    rate: float
    #: median steps until learned, and the ends of its pointwise 95 % interval
    steps: WithInterval
    seeds: int
    #: share of seeds that learn, in [0, 1], and the ends of its exact 95 % interval
    share: tuple[float, float, float]
    #: median loss at the end; None: infinite
    final_loss: float | None
    #: median norm of the first gradient with respect to W_Q and W_K
    gradient: float

    @property
    def learned(self) -> int:
        """Number of seeds with which the arm learns."""
        return round(self.share[0] * self.seeds)


@dataclass(frozen=True, slots=True)
class Theorem:
    """Comparison of runs with another divisor to runs with another scale and rate.

    By a theorem, training takes the same course if all of these are changed: the
    divisor is smaller by a factor a, W_Q and W_K are divided by sqrt(a), and their rate
    by a (for Adam by sqrt(a)).  In each pair of runs, one had the divisor changed, and
    the other scale and rate.
    """

    #: steps that the runs were trained for
    steps: int
    #: factors a for which gradient descent gave bitwise equal weights
    exact: tuple[float, ...]
    #: factors a for which it did not
    others: tuple[float, ...]
    #: largest relative difference of losses for ``others``, rounded up
    off_sgd: float
    #: the same for Adam, over all factors
    off_adam: float


@dataclass(frozen=True, slots=True)
class LanguageLine:
    """Summary of the language model's runs for one arm and d_k, at the chosen rate."""

    arm: str
    d_k: int
    rate: float
    #: number of seeds that learned
    learned: int
    #: median steps until learned; None: beyond the last step
    steps: float | None
    #: loss on held-out text over seeds: median, minimum and maximum
    held_out: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class LanguageView:
    """Summary of the language model's record for pages."""

    #: the record's; a run has learned when its mean loss falls below ``learned``
    configuration: Mapping[str, Any]
    #: numbers of judged and of tuning seeds
    seeds: int
    tuning: int
    #: one for each d_k and arm
    lines: tuple[LanguageLine, ...]

    @property
    def sizes(self) -> list[int]:
        """The values of d_k of the runs, ascending."""
        return sorted({line.d_k for line in self.lines})

    def count(self, arm: str) -> tuple[int, int]:
        """Return (number of runs of an arm that learned, number of all its runs)."""
        mine = [line.learned for line in self.lines if line.arm == arm]
        return sum(mine), self.seeds * len(mine)

    def steps_over_sqrt(self, arm: str) -> tuple[int, float]:
        """Return (largest d_k, median steps of an arm there / median steps of sqrt).

        The ratio is NaN if a median is beyond the last step.
        """
        d_k = max(line.d_k for line in self.lines)
        steps = {line.arm: line.steps for line in self.lines if line.d_k == d_k}
        return d_k, (steps[arm] or math.nan) / (steps["sqrt"] or math.nan)

    @property
    def divides_all(self) -> bool:
        """Whether all runs divided by sqrt(d_k) learned, and no undivided run did."""
        divided, runs = self.count("sqrt")
        return divided == runs > 0 == self.count("none")[0]


@dataclass(frozen=True, slots=True)
class TrainingView:
    """Summary of the training record for pages."""

    #: the record's: ``looks``, numbers of seeds at the interim analyses; ``spacing``,
    #: the factor between rates around the best one; a run has learned when its loss
    #: stays below ``learned``
    configuration: Mapping[str, Any]
    #: number of tuning seeds
    tuning: int
    #: one for each optimiser, d_k and arm
    lines: tuple[ArmLine, ...]
    #: median steps at the next smaller rate over those at the best: maximum over arms
    spacing: float
    #: test that a change of divisor equals a change of scale and rate
    theorem: Theorem
    #: the second task
    language: LanguageView | None = None

    def count(self, optimiser: str, arm: str) -> tuple[int, int]:
        """Return (number of runs of an arm that learned, number of all its runs).

        Runs at all d_k count, with one optimiser.
        """
        wanted = optimiser, arm
        mine = [one for one in self.lines if (one.optimiser, one.arm) == wanted]
        return sum(line.learned for line in mine), sum(line.seeds for line in mine)


@cache
def records_digest() -> str:
    """Return the SHA-256 hash of the training records, in hexadecimal digits.

    It is in run.json: pages are rendered only with the records that results were judged
    by.
    """
    found = hashlib.sha256()
    files = [*FOLDER.glob("*.*"), *LANGUAGE_FOLDER.glob("language.*")]
    for path in sorted(one for one in files if one.suffix in {".csv", ".json"}):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


@cache
def training_view() -> TrainingView:
    """Return the summary of the training records that ship with the package."""
    return view_training(read_record(), read_language())


def view_training(
    record: Record, language: LanguageRecord | None = None
) -> TrainingView:
    """Return the summary of a training record, and of the language model if given."""
    configuration = record.about["configuration"]
    lines = []
    for optimiser, d_k, arm in product(RATES, configuration["d_k"], ARMS):
        runs = record.by_arm[optimiser, arm, d_k]
        rate, steps = float(runs["rate"].iloc[0]), runs["steps"].to_numpy()
        line = ArmLine(
            *(optimiser, arm, d_k, rate),
            steps=median_with_ends(steps),
            seeds=steps.size,
            share=share_with_ends(int(np.isfinite(steps).sum()), steps.size),
            final_loss=finite_or_none(float(runs["final_loss"].median())),
            gradient=float(record.by_case[optimiser, d_k][arm].median()),
        )
        lines.append(line)
    return TrainingView(
        configuration,
        len(record.about["seeds"]["tuning"]),
        tuple(lines),
        measure_spacing(record),
        view_theorem(record),
        None if language is None else view_language(language),
    )


def measure_spacing(record: Record) -> float:
    """Return how much median steps can change from one learning rate to the next.

    That is the largest ratio, over arms, of median steps at the next smaller rate to
    those at the best rate.  Arms without a finite ratio are left out.  It bounds how
    much of a difference between arms is due to the spacing of rates.  The next larger
    rate cannot be used, since many arms no longer learn at it.
    """
    below = record.search.groupby(ARM)["steps_below"].median()
    first_look = record.runs["seed"].isin(record.search["seed"])
    ratio = below / record.runs[first_look].groupby(ARM)["steps"].median()
    return float(ratio[np.isfinite(ratio)].max())


def view_theorem(record: Record) -> Theorem:
    """Return the `Theorem`, the comparison of the record's rescaled runs over all d_k.

    Gradient descent is ``exact`` for a factor if it is so at every d_k.
    """
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


def view_language(record: LanguageRecord) -> LanguageView:
    """Return the summary of the record of the language model."""
    configuration, seeds = record.about["configuration"], record.about["seeds"]
    arms = dict(iter(record.runs.groupby(["d_k", "arm"])))
    lines = []
    for d_k, arm in product(configuration["d_k"], configuration["arms"]):
        steps, out = arms[d_k, arm]["steps"], arms[d_k, arm]["held_out"]
        line = LanguageLine(
            *(arm, d_k, float(arms[d_k, arm]["rate"].iloc[0])),
            learned=int(np.isfinite(steps).sum()),
            steps=finite_or_none(float(steps.median())),
            held_out=(float(out.median()), float(out.min()), float(out.max())),
        )
        lines.append(line)
    return LanguageView(
        configuration, len(seeds["judged"]), len(seeds["tuning"]), tuple(lines)
    )


def median_with_ends(steps: NDArray[np.float64]) -> WithInterval:
    """Return (median number of steps, low end, high end of its 95 % interval).

    A number beyond the last step is None.

    Parameters
    ----------
    steps : ndarray, shape (n_seeds,)
        Infinite for a run that never learned.
    """
    median = median_estimate(steps)
    low, high = (finite_or_none(end) for end in median.interval(POINTWISE))
    return finite_or_none(median.value), low, high


@cache
def share_with_ends(hits: int, n: int) -> tuple[float, float, float]:
    """Return (hits/n, low end, high end of its Clopper-Pearson 95 % interval)."""
    ends = clopper_pearson(hits, n, POINTWISE)
    return hits / n, ends.low, ends.high


def _round_up(value: float) -> float:
    """Return a positive value, rounded up to two significant digits.

    0.00123 becomes 0.0013.
    """
    return float(Context(2, ROUND_CEILING).create_decimal_from_float(value))


def training_lines(view: TrainingView) -> Iterator[tuple[object, ...]]:
    """Yield the lines of the table `TRAINING_START`: steps until an arm learned.

    There are three for each optimiser, d_k and arm: the median, and both ends of its
    interval.  Steps beyond the last one are None.
    """
    for line in view.lines:
        for summary, value in zip(MEDIAN, line.steps, strict=True):
            named = line.d_k, line.optimiser, line.arm, summary, line.seeds
            yield *named, line.gradient, value
