"""A study: samples what the claims and figures need, and judges."""

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pandas as pd
from threadpoolctl import threadpool_limits

from montecarlo.claims.cases import cases_of
from montecarlo.claims.error_rates import ErrorRates, split_error_rate
from montecarlo.claims.judging import ClaimOutcome, Judge
from montecarlo.claims.records import (
    claim_records,
    self_check_records,
    sentence_record,
    threshold_curves,
)
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.undecided import undecided_points
from montecarlo.claims.z_scores import judge_z_scores
from montecarlo.errors import InputError
from montecarlo.estimation.engine import Budget, Plan, run, run_to
from montecarlo.estimation.samples import SampleStore
from montecarlo.estimation.summaries import RowKey, Summaries
from montecarlo.presets import Grid
from montecarlo.results.example import example_curves
from montecarlo.results.table import (
    CURVE_COLUMNS,
    curves_by_rank,
    distribution_curves,
    row_id,
    tabulate,
)
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.tails import tail_rows
from montecarlo.theory.references import Reference, reference

Advance = Callable[[DesignPoint, int, int], None]


@dataclass(frozen=True, slots=True)
class Study:
    """What is to be sampled and judged.

    Attributes
    ----------
    catalogue : Catalogue
    grid : Grid
    seed : int
    error_rate : float
        Nominal probability that any decided check of the report is wrong.
    preset : str
        Name of the preset that the grid came from, for the record.
    whole_grid : bool
        Whether to sample all of the grid, or only what the claims' checks need.
    batch : int or None
        Replicates sent to a worker at once; changes no byte.
    replicates : mapping or None
        Name of each point to how many replicates an earlier run took, to take as
        many; None: until nothing is undecided or the budget is spent.
    time_limit_reached : bool
        Whether it was a time limit that ended that run, for the record.
    """

    catalogue: Catalogue
    grid: Grid
    seed: int = 1
    error_rate: float = 0.01
    preset: str = ""
    whole_grid: bool = True
    batch: int | None = None
    replicates: Mapping[str, int] | None = None
    time_limit_reached: bool = False


@dataclass(frozen=True, slots=True)
class StudyResults:
    """What a study found.

    Attributes
    ----------
    study : Study
    measurements, curves : DataFrame
    claims : dict
    replicates : dict
        Name of each point to how many were taken.
    time_limit_reached : bool
        Whether sampling ended before all was decided or the budget spent.
    """

    study: Study
    measurements: pd.DataFrame
    curves: pd.DataFrame
    claims: dict[str, Any]
    replicates: dict[str, int] = field(default_factory=dict)
    time_limit_reached: bool = False


def run_study(  # noqa: PLR0913 - what, by whom, and whom it concerns
    study: Study,
    executor: Executor,
    advance: Advance = lambda *_: None,
    store: SampleStore | None = None,
    in_time: Callable[[], bool] | None = None,
    *,
    sampled: Callable[[], None] = lambda: None,
) -> StudyResults:
    """Sample, estimate and judge.

    Parameters
    ----------
    study : Study
    executor : concurrent.futures.Executor
        The workers.
    advance : callable
        (point, replicates finished, replicates newly wanted), for a progress bar.
    store : SampleStore, optional
        What keeps the batches; by default memory.
    in_time : callable, optional
        Whether to go on; what is undecided when it says no is inconclusive.
    sampled : callable
        Called when the workers are needed no more.

    Returns
    -------
    StudyResults
        The same for any workers, batches and order of the grid.

    Raises
    ------
    RuntimeError
        If sampling failed in some points, at the end of the others: which, why,
        and the commands that replay it.  Or if workers could not be replaced.
    """
    budgets = needed_budgets(study)
    divisors = study.grid.divisors
    rates = error_rates_of(study)
    alpha = rates.simultaneous_error
    most = {point: budget.looks()[-1] for point, budget in budgets.items()}
    judge = Judge(study.catalogue, most, divisors, exact_value, alpha)
    store, cache = store or SampleStore(), _Cache(divisors)

    def undecided(store: SampleStore) -> set[DesignPoint]:
        # a point that failed may not have come to its first look
        there = {
            point: most[point]
            for point, budget in budgets.items()
            if store.n_replicates(point) >= budget.first
        }
        judged = replace(judge, budgets=there).judge(
            lambda c: cache.summaries(store, c)
        )
        return undecided_points(judged, most)

    plan = Plan(budgets, study.seed, divisors, study.batch, in_time is not None)
    with threadpool_limits(limits=1, user_api="blas"):
        if study.replicates is None:
            limited = not run(
                plan, store, executor, undecided, advance, in_time or (lambda: True)
            )
        else:
            wanted = {c: study.replicates[c.name] for c in budgets}
            run_to(plan, store, executor, wanted, advance)
            limited = study.time_limit_reached
        tails = study.grid.tails if study.whole_grid else ()
        rare = list(tail_rows(tails, study.seed, executor))
    sampled()
    judged = judge.judge(lambda c: cache.summaries(store, c))
    summaries = [cache.summaries(store, point) for point in budgets]
    measurements = tabulate(summaries, find_reference, rare)
    return StudyResults(
        study,
        measurements,
        _curves(study.seed, summaries, judged.claims),
        {
            "error_rate": study.error_rate,
            "simultaneous_error": alpha,
            "looks": rates.looks,
            "claims": claim_records(
                study.catalogue, judged.claims, rates.claims, row_id
            ),
            "passages": [
                {"id": passage.id, **sentence_record(one, row_id)}
                for passage, one in zip(
                    study.catalogue.passage, judged.passages, strict=True
                )
            ],
            "self_checks": self_check_records(judged.self_checks, row_id),
            "z_scores": judge_z_scores(measurements),
            "models": msgspec.to_builtins(study.catalogue.model),
            "records": msgspec.to_builtins(study.catalogue.record),
        },
        {point.name: store.n_replicates(point) for point in budgets},
        limited,
    )


def needed_budgets(study: Study) -> dict[DesignPoint, Budget]:
    """Return the budgets of the points that a study samples.

    Those of the grid; with some of the claims left out, those that the checks need.
    A user's self-checks are checks like the others, those of the five texts are not.
    """
    budgets = study.grid.budgets()
    if study.whole_grid:
        return budgets
    catalogue = study.catalogue
    own = catalogue.language is not None
    needed = {
        point
        for check in (catalogue.checks() if own else catalogue.claim_checks())
        for case in cases_of(check, budgets, study.grid.divisors)
        for point in case.points
    }
    return {c: budget for c, budget in budgets.items() if c in needed}


def require_replicates(study: Study) -> None:
    """See that the numbers of replicates that a study names are those of its grid.

    Raises
    ------
    ValueError
        If a point has none, or not between 1 and its budget, or is not there.
    """
    if study.replicates is None:
        return
    most = {c.name: budget.looks()[-1] for c, budget in needed_budgets(study).items()}
    for name in sorted({*most, *study.replicates}):
        number, limit = study.replicates.get(name), most.get(name, 0)
        if not (isinstance(number, int) and 1 <= number <= limit):
            raise InputError(
                f"replicates of {name} must lie between 1 and {limit}, got {number}"
            )


def error_rates_of(study: Study) -> ErrorRates:
    """Return how the error rate of a study is split over intervals and claims."""
    budgets = needed_budgets(study)
    looks = {point: len(budget.looks()) for point, budget in budgets.items()}
    return split_error_rate(
        study.catalogue, looks, study.grid.divisors, exact_value, study.error_rate
    )


def find_reference(point: DesignPoint, key: RowKey) -> Reference | None:
    """Return the exact value of a row where theory gives one."""
    if "/" in key.divisor:
        return None
    return reference(key.quantity, point, key.divisor, key.summary)


def exact_value(point: DesignPoint, key: RowKey) -> float | None:
    """Return the exact value of a row, None where theory has none."""
    found = find_reference(point, key)
    return None if found is None else found.value


@dataclass(slots=True)
class _Cache:
    """Estimates of a point, made anew only when replicates were added."""

    divisors: tuple[str, ...]
    made: dict[DesignPoint, Summaries] = field(default_factory=dict)

    def summaries(self, store: SampleStore, point: DesignPoint) -> Summaries:
        have = self.made.get(point)
        n = store.n_replicates(point)
        if have is None or have.samples.n_replicates != n:
            have = Summaries(point, store.samples(point), self.divisors)
            self.made[point] = have
        return have


def _curves(
    seed: int, summaries: list[Summaries], claims: list[ClaimOutcome]
) -> pd.DataFrame:
    rows = [*curves_by_rank(summaries), *distribution_curves(), *example_curves(seed)]
    rows += [
        ("", "", "", "", None, None, "", curve, x, share, math.nan)
        for curve, x, share in threshold_curves(claims)
    ]
    table = pd.DataFrame.from_records(rows, columns=list(CURVE_COLUMNS))
    return table.astype({"d_k": "Int64", "n_keys": "Int64"})
