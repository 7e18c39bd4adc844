"""What the pages show of training: how each arm fared, and what a divisor is worth.

From judged seeds alone; rates were chosen on others.  A run that has not learned when
it ends would need more steps than it had, and so may a median, or an end of its
interval, be beyond them: None.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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

#: Where the language model's record is, made by ``python -m studies.language_model``.
LANGUAGE_FOLDER = Path(__file__).parent
#: Median, and the ends of its interval.
MEDIAN = ("median", "low", "high")

#: A number, and the ends of its interval.
WithEnds = tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class LanguageRecord:
    """The record of the language model, of seeds that are judged.

    Attributes
    ----------
    runs : DataFrame
        Columns arm, d_k, rate, seed, steps, held_out, gradient_queries and
        gradient_keys, at the rate that is chosen for each arm and d_k.
    about : dict
        Configuration, versions and command.
    """

    runs: pd.DataFrame
    about: Mapping[str, Any]


@cache
def read_language(folder: Path = LANGUAGE_FOLDER) -> LanguageRecord:
    """Read the language model's record.

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
    """How an arm fared with an optimiser at one d_k, at the rate chosen for it."""

    #: `sgd`: plain gradient descent; or `adam`
    optimiser: str
    arm: str
    d_k: int
    rate: float
    #: median steps until learned, and the ends of its interval
    steps: WithEnds
    seeds: int
    #: of seeds that learn, and the ends of its interval
    share: tuple[float, float, float]
    #: median loss at the end; null: infinite
    left: float | None
    #: median norm of the first, by W_Q and W_K
    gradient: float

    @property
    def learned(self) -> int:
        """How many seeds learn."""
        return round(self.share[0] * self.seeds)


@dataclass(frozen=True, slots=True)
class Theorem:
    """What was measured of the divisor being no freedom of its own."""

    #: that rescaled runs were trained for
    steps: int
    #: factors with which gradient descent gave equal weights, to the bit
    exact: tuple[float, ...]
    #: factors with which it did not
    others: tuple[float, ...]
    #: largest relative difference of a loss with these, rounded up
    off_sgd: float
    #: likewise with Adam, and any factor
    off_adam: float


@dataclass(frozen=True, slots=True)
class LanguageLine:
    """How an arm fared in the language model at one d_k, at the rate chosen for it."""

    arm: str
    d_k: int
    rate: float
    #: seeds that came below the level
    learned: int
    #: median steps until then; null: beyond the last
    steps: float | None
    #: loss on text not learned from: median, least and largest of the seeds
    held_out: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class LanguageView:
    """The record of the language model as the pages show it."""

    #: of the record; a run has learned when its mean loss comes below ``learned``
    configuration: Mapping[str, Any]
    seeds: int
    tuning: int
    #: one for each d_k and arm
    lines: tuple[LanguageLine, ...]

    @property
    def sizes(self) -> list[int]:
        """Each d_k."""
        return sorted({line.d_k for line in self.lines})

    def count(self, arm: str) -> tuple[int, int]:
        """Return how many runs of an arm learned, and of how many."""
        mine = [line.learned for line in self.lines if line.arm == arm]
        return sum(mine), self.seeds * len(mine)

    @property
    def divides_all(self) -> bool:
        """Whether every run learned divided by the root, and none undivided."""
        divided, runs = self.count("sqrt")
        return divided == runs > 0 == self.count("none")[0]


@dataclass(frozen=True, slots=True)
class TrainingView:
    """The record of training as the pages show it."""

    #: of the record: ``looks``, seeds judged at first, and where that was undecided;
    #: ``spacing``, the factor between rates around the best one; a run has learned when
    #: its loss stays below ``learned``
    configuration: Mapping[str, Any]
    tuning: int
    #: one for each optimiser, d_k and arm
    lines: tuple[ArmLine, ...]
    #: steps at the next smaller rate over those at the best one: of any arm at most
    spacing: float
    #: what was measured of the theorem
    theorem: Theorem
    #: a second task
    language: LanguageView | None = None

    def count(self, optimiser: str, arm: str) -> tuple[int, int]:
        """Return how many runs of an arm learned, and of how many, at any d_k."""
        wanted = optimiser, arm
        mine = [one for one in self.lines if (one.optimiser, one.arm) == wanted]
        return sum(line.learned for line in mine), sum(line.seeds for line in mine)


@cache
def records_digest() -> str:
    """Return a hash of the files of these records, which results are judged by."""
    found = hashlib.sha256()
    files = [*FOLDER.glob("*.*"), *LANGUAGE_FOLDER.glob("language.*")]
    for path in sorted(one for one in files if one.suffix in {".csv", ".json"}):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


@cache
def training_view() -> TrainingView:
    """Return what the pages show of the records that ship with the package."""
    return view_training(read_record(), read_language())


def view_training(
    record: Record, language: LanguageRecord | None = None
) -> TrainingView:
    """Return what the pages show of a record, and of that of the language model."""
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
            left=_finite(float(runs["final_loss"].median())),
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
    """Return how many times as many steps the next smaller rate takes, at most.

    At the next larger one many arms learn no more.
    """
    below = record.search.groupby(ARM)["steps_below"].median()
    first_look = record.runs["seed"].isin(record.search["seed"])
    ratio = below / record.runs[first_look].groupby(ARM)["steps"].median()
    return float(ratio[np.isfinite(ratio)].max())


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


def view_language(record: LanguageRecord) -> LanguageView:
    """Return what the pages show of the language model."""
    configuration, seeds = record.about["configuration"], record.about["seeds"]
    arms = dict(iter(record.runs.groupby(["d_k", "arm"])))
    lines = []
    for d_k, arm in product(configuration["d_k"], configuration["arms"]):
        steps, out = arms[d_k, arm]["steps"], arms[d_k, arm]["held_out"]
        line = LanguageLine(
            *(arm, d_k, float(arms[d_k, arm]["rate"].iloc[0])),
            learned=int(np.isfinite(steps).sum()),
            steps=_finite(float(steps.median())),
            held_out=(float(out.median()), float(out.min()), float(out.max())),
        )
        lines.append(line)
    return LanguageView(
        configuration, len(seeds["judged"]), len(seeds["tuning"]), tuple(lines)
    )


def median_with_ends(steps: NDArray[np.float64]) -> WithEnds:
    """Return the median of steps, of which never is infinite, with an interval."""
    median = median_estimate(steps)
    low, high = (_finite(end) for end in median.interval(POINTWISE))
    return _finite(median.value), low, high


@cache
def share_with_ends(hits: int, n: int) -> tuple[float, float, float]:
    """Return the share of runs that learned, and the ends of its exact interval."""
    ends = clopper_pearson(hits, n, POINTWISE)
    return hits / n, ends.low, ends.high


def _round_up(value: float) -> float:
    """Return a bound with two digits, above the value."""
    return float(Context(2, ROUND_CEILING).create_decimal_from_float(value))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def training_lines(view: TrainingView) -> Iterator[tuple[object, ...]]:
    """Yield the curve of the figure of training: steps by the first gradient."""
    for line in view.lines:
        for summary, value in zip(MEDIAN, line.steps, strict=True):
            named = line.d_k, line.optimiser, line.arm, summary, line.seeds
            yield *named, line.gradient, value
