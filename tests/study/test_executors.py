"""Workers: how many, of what kind, and BLAS on one thread in each."""

import errno
import importlib.util
import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor
from multiprocessing.context import SpawnProcess

import pytest

from montecarlo.errors import UnfinishedError
from montecarlo.study import workers
from montecarlo.study.executors import (
    available_cores,
    check_executor,
    make_executor,
)
from montecarlo.study.workers import NO_THREAD

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
    ("kind", "jobs", "message"),
    [
        ("proceses", None, "one of threads, processes, dask.*mean 'processes'"),
        ("tls://HOST:PORT", None, "must name a host and a port"),
        ("insecure+tcp://HOST:PORT", None, "must name a host and a port"),
        ("tls://localhost", None, "executor must be one of"),
        ("insecure+tls://localhost:8786", None, "executor must be one of"),
        ("tls://localhost:87x", None, "executor must be one of"),
        ("tls://h:0", None, "port of executor must lie between 1 and 65535"),
        ("insecure+tcp://h:65536", None, "port of executor must lie between"),
        ("tls://localhost:8786", 2, "jobs must be left out .* got 2"),
        ("tcp://h:1", None, r"asks for none.*run code.*insecure\+tcp://h:1 says so"),
    ],
)
def test_what_there_is_not_is_refused(kind, jobs, message):
    """An unknown kind, half an address, or jobs of a cluster: one line each."""
    with pytest.raises(ValueError, match=message) as caught:
        check_executor(kind, jobs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "kind", ["dask", "tls://localhost:8786", "insecure+tcp://localhost:8786"]
)
def test_a_missing_extra_is_named(monkeypatch, kind):
    """Where Dask is not installed, the line says what to install."""
    check_executor(kind)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for other in ("threads", "processes"):
        check_executor(other)
    with pytest.raises(
        ValueError, match=r"\[cluster\] extra.*montecarlo-attention\[cluster\]"
    ):
        check_executor(kind)


def handler():
    """How this process takes Ctrl-C."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return ignored, os.getpid()


def test_processes_leave_an_interrupt_to_the_command():
    """Ctrl-C reaches every process of a terminal; those of the pool work on."""
    with make_executor(2) as executor:
        ignored, process = executor.submit(handler).result()
        assert ignored
        os.kill(process, signal.SIGINT)
        assert all(executor.submit(handler).result()[0] for _ in range(4))
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_an_error_ends_workers_at_once():
    """A block that is left by an exception waits neither for what has not begun nor for
    what takes long.
    """
    with pytest.raises(ZeroDivisionError), make_executor(2) as executor:  # noqa: PT012
        for future in [executor.submit(os.getpid) for _ in range(9)]:
            future.result()
        futures = [executor.submit(time.sleep, 20) for _ in range(9)]
        time.sleep(0.5)
        begun = time.perf_counter()
        raise ZeroDivisionError
    assert time.perf_counter() - begun < 10
    assert all(future.done() for future in futures)
    assert not multiprocessing.active_children()


def test_no_shared_memory_is_told(monkeypatch):
    """Where processes cannot be had, the line says what can."""

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(workers, "ProcessPoolExecutor", refuse)
    with pytest.raises(
        UnfinishedError, match=r"Read-only.*--executor threads no shared memory"
    ):
        make_executor(2)


def refuse_after(monkeypatch, started, name, allowed, error):
    """Let the system start so many workers, and no more."""
    start, count = getattr(started, name), itertools.count()

    def begin(self):
        if next(count) >= allowed:
            raise error
        return start(self)

    monkeypatch.setattr(started, name, begin)


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_process_that_cannot_be_started_is_told(monkeypatch, allowed):
    """The line says what helps, and the processes that were started end."""
    full = BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    refuse_after(monkeypatch, SpawnProcess, "start", allowed, full)
    with pytest.raises(UnfinishedError, match=r"temporarily unavail.*fewer --jobs"):
        make_executor(2)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_thread_that_cannot_be_started_is_told(monkeypatch, jobs):
    """Also that of a pool of processes, which has threads of its own."""
    refuse_after(monkeypatch, threading.Thread, "start", 0, RuntimeError(NO_THREAD))
    with (
        pytest.raises(UnfinishedError, match=r"start new thread; fewer --jobs"),
        make_executor(jobs) as executor,
    ):
        executor.submit(os.getpid)


def test_another_error_of_starting_is_a_bug(monkeypatch):
    """What the system did not say is not told as if it had."""
    refuse_after(monkeypatch, threading.Thread, "start", 0, RuntimeError("planted"))
    with (
        pytest.raises(RuntimeError, match="planted") as caught,
        make_executor(1) as one,
    ):
        one.submit(os.getpid)
    assert not isinstance(caught.value, UnfinishedError)


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


def test_processes_ended_while_they_write_are_not_waited_for(monkeypatch):
    """Workers that are ended in the middle of a result leave half of it, and the pool
    does not wait for the rest.
    """
    monkeypatch.setattr(workers, "GRACE", 0.0)
    pool = make_executor(2)
    for _ in range(40):
        pool.submit(bytes, 20_000_000)
    time.sleep(1.5)
    ending = threading.Thread(target=pool.shutdown, args=(False,), daemon=True)
    ending.start()
    ending.join(20.0)
    assert not ending.is_alive()


@pytest.mark.slow
def test_a_lost_worker_leaves_no_task_half_written():
    """A task too long for the pipe to whom was killed does not keep the command."""
    before = set(multiprocessing.active_children())
    executor = make_executor(2, "processes")
    mine = set(multiprocessing.active_children()) - before
    started = time.monotonic()
    tasks = [executor.submit(_slow_length, bytes(2**22)) for _ in range(8)]
    time.sleep(0.2)
    for process in mine:
        process.kill()
    with pytest.raises(BrokenExecutor), executor:
        [task.result() for task in tasks]
    assert time.monotonic() - started < 30.0


def _slow_length(content):
    time.sleep(1.0)
    return len(content)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs masks")
def test_a_signal_to_another_thread_waits_for_a_start(monkeypatch):
    """A thread that was there before, of BLAS for example, has no mask of this one."""
    came, go = [], threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: came.append(True))
    monkeypatch.setattr(workers.resource_tracker, "ensure_running", lambda: None)

    def hear():
        go.wait()
        signal.raise_signal(signal.SIGTERM)

    other = threading.Thread(target=hear)
    try:
        other.start()
        with workers.block_signals(signal.SIGTERM):
            go.set()
            other.join()
            assert not came
        assert came
    finally:
        signal.signal(signal.SIGTERM, before)
