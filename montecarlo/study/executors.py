"""Who samples: threads, local processes or a Dask cluster, behind one `Executor`.

BLAS runs on one thread in each, so that the bytes of a product do not depend on their
number.  A task is the arguments that a pure function is called with.  A worker that
dies is not replaced: the run ends, and the same command goes on.
"""

import importlib.util
import multiprocessing
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import contextmanager
from functools import cache, partial
from queue import SimpleQueue
from threading import Thread, current_thread, main_thread
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

from montecarlo.errors import InputError, UnfinishedError
from montecarlo.names import PROJECT, look_up

P = ParamSpec("P")
T = TypeVar("T")
#: Arguments, of a kind that can be pickled and hashed.
Task = tuple[Any, ...]
THREADS, PROCESSES, DASK = "threads", "processes", "dask"
EXECUTORS = dict.fromkeys((THREADS, PROCESSES, DASK))
_ADDRESS = re.compile(r"(tcp|tls)://[^\s:/]+:[0-9]{1,5}")
#: Tasks that a worker is given at once, the one it works on included: some, so that it
#: never waits, and few, so that few are finished but not in the journal after a kill.
ROOM = 3


class Workers(Executor):
    """Workers of a known kind and number.

    Parameters
    ----------
    kind : str
        One of `EXECUTORS`.
    jobs : int
        Tasks that are worked on at the same time.
    submit, shutdown : callable
        Those of their pool.
    """

    def __init__(
        self,
        kind: str,
        jobs: int,
        submit: Callable[..., Future[Any]],
        shutdown: Callable[..., None],
    ) -> None:
        self.kind, self.jobs, self.room = kind, jobs, ROOM * jobs
        self._submit, self._shutdown = submit, shutdown

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Send a task."""
        limited: Callable[P, T] = partial(_run_limited, fn)
        try:
            return self._submit(limited, *args, **kwargs)
        except OSError as error:
            raise _no_room(self.kind, error) from error

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of Executor
        """End the workers."""
        self._shutdown(wait, cancel_futures=cancel_futures)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the workers; what has not begun is dropped after an exception."""
        self.shutdown(cancel_futures=kind is not None)


def limit_blas() -> None:
    """Keep BLAS to one thread in this process from now on."""
    import numpy  # noqa: F401, ICN001 - loads BLAS, or nothing would be limited

    threadpool_limits(limits=1, user_api="blas")


_limit_once = cache(limit_blas)


def _run_limited(function: Callable[..., T], *args: object, **kwargs: object) -> T:
    """Work on a task with BLAS on one thread, in whatever process this is."""
    _limit_once()
    return function(*args, **kwargs)


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_executor(
    kind: str | None, jobs: int | None = None, scheduler: str | None = None
) -> None:
    """Refuse workers that there are none of.

    Parameters
    ----------
    kind : str or None
        One of `EXECUTORS`; None: by the number of jobs.
    jobs : int, optional
        How many were asked for; a cluster has its own.
    scheduler : str, optional
        Address of the scheduler of a Dask cluster.

    Raises
    ------
    InputError
        If the kind is not known or needs an extra that is not installed, or a scheduler
        is missing, is no address, or stands without Dask or beside jobs.
    """
    if kind is not None:
        look_up("executor", kind, EXECUTORS)
    if (kind == DASK) != (scheduler is not None):
        raise InputError(
            f"scheduler must stand with executor {DASK}, and be given for it, got "
            f"executor {kind!r} and scheduler {scheduler!r}"
        )
    if scheduler is not None and not _ADDRESS.fullmatch(scheduler):
        raise InputError(
            f"scheduler must be tcp://HOST:PORT or tls://HOST:PORT, got {scheduler!r}"
        )
    if kind == DASK and jobs is not None:
        raise InputError(f"jobs must be left out with executor {DASK}, got {jobs}")
    if kind == DASK and importlib.util.find_spec("distributed") is None:
        raise InputError(
            f"executor {DASK} needs the [cluster] extra, which is not installed: "
            f"python -m pip install '{PROJECT}[cluster]'"
        )


def make_executor(
    jobs: int | None = None, kind: str | None = None, scheduler: str | None = None
) -> Workers:
    """Return workers that `check_executor` does not refuse.

    Parameters
    ----------
    jobs : int, optional
        At least 1; by default one for each core.  A cluster has its own.
    kind : str, optional
        One of `EXECUTORS`; by default a thread for one job, processes for more.
    scheduler : str, optional
        Address of the scheduler of a Dask cluster, as Dask takes it.

    Raises
    ------
    UnfinishedError
        If they cannot be started, do not answer, or would give other bytes.
    """
    if scheduler is not None:
        from montecarlo.study.cluster import connect

        client, cores = connect(scheduler)
        # not pure: a result that the scheduler remembers would hide that work is redone
        submit = client.get_executor(pure=False).submit
        return Workers(DASK, cores, submit, lambda *_, **__: client.close())
    n = jobs or available_cores()
    kind = kind or (THREADS if n == 1 else PROCESSES)
    if kind == THREADS:
        pool = ThreadPoolExecutor(n, initializer=limit_blas)
        return Workers(kind, n, pool.submit, pool.shutdown)
    try:
        return _start_processes(n)
    except (OSError, NotImplementedError) as error:
        raise _no_room(kind, error) from error


def _start_processes(jobs: int) -> Workers:
    """Start processes that leave Ctrl-C to this one."""
    # spawn: forking a process that shows a progress bar from a thread can hang
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_begin)
    with _ignoring_interrupts():
        for _ in range(jobs):  # a process starts with the task that needs it
            pool.submit(os.getpid)
    return Workers(PROCESSES, jobs, pool.submit, pool.shutdown)


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C in a block, as processes that start in it inherit."""
    if current_thread() is not main_thread():  # which alone may say so
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _begin() -> None:
    """Prepare a process: Ctrl-C is the command's business, and so is its own end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process with the one that started it, which may have been killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _no_room(kind: str, error: Exception) -> UnfinishedError:
    return UnfinishedError(
        f"executor {kind} must have room to start its workers, got: {error}; fewer "
        "--jobs need less, and --executor threads no shared memory"
    )


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
