"""Tasks: sent to workers, and yielded as they are done.

A task is the arguments that a pure function is called with.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from queue import SimpleQueue
from typing import Any, TypeVar

from montecarlo.errors import UnfinishedError

#: Arguments, of a kind that can be pickled and hashed.
Task = tuple[Any, ...]
T = TypeVar("T")


def finish(
    executor: Executor,
    function: Callable[..., T],
    tasks: Iterable[Task],
    unwanted: Callable[[Task], bool] = lambda _: False,
) -> Iterator[tuple[Task, Future[T]]]:
    """Yield every task as it is done, with its result or its exception.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        `Workers` are given as many tasks at once as they have room for.
    function : callable
    tasks : iterable of tuple
        What to call it with.
    unwanted : callable
        Whether a task need not be begun any more.

    Yields
    ------
    tuple, Future
        The future is done.

    Raises
    ------
    UnfinishedError
        If a worker died, or the cluster went.
    """
    room = getattr(executor, "room", None)
    waiting = iter(tasks)  # one after the other: together they may be large
    pending: dict[Future[T], Task] = {}
    done: SimpleQueue[Future[T]] = SimpleQueue()
    try:
        while True:
            while room is None or len(pending) < room:
                task = next(waiting, None)
                if task is None:
                    break
                if not unwanted(task):
                    future = executor.submit(function, *task)
                    pending[future] = task
                    future.add_done_callback(done.put)
            if not pending:
                return
            future = done.get()
            _require_worker(future.exception())
            yield pending.pop(future), future
    except (BrokenExecutor, CancelledError) as error:
        pending.clear()  # a pool that broke sets outcomes, also of what is cancelled
        reason = str(error) or "it was cancelled"
        raise UnfinishedError(
            f"a worker died, or could not be reached ({reason}); the same command can "
            "be run again, and a report goes on from what is finished"
        ) from error
    finally:
        for future in pending:
            future.cancel()


def _require_worker(error: BaseException | None) -> None:
    """Raise what ended a task from without; Dask has a name for a worker that died."""
    if error is not None and not isinstance(error, Exception):
        raise error  # Ctrl-C
    if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
        raise BrokenExecutor(str(error)) from error
