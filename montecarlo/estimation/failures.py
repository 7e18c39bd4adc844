"""What failed while the rest was finished: which, why, and how to see it again, alone.

A failure is told in one part of a line, which ends with a command that samples exactly
the same.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from montecarlo.errors import UnfinishedError
from montecarlo.sampling.dependence import INDEPENDENT
from montecarlo.sampling.design_points import DesignPoint

#: Failures that are told in full.
SHOWN = 3
#: Quantity of the rows that are not sampled in replicates.
OVERFLOW = "overflow_probability"
#: Any but float64: number formats are computed all, or none.
SOME_FORMAT = "float16"


def tell_failed_batch(
    point: DesignPoint, seed: int, indices: range, error: BaseException
) -> RuntimeError:
    """Tell what sampling some replicates raised, and how to replay it."""
    which = f"replicates {indices.start} to {indices.stop - 1} of {point.name}"
    return _failure(which, error, batch_command(point, seed, indices))


def batch_command(point: DesignPoint, seed: int, indices: range) -> str:
    """Return the command that samples some replicates of a point, and no more."""
    options = {
        "--distribution-q": point.distribution_q.name,
        "--distribution-k": point.distribution_k.name,
        "--d-k": point.d_k,
        "--seed": seed,
        "--replicates": f"{indices.start}:{indices.stop}",
    }
    if point.has_rows:
        options["--keys"] = point.n_keys
    if point.dependence != INDEPENDENT:
        options["--dependence"] = point.dependence.name
    if point.initialisation:
        options["--initialisation"] = point.initialisation.name
    if point.formats:
        options["--number-format"] = SOME_FORMAT
    return _command(options)


def tell_failed_tail(
    d_k: int, number_format: str, seed: int, blocks: int, error: BaseException
) -> RuntimeError:
    """Tell what estimating an overflow probability raised, and how to replay it."""
    options = {
        "--d-k": d_k,
        "--quantity": OVERFLOW,
        "--number-format": number_format,
        "--seed": seed,
        "--replicates": f"0:{blocks}",
    }
    which = f"{OVERFLOW} at d_k={d_k} in {number_format}"
    return _failure(which, error, _command(options))


def raise_failures(failures: Mapping[Any, RuntimeError]) -> None:
    """Raise one line about all that failed, if anything did.

    Raises
    ------
    UnfinishedError
        If machines failed: a worker died, or had no memory.
    RuntimeError
        If something else is among it, from that: a bug.
    """
    if not failures:
        return
    found = list(failures.values())
    more = f"; and {len(found) - SHOWN} more" if found[SHOWN:] else ""
    # what is sorted first is the cause that is shown: a bug, if there is one
    first = min(found, key=lambda one: isinstance(one, UnfinishedError))
    raise type(first)("; ".join(map(str, found[:SHOWN])) + more) from first.__cause__


def _failure(which: str, error: BaseException, command: str) -> RuntimeError:
    expected = isinstance(error, UnfinishedError | MemoryError)
    reason = str(error).partition("\n")[0]
    failure = (UnfinishedError if expected else RuntimeError)(
        f"{which} failed ({type(error).__name__}: {reason}), replay: {command}"
    )
    failure.__cause__ = error
    return failure


def _command(options: Mapping[str, object]) -> str:
    words = [str(word) for pair in options.items() for word in pair]
    return f"python -m montecarlo measure {shlex.join(words)}"
