"""Workers: local processes or threads behind `concurrent.futures.Executor`.

BLAS runs on one thread in each, so that the bytes of a product do not depend on them.
"""

import multiprocessing
import os
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np  # noqa: F401 - loads BLAS, or there would be nothing to limit
from threadpoolctl import threadpool_limits


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_executor(jobs: int) -> Executor:
    """Return workers: one thread for one job, processes for more.

    Parameters
    ----------
    jobs : int
        At least 1.

    Raises
    ------
    ValueError
        If jobs is below 1.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be an integer of at least 1, got {jobs!r}")
    if jobs == 1:
        return ThreadPoolExecutor(1, initializer=limit_blas)
    # spawn: forking a process that shows a progress bar from a thread can hang
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=limit_blas)


def limit_blas() -> None:
    """Keep BLAS to one thread in this process from now on."""
    threadpool_limits(limits=1, user_api="blas")
