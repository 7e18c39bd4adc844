"""The engine: which replicates it asks for, when it stops, and what stops it."""

from collections import Counter
from concurrent.futures import Executor, Future
from functools import partial
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from montecarlo.estimation import engine
from montecarlo.estimation.engine import (
    BATCH_SECONDS,
    Budget,
    Plan,
    SampleStore,
    run,
)
from montecarlo.sampling.batches import Batch, join
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.replicates import Columns
from montecarlo.study import executors
from montecarlo.study.executors import finish

SMALL = parse_point("gaussian", "gaussian", 2, 4)
MEDIUM = parse_point("gaussian", "gaussian", 256, 32)
LARGE = parse_point("gaussian", "gaussian", 4096, 128)


class FakeExecutor(Executor):
    """Runs what is submitted at once, in this thread, and keeps the futures."""

    def __init__(self, broken=()):
        self.tasks = []
        self.futures = []
        self.broken = broken  # numbers of the tasks that fail; the others then wait

    def submit(self, fn, /, *args, **kwargs):
        """Run a task, or fail it, or leave it waiting."""
        future = Future()
        number = len(self.futures)
        self.tasks.append(args)
        self.futures.append(future)
        if number in self.broken:
            future.set_exception(ZeroDivisionError("planted"))
        elif not self.broken:
            future.set_result(fn(*args, **kwargs))
        return future


class FailingExecutor(FakeExecutor):
    """Fails the first batch of some points."""

    def __init__(self, *failing):
        super().__init__()
        self.failing = failing

    def submit(self, fn, /, *args):
        """Run a task, or fail it."""
        if args[0] not in self.failing or args[2] != 0:
            return super().submit(fn, *args)
        future = Future()
        future.set_exception(ZeroDivisionError("planted"))
        return future


@pytest.fixture(autouse=True)
def _no_sampling(monkeypatch):
    """Replicates are their own index: the engine is looked at, not the sampler; three
    are a batch.
    """

    def number(_point, _seed, first, last, _divisors):
        return Batch(np.arange(first, last, dtype=np.float64)[:, np.newaxis], ())

    monkeypatch.setattr(engine, "sample", number)
    monkeypatch.setattr(
        engine, "replicate_seconds", lambda *_: engine.BATCH_SECONDS / 3
    )


def plan_of(*points, first=4, most=16):
    """A plan with the same budget for each point."""
    return Plan(
        dict.fromkeys(points, Budget(first, most)),
        1,
        dict.fromkeys(points, Columns(())),
    )


def run_with(plan, store, executor, *more):
    """Run with an executor."""
    return run(plan, store, partial(finish, executor), *more)


def watch(decided):
    """A function that says what is undecided, and what it saw when it was asked."""
    seen = []

    def undecided(store):
        seen.append({c: store.n_replicates(c) for c in store._batches})
        return decided(len(seen))

    return undecided, seen


@pytest.mark.parametrize(
    ("budget", "analyses"),
    [((4, 16), (4, 8, 16)), ((3, 20), (3, 6, 12)), ((5, 5), (5,)), ((5, 9), (5,))],
)
def test_analyses_double(budget, analyses):
    """Looks double from the first on and never exceed the budget."""
    assert Budget(*budget).analyses() == analyses


def test_rounds_double_until_the_budget_is_spent():
    """A point that stays undecided is looked at 4, 8 and 16 replicates."""
    store = SampleStore()
    undecided, seen = watch(lambda number: [SMALL])
    run_with(plan_of(SMALL), store, FakeExecutor(), undecided)

    assert [one[SMALL] for one in seen] == [4, 8, 16]
    assert join(store.packed(SMALL)).means[:, 0].tolist() == list(range(16))


def test_only_the_undecided_get_more():
    """Each point stops on its own; what is not in the plan is never sampled."""
    undecided, seen = watch(lambda number: [MEDIUM, LARGE])
    run_with(plan_of(SMALL, MEDIUM), SampleStore(), FakeExecutor(), undecided)

    assert seen[-1] == {SMALL: 4, MEDIUM: 16}


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    start=st.integers(0, 50),
    more=st.integers(1, 60),
    batch=st.none() | st.integers(1, 70),
    point=st.sampled_from([SMALL, MEDIUM, LARGE]),
)
def test_batches_are_a_partition(start, more, batch, point):
    """Batches are not empty, join without gap or overlap, and are not too large."""
    seconds = replicate_seconds if batch is None else lambda *_: BATCH_SECONDS / batch
    with mock.patch.object(engine, "replicate_seconds", seconds):
        batches = list(plan_of(point).batches(point, range(start, start + more)))

    assert [i for one in batches for i in one] == list(range(start, start + more))
    assert all(batches)
    assert batch is None or max(map(len, batches)) <= batch


@pytest.mark.parametrize("order", ["first", "last", "shuffled"])
def test_order_of_completion_does_not_matter(monkeypatch, order):
    """Whatever comes back first, replicates stand in the order of their index."""
    rng = np.random.default_rng(48)
    taken = []

    class Done(list):
        """Futures that are done, taken in an order of our own."""

        put = list.append

        def get(self):
            """Take one."""
            at = {"first": 0, "last": -1, "shuffled": rng.integers(len(self))}
            taken.append(at[order])
            return self.pop(at[order])

    monkeypatch.setattr(executors, "SimpleQueue", Done)
    store = SampleStore()
    run_with(
        plan_of(SMALL, MEDIUM), store, FakeExecutor(), lambda store: [SMALL, MEDIUM]
    )

    assert len(taken) == 2 * 7
    for point in (SMALL, MEDIUM):
        assert join(store.packed(point)).means[:, 0].tolist() == list(range(16))


def test_others_finish_when_a_point_fails():
    """What failed is returned at the end: the first batch, and why."""
    store = SampleStore()
    seen = []

    def undecided(store):
        seen.append(set(store._batches))
        return [SMALL, MEDIUM]

    wanted = Counter()
    failures = run_with(
        plan_of(SMALL, MEDIUM),
        store,
        FailingExecutor(MEDIUM),
        undecided,
        lambda point, _, more: wanted.update({point: more}),
    )

    assert set(failures) == {MEDIUM}
    indices, error = failures[MEDIUM]
    assert indices == range(3)
    assert isinstance(error, ZeroDivisionError)
    assert store.n_replicates(SMALL) == 16
    assert store.n_replicates(MEDIUM) == 1  # of its first analysis, and of no other
    assert len(seen) == 3
    assert wanted == {SMALL: 16, MEDIUM: 4}


def test_interruption_cancels_the_rest():
    """A keyboard interrupt in the progress bar leaves no work behind."""
    executor = FakeExecutor(broken=(99,))  # no task ends
    executor.futures.append(Future())
    executor.futures[0].set_result(None)

    def interrupt(_point, finished, _wanted):
        if finished:
            raise KeyboardInterrupt

    def submit(fn, /, *args):
        future = FakeExecutor.submit(executor, fn, *args)
        if len(executor.futures) == 2:
            future.set_result(fn(*args))
        return future

    executor.submit = submit
    with pytest.raises(KeyboardInterrupt):
        run_with(plan_of(SMALL), SampleStore(), executor, list, interrupt)

    assert [future.cancelled() for future in executor.futures[2:]] == [True]
