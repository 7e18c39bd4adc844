"""Workers: threads, local processes or a Dask cluster, all as an `Executor`.

BLAS runs on one thread in each worker, since the bytes of a matrix product depend on
the number of threads.  If a worker dies, the run ends; the same command resumes it.
"""

import importlib.util
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
)
from contextlib import contextmanager
from functools import cache, partial
from queue import SimpleQueue
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from montecarlo.errors import InputError, UnfinishedError
from montecarlo.names import look_up

T = TypeVar("T")
#: Positional arguments of the function that a worker calls.
Task = tuple[Any, ...]
THREADS, PROCESSES, DASK = "threads", "processes", "dask"
EXECUTORS = dict.fromkeys((THREADS, PROCESSES, DASK))
_ADDRESS = re.compile(r"(tcp|tls)://[^\s:/]+:[0-9]{1,5}")
#: Number of unfinished tasks per worker that `finish` submits.  With more than one, a
#: worker need not wait for the next; with many, a kill would lose their results.
QUEUED = 3


class Workers(Executor):
    """An executor that knows its kind and its number of workers.

    Parameters
    ----------
    kind : str
        Key of `EXECUTORS`.
    jobs : int
        Number of tasks that run at the same time.
    submit, shutdown : callable
        Methods of the underlying executor.
    """

    def __init__(
        self,
        kind: str,
        jobs: int,
        submit: Callable[..., Future[Any]],
        shutdown: Callable[..., None],
    ) -> None:
        self.kind, self.jobs, self.most_pending = kind, jobs, QUEUED * jobs
        self._submit, self._shutdown = submit, shutdown

    def submit(
        self, fn: Callable[..., T], /, *args: object, **kwargs: object
    ) -> Future[T]:
        """Submit a function call to the workers, and return its future.

        BLAS is limited to one thread during the call.  An `UnfinishedError` is raised
        if the workers cannot be started.
        """
        try:
            return self._submit(partial(_call_with_limit, fn), *args, **kwargs)
        except OSError as error:
            raise _start_error(self.kind, error) from error

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of Executor
        """Shut down the underlying executor."""
        self._shutdown(wait, cancel_futures=cancel_futures)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Shut down; after an exception, cancel the tasks that have not begun."""
        self.shutdown(cancel_futures=kind is not None)


def limit_blas() -> None:
    """Limit BLAS to one thread in this process, until the process ends."""
    import numpy  # noqa: F401, ICN001 - loads BLAS, which must be loaded to be limited

    threadpool_limits(limits=1, user_api="blas")


_limit_once = cache(limit_blas)


def _call_with_limit(function: Callable[..., T], *args: object, **kwargs: object) -> T:
    """Call a function with BLAS limited to one thread, and return its result."""
    _limit_once()
    return function(*args, **kwargs)


def available_cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_executor(
    kind: str | None, jobs: int | None = None, scheduler: str | None = None
) -> None:
    """Raise `InputError` for options of workers that are invalid or exclude each other.

    Parameters
    ----------
    kind : str or None
        Key of `EXECUTORS`.  With None it follows from ``jobs``.
    jobs : int, optional
        Number of workers; not for a cluster.
    scheduler : str, optional
        Address of the scheduler of a Dask cluster; required for a cluster.

    Raises
    ------
    InputError
        If the kind is unknown or its package is not installed, the scheduler's address
        is invalid, an option does not belong to the kind, or the scheduler of a cluster
        is missing.
    """
    if kind is not None:
        look_up("executor", kind, EXECUTORS)
    if kind == DASK and importlib.util.find_spec("distributed") is None:
        raise InputError(
            f"executor {DASK} is an extra: in a checkout, pip install -e '.[cluster]'"
        )
    if (kind == DASK) != (scheduler is not None):
        raise InputError(
            f"scheduler must be given for executor {DASK} (--scheduler tcp://HOST:PORT)"
            f", and for no other, got executor {kind!r} and scheduler {scheduler!r}"
        )
    if scheduler is not None and not _ADDRESS.fullmatch(scheduler):
        raise InputError(
            f"scheduler must be tcp://HOST:PORT or tls://HOST:PORT, got {scheduler!r}"
        )
    if kind == DASK and jobs is not None:
        raise InputError(f"jobs must be left out with executor {DASK}, got {jobs}")


def make_executor(
    jobs: int | None = None, kind: str | None = None, scheduler: str | None = None
) -> Workers:
    """Start workers or connect to a cluster; return the workers as an executor.

    The options must have passed `check_executor`.

    Parameters
    ----------
    jobs : int, optional
        Number of workers, at least 1; default: one for each core.
    kind : str, optional
        Key of `EXECUTORS`; default: threads for one job, else processes.
    scheduler : str, optional
        Address of the scheduler of a Dask cluster.  If it is given, the cluster decides
        the number of workers.

    Raises
    ------
    UnfinishedError
        If workers cannot be started or reached, or workers of a cluster have other
        versions, so that results would differ.
    """
    if scheduler is not None:
        from montecarlo.study.cluster import connect

        client, cores = connect(scheduler)
        # not pure: Dask must not return the cached result of an equal task
        submit = client.get_executor(pure=False).submit
        return Workers(DASK, cores, submit, lambda *_, **__: client.close())
    n = jobs or available_cores()
    kind = kind or (THREADS if n == 1 else PROCESSES)
    if kind == THREADS:
        pool = ThreadPoolExecutor(n, initializer=limit_blas)
        return Workers(kind, n, pool.submit, pool.shutdown)
    try:
        return _start_processes(n)
    # NotImplementedError: a platform without semaphores
    except (OSError, NotImplementedError) as error:
        raise _start_error(kind, error) from error


def _start_processes(jobs: int) -> Workers:
    """Start worker processes, which ignore Ctrl-C, and return them as an executor."""
    # needless for threads, and slow to import
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # spawn: a process forked while a thread draws a progress bar may hang
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_initialise_process)
    with _delaying_signals():
        for _ in range(jobs):  # the pool starts a process for each pending task
            pool.submit(os.getpid)
    return Workers(PROCESSES, jobs, pool.submit, pool.shutdown)


@contextmanager
def _delaying_signals() -> Iterator[None]:
    """Ignore Ctrl-C and delay SIGTERM within a with block that starts processes.

    The started processes inherit that Ctrl-C is ignored.  SIGTERM waits until the block
    ends: a process whose parent ends before it has sent its data would print a
    traceback.  Only the main thread can set signal handlers: in others nothing is done.
    """
    if current_thread() is not main_thread():  # other threads must not set signals
        yield
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    ends = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, ends)
        for number in received:
            signal.raise_signal(number)


def _initialise_process() -> None:
    """Make a worker process ignore Ctrl-C, and end when its parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Wait until the parent process has ended, then end this process.

    The parent may have ended by itself or been killed.
    """
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _start_error(kind: str, error: Exception) -> UnfinishedError:
    """Return an `UnfinishedError`: workers could not be started, and why.

    ``kind`` is a key of `EXECUTORS`.
    """
    return UnfinishedError(
        f"executor {kind} must be able to start its workers, got: {error}; fewer "
        "--jobs need less memory, and --executor threads needs no shared memory"
    )


def finish(
    executor: Executor,
    function: Callable[..., T],
    tasks: Iterable[Task],
    unwanted: Callable[[Task], bool] = lambda _: False,
) -> Iterator[tuple[Task, Future[T]]]:
    """Run a function on workers for each task; yield results as they are finished.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        If it has the attribute ``most_pending``, as `Workers` has, at most that many
        tasks are pending at a time.  Otherwise all are submitted at once.
    function : callable
        Called by workers; must be picklable for processes.
    tasks : iterable of tuple
        Each task is the positional arguments of one call.  It is read when a worker is
        free.
    unwanted : callable
        Returns True for a task that is to be skipped; called just before the task would
        be submitted.

    Yields
    ------
    task : tuple
    future : Future
        Holds the result, or the exception that the function raised.

    Raises
    ------
    UnfinishedError
        If a worker died, or the cluster cannot be reached.
    """
    most_pending = getattr(executor, "most_pending", None)
    waiting = iter(tasks)  # lazy: all tasks together may be large
    pending: dict[Future[T], Task] = {}
    done: SimpleQueue[Future[T]] = SimpleQueue()
    try:
        while True:
            while most_pending is None or len(pending) < most_pending:
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
        pending.clear()  # a broken pool sets its futures itself, also cancelled ones
        reason = str(error) or "it was cancelled"
        raise UnfinishedError(
            f"a worker died, or could not be reached ({reason}); run a command again: "
            "a report goes on; in a script, start below `if __name__ == '__main__':`"
        ) from None
    finally:
        for future in pending:
            future.cancel()


def _require_worker(error: BaseException | None) -> None:
    """Raise the exception of a future if it is due to the worker, not to the function.

    Such causes are Ctrl-C, and the death of a worker, for which BrokenExecutor is
    raised.  Nothing is raised for exceptions of the function, or without an exception.
    """
    if error is not None and not isinstance(error, Exception):
        raise error
    if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
        raise BrokenExecutor(str(error)) from error
