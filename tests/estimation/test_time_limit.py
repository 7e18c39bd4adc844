"""The engine under a time limit, and sampling again what a limited run had sampled."""

from functools import partial

import numpy as np
import pytest

from montecarlo.estimation.engine import LEAST, Budget, Plan, SampleStore, run
from montecarlo.sampling.design_points import parse_point
from montecarlo.study.executors import finish, make_executor
from tests.samples import every_column, sample_all

POINTS = tuple(parse_point("gaussian", "gaussian", d_k, 4) for d_k in (1, 2, 3))
DIVISORS = ("sqrt",)
PLAN = Plan(
    dict.fromkeys(POINTS, Budget(8, 16)),
    1,
    {point: every_column(point, DIVISORS) for point in POINTS},
    batch=3,
    limited=True,
)


def asked_until(times):
    """A clock that says yes so many times, and then no."""
    left = iter([True] * times)
    return lambda: next(left, False)


def run_for(times):
    """Run the plan while that clock says yes: what was sampled, and if it sufficed."""
    store, in_time = SampleStore(), asked_until(times)
    with make_executor(1) as workers:
        done = partial(finish, workers)
        sufficed, failures = run(PLAN, store, done, lambda _: POINTS, in_time=in_time)
    assert not failures
    return store, sufficed


@pytest.mark.parametrize("times", [0, 1, 5, 12, 14])
def test_time_that_runs_out(times):
    """At least two replicates, in order, those of a longer run."""
    store, sufficed = run_for(times)
    numbers = {c: store.n_replicates(c) for c in POINTS}

    assert not sufficed
    assert min(numbers.values()) >= LEAST
    assert sum(numbers.values()) < 16 * len(POINTS)
    for point, n in numbers.items():
        expected = sample_all(point, 1, 0, n, DIVISORS).means
        assert np.array_equal(store.samples(point).means, expected)


def test_more_time_more_replicates():
    """The time is used; where it suffices, that is said."""
    found = []
    for times in (0, 8, 1000):
        store, sufficed = run_for(times)
        found.append((sum(map(store.n_replicates, POINTS)), sufficed))

    numbers = [number for number, _ in found]
    assert numbers == sorted(set(numbers))
    assert found[-1] == (16 * len(POINTS), True)
