"""Tasks: done once each, and not far ahead; a worker that dies ends the run."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from montecarlo.errors import UnfinishedError
from montecarlo.study.executors import QUEUED, finish, make_executor


def square(number):
    """Return what is asked for; 5 fails."""
    if number == 5:
        raise ZeroDivisionError("planted")
    return number * number


def die(number):
    """Kill this process if 7 is asked for."""
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def work(numbers):
    """Tasks, one for each number."""
    return [(number,) for number in numbers]


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_is_done_once(jobs):
    """Each is yielded with its result or its exception, in any order."""
    found = {}
    with make_executor(jobs) as executor:
        for (number,), future in finish(executor, square, work(range(20))):
            assert number not in found
            found[number] = future.exception() or future.result()
    assert isinstance(found.pop(5), ZeroDivisionError)
    assert found == {n: n * n for n in range(20) if n != 5}


def test_what_is_not_wanted_any_more_is_not_begun():
    """Tasks that have become unwanted are left out."""
    begun = []
    with make_executor(1, "threads") as executor:
        for _ in finish(executor, begun.append, work(range(99)), lambda _: begun):
            pass
    assert 1 <= len(begun) <= QUEUED


def test_a_killed_worker_ends_the_run():
    """A line says what helps, and what was done before is yielded."""
    found = {}
    with pytest.raises(UnfinishedError) as caught, make_executor(2) as executor:  # noqa: PT012
        for task, future in finish(executor, die, work(range(99))):
            found[task[0]] = future.result()
    assert "\n" not in str(caught.value)
    assert "in a script, start below `if __name__ == '__main__':`" in str(caught.value)
    # the other worker goes on until the pool has noticed
    assert found.items() <= {n: n * n for n in range(99) if n != 7}.items()


def test_leaving_cancels_what_has_not_begun():
    """When the one who asks stops asking, nothing more is begun."""
    hold, begun = threading.Event(), []
    with ThreadPoolExecutor(1) as executor:
        asked = finish(
            executor,
            lambda n: begun.append(n) or n == 1 or hold.wait(9),
            work([1, 2, 3]),
        )
        next(asked)
        asked.close()
        hold.set()
    assert 3 not in begun


@pytest.mark.parametrize("jobs", [1, 2])
def test_threads_are_not_far_ahead(jobs):
    """What is done but not yet taken, and so would be lost in a kill, is bounded; and
    what is to be sent, which may be large, is not all made at once.
    """
    made, begun, taken = [], [], 0
    with make_executor(jobs, "threads") as executor:
        tasks = ((made.append(n) or n,) for n in range(50))
        for _ in finish(executor, begun.append, tasks):
            time.sleep(0.002)  # long against the task, as when a journal is slow
            assert len(begun) <= len(made) <= taken + QUEUED * jobs
            taken += 1
    assert taken == 50
