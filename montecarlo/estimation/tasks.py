"""Tasks: sent to workers, and sent again where a worker died before it was done.

A task must be a pure function of its arguments, so that its result is the same however
often it was begun.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from montecarlo.errors import UnfinishedError
from montecarlo.estimation.workers import Workers

#: Deaths of workers after which a task that was under way at each is run alone; if its
#: worker dies then as well, it is the task that kills.
MOST_DEATHS = 3
#: Times that workers are replaced while no task at all is finished.
MOST_RENEWALS = 20


@dataclass(frozen=True, slots=True)
class Task:
    """A function and its arguments, both of a kind that can be pickled and hashed."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def finish(
    executor: Executor,
    tasks: Iterable[Task],
    unwanted: Callable[[Task], bool] = lambda _: False,
) -> Iterator[tuple[Task, Future[Any]]]:
    """Yield every task as it is done, with its result or its exception.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        `Workers` are replaced when they die; of others the exception comes out.
    tasks : iterable of Task
    unwanted : callable
        Whether a task need not be begun any more.

    Yields
    ------
    Task, Future
        The future is done.  A task that kills its workers has a `RuntimeError`.

    Raises
    ------
    OSError, RuntimeError
        If the workers cannot be replaced, or die before any task is finished.
    """
    waiting = deque(tasks)
    deaths: Counter[Task] = Counter()
    pending: dict[Future[Any], Task] = {}
    done: SimpleQueue[Future[Any]] = SimpleQueue()
    renewals = 0
    try:
        while waiting or pending:
            while waiting and len(pending) < _room(executor, waiting, pending, deaths):
                task = waiting.popleft()
                if not unwanted(task):
                    future = _submit(executor, task)
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
            if _room_of(executor) is not None:  # a cluster itself names who kills
                deaths.update(lost.values())
            for task in reversed(lost.values()):
                if len(begun) == 1 and deaths[task] > MOST_DEATHS:
                    yield task, _guilty(deaths[task])
                else:
                    waiting.appendleft(task)
    finally:
        for future in pending:
            future.cancel()


def _raise_interruption(future: Future[Any]) -> None:
    """Raise what ended a task without being an outcome of it: Ctrl-C in a thread."""
    error = future.exception()
    if error is not None and not isinstance(error, Exception):
        raise error


def _room(
    executor: Executor,
    waiting: deque[Task],
    pending: dict[Future[Any], Task],
    deaths: Counter[Task],
) -> float:
    """Return how many tasks may be under way at once, with the next one."""
    suspected = deaths[waiting[0]] >= MOST_DEATHS
    alone = any(deaths[task] >= MOST_DEATHS for task in pending.values())
    if suspected or alone:
        return 1
    room = _room_of(executor)
    return float("inf") if room is None else room


def _room_of(executor: Executor) -> int | None:
    """Return how many tasks workers are given at once; None: all."""
    return executor.room if isinstance(executor, Workers) else None


def _submit(executor: Executor, task: Task) -> Future[Any]:
    """Send a task; workers that are found dead are those of a lost task."""
    try:
        return executor.submit(task.function, *task.arguments)
    except BrokenExecutor as error:
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


def _guilty(deaths: int) -> Future[Any]:
    """Return the outcome of a task that kills its workers."""
    future: Future[Any] = Future()
    future.set_exception(UnfinishedError(f"its worker died, {deaths} times"))
    return future
