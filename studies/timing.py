"""Timing contenders in one sitting, and checking what they say of their errors."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.stats

from studies.contenders import Contender

ROUNDS = 7
#: Probability that a right standard error is called wrong.
FALSE_ALARM = 1e-6


@dataclass(frozen=True, slots=True)
class Timed:
    """A contender, timed.

    Attributes
    ----------
    name : str
    seconds : float
        CPU time of a run, the median over rounds.
    errors : dict
        Estimate's name to its relative standard error: the root of its mean square
        over runs.
    spread : float
        Largest quotient over estimates of the spread between runs and that error, or
        one over it.
    """

    name: str
    seconds: float
    errors: dict[str, float]
    spread: float


def time_together(contenders: Sequence[Contender], runs: int) -> list[Timed]:
    """Time contenders in turn, warmed up, and compare their errors with their spread.

    Parameters
    ----------
    contenders : sequence of Contender
    runs : int
        Of each contender in a round, at least 1.

    Raises
    ------
    ValueError
        If estimates of a contender vary more or less between runs than its standard
        errors say.
    """
    seconds: list[list[float]] = [[] for _ in contenders]
    found: list[list[dict[str, tuple[float, float]]]] = [[] for _ in contenders]
    for contender in contenders:
        contender.run(0)
    for round_ in range(ROUNDS):
        for number, contender in enumerate(contenders):
            seeds = range(1 + round_ * runs, 1 + (round_ + 1) * runs)
            start = time.process_time()
            found[number] += [contender.run(seed) for seed in seeds]
            seconds[number].append((time.process_time() - start) / runs)
    return [
        _timed(contender, statistics.median(times), values)
        for contender, times, values in zip(contenders, seconds, found, strict=True)
    ]


def _timed(
    contender: Contender, seconds: float, found: list[dict[str, tuple[float, float]]]
) -> Timed:
    errors, spreads = {}, []
    for name in found[0]:
        values, claimed = np.array([run[name] for run in found]).T
        error = float(np.sqrt(np.mean(claimed**2)))
        check_error(f"{contender.name}: {name}", values, error, contender.units)
        errors[name] = error / abs(float(values.mean()))
        quotient = float(values.std(ddof=1)) / error
        spreads.append(max(quotient, 1.0 / quotient))
    return Timed(contender.name, seconds, errors, max(spreads))


def check_error(name: str, values: np.ndarray, error: float, units: int) -> None:
    """Compare a standard error with the spread of the estimates over runs.

    Parameters
    ----------
    name : str
        For the message.
    values : ndarray
        One estimate per run.
    error : float
        What the runs say of their standard error, as the root of its mean square.
    units : int
        Independent units of a run, which their errors are made from.

    Raises
    ------
    ValueError
        If the quotient of the variances is outside the F distribution's quantiles at
        `FALSE_ALARM`.
    """
    runs = len(values)
    distribution = scipy.stats.f(runs - 1, runs * (units - 1))
    quotient = float(values.var(ddof=1)) / error**2
    low, high = distribution.ppf(FALSE_ALARM / 2.0), distribution.isf(FALSE_ALARM / 2.0)
    if not low <= quotient <= high:
        raise ValueError(
            f"standard error of {name} must agree with the spread over {runs} runs "
            f"(quotient of variances from {low:.2f} to {high:.2f}), got {quotient:.2f}"
        )


def ratios(one: Timed, other: Timed) -> list[float]:
    """Return how many times as long the other takes to the same standard errors."""
    quotient = other.seconds / one.seconds
    return [
        quotient * (other.errors[name] / error) ** 2
        for name, error in one.errors.items()
    ]


def median_seconds_of(*works: Callable[[int], object]) -> list[float]:
    """Return the CPU times of works of a seed, in turn: medians, warmed up."""
    for work in works:
        work(0)
    found: list[list[float]] = [[] for _ in works]
    for round_ in range(ROUNDS):
        for work, seconds in zip(works, found, strict=True):
            start = time.process_time()
            work(1 + round_)
            seconds.append(time.process_time() - start)
    return [statistics.median(seconds) for seconds in found]
