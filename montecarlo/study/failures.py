"""What is said of sampling that failed: which replicates, why, and how to replay them.

Replaying is ``python -m montecarlo measure`` with the options that `batch_command` and
`failed_tail` write.
"""

import shlex
from collections.abc import Mapping, Sequence

from montecarlo.errors import UnfinishedError
from montecarlo.estimation.engine import FailedBatch
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.rare_events import OVERFLOW

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
    """Raise one error for the points in which sampling failed, as `raise_failures`."""
    raise_failures(
        [
            _failure(
                f"replicates {indices.start} to {indices.stop - 1} of {point.name}",
                error,
                batch_command(point, seed, indices),
            )
            for point, (indices, error) in failures.items()
        ]
    )


def failed_tail(
    d_k: int, number_format: str, seed: int, blocks: int, error: BaseException
) -> RuntimeError:
    """Return the error of a failed overflow probability, as `failed_batch`."""
    options = {
        "--d-k": d_k,
        "--quantity": OVERFLOW,
        "--number-format": number_format,
        "--seed": seed,
        "--replicates": f"0:{blocks}",
    }
    which = f"{OVERFLOW} at d_k={d_k} in {number_format}"
    return _failure(which, error, _command(options))


def batch_command(point: DesignPoint, seed: int, indices: range) -> str:
    """Return the command that samples exactly these replicates of a point."""
    return _command(
        {
            **dict(zip(NAME_OPTIONS, point.names, strict=True)),
            "--d-k": point.d_k,
            "--keys": point.n_keys,
            "--number-format": SOME_FORMAT if point.formats else None,
            "--seed": seed,
            "--replicates": f"{indices.start}:{indices.stop}",
        }
    )


def raise_failures(failures: Sequence[RuntimeError]) -> None:
    """Raise one error for all failures, if there are any.

    Raises
    ------
    UnfinishedError
        If workers died or had no memory.
    RuntimeError
        If any other error is among them: a bug, which is the cause shown.
    """
    if not failures:
        return
    more = f"; and {len(failures) - SHOWN} more" if failures[SHOWN:] else ""
    first = min(failures, key=lambda one: isinstance(one, UnfinishedError))
    raise type(first)("; ".join(map(str, failures[:SHOWN])) + more) from first.__cause__


def _failure(which: str, error: BaseException, command: str) -> RuntimeError:
    expected = isinstance(error, UnfinishedError | MemoryError)
    reason = str(error).partition("\n")[0]
    failure = (UnfinishedError if expected else RuntimeError)(
        f"{which} failed ({type(error).__name__}: {reason}), replay: {command}"
    )
    failure.__cause__ = error
    return failure


def _command(options: Mapping[str, object]) -> str:
    given = [pair for pair in options.items() if pair[1] not in {None, "", "none"}]
    words = [str(word) for pair in given for word in pair]
    return f"python -m montecarlo measure {shlex.join(words)}"
