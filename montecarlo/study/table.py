"""The tables: a row per point, divisor, quantity and summary; and curves.

Rare events, overflow probabilities, are estimated under tilting.

The rows of a point are made by workers, which are sent its batches, as soon as it is
sampled: together the samples of a study would not fit into memory.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.attention.softmax import (
    measure_gaps,
    softmax_rows,
    weights_in_order,
    widen,
)
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.summaries import RowKey, Summaries, row_keys
from montecarlo.sampling.batches import join
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.sampling.rare_events import OVERFLOW, Tail, estimate_tail
from montecarlo.study.curves import CurveLine
from montecarlo.study.executors import Task, finish
from montecarlo.study.failures import failed_tail, raise_failures
from montecarlo.study.measured import COLUMNS, table_row
from montecarlo.theory.references import reference
from montecarlo.theory.row_integrals import Reference
from montecarlo.theory.score_distribution import distribution_gap, log_score_tail

#: Name of the curves of the exact distribution, with their d_k and scaled scores:
#: beyond these it can hardly be told from the normal one.
SCORE_DISTRIBUTION = "score_distribution"
DISTRIBUTION_D_K = (1, 4, 16, 64)
DISTRIBUTION_SCORES = np.linspace(-3.5, 3.5, 57)
#: Curves over rows: of which quantities, where, and by about how many points.
ROW_CURVES = ("jacobian_frobenius", "gradient_query_undivided")
ROWS_D_K, ROWS_N_KEYS, ROWS_DIVISORS = 64, (128, 16384), ("none", "sqrt")
ROWS_BINS = 100
#: Name of the curve of a few rows as they were drawn; ``x`` counts through the weights
#: row by row, from 0.
EXAMPLE = "example_weight"
EXAMPLE_POINT = parse_point("gaussian", "gaussian", 64, 32)
EXAMPLE_QUERIES = 16
#: A reference counts where its own error is at most this part of the standard error.
FAR_BELOW = 0.1

Lookup = Callable[[DesignPoint, RowKey], Reference | None]
#: What theory says of the rows of a point.
References = Mapping[RowKey, Reference | None]


class PointTable(NamedTuple):
    """What the replicates of a point came to, without these.

    Attributes
    ----------
    n_replicates : int
    rows : tuple of tuple
        Its rows of the table, as `COLUMNS`.
    curves : tuple of CurveLine
        Its points of curves.
    estimates : dict
        Those of the rows that checks look at.
    """

    n_replicates: int
    rows: tuple[tuple[object, ...], ...]
    curves: tuple[CurveLine, ...]
    estimates: dict[RowKey, Estimate]

    def estimate(self, key: RowKey) -> Estimate:
        """Return the estimate of a row that checks look at."""
        return self.estimates[key]


def table_of(  # noqa: PLR0913, PLR0917 - a task: what a worker is sent
    point: DesignPoint,
    packed: Iterable[bytes],
    divisors: tuple[str, ...],
    ratios: tuple[str, ...],
    references: References,
    asked: Collection[RowKey],
    error_rates: tuple[float, ...],
) -> PointTable:
    """Estimate all rows of a point.

    Parameters
    ----------
    point : DesignPoint
    packed : iterable of bytes
        Its batches, in order.
    divisors, ratios : tuple of str
        As for `row_keys`.
    references : mapping
        From `references_of`.
    asked : collection of RowKey
        The rows that checks look at, here or elsewhere.
    error_rates : tuple of float
        Those of the intervals that the estimates of these rows are asked for.
    """
    one = Summaries(point, join(packed), divisors, ratios)
    return PointTable(
        one.samples.n_replicates,
        tuple(rows_of(one, lambda _, key: references[key])),
        (*curves_by_rank(one), *row_distribution_curves(one)),
        {
            key: one.estimate(key).at_rates(error_rates)
            for key in row_keys(point, divisors, ratios)
            if key in asked
        },
    )


def references_of(
    point: DesignPoint, divisors: tuple[str, ...], ratios: tuple[str, ...]
) -> dict[RowKey, Reference | None]:
    """Return what theory says of each row of a point."""
    keys = row_keys(point, divisors, ratios)
    return {key: find_reference(point, key) for key in keys}


def find_reference(point: DesignPoint, key: RowKey) -> Reference | None:
    """Return the exact value of a row where theory gives one."""
    if "/" in key.divisor:
        return None
    return reference(key.quantity, point, key.divisor, key.summary)


def tabulate(rows: Iterable[tuple[object, ...]]) -> pd.DataFrame:
    """Build the table of measurements, with the columns `COLUMNS`."""
    table = pd.DataFrame.from_records(list(rows), columns=list(COLUMNS))
    return table.astype({"n_keys": "Int64"})


def rows_of(summaries: Summaries, lookup: Lookup) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a point, in a canonical order.

    Parameters
    ----------
    summaries : Summaries
    lookup : callable
        (point, row) -> Reference or None.
    """
    point = summaries.point
    for key in row_keys(point, summaries.divisors, summaries.ratios):
        estimate = summaries.estimate(key)
        exact = lookup(point, key)
        # of a bin its width says how well a value is known
        if exact is not None and not exact.error <= FAR_BELOW * estimate.std_error:
            exact = None
        known = (math.nan, math.nan) if exact is None else (exact.value, exact.error)
        yield table_row(point, key, *estimate.numbers, *known)


def curve_line(  # noqa: PLR0913, PLR0917 - a line has so many columns
    point: DesignPoint,
    divisor: str,
    curve: str,
    x: float,
    estimate: float,
    std_error: float | None = None,
) -> CurveLine:
    """Return a point of a curve about a design point, which has no normalisation."""
    distribution_q, distribution_k, _, dependence, initialisation = point.names
    return CurveLine(
        distribution_q=distribution_q,
        distribution_k=distribution_k,
        dependence=dependence,
        initialisation=initialisation,
        d_k=point.d_k,
        n_keys=point.n_keys,
        divisor=divisor,
        curve=curve,
        x=x,
        estimate=estimate,
        std_error=std_error,
    )


def curves_by_rank(one: Summaries) -> Iterator[CurveLine]:
    """Yield the mean weight of the key at each kept rank, one curve per divisor.

    None of points with a normalisation, which the files of curves do not name.
    """
    point = one.point
    for divisor in one.divisors if point.has_rows and not point.is_normalised else ():
        for rank, estimate in one.by_rank(divisor):
            yield curve_line(
                point,
                divisor,
                "weight_by_rank",
                float(rank),
                estimate.value,
                estimate.std_error,
            )


def row_distribution_curves(one: Summaries) -> Iterator[CurveLine]:
    """Yield how gradients are distributed over rows, scaled and unscaled.

    Of Gaussian rows at `ROWS_D_K` with `ROWS_N_KEYS`: the share of rows that are at
    most x, with its standard error between replicates; a curve for each of
    `ROW_CURVES`.
    """
    point = one.point
    if point.d_k != ROWS_D_K or point.n_keys not in ROWS_N_KEYS:
        return
    if point.label != "gaussian" or not point.is_independent:
        return
    for quantity, divisor in product(ROW_CURVES, ROWS_DIVISORS):
        if divisor not in one.divisors:
            continue
        rows = one.distribution(divisor, quantity)
        bins = np.arange(len(rows.edges))[rows.inside]
        for at in bins[:: max(1, len(bins) // ROWS_BINS)].tolist():
            yield curve_line(
                point,
                divisor,
                f"rows_{quantity}",
                float(rows.edges[at]),
                float(rows.share[at]),
                float(rows.error[at]),
            )


def distribution_curves() -> Iterator[CurveLine]:
    """Yield the exact distribution of the scaled score, less the normal one.

    For independent Gaussian entries, by `distribution_gap`; without a standard error.
    """
    for d_k in DISTRIBUTION_D_K:
        for x in DISTRIBUTION_SCORES.tolist():
            yield curve_line(
                parse_point("gaussian", "gaussian", d_k),
                "sqrt",
                SCORE_DISTRIBUTION,
                x,
                distribution_gap(x, d_k),
            )


def example_curves(seed: int) -> Iterator[CurveLine]:
    """Yield weights of the first queries of a replicate, unscaled and scaled.

    Parameters
    ----------
    seed : int
        The study's; the draws are those that its estimates are made of, where its grid
        has the point.

    Yields
    ------
    CurveLine
        Without a standard error: a weight that was drawn has none.
    """
    q, k = draw_matrices(EXAMPLE_POINT, seed, 0)
    gaps = measure_gaps(widen(q[:EXAMPLE_QUERIES]) @ widen(k).T)
    for divisor in ROWS_DIVISORS:
        rows = softmax_rows(gaps, DIVISORS[divisor].value(EXAMPLE_POINT.d_k))
        for x, weight in enumerate(weights_in_order(rows).ravel().tolist()):
            yield curve_line(EXAMPLE_POINT, divisor, EXAMPLE, float(x), weight)


#: Formats whose exponential a single score may overflow with a probability that a
#: table can show; in float64 it is below 1e-190 for every d_k of interest.
FORMATS = tuple(name for name in NUMBER_FORMATS if name != "float64")


def tail_rows(
    tails: tuple[tuple[int, int], ...], seed: int, executor: Executor
) -> Iterator[tuple[object, ...]]:
    """Estimate the overflow probabilities of single unscaled scores.

    Parameters
    ----------
    tails : tuple of (d_k, blocks)
    seed : int
    executor : concurrent.futures.Executor

    Yields
    ------
    tuple
        Rows of measurements.csv; the interval is the empirical Bernstein one.

    Raises
    ------
    RuntimeError
        If some failed, at the end of the others: which, why, and the commands that
        replay it.  Or if a worker died.
    """
    asked = {
        tail_task(d_k, name, seed, blocks): (d_k, blocks, name)
        for d_k, blocks in tails
        for name in FORMATS
    }
    found, failures = {}, []
    for task, future in finish(executor, estimate_tail, asked):
        d_k, blocks, name = asked[task]
        if error := future.exception():
            failures.append(failed_tail(d_k, name, seed, blocks, error))
        else:
            found[task] = future.result()
    raise_failures(failures)
    for task, (d_k, blocks, name) in asked.items():
        yield _tail_row(d_k, blocks, name, found[task])


def tail_task(d_k: int, number_format: str, seed: int, blocks: int) -> Task:
    """Return what `estimate_tail` is to be called with for one overflow probability."""
    return NUMBER_FORMATS[number_format].log_largest, d_k, seed, blocks


def _tail_row(d_k: int, blocks: int, name: str, tail: Tail) -> tuple[object, ...]:
    point = parse_point("gaussian", "gaussian", d_k)
    key = RowKey("none", OVERFLOW, "value", name, "naive")
    value = math.exp(tail.log_value)
    exact = math.exp(log_score_tail(NUMBER_FORMATS[name].log_largest, d_k))
    half = tail.relative_half_width * value
    ends = max(0.0, value - half), min(1.0, value + half)
    numbers = value, tail.relative_error * value, *ends, blocks, exact, 1e-9 * exact
    return table_row(point, key, *numbers)
