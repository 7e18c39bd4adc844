"""Rows of overflow probabilities: rare events, estimated under tilting."""

import math
from collections.abc import Iterator
from concurrent.futures import Executor

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.estimation.summaries import RowKey
from montecarlo.results.table import identity, row_id
from montecarlo.sampling.conditions import Condition
from montecarlo.sampling.rare_events import Tail, estimate_tail
from montecarlo.theory.score_law import log_score_tail

OVERFLOW = "overflow_probability"
#: Formats whose exponential a single score may overflow with a probability that a
#: table can show; in float64 it is below 1e-190 for every d_k of interest.
FORMATS = ("float16", "bfloat16", "float32")


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
    """
    asked = [(d_k, blocks, name) for d_k, blocks in tails for name in FORMATS]
    futures = [
        executor.submit(
            estimate_tail, NUMBER_FORMATS[name].log_largest, d_k, seed, blocks
        )
        for d_k, blocks, name in asked
    ]
    for (d_k, blocks, name), future in zip(asked, futures, strict=True):
        yield _row(d_k, blocks, name, future.result())


def _row(d_k: int, blocks: int, name: str, tail: Tail) -> tuple[object, ...]:
    condition = Condition("gaussian", "gaussian", d_k)
    key = RowKey("none", OVERFLOW, "value", name, "naive")
    value = math.exp(tail.log_value)
    exact = math.exp(log_score_tail(NUMBER_FORMATS[name].log_largest, d_k))
    half = tail.relative_half_width * value
    return (
        *identity(condition, key),
        value,
        tail.relative_error * value,
        max(0.0, value - half),
        value + half,
        blocks,
        exact,
        1e-9 * exact,
        row_id(condition, key),
    )
