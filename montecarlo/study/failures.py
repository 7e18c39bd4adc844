"""Errors of sampling: which replicates failed, why, and the command that repeats them.

`batch_command` returns the command, and `replay` executes it.
"""

import shlex
import time
from collections.abc import Mapping

from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.errors import UnfinishedError
from montecarlo.estimation.engine import FailedBatch
from montecarlo.estimation.summaries import columns_of, every_key
from montecarlo.names import MOST_REPLICATES, look_up, require_whole
from montecarlo.sampling.cost import (
    replicate_seconds,
    require_affordable,
    require_soon,
)
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.replicates import sample

#: Largest number of failures that a message describes.
SHOWN = 3
#: The options for `DesignPoint.names`, apart from the two distributions.
NAME_OPTIONS = ("--normalisation", "--dependence", "--initialisation", "--mask")


def raise_failed_batches(
    failures: Mapping[DesignPoint, FailedBatch], seed: int
) -> None:
    """Raise an error that describes the first `SHOWN` failures, unless there are none.

    Parameters
    ----------
    failures : mapping
        Design point -> its failed batch: (indices of the replicates, exception).
    seed : int
        Seed of the run, for the commands in the message that repeat the batches.

    Raises
    ------
    UnfinishedError
        If all failures are dead workers or lack of memory.
    RuntimeError
        If any has another cause, which is a bug.  The first such exception is its
        cause.
    """
    if not failures:
        return
    errors = [_error_of(point, seed, *failed) for point, failed in failures.items()]
    more = f"; and {len(errors) - SHOWN} more" if errors[SHOWN:] else ""
    first = min(errors, key=lambda one: isinstance(one, UnfinishedError))
    raise type(first)("; ".join(map(str, errors[:SHOWN])) + more) from first.__cause__


def _error_of(
    point: DesignPoint, seed: int, indices: range, error: BaseException
) -> RuntimeError:
    """Return the error that describes a failed batch of replicates of a point.

    An `UnfinishedError` for lack of memory or dead workers, else a RuntimeError.  Its
    cause is ``error``, the original exception.
    """
    expected = isinstance(error, UnfinishedError | MemoryError)
    reason = str(error).partition("\n")[0]
    reported = (UnfinishedError if expected else RuntimeError)(
        f"replicates {indices.start} to {indices.stop - 1} of {point.name} failed "
        f"({type(error).__name__}: {reason}), "
        f"replay: {batch_command(point, seed, indices)}"
    )
    reported.__cause__ = error
    return reported


def batch_command(point: DesignPoint, seed: int, indices: range) -> str:
    """Return the shell command that samples some replicates of a point.

    Such as ``python -m montecarlo measure --d-k 64 --seed 1 --replicates 0:8``.
    """
    options = {
        "--distribution": point.label,
        **dict(zip(NAME_OPTIONS, point.names[2:], strict=True)),
        "--d-k": point.d_k,
        "--keys": point.n_keys,
        "--number-format": "float16" if point.formats else None,  # means all of them
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
    """Sample replicates of a point again, to see an exception with its traceback.

    Exceptions of sampling are raised as they are.

    Parameters
    ----------
    names : mapping
        The parameters of `parse_point`, apart from the sizes.
    d_k : int
    n_keys : int or None
        None for a point without rows, which samples pairs of a query and a key.
    number_format : str
        ``"float64"``, or any other for all number formats.
    seed : int
    indices : range
        Indices of the replicates.  They are sampled with all divisors.

    Returns
    -------
    str
        A line for the terminal, which says that sampling succeeded.

    Raises
    ------
    InputError
        If there is no such point, or if the replicates exceed `MOST_REPLICATES` or take
        too much time or memory.
    """
    require_whole("the end of replicates", indices.stop, 1, MOST_REPLICATES)
    look_up("number-format", number_format, NUMBER_FORMATS)
    formats = number_format != "float64"
    point = parse_point(**names, d_k=d_k, n_keys=n_keys, formats=formats)
    require_affordable(point, len(DIVISORS))
    require_soon("replicates", len(indices), replicate_seconds(point, len(DIVISORS)))
    columns = columns_of(point, every_key(point, tuple(DIVISORS)))
    started = time.perf_counter()
    with threadpool_limits(limits=1, user_api="blas"):
        sample(point, seed, indices.start, indices.stop, columns)
    seconds = time.perf_counter() - started
    return f"sampled without failure in {seconds:.1f} s: {point.name}"
