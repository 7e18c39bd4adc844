"""Workers: threads, local processes or a Dask cluster, behind one `Executor`.

BLAS runs on one thread in each, so that the bytes of a product do not depend on them.
"""

import importlib.util
import multiprocessing
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker
from threading import Thread

import numpy as np  # noqa: F401 - loads BLAS, or there would be nothing to limit
from threadpoolctl import threadpool_limits

from montecarlo.estimation.workers import Pool, Workers
from montecarlo.names import look_up

THREADS, PROCESSES, DASK, ADDRESS = "threads", "processes", "dask", "tcp://HOST:PORT"
#: What there is to choose from.
KINDS = (THREADS, PROCESSES, DASK, ADDRESS)
#: Tasks that a process is given at once, the one it works on included: some, so that it
#: never waits, and few, so that few are suspected when it dies.
ROOM = 3
#: Seconds in which processes that are to end at once may finish what they are at.
GRACE = 1.0
_ADDRESS = re.compile(r"tcp://[^\s:/]+:[0-9]{1,5}")


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_executor(kind: str, jobs: int | None = None) -> None:
    """Refuse workers that there are none of.

    Parameters
    ----------
    kind : str
        One of `KINDS`, or an address like the last of them.
    jobs : int, optional
        How many were asked for.

    Raises
    ------
    ValueError
        If the kind is not known, it needs an extra that is not installed, or a number
        was asked for where the cluster has its own.
    """
    remote = _ADDRESS.fullmatch(kind) is not None
    if not remote:
        if kind == ADDRESS:
            raise ValueError(f"executor must name a host and a port, got {kind!r}")
        look_up("executor", kind, dict.fromkeys(KINDS))
    if (remote or kind == DASK) and importlib.util.find_spec("distributed") is None:
        raise ValueError(
            f"executor {kind} needs the [cluster] extra, which is not installed: "
            "python -m pip install 'montecarlo[cluster]'"
        )
    if remote and jobs is not None:
        raise ValueError(
            f"jobs must be left out with executor {kind}, which has workers of its "
            f"own, got {jobs}"
        )


def make_executor(jobs: int | None = None, kind: str | None = None) -> Workers:
    """Return workers.

    Parameters
    ----------
    jobs : int, optional
        At least 1; by default one for each core.  A cluster has its own.
    kind : str, optional
        One of `KINDS`; by default a thread for one job, processes for more.

    Raises
    ------
    ValueError
        If jobs is below 1, or the kind is not one to be had.
    ConnectionError
        If a cluster does not answer.
    RuntimeError
        If its workers would give other bytes.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be an integer of at least 1, got {jobs!r}")
    n = jobs or available_cores()
    chosen = kind or (THREADS if n == 1 else PROCESSES)
    check_executor(chosen)
    if chosen == THREADS:
        return Workers(chosen, partial(_start_threads, n))
    if chosen == PROCESSES:
        return Workers(chosen, partial(_start_processes, n), room=ROOM * n)
    from montecarlo.estimation import cluster

    if chosen == DASK:
        return Workers(chosen, partial(cluster.start_local, n))
    return Workers(chosen, partial(cluster.connect, chosen))


def limit_blas() -> None:
    """Keep BLAS to one thread in this process from now on."""
    threadpool_limits(limits=1, user_api="blas")


def _start_threads(jobs: int) -> Pool:
    pool = ThreadPoolExecutor(jobs, initializer=limit_blas)
    # a thread cannot be ended: it finishes the replicates that it is at
    return Pool(
        pool.submit, lambda at_once: pool.shutdown(cancel_futures=at_once), jobs
    )


def _start_processes(jobs: int) -> Pool:
    # spawn: forking a process that shows a progress bar from a thread can hang
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin)
    others = set(multiprocessing.active_children())
    with interrupt_blocked():
        for _ in range(jobs):  # a process starts with the task that needs it
            pool.submit(os.getpid)
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
        ending.join()

    return Pool(pool.submit, close, jobs)


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
def interrupt_blocked() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started meanwhile, before they can ignore it.

    The process itself gets it afterwards.
    """
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
