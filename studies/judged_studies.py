"""Whole studies, judged many times: how often anything in a report is wrong.

Every study is the quick one with a seed of its own, judged at several error rates on
the same draws.  The truth of a statistic is its mean over all studies.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from montecarlo.attention.softmax import Array
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.outcomes import CaseOutcome
from montecarlo.claims.record import ClaimsRecord
from montecarlo.claims.running import Study, run_study
from montecarlo.claims.verdicts import decide
from montecarlo.estimation.intervals import Interval
from montecarlo.records.calibration import Tally, quick_grid, studies_recipe
from montecarlo.study.presets import Grid
from studies.program import Arrays, keep

P = ParamSpec("P")
T = TypeVar("T")
#: Where errors are many enough to be counted, and what the report uses.
ERROR_RATES = (0.2, 0.01)
#: A truth that lies nearer to an edge of its region, in its own standard errors, is
#: not known to lie on one side of it.
KNOWN = 4.0
#: Relative: ends of intervals are kept to six digits.
DIGITS = 1e-5
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool]]
OUTCOMES = ("supported", "refuted", "undecided", "not_applicable")


@dataclass(slots=True)
class Remembering(Executor):
    """Workers that are none: every batch is drawn here, and once."""

    results: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Answer with what was drawn before, or draw."""
        future: Future[T] = Future()
        asked = (fn, *args)
        try:
            known = asked in self.results
        except TypeError:  # a table of what was drawn, which is no key
            future.set_result(fn(*args, **kwargs))
            return future
        if not known:
            self.results[asked] = fn(*args, **kwargs)
        future.set_result(self.results[asked])
        return future


@dataclass(frozen=True, slots=True)
class JudgedStudy:
    """Every case of one study at one error rate, in the order of claims.json.

    Attributes
    ----------
    estimate, low, high : ndarray, shape (n_cases,)
        NaN where a case is not applicable.
    region : ndarray, shape (n_cases, 2)
    outcome : ndarray of int, shape (n_cases,)
        Index in `OUTCOMES`.
    """

    estimate: Array
    low: Array
    high: Array
    region: Array
    outcome: np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def judge_study(seed: int, grid: Grid) -> dict[float, JudgedStudy]:
    """Sample one study and judge it at each of `ERROR_RATES`."""
    executor = Remembering()
    found = {}
    for error_rate in sorted(ERROR_RATES):
        study = Study(read_catalogue(), grid, seed, error_rate)
        found[error_rate] = _collect(run_study(study, executor).claims)
    return found


def _collect(claims: ClaimsRecord) -> JudgedStudy:
    cases = list(_cases(claims))
    return JudgedStudy(
        np.array([math.nan if c.estimate is None else c.estimate for c in cases]),
        np.array([case.interval[0] for case in cases]),
        np.array([case.interval[1] for case in cases]),
        np.array([case.region for case in cases]),
        np.array([OUTCOMES.index(case.outcome) for case in cases]),
    )


def _cases(claims: ClaimsRecord) -> Iterator[CaseOutcome]:
    """Yield every case of claims, of what is said of them, and of self-checks."""
    for check in (*claims.judged_checks(), *claims.said_checks()):
        if check.relation != "tends_to":  # decided by theory
            yield from check.cases


def judge_studies(
    seeds: Iterable[int], executor: Executor, work: Path
) -> dict[float, list[JudgedStudy]]:
    """Judge one study for each seed; those that the folder has are read from it."""
    found: dict[float, list[JudgedStudy]] = {rate: [] for rate in ERROR_RATES}
    futures = [executor.submit(_read_or_judge, seed, work) for seed in seeds]
    for future in futures:
        for rate, judged in future.result().items():
            found[rate].append(judged)
    return found


def _read_or_judge(seed: int, work: Path) -> dict[float, JudgedStudy]:
    grid, names = quick_grid(), JudgedStudy.__slots__
    recipe = [seed, studies_recipe(read_catalogue().checks())]

    def judge() -> Arrays:
        return {
            f"{rate}/{name}": getattr(judged, name)
            for rate, judged in judge_study(seed, grid).items()
            for name in names
        }

    kept = keep(work, f"study-{seed}", recipe, judge)
    return {
        rate: JudgedStudy(*(kept[f"{rate}/{name}"] for name in names))
        for rate in ERROR_RATES
    }


def tally(error_rate: float, studies: list[JudgedStudy]) -> Tally:
    """Count, of at least two studies, those that are wrong somewhere."""
    truth, known = truths(studies)
    missed = wrong = 0
    right = np.array(
        [
            OUTCOMES.index(decide(Interval(value, value), (low, high)).value)
            for value, (low, high) in zip(truth, studies[0].region, strict=True)
        ]
    )
    undecided = 0
    for one in studies:
        applicable = np.isfinite(one.estimate)
        slack = DIGITS * np.abs(truth)
        outside = np.logical_or(one.low > truth + slack, one.high < truth - slack)
        missed += bool(outside[applicable].any())
        decided = one.outcome < OUTCOMES.index("undecided")
        judged = np.logical_and(decided, known)
        wrong += bool((one.outcome != right)[judged].any())
        undecided += int((one.outcome == OUTCOMES.index("undecided")).sum())
    cases = int((studies[0].outcome != OUTCOMES.index("not_applicable")).sum())
    return Tally(
        error_rate,
        len(studies),
        missed,
        wrong,
        cases,
        undecided / (cases * len(studies)),
    )


def truths(studies: list[JudgedStudy]) -> tuple[Array, Flags]:
    """Return the mean of each case over studies, and whether it is clear of edges."""
    estimates = np.stack([one.estimate for one in studies])
    truth = estimates.mean(axis=0)
    error = estimates.std(axis=0, ddof=1) / math.sqrt(len(studies))
    distance = np.abs(studies[0].region - truth[:, np.newaxis]).min(axis=1)
    return truth, distance > KNOWN * error
