"""A study: samples what the claims and figures need, judges, and writes its tables."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from threadpoolctl import threadpool_limits

from montecarlo.claims.calibration import calibrate
from montecarlo.claims.judging import Judge
from montecarlo.claims.outcomes import CLAIMS_FILE, ClaimsRecord
from montecarlo.claims.recorded import RECORDED
from montecarlo.claims.schema import Catalogue
from montecarlo.claims.simulation import (
    ErrorRates,
    Evidence,
    Exact,
    cases_of,
    check_rows,
    row_key,
    split_error_rate,
    undecided_points,
)
from montecarlo.claims.training import Record
from montecarlo.claims.z_scores import judge_z_scores, name_references
from montecarlo.estimation.engine import Advance, Budget, Plan, SampleStore, run
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import POINTWISE, Interval
from montecarlo.estimation.row_distribution import RowDistribution
from montecarlo.estimation.summaries import RowKey, columns_of, every_key
from montecarlo.names import LEAST_ERROR_RATE, MOST_ERROR_RATE, require_number
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.executors import finish
from montecarlo.study.failures import raise_failed_batches
from montecarlo.study.fingerprint import code_digest, made_with
from montecarlo.study.folder import write_json
from montecarlo.study.measured import MEASUREMENTS
from montecarlo.study.presets import Grid
from montecarlo.study.rows import Row, in_order, unite
from montecarlo.study.table import (
    PointTable,
    find_reference,
    references_of,
    table_of,
    tabulate,
    tail_rows,
    write_table,
)
from montecarlo.theory.row_expectations import forget_profiles
from montecarlo.theory.row_integrals import Reference


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
    pages : callable
        (points, divisors) -> the rows that pages read of these.
    whole_grid : bool
        Whether points are those of the grid, or of these the ones that the claims'
        checks need.
    """

    catalogue: Catalogue
    grid: Grid
    seed: int = 1
    error_rate: float = 0.01
    preset: str = ""
    pages: Callable[[Sequence[DesignPoint], Collection[str]], Iterable[Row]] = (
        lambda *_: ()
    )
    whole_grid: bool = True

    def __post_init__(self) -> None:
        limits = LEAST_ERROR_RATE, MOST_ERROR_RATE
        require_number("error_rate", self.error_rate, *limits, ends=False)


@dataclass(frozen=True, slots=True)
class StudyResults:
    """What a study found.

    Attributes
    ----------
    study : Study
    measurements : DataFrame
    distributions : dict
        How rows are distributed, by point and key, where that was asked for.
    claims : ClaimsRecord
        What claims.json will hold.
    replicates : dict
        Name of each point to how many were taken.
    """

    study: Study
    measurements: pd.DataFrame
    distributions: dict[Row, RowDistribution]
    claims: ClaimsRecord
    replicates: dict[str, int] = field(default_factory=dict)


def run_study(
    study: Study,
    executor: Executor,
    advance: Advance = lambda *_: None,
    store: SampleStore | None = None,
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
        and the commands that replay it.  Or if a worker died.
    """
    requested, divisors = rows_of_study(study), study.grid.divisors
    of_grid = study.grid.budgets()
    budgets = {point: of_grid[point] for point in requested}
    # cases that are not applicable are named, and not sampled
    most = {point: of_grid[point].analyses()[-1] for point in _named_points(study)}
    store = SampleStore() if store is None else store
    known: dict[DesignPoint, dict[RowKey, Reference | None]] = {c: {} for c in most}
    tables: dict[DesignPoint, PointTable] = {}

    def exact(point: DesignPoint, key: RowKey) -> float | None:
        if key not in known[point]:
            known[point][key] = find_reference(point, key)
        found = known[point][key]
        return None if found is None else found.value

    def sampled_on(there: Mapping[DesignPoint, int]) -> Evidence:
        """Bring the tables of points up to what is sampled of them."""
        numbers = {point: store.n_replicates(point) for point in budgets}
        changed = [
            point
            for point, number in numbers.items()
            if point in there
            and (point not in tables or tables[point].n_replicates != number)
        ]
        tasks = (
            (
                *(point, requested[point], store.packed(point)),
                *(known[point], checked, stated),
            )
            for point in changed
        )
        for task, future in work(table_of, tasks):
            tables[task[0]] = future.result()
        return Evidence(there, divisors, exact, tables.__getitem__)

    def undecided(store: SampleStore) -> set[DesignPoint]:
        # a point that failed may not have come to its first analysis
        there = {
            point: number
            for point, number in most.items()
            if point not in budgets or store.n_replicates(point) >= of_grid[point].first
        }
        evidence = sampled_on(there)
        # z scores are looked at once, at the end
        return undecided_points(_judge(study, rates, evidence), evidence)

    columns = {point: columns_of(point, keys) for point, keys in requested.items()}
    plan = Plan(budgets, study.seed, columns)
    work = partial(finish, executor)
    with threadpool_limits(limits=1, user_api="blas"):
        # those of short rows take longest
        by_keys = sorted(budgets, key=lambda c: c.n_keys or math.inf)
        theory = ((point, requested[point]) for point in by_keys)
        for (point, *_), future in work(references_of, theory):
            known[point] = future.result()
        rates = error_rates_of(study, exact, budgets)
        of_samples = [c for c in study.catalogue.checks() if c.quantity not in RECORDED]
        stated = (*{rates.stated(check): 0 for check in of_samples}, POINTWISE)
        checked = frozenset(map(row_key, of_samples))
        failures = run(
            plan,
            store,
            lambda task, *more: work(partial(_without_profiles, task), *more),
            undecided,
            advance,
        )
        raise_failed_batches(failures, study.seed)
        tails = study.grid.tails if study.whole_grid else ()
        rare = list(tail_rows(tails, study.seed, executor))
        evidence = sampled_on(most)
    sampled()
    rows = chain.from_iterable(tables[point].rows for point in budgets)
    measurements = tabulate(chain(rows, rare))
    return StudyResults(
        study,
        measurements,
        {
            (point, key): found
            for point in budgets
            for key, found in tables[point].distributions.items()
        },
        _judge(study, rates, evidence, measurements),
        {point.name: store.n_replicates(point) for point in budgets},
    )


def _without_profiles(task: Callable[..., bytes], *arguments: object) -> bytes:
    """Work on a task that needs no theory: what references left is freed before."""
    forget_profiles()
    return task(*arguments)


def _judge(
    study: Study,
    rates: ErrorRates,
    evidence: Evidence,
    measurements: pd.DataFrame | None = None,
) -> ClaimsRecord:
    """Judge what there is; without measurements, no z scores."""
    compared = tabulate(()) if measurements is None else measurements
    return Judge(evidence, rates.stated, rates.claims).judge(
        study.catalogue,
        error_rate=study.error_rate,
        simultaneous_error=rates.share,
        calibration=calibrate(rates.share),
        analyses=rates.analyses,
        z_scores=judge_z_scores(compared),
    )


#: Of a row that is not sampled: it may be anything.
NOT_SAMPLED = Estimate(
    math.nan, math.nan, 0, bounds=lambda _: Interval(-math.inf, math.inf)
)


def judge_by_theory(study: Study) -> ClaimsRecord:
    """Judge by exact values alone; what theory does not decide is undecided."""
    requested = rows_of_study(study)
    tables = {
        point: PointTable(0, (), {}, dict.fromkeys(keys, NOT_SAMPLED))
        for point, keys in requested.items()
    }
    budgets = dict.fromkeys(_named_points(study), 0)
    divisors = study.grid.divisors
    evidence = Evidence(budgets, divisors, exact_value, tables.__getitem__)
    return _judge(study, error_rates_of(study), evidence)


def points_of_study(
    catalogue: Catalogue, grid: Grid, *, whole_grid: bool
) -> list[DesignPoint]:
    """Return the points that rows may be of: those of a grid.

    With some of the claims left out, those that the claims' checks need.
    """
    points = grid.points()
    if whole_grid:
        return points
    needed = {
        point
        for check in catalogue.claim_checks()
        for case in cases_of(check, points, grid.divisors).values()
        for point in case
    }
    return [point for point in points if point in needed]


def _named_points(study: Study) -> list[DesignPoint]:
    return points_of_study(study.catalogue, study.grid, whole_grid=study.whole_grid)


def rows_of_study(study: Study) -> dict[DesignPoint, tuple[RowKey, ...]]:
    """Return the rows that are asked for.

    By checks, by pages, or each of the grid; where the five texts are judged, also by
    the self-check on references, of the points that these need.
    """
    divisors = study.grid.divisors
    points = _named_points(study)
    rows = [
        *check_rows(study.catalogue.checks(), points, divisors),
        *study.pages(points, divisors),
    ]
    if study.grid.every_row:
        rows += [(point, key) for point in points for key in every_key(point, divisors)]
    if study.catalogue.language is None:
        references = name_references(dict.fromkeys(point for point, _ in rows))
        rows += (row for row in references if row[1].divisor in divisors)
    return in_order(unite(rows), points, divisors)


def seconds_by_claim(study: Study, replicates: Mapping[str, int]) -> dict[str, float]:
    """Return about how long each claim was sampled for on one core, in seconds.

    What several claims read is split among them.  What none reads has no name: it is
    sampled for pages and self-checks.
    """
    points, divisors = _named_points(study), study.grid.divisors
    readers: defaultdict[DesignPoint, set[str]] = defaultdict(set)
    for claim in study.catalogue.claim:
        for point, _ in check_rows(claim.checks(), points, divisors):
            readers[point].add(claim.id)
    found = dict.fromkeys([*(claim.id for claim in study.catalogue.claim), ""], 0.0)
    for point, keys in rows_of_study(study).items():
        seconds = replicate_seconds(point, len(columns_of(point, keys).divisors))
        mine = readers[point] or {""}
        for name in mine:
            found[name] += seconds * replicates[point.name] / len(mine)
    return {name: round(seconds, 3) for name, seconds in found.items() if seconds}


def needed_budgets(study: Study) -> dict[DesignPoint, Budget]:
    """Return the budgets of the points that have rows that are asked for."""
    budgets = study.grid.budgets()
    return {point: budgets[point] for point in rows_of_study(study)}


def exact_value(point: DesignPoint, key: RowKey) -> float | None:
    """Return the exact value of a row, None where theory has none."""
    found = find_reference(point, key)
    return None if found is None else found.value


def error_rates_of(
    study: Study,
    exact: Exact = exact_value,
    budgets: Mapping[DesignPoint, Budget] | None = None,
    record: Record | None = None,
) -> ErrorRates:
    """Return how the error rate of a study is split over intervals and claims.

    ``exact`` returns the exact value of a row; ``budgets`` are by default those that
    are needed, and the record of training the one that ships with the package.
    """
    budgets = needed_budgets(study) if budgets is None else budgets
    analyses = {point: len(budget.analyses()) for point, budget in budgets.items()}
    evidence = Evidence(analyses, study.grid.divisors, exact, record=record)
    return split_error_rate(study.catalogue, evidence, study.error_rate)


def write_results(results: StudyResults, folder: Path) -> dict[str, Any]:
    """Write the tables and claims.json, and return the record for run.json.

    Parameters
    ----------
    results : StudyResults
    folder : Path
        An existing folder.

    Returns
    -------
    dict
        Seed, grid, configuration, versions and replicates; nothing of how it ran.
    """
    write_table(results.measurements, folder / MEASUREMENTS)
    write_json(folder / CLAIMS_FILE, msgspec.to_builtins(results.claims))
    study = results.study
    return {**configuration(study), "replicates": results.replicates}


def configuration(study: Study) -> dict[str, Any]:
    """Return what a study is, for run.json: what its bytes depend on."""
    return {
        "seed": study.seed,
        "preset": study.preset,
        "error_rate": study.error_rate,
        "claims": [claim.id for claim in study.catalogue.claim],
        "catalogue": study.catalogue.digest(),
        "grid": msgspec.to_builtins(study.grid),
        **made_with(),
    }


def recipe(study: Study) -> dict[str, Any]:
    """Return what tells the batches of a study from those of another.

    Its configuration, with what is judged, and the code that draws: the version of a
    checkout stays the same while its code changes.
    """
    rows = [
        [point.name, *map(list, keys)] for point, keys in rows_of_study(study).items()
    ]
    return {
        **configuration(study),
        "rows": hashlib.sha256(msgspec.json.encode(rows)).hexdigest(),
        "code": code_digest(),
    }
