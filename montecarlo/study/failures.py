"""What is said of sampling that failed: which replicates, why, and how to replay them.

Replaying is ``python -m montecarlo measure`` with the options that `batch_command`
writes.
"""

import shlex
from collections.abc import Mapping

from montecarlo.errors import UnfinishedError
from montecarlo.estimation.engine import FailedBatch
from montecarlo.sampling.design_points import DesignPoint

#: Failures whose full message is shown.
SHOWN = 3
#: Any but float64: number formats are computed all, or none.
SOME_FORMAT = "float16"
#: The options of `DesignPoint.names`.
NAME_OPTIONS = (
    "--distribution-q",
    "--distribution-k",
    "--normalisation",
    "--dependence",
    "--initialisation",
)


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
        **dict(zip(NAME_OPTIONS, point.names, strict=True)),
        "--d-k": point.d_k,
        "--keys": point.n_keys,
        "--number-format": SOME_FORMAT if point.formats else None,
        "--seed": seed,
        "--replicates": f"{indices.start}:{indices.stop}",
    }
    given = [pair for pair in options.items() if pair[1] not in {None, "", "none"}]
    words = [str(word) for pair in given for word in pair]
    return f"python -m montecarlo measure {shlex.join(words)}"
