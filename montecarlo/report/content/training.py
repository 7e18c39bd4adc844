"""What the pages show of training: how each arm fared, and what a divisor is worth.

From judged seeds alone; rates were chosen on others.  A run that has not learned when
it ends would need more steps than it had, and so may a median, or an end of its
interval, be beyond them: None.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from montecarlo.estimation.estimates import POINTWISE, median_estimate
from montecarlo.records.training import ARMS, RATES, SETTING, Record
from montecarlo.report.content.published import Published, read_published
from montecarlo.report.content.tables.language import LanguageView


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
    steps: tuple[float | None, float | None, float | None]
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
    def smallest(self) -> int:
        """The smallest d_k that was trained."""
        return min(line.d_k for line in self.lines)

    @property
    def largest(self) -> int:
        """The largest d_k that was trained."""
        return max(line.d_k for line in self.lines)

    @property
    def sizes(self) -> list[int]:
        """The d_k that were trained."""
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


def view_training(record: Record) -> TrainingView:
    """Return what the pages show of a record."""
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
        lines.append(
            ArmLine(
                optimiser,
                arm,
                d_k,
                rate,
                int(np.isfinite(medians).sum()),
                len(tried := configuration["rates"][optimiser]),
                rate == max(tried),
                median_with_ends(runs["steps"].to_numpy()),
                share_with_ends(runs["steps"].to_numpy()),
                _finite(float(runs["final_loss"].median())),
                float(runs["gradient"].median()),
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


def median_with_ends(
    steps: NDArray[np.float64],
) -> tuple[float | None, float | None, float | None]:
    """Return the median of steps, of which never is infinite, with an interval."""
    median = median_estimate(steps)
    low, high = (_finite(end) for end in median.interval(POINTWISE))
    return _finite(median.value), low, high


def _round_up(value: float) -> float:
    """Return a bound with two digits, above the value."""
    found = Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(value)
    return float(found)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def share_with_ends(steps: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the share of runs that learned, and the ends of its exact interval."""
    learned = binomtest(int(np.isfinite(steps).sum()), steps.size)
    ends = learned.proportion_ci(1.0 - 2.0 * POINTWISE, method="exact")
    return float(learned.statistic), float(ends.low), float(ends.high)
