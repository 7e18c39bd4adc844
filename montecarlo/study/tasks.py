"""Tasks: sent to workers, and sent again where a worker died before it was done.

A task is the arguments that a pure function is called with, so that its result is the
same however often it was begun.  No library does this for a process pool: in loky's, as
in that of the standard library, one death loses all tasks and names none (and loky's
workers, tried, outlive a killed command by the task they are at and die of Ctrl-C).
Dask does, but needs a second to be imported, and a scheduler: it is there for clusters.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from queue import SimpleQueue
from typing import Any, TypeVar

from montecarlo.errors import UnfinishedError
from montecarlo.study.workers import Workers

#: Deaths of workers after which a task that was under way at each is run alone; if its
#: worker dies then as well, it is the task that kills.
MOST_DEATHS = 3
#: Times that workers are replaced while no task at all is finished.
MOST_RENEWALS = 20
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
        `Workers` are replaced when they die; of others the exception comes out.
    function : callable
    tasks : iterable of tuple
        What to call it with.
    unwanted : callable
        Whether a task need not be begun any more.

    Yields
    ------
    tuple, Future
        The future is done.  A task that kills its workers has an `UnfinishedError`.

    Raises
    ------
    UnfinishedError
        If the workers cannot be replaced, or die before any task is finished.
    """
    room = executor.room if isinstance(executor, Workers) else None
    waiting = deque(tasks)
    deaths: Counter[Task] = Counter()
    pending: dict[Future[T], Task] = {}
    done: SimpleQueue[Future[T]] = SimpleQueue()
    renewals = 0

    try:
        while waiting or pending:
            while waiting and _may_begin(waiting[0], pending, deaths, room):
                task = waiting.popleft()
                if not unwanted(task):
                    future = _submit(executor, function, task)
                    pending[future] = task
                    future.add_done_callback(done.put)
            if not pending:
                return
            future = done.get()
            if not _is_lost(future):
                renewals = 0
                _raise_interruption(future)
                yield pending.pop(future), future
                continue
            renewals += 1
            _renew(executor, future, renewals)
            begun, pending, done = pending, {}, SimpleQueue()
            lost = {future: task for future, task in begun.items() if _is_lost(future)}
            yield from ((task, f) for f, task in begun.items() if f not in lost)
            if room is not None:  # a cluster itself names who kills
                deaths.update(lost.values())
            for task in reversed(lost.values()):
                if len(begun) == 1 and deaths[task] > MOST_DEATHS:
                    reason = f"its worker died, {deaths[task]} times"
                    yield task, _fail(UnfinishedError(reason))
                else:
                    waiting.appendleft(task)
    finally:
        for future in pending:
            future.cancel()


def _may_begin(
    task: Task, pending: dict[Future[T], Task], deaths: Counter[Task], room: int | None
) -> bool:
    """Tell whether there is room for a task; one that is suspected is alone."""
    if not pending:
        return True
    asked = (task, *pending.values()) if deaths else ()
    return len(pending) != room and all(deaths[one] < MOST_DEATHS for one in asked)


def _raise_interruption(future: Future[Any]) -> None:
    """Raise what ended a task without being an outcome of it: Ctrl-C in a thread."""
    error = future.exception()
    if error is not None and not isinstance(error, Exception):
        raise error


def _submit(executor: Executor, function: Callable[..., T], task: Task) -> Future[T]:
    """Send a task; workers that are found dead are those of a lost task."""
    try:
        return executor.submit(function, *task)
    except BrokenExecutor as error:
        return _fail(error)


def _fail(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def _is_lost(future: Future[Any]) -> bool:
    """Whether a task's worker is gone, so that it has no outcome."""
    if not future.done() or future.cancelled():
        return True
    return isinstance(future.exception(), BrokenExecutor | CancelledError)


def _renew(executor: Executor, lost: Future[Any], renewals: int) -> None:
    """Replace the workers, if they can be replaced and it is worth it."""
    if not isinstance(executor, Workers):
        lost.result()  # raises
        return
    if renewals > MOST_RENEWALS:
        raise UnfinishedError(
            f"workers must live to finish a task, died {renewals} times before one"
        )
    executor.renew()
