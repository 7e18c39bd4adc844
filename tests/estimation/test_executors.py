"""Workers: how many, of what kind, and BLAS on one thread in each."""

import json
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from montecarlo.estimation.executors import available_cores, make_executor

#: Prints the threads of every BLAS before there is a worker, and asked in a worker.
#: In a process of its own: what limits BLAS limits the whole process for good.
SCRIPT = """
import json
from threadpoolctl import threadpool_info
from montecarlo.estimation.executors import make_executor

def threads(info):
    return [one["num_threads"] for one in info if one["user_api"] == "blas"]

before = threads(threadpool_info())
with make_executor({jobs}) as executor:
    inside = [executor.submit(threadpool_info) for _ in range(4)]
print(json.dumps([before, [threads(one.result()) for one in inside]]))
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_blas_has_one_thread_in_a_worker(jobs):
    """Where BLAS is told to use two threads, it uses two (so this can fail), and one
    when asked in a worker.
    """
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    found = subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", SCRIPT.format(jobs=jobs)],
        env={**os.environ, **threads},
        check=True,
        capture_output=True,
        text=True,
    )
    before, inside = json.loads(found.stdout)

    if available_cores() > 1:
        assert 2 in before
    assert inside
    assert all(set(one) == {1} for one in inside)


def test_one_job_needs_no_process():
    """One job is a thread; more are processes."""
    for jobs, kind in ((1, ThreadPoolExecutor), (2, ProcessPoolExecutor)):
        with make_executor(jobs) as executor:
            assert isinstance(executor, kind)


@pytest.mark.parametrize("jobs", [0, -3])
def test_there_is_a_worker(jobs):
    """Fewer than one worker is refused, with what came."""
    with pytest.raises(ValueError, match=f"jobs must be .* got {jobs}"):
        make_executor(jobs)


def test_cores_are_those_that_may_be_used(monkeypatch):
    """A process that is kept to one core counts one, and where this cannot be asked
    all of the machine's are counted.
    """
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3}, raising=False)
    assert available_cores() == 1
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1
