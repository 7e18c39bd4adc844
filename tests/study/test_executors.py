"""Workers: how many, of what kind, and BLAS on one thread in each."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from montecarlo.errors import InputError
from montecarlo.study.executors import available_cores, check_executor, make_executor
from tests.commands import run_python

#: Prints the threads of every BLAS before there is a worker, and asked in a worker.
#: In a process of its own: what limits BLAS limits the whole process for good.
SCRIPT = """
import json
import numpy
from threadpoolctl import threadpool_info
from montecarlo.study.executors import make_executor

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
    found = run_python("-c", SCRIPT.format(jobs=jobs), check=True, **threads)
    before, inside = json.loads(found.stdout)

    if available_cores() > 1:
        assert 2 in before
    assert inside
    assert all(set(one) == {1} for one in inside)


@pytest.mark.parametrize(
    ("jobs", "kind", "expected"),
    [
        (1, None, "threads"),
        (2, None, "processes"),
        (2, "threads", "threads"),
        (1, "processes", "processes"),
    ],
)
def test_kind_follows_from_the_jobs(jobs, kind, expected):
    """One job is a thread, more are processes, unless a kind is asked for."""
    with make_executor(jobs, kind) as executor:
        assert (executor.kind, executor.jobs) == (expected, jobs)
        elsewhere = executor.submit(os.getpid).result() != os.getpid()
        assert elsewhere == (expected == "processes")


@pytest.mark.parametrize(
    ("kind", "jobs", "scheduler", "named"),
    [
        ("proceses", None, None, "executor"),
        ("tcp://localhost:8786", None, None, "executor"),
        ("dask", None, None, r"scheduler must .* \(--scheduler tcp://HOST:PORT\)"),
        (None, None, "tcp://localhost:8786", "scheduler"),
        ("threads", None, "tcp://localhost:8786", "scheduler"),
        ("dask", None, "localhost", "scheduler"),
        ("dask", 2, "tcp://localhost:8786", "jobs"),
    ],
)
def test_what_there_is_not_is_refused(kind, jobs, scheduler, named):
    """In one line that begins with the argument."""
    with pytest.raises(InputError, match=f"^{named}") as caught:
        check_executor(kind, jobs, scheduler)
    assert "\n" not in str(caught.value)


def handler():
    """How this process takes Ctrl-C."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return ignored, os.getpid()


def test_processes_leave_an_interrupt_to_the_command():
    """Ctrl-C reaches every process of a terminal; those of the pool work on."""
    before = signal.getsignal(signal.SIGINT)
    with make_executor(2) as executor:
        ignored, process = executor.submit(handler).result()
        assert ignored
        os.kill(process, signal.SIGINT)
        assert all(executor.submit(handler).result()[0] for _ in range(4))
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_drops_what_has_not_begun():
    """A block that is left by an exception waits for what runs, and no more."""
    with pytest.raises(ZeroDivisionError), make_executor(1) as executor:  # noqa: PT012
        futures = [executor.submit(time.sleep, 0.2) for _ in range(99)]
        raise ZeroDivisionError
    assert sum(future.cancelled() for future in futures) >= 97
    assert not multiprocessing.active_children()


ENDLESS = """
import time
from montecarlo.study.executors import make_executor
if __name__ == "__main__":
    executor = make_executor(2, "processes")
    list(executor.map(abs, range(8)))
    print("started", flush=True)
    time.sleep(60)
"""


def test_processes_end_with_the_one_that_started_them(tmp_path):
    """Also where that is killed."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and script
        [sys.executable, tmp_path / "endless.py"], stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline() == b"started\n"
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    assert len(family) >= 2
    assert not psutil.wait_procs(family, timeout=20)[1]
