"""Workers of this machine: threads and processes, as `concurrent.futures` has them.

BLAS runs on one thread in each, so that the bytes of a product do not depend on them.
A worker that dies is not replaced: the run ends, and the same command goes on.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import resource_tracker
from threading import Thread, current_thread, main_thread
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

from montecarlo.errors import UnfinishedError

P = ParamSpec("P")
T = TypeVar("T")
#: Tasks that a worker of this machine is given at once, the one it works on included:
#: some, so that it never waits, and few, so that few are finished but not yet in the
#: journal when the run is killed.
ROOM = 3
#: Seconds in which processes that are to end at once may finish what they are at.
GRACE = 1.0
#: What Python says, in a plain RuntimeError, where the system starts no more threads.
NO_THREAD = "can't start new thread"


class Workers(Executor):
    """An executor that knows what it is, and ends at once after an exception.

    Parameters
    ----------
    kind : str
        One of `montecarlo.study.executors.EXECUTORS`, or an address.
    jobs : int
        Tasks that are worked on at the same time.
    submit : callable
        As of `concurrent.futures.Executor`.
    end : callable
        Ends the workers; at once, if its argument is true: what runs is then lost.
    room : int, optional
        Tasks to submit at once; by default all there are.
    """

    def __init__(
        self,
        kind: str,
        jobs: int,
        submit: Callable[..., Future[Any]],
        end: Callable[[bool], None],
        room: int | None = None,
    ) -> None:
        self.kind, self.jobs, self.room = kind, jobs, room
        self._submit, self._end = submit, end

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Send a task."""
        with explain_refusal(self.kind):
            return self._submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of Executor
        """End the workers: at once, or when all is done."""
        self._end(cancel_futures or not wait)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the workers: at once, if the block was left by an exception."""
        self._end(kind is not None)


def start_threads(kind: str, jobs: int) -> Workers:
    """Start threads of this process; they finish the replicates that they are at."""
    pool = ThreadPoolExecutor(jobs, initializer=limit_blas)
    end = partial(_shut_down, pool)
    return Workers(kind, jobs, pool.submit, end, ROOM * jobs)


def _shut_down(pool: Executor, at_once: bool) -> None:  # noqa: FBT001 - as `Workers` has it
    pool.shutdown(cancel_futures=at_once)


def start_processes(kind: str, jobs: int) -> Workers:
    """Start processes, which end with this one and leave Ctrl-C to it.

    Raises
    ------
    UnfinishedError
        If the system refuses one.
    """
    # spawn: forking a process that shows a progress bar from a thread can hang
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    both = (signal.SIGINT, signal.SIGTERM)
    try:
        with explain_refusal(kind), block_signals(*both):
            pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin)
            for _ in range(jobs):  # a process starts with the task that needs it
                pool.submit(os.getpid)
    except BaseException:
        # not by the pool: it would wait for a thread of its own that may not have begun
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
            process.join()
        raise
    started = set(multiprocessing.active_children()) - others

    def end(at_once: bool) -> None:  # noqa: FBT001 - as `Workers` has it
        ending = Thread(target=partial(pool.shutdown, cancel_futures=at_once))
        ending.start()
        ending.join(GRACE if at_once else None)
        if ending.is_alive():
            for process in started:
                process.kill()
            # the pool would wait for the rest of a result that was cut short for as
            # long as this end, which nobody writes to, is open
            pool._result_queue._writer.close()  # type: ignore[attr-defined]  # noqa: SLF001
            # and, before Python 3.11.5, with a task half written to who was killed for
            # as long as this end, which nobody reads from, is open (CPython 94777)
            pool._call_queue._reader.close()  # type: ignore[attr-defined]  # noqa: SLF001
            ending.join()

    return Workers(kind, jobs, pool.submit, end, ROOM * jobs)


def limit_blas() -> None:
    """Keep BLAS to one thread in this process from now on."""
    import numpy  # noqa: F401, ICN001 - loads BLAS, or nothing would be limited

    threadpool_limits(limits=1, user_api="blas")


def _begin() -> None:
    """Prepare a process: Ctrl-C is the command's business, and so is its own end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    limit_blas()
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process as soon as the one that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def explain_refusal(kind: str) -> Iterator[None]:
    """Say in a line that the system starts no more workers, and what can be done."""
    try:
        yield
    except (OSError, RuntimeError, NotImplementedError) as error:
        if type(error) is RuntimeError and str(error) != NO_THREAD:
            raise
        if isinstance(error, UnfinishedError | BrokenExecutor):
            raise
        raise UnfinishedError(
            f"executor {kind} must have room to start its workers, got: {error}; fewer "
            "--jobs need less, and --executor threads no shared memory"
        ) from error


@contextmanager
def block_signals(*numbers: signal.Signals) -> Iterator[None]:
    """Keep signals from processes that are started meanwhile, before they can say how.

    This process itself gets them afterwards: half a start would be told by what was
    started, which is left without its task.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # the tracker, when it is started, unblocks Ctrl-C; so it is started before
    resource_tracker.ensure_running()
    with ExitStack() as here:
        # the mask is this thread's, and another one, of BLAS, may get the signal
        for number in numbers:
            here.enter_context(postponing(number))
        before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def postponing(number: signal.Signals) -> Iterator[None]:
    """Postpone what a signal does in this process, if it is handled in it."""
    handler = signal.getsignal(number)
    if not callable(handler) or current_thread() is not main_thread():
        yield
        return
    came: list[FrameType | None] = []
    signal.signal(number, lambda _, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(number, handler)
        if came:
            handler(number, came[0])
