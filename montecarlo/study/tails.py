"""Rows of overflow probabilities: rare events, estimated under tilting."""

import math
from collections.abc import Iterator
from concurrent.futures import Executor

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.estimation.engine import OVERFLOW, raise_failures, tell_failed_tail
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.rare_events import Tail, estimate_tail
from montecarlo.study.columns import identity, row_id
from montecarlo.study.tasks import Task, finish
from montecarlo.theory.score_distribution import log_score_tail

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
    found, failures = {}, {}
    for task, future in finish(executor, estimate_tail, asked):
        d_k, blocks, name = asked[task]
        if error := future.exception():
            failures[task] = tell_failed_tail(d_k, name, seed, blocks, error)
        else:
            found[task] = future.result()
    raise_failures(failures)
    for task, (d_k, blocks, name) in asked.items():
        yield _row(d_k, blocks, name, found[task])


def tail_task(d_k: int, number_format: str, seed: int, blocks: int) -> Task:
    """Return what `estimate_tail` is to be called with for one overflow probability."""
    return NUMBER_FORMATS[number_format].log_largest, d_k, seed, blocks


def _row(d_k: int, blocks: int, name: str, tail: Tail) -> tuple[object, ...]:
    point = parse_point("gaussian", "gaussian", d_k)
    key = RowKey("none", OVERFLOW, "value", name, "naive")
    value = math.exp(tail.log_value)
    exact = math.exp(log_score_tail(NUMBER_FORMATS[name].log_largest, d_k))
    half = tail.relative_half_width * value
    return (
        *identity(point, key),
        value,
        tail.relative_error * value,
        max(0.0, value - half),
        min(1.0, value + half),
        blocks,
        exact,
        1e-9 * exact,
        row_id(point, key),
    )
