"""Runs a study: samples the rows that claims and pages need, judges, writes tables."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property, partial
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
from montecarlo.claims.z_scores import judge_z_scores, reference_rows
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
from montecarlo.study.rows import Row, group_by_point, sort_rows
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


@dataclass(frozen=True)
class Study:
    """Configuration of a study: claims to judge, points to sample, seed and error rate.

    Attributes
    ----------
    catalogue : Catalogue
    grid : Grid
    seed : int
    error_rate : float
        Nominal probability that any decided check is wrong.
    preset : str
        Name of the preset of the grid, for run.json; empty if there is none.
    pages : callable
        (points, divisors) -> rows that pages need.
    whole_grid : bool
        Whether all points of the grid are sampled.  If not, only those that the checks
        of claims need.
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

    @cached_property
    def rows(self) -> dict[DesignPoint, tuple[RowKey, ...]]:
        """The rows that the study estimates: design point -> keys of its rows.

        A row is a line of measurements.csv.  If ``every_row`` of the grid is set, they
        are all rows of the points of the study, otherwise those that checks and pages
        need.  If the five texts are judged, the rows of the self-check on exact values
        are added.  They are computed once, which takes tenths of a second.
        """
        divisors = self.grid.divisors
        points = points_of_study(self)
        rows = [
            *check_rows(self.catalogue.checks(), points, divisors),
            *self.pages(points, divisors),
        ]
        if self.grid.every_row:
            rows += [(c, key) for c in points for key in every_key(c, divisors)]
        if self.catalogue.language is None:
            references = reference_rows(dict.fromkeys(point for point, _ in rows))
            rows += (row for row in references if row[1].divisor in divisors)
        return sort_rows(group_by_point(rows), points, divisors)


@dataclass(frozen=True, slots=True)
class StudyResults:
    """Results of a study: tables, distributions and verdicts.

    Attributes
    ----------
    study : Study
    measurements : DataFrame
        The table of measurements.csv.
    distributions : dict
        (point, row key) -> distribution of attention rows, where requested.
    claims : ClaimsRecord
        Contents of claims.json.
    replicates : dict
        Name of each point -> its number of replicates.
    """

    study: Study
    measurements: pd.DataFrame
    distributions: dict[Row, RowDistribution]
    claims: ClaimsRecord
    replicates: dict[str, int]


def run_study(
    study: Study,
    executor: Executor,
    advance: Advance = lambda *_: None,
    store: SampleStore | None = None,
    *,
    idle: Callable[[], None] = lambda: None,
) -> StudyResults:
    """Sample what a study needs, judge its claims, and return the results.

    Parameters
    ----------
    study : Study
    executor : concurrent.futures.Executor
    advance : callable
        Called with (point, replicates finished, replicates newly wanted) after each
        batch, for a progress bar.
    store : SampleStore, optional
        Where batches are stored; by default in memory.
    idle : callable
        Called at each analysis, when the workers have nothing to do.

    Returns
    -------
    StudyResults
        Independent of workers, batches and the order of the grid.

    Raises
    ------
    RuntimeError
        If sampling failed at some points, after the others are finished.  The message
        names the reasons, and the commands that repeat the failed batches.  Also if a
        worker died.
    """
    keys_of, divisors = study.rows, study.grid.divisors
    grid_budgets = study.grid.budgets()
    budgets = {point: grid_budgets[point] for point in keys_of}
    # with points that are not sampled, for cases that are not applicable
    most = {
        point: grid_budgets[point].analyses()[-1] for point in points_of_study(study)
    }
    store = SampleStore() if store is None else store
    known: dict[DesignPoint, dict[RowKey, Reference | None]] = {c: {} for c in most}
    tables: dict[DesignPoint, PointTable] = {}
    evidences: dict[frozenset[DesignPoint], Evidence] = {}

    def exact(point: DesignPoint, key: RowKey) -> float | None:
        """Return the exact value of a row of a point; None if theory has none.

        It is computed once, and stored in ``known``.
        """
        if key not in known[point]:
            known[point][key] = find_reference(point, key)
        reference = known[point][key]
        return None if reference is None else reference.value

    def evidence_on(points: Mapping[DesignPoint, int]) -> Evidence:
        """Return the evidence on points, with estimates from all replicates so far.

        ``points`` maps each point to its maximal number of replicates.  ``tables`` is
        brought up to date with ``store``.
        """
        tabulated = {point: table.n_replicates for point, table in tables.items()}
        tasks = (
            (point, keys_of[point], store.packed(point), known[point], checked, stated)
            for point in budgets
            if point in points and tabulated.get(point) != store.n_replicates(point)
        )
        for task, future in work(table_of, tasks):
            tables[task[0]] = future.result()
        idle()
        new = Evidence(points, divisors, exact, tables.__getitem__)
        return evidences.setdefault(frozenset(points), new)  # which knows its cases

    def undecided(store: SampleStore) -> set[DesignPoint]:
        """Return the points that need more replicates to decide a check of the study.

        Points whose sampling has failed are left out.
        """
        # where sampling failed there may be fewer replicates than a first analysis has
        failed = {c for c in budgets if store.n_replicates(c) < budgets[c].first}
        evidence = evidence_on({c: n for c, n in most.items() if c not in failed})
        # z scores are judged once, at the end
        return undecided_points(_judge(study, rates, evidence), evidence)

    columns = {point: columns_of(point, keys) for point, keys in keys_of.items()}
    plan = Plan(budgets, study.seed, columns)
    work = partial(finish, executor)
    with threadpool_limits(limits=1, user_api="blas"):
        # exact values of short rows take longest
        by_keys = sorted(budgets, key=lambda c: c.n_keys or math.inf)
        theory = ((point, keys_of[point]) for point in by_keys)
        for (point, *_), future in work(references_of, theory):
            known[point] = future.result()
        rates = error_rates_of(study, exact, budgets)
        checks = [c for c in study.catalogue.checks() if c.quantity not in RECORDED]
        stated = (*{rates.stated(check): 0 for check in checks}, POINTWISE)
        checked = frozenset(map(row_key, checks))
        failures = run(
            plan,
            store,
            lambda task, *more: work(partial(_run_without_profiles, task), *more),
            undecided,
            advance,
        )
        raise_failed_batches(failures, study.seed)
        tails = study.grid.tails if study.whole_grid else ()
        rare = list(tail_rows(tails, study.seed, executor))
        evidence = evidence_on(most)
    rows = chain.from_iterable(tables[point].rows for point in budgets)
    measurements = tabulate(chain(rows, rare))
    return StudyResults(
        study,
        measurements,
        {
            (point, key): distribution
            for point in budgets
            for key, distribution in tables[point].distributions.items()
        },
        _judge(study, rates, evidence, measurements),
        {point.name: store.n_replicates(point) for point in budgets},
    )


def _run_without_profiles(task: Callable[..., bytes], *arguments: object) -> bytes:
    """Free the caches of theory, which are not needed; return ``task(*arguments)``."""
    forget_profiles()
    return task(*arguments)


def _judge(
    study: Study,
    rates: ErrorRates,
    evidence: Evidence,
    measurements: pd.DataFrame | None = None,
) -> ClaimsRecord:
    """Return the outcomes of all claims, passages and self-checks of a study.

    ``measurements`` is the finished table.  Without it, the self-check on z scores is
    not applicable.
    """
    compared = tabulate(()) if measurements is None else measurements
    return Judge(evidence, rates.stated, rates.claims).judge(
        study.catalogue,
        error_rate=study.error_rate,
        simultaneous_error=rates.share,
        calibration=calibrate(rates.share),
        analyses=rates.analyses,
        z_scores=judge_z_scores(compared),
    )


#: Estimate of a row that is not sampled: an unbounded interval.
NOT_SAMPLED = Estimate(
    math.nan, math.nan, 0, bounds=lambda _: Interval(-math.inf, math.inf)
)


def judge_by_theory(study: Study) -> ClaimsRecord:
    """Return the outcomes of a study's claims by exact values alone, without sampling.

    A case is undecided if theory has no exact value or limit for it, if that value is
    too close to a bound, or if the check compares with it.  Recorded quantities are
    judged as usual.
    """
    tables = {
        point: PointTable(0, (), {}, dict.fromkeys(keys, NOT_SAMPLED))
        for point, keys in study.rows.items()
    }
    budgets = dict.fromkeys(points_of_study(study), 0)
    evidence = Evidence(budgets, study.grid.divisors, exact_value, tables.__getitem__)
    return _judge(study, error_rates_of(study), evidence)


def points_of_study(study: Study) -> list[DesignPoint]:
    """Return the design points that a study may sample, in the order of its grid.

    With ``whole_grid`` all points of the grid, otherwise those that the checks of
    claims need.
    """
    points = study.grid.points()
    if study.whole_grid:
        return points
    needed = {
        point
        for check in study.catalogue.claim_checks()
        for case in cases_of(check, points, study.grid.divisors).values()
        for point in case
    }
    return [point for point in points if point in needed]


def seconds_by_claim(study: Study, replicates: Mapping[str, int]) -> dict[str, float]:
    """Return roughly how many seconds of sampling on one core each claim takes.

    Parameters
    ----------
    study : Study
    replicates : mapping
        Name of a point -> its number of replicates.

    Returns
    -------
    dict
        Id of a claim -> seconds, without the claims that take none.  The time of a
        point is divided equally among the claims that use it.  The empty id has the
        time of points that no claim uses.
    """
    points, divisors = points_of_study(study), study.grid.divisors
    readers: defaultdict[DesignPoint, set[str]] = defaultdict(set)
    for claim in study.catalogue.claim:
        for point, _ in check_rows(claim.checks(), points, divisors):
            readers[point].add(claim.id)
    total = dict.fromkeys([*(claim.id for claim in study.catalogue.claim), ""], 0.0)
    for point, keys in study.rows.items():
        seconds = replicate_seconds(point, len(columns_of(point, keys).divisors))
        names = readers[point] or {""}
        for name in names:
            total[name] += seconds * replicates[point.name] / len(names)
    return {name: round(seconds, 3) for name, seconds in total.items() if seconds}


def needed_budgets(study: Study) -> dict[DesignPoint, Budget]:
    """Return the budget of each design point that a study samples.

    A budget is how many replicates a point has at each of its interim analyses.
    """
    budgets = study.grid.budgets()
    return {point: budgets[point] for point in study.rows}


def exact_value(point: DesignPoint, key: RowKey) -> float | None:
    """Return the exact value of a row of a point; None if theory has none."""
    reference = find_reference(point, key)
    return None if reference is None else reference.value


def error_rates_of(
    study: Study,
    exact: Exact = exact_value,
    budgets: Mapping[DesignPoint, Budget] | None = None,
    record: Record | None = None,
) -> ErrorRates:
    """Return how a study's error rate is split over intervals and claims.

    Parameters
    ----------
    study : Study
    exact : callable
        (point, row key) -> exact value, or None.
    budgets : mapping, optional
        Point -> its budget; by default those of `needed_budgets`.
    record : Record, optional
        Record of training; by default the one in the package.
    """
    budgets = needed_budgets(study) if budgets is None else budgets
    analyses = {point: len(budget.analyses()) for point, budget in budgets.items()}
    evidence = Evidence(analyses, study.grid.divisors, exact, record=record)
    return split_error_rate(study.catalogue, evidence, study.error_rate)


def write_results(results: StudyResults, folder: Path) -> dict[str, Any]:
    """Write measurements.csv and claims.json; return the fields of run.json.

    Parameters
    ----------
    results : StudyResults
    folder : Path
        An existing folder.

    Returns
    -------
    dict
        `configuration` of the study, and the number of replicates of each point.
    """
    write_table(results.measurements, folder / MEASUREMENTS)
    write_json(folder / CLAIMS_FILE, msgspec.to_builtins(results.claims))
    return {**configuration(results.study), "replicates": results.replicates}


def configuration(study: Study) -> dict[str, Any]:
    """Return the fields of run.json on which results depend: name -> value.

    These are seed, preset, error rate, ids of the claims, hash of the catalogue, grid,
    versions and CPU kernel.
    """
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
    """Return a dict that identifies a study, to recognise the journal of its batches.

    The journal stores finished batches.  It is used again if all of this is equal: the
    study's configuration, a digest of its rows, and a digest of the code that draws,
    which may change while the version stays the same.
    """
    rows = [[point.name, *map(list, keys)] for point, keys in study.rows.items()]
    return {
        **configuration(study),
        "rows": hashlib.sha256(msgspec.json.encode(rows)).hexdigest(),
        "code": code_digest(),
    }
