"""Workers of this machine: threads and processes.

BLAS runs on one thread in each, so that the bytes of a product do not depend on them.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import TypeVar

from threadpoolctl import threadpool_limits

from montecarlo.errors import UnfinishedError
from montecarlo.study.workers import Kind, Pool

T = TypeVar("T")
#: Seconds in which processes that are to end at once may finish what they are at.
GRACE = 1.5
#: What Python says, in a plain RuntimeError, where the system starts no more threads.
NO_THREAD = "can't start new thread"


def limit_blas() -> None:
    """Keep BLAS to one thread in this process from now on."""
    import numpy  # noqa: F401, ICN001 - loads BLAS, or nothing would be limited

    threadpool_limits(limits=1, user_api="blas")


def start_threads(jobs: int) -> Pool:
    """Start threads of this process."""
    pool = ThreadPoolExecutor(jobs, initializer=limit_blas)
    # a thread cannot be ended: it finishes the replicates that it is at
    return Pool(
        partial(_submit, pool, "threads"),
        lambda at_once: pool.shutdown(cancel_futures=at_once),
        jobs,
    )


def start_processes(jobs: int) -> Pool:
    """Start processes, which end with this one and leave Ctrl-C to it."""
    # spawn: forking a process that shows a progress bar from a thread can hang
    context = multiprocessing.get_context("spawn")
    try:
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin)
    except (OSError, NotImplementedError) as error:
        raise UnfinishedError(
            "executor processes must have shared memory that can be written, /dev/shm "
            f"on Linux, got: {error}; --executor threads does without"
        ) from error
    others = set(multiprocessing.active_children())
    try:
        with explain_refusal("processes"), block_interrupt():
            for _ in range(jobs):  # a process starts with the task that needs it
                pool.submit(os.getpid)
    except BaseException:
        # not by the pool: it would wait for a thread of its own that may not have begun
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
            process.join()
        raise
    started = set(multiprocessing.active_children()) - others

    def close(at_once: bool) -> None:  # noqa: FBT001 - as `Pool` has it
        if not at_once:
            pool.shutdown()
            return
        ending = Thread(target=partial(pool.shutdown, cancel_futures=True))
        ending.start()
        ending.join(GRACE)
        if ending.is_alive():
            for process in started:
                process.terminate()
            # one that was ended while it wrote a result left half of it: the pool would
            # wait for the rest for as long as this end, which nobody writes to, is open
            pool._result_queue._writer.close()  # type: ignore[attr-defined]  # noqa: SLF001
        ending.join()

    return Pool(partial(_submit, pool, "processes"), close, jobs)


#: Workers of this machine that need no extra, by the name that asks for them.
LOCAL = {"threads": Kind(start_threads), "processes": Kind(start_processes)}


def _submit(
    pool: Executor, kind: str, function: Callable[..., T], /, *arguments: object
) -> Future[T]:
    """Send a task, which may start a worker."""
    with explain_refusal(kind):
        return pool.submit(function, *arguments)


@contextmanager
def explain_refusal(kind: str) -> Iterator[None]:
    """Say in a line that the system starts no more workers, and what can be done."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and str(error) != NO_THREAD:
            raise
        raise UnfinishedError(
            f"executor {kind} must have room to start its workers, got: {error}; fewer "
            "--jobs need less"
        ) from error


def _begin() -> None:
    """Prepare a process: the command's own interrupts and end are not its business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_blas()
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process as soon as the one that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def block_interrupt() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started meanwhile, before they can ignore it.

    The process itself gets it afterwards, and so it does SIGTERM: half of a pool cannot
    be ended.
    """
    with _postponing(signal.SIGTERM), _blocking_interrupt():
        yield


@contextmanager
def _postponing(number: signal.Signals) -> Iterator[None]:
    """Postpone what a signal does in this process, if it is handled in it.

    It is not blocked: processes that are started would keep it so.
    """
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


@contextmanager
def _blocking_interrupt() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # the tracker, when it is started, unblocks the signal; so it is started before
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
