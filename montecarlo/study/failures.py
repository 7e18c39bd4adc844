"""What is said of sampling that failed: which replicates, why, and how to replay them.

`batch_command` writes the command, and `replay` is what it does.
"""

import shlex
import time
from collections.abc import Mapping

from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.errors import InputError, UnfinishedError
from montecarlo.estimation.engine import FailedBatch
from montecarlo.estimation.summaries import columns_of, every_key
from montecarlo.names import MOST_REPLICATES, look_up
from montecarlo.sampling.cost import (
    replicate_seconds,
    require_affordable,
    require_soon,
)
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.replicates import sample

#: Failures whose full message is shown.
SHOWN = 3
#: Any but float64: number formats are computed all, or none.
SOME_FORMAT = "float16"
#: The options of `DesignPoint.names` after its distributions.
NAME_OPTIONS = ("--normalisation", "--dependence", "--initialisation", "--mask")


def raise_failed_batches(
    failures: Mapping[DesignPoint, FailedBatch], seed: int
) -> None:
    """Raise one error for the points in which sampling failed, if there are any.

    Raises
    ------
    UnfinishedError
        If workers died or had no memory.
    RuntimeError
        If any other error is among them: a bug, which is the cause shown.
    """
    if not failures:
        return
    errors = [_failure(point, seed, *failed) for point, failed in failures.items()]
    more = f"; and {len(errors) - SHOWN} more" if errors[SHOWN:] else ""
    first = min(errors, key=lambda one: isinstance(one, UnfinishedError))
    raise type(first)("; ".join(map(str, errors[:SHOWN])) + more) from first.__cause__


def _failure(
    point: DesignPoint, seed: int, indices: range, error: BaseException
) -> RuntimeError:
    expected = isinstance(error, UnfinishedError | MemoryError)
    reason = str(error).partition("\n")[0]
    failure = (UnfinishedError if expected else RuntimeError)(
        f"replicates {indices.start} to {indices.stop - 1} of {point.name} failed "
        f"({type(error).__name__}: {reason}), "
        f"replay: {batch_command(point, seed, indices)}"
    )
    failure.__cause__ = error
    return failure


def batch_command(point: DesignPoint, seed: int, indices: range) -> str:
    """Return the command that samples exactly these replicates of a point."""
    options = {
        "--distribution": point.label,
        **dict(zip(NAME_OPTIONS, point.names[2:], strict=True)),
        "--d-k": point.d_k,
        "--keys": point.n_keys,
        "--number-format": SOME_FORMAT if point.formats else None,
        "--seed": seed,
        "--replicates": f"{indices.start}:{indices.stop}",
    }
    given = [pair for pair in options.items() if pair[1] not in {None, "", "none"}]
    words = [str(word) for pair in given for word in pair]
    return f"python -m montecarlo measure {shlex.join(words)}"


def replay(  # noqa: PLR0913 - what `batch_command` writes
    names: Mapping[str, str],
    d_k: int,
    n_keys: int | None,
    *,
    number_format: str,
    seed: int,
    indices: range,
) -> str:
    """Sample the replicates of some indices; returns a line that says so.

    They are sampled with all divisors, and a number format other than float64 stands
    for all of them.  What sampling raises comes out as it is: its traceback is what a
    replay is for.

    Raises
    ------
    InputError
        If there is no such point, or no report samples such replicates.
    """
    if indices.stop > MOST_REPLICATES:
        raise InputError(
            f"replicates must end at {MOST_REPLICATES} at most, got {indices.stop}: no "
            "report samples more"
        )
    look_up("number-format", number_format, NUMBER_FORMATS)
    formats = number_format != "float64"
    point = parse_point(**names, d_k=d_k, n_keys=n_keys, formats=formats)
    require_affordable(point, len(DIVISORS))
    seconds = replicate_seconds(point, len(DIVISORS))
    require_soon("replicates", len(indices), seconds)
    columns = columns_of(point, every_key(point, tuple(DIVISORS)))
    started = time.perf_counter()
    with threadpool_limits(limits=1, user_api="blas"):
        sample(point, seed, indices.start, indices.stop, columns)
    seconds = time.perf_counter() - started
    return f"sampled without failure in {seconds:.1f} s: {point.name}"
