"""Tasks: done once each, whatever dies, and those that kill are found."""

import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor

import pytest

from montecarlo.errors import UnfinishedError
from montecarlo.study.executors import make_executor
from montecarlo.study.tasks import MOST_DEATHS, MOST_RENEWALS, finish
from montecarlo.study.workers import ROOM, Pool, Workers


def square(number):
    """Return what is asked for."""
    return number * number


def die_once(number, folder):
    """Kill this process the first time that 0 or 5 is asked for."""
    path = folder / f"{number}"
    if number in {0, 5} and not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die(number):
    """Kill this process whenever 1 is asked for."""
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def results(found):
    """What tasks came to, by their first argument; exceptions as they are."""
    values = {}
    for task, future in found:
        assert task[0] not in values
        values[task[0]] = future.exception() or future.result()
    return values


class Mortal:
    """Starts pools of workers of this process, some of which die."""

    def __init__(self, dies, room=4, seconds=0.05):
        self.started = 0
        self.begun = Counter()
        self.dies = dies  # (task's number, times it was begun) -> bool
        self.seconds = seconds  # that a task takes
        self.lock = threading.Lock()
        self.workers = Workers("mortal", self.start, room)

    def start(self):
        """Start workers; when one dies, all that they were given is lost."""
        self.started += 1
        given = []

        def submit(fn, number):
            future = Future()
            self.begun[number] += 1
            given.append(future)
            if self.dies(number, self.begun[number]):
                for one in given:
                    end(one, one.set_exception, BrokenExecutor("planted"))
            elif self.seconds:
                done = (future, future.set_result, fn(number))
                threading.Timer(self.seconds, end, done).start()
            else:
                end(future, future.set_result, fn(number))
            return future

        def end(future, how, what):
            with self.lock:
                if not future.done():
                    how(what)

        return Pool(submit, lambda at_once: None, 2)


def work(numbers):
    """Tasks, one for each number."""
    return [(number,) for number in numbers]


def test_every_task_is_done_once():
    """Without deaths every task is begun and yielded once."""
    mortal = Mortal(lambda number, times: False)
    found = results(finish(mortal.workers, square, work(range(9))))

    assert found == {n: n * n for n in range(9)}
    assert set(mortal.begun.values()) == {1}
    assert mortal.started == 1


def test_what_was_lost_is_done_again():
    """After a death the workers are replaced, what they had is begun again, and what
    was finished before is not.
    """
    mortal = Mortal(lambda number, times: number == 7 and times == 1)
    found = results(finish(mortal.workers, square, work(range(9))))

    assert found == {n: n * n for n in range(9)}
    assert mortal.started == 2
    assert mortal.begun[7] == 2
    assert mortal.begun[0] == 1


def test_what_was_done_when_workers_died_is_kept():
    """Tasks that were done, but not yet yielded when a death was seen, count."""
    mortal = Mortal(lambda number, times: number == 0 and times == 1, seconds=0)
    found = results(finish(mortal.workers, square, work(range(4))))

    assert found == {n: n * n for n in range(4)}
    assert mortal.begun == {0: 2, 1: 1, 2: 1, 3: 1}


def test_a_task_that_kills_is_found():
    """A task that always kills its worker fails, after a bounded number of deaths; the
    others are done, also those that were under way when it killed.
    """
    mortal = Mortal(lambda number, times: number == 2)
    found = results(finish(mortal.workers, square, work(range(9))))

    assert {n: found[n] for n in range(9) if n != 2} == {
        n: n * n for n in range(9) if n != 2
    }
    assert isinstance(found[2], UnfinishedError)
    assert str(found[2]) == f"its worker died, {MOST_DEATHS + 1} times"
    assert mortal.begun[2] == MOST_DEATHS + 1


def test_every_task_kills():
    """All tasks that kill are found, if there are several."""
    mortal = Mortal(lambda number, times: number % 2)
    found = results(finish(mortal.workers, square, work(range(8))))

    assert [isinstance(found[n], UnfinishedError) for n in range(8)] == [
        False,
        True,
    ] * 4


def test_workers_that_never_live_are_given_up():
    """Where nothing at all is finished between deaths, the run ends."""
    mortal = Mortal(lambda number, times: True)
    with pytest.raises(RuntimeError, match="workers must live to finish a task"):
        results(finish(mortal.workers, square, work(range(99))))
    assert mortal.started <= MOST_RENEWALS + 1


def test_what_is_not_wanted_any_more_is_not_begun():
    """Tasks that have become unwanted are left out."""
    mortal = Mortal(lambda number, times: False, room=1)
    seen = []
    for task, _ in finish(
        mortal.workers, square, work(range(9)), lambda task: len(seen) > 2
    ):
        seen.append(task[0])

    assert seen == [0, 1, 2]
    assert sum(mortal.begun.values()) == 3


def test_others_than_ours_are_not_replaced():
    """Of a plain executor the exception comes out."""

    def submit(*_):
        raise BrokenExecutor("planted")

    with ThreadPoolExecutor(1) as executor:
        executor.submit = submit
        with pytest.raises(BrokenExecutor, match="planted"):
            results(finish(executor, square, work(range(3))))


def test_processes_that_are_killed_are_replaced(tmp_path):
    """Real processes that are killed at several tasks: every result is there."""
    numbers = range(12)
    with make_executor(2) as executor:
        found = results(finish(executor, die_once, [(n, tmp_path) for n in numbers]))
    assert found == {n: n * n for n in numbers}
    assert {path.name for path in tmp_path.iterdir()} == {"0", "5"}


def test_a_real_task_that_kills_is_found():
    """The same with real processes and a task that always kills its own."""
    with make_executor(2) as executor:
        found = results(finish(executor, die, work(range(8))))
    assert isinstance(found.pop(1), UnfinishedError)
    assert found == {n: n * n for n in range(8) if n != 1}


def test_leaving_cancels_what_has_not_begun():
    """When the one who asks stops asking, nothing more is begun."""
    hold = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        futures = []

        def submit(fn, *arguments):
            futures.append(ThreadPoolExecutor.submit(executor, fn, *arguments))
            return futures[-1]

        workers = Workers("held", lambda: Pool(submit, lambda at_once: None, 1))
        asked = finish(workers, lambda n: n == 1 or hold.wait(9), work([1, 2, 3]))
        next(asked)
        asked.close()
        hold.set()
    assert futures[-1].cancelled()


@pytest.mark.parametrize("jobs", [1, 2])
def test_threads_are_not_far_ahead(jobs):
    """What is done but not yet taken, and so would be lost in a kill, is bounded."""
    begun, taken = [], 0
    with make_executor(jobs, "threads") as executor:
        tasks = work(range(50))
        for _ in finish(executor, begun.append, tasks):
            time.sleep(0.002)  # long against the task, as when a journal is slow
            assert len(begun) <= taken + ROOM * jobs
            taken += 1
    assert taken == len(tasks)
