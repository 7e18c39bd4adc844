"""Estimates differ from exact theory as much as their errors say: no more, no less.

One row per point, chosen by a hash of the point's name among those that have an
exact reference, with a fixed number of replicates.  The distance to the reference in
standard errors follows Student's t; brought to N(0, 1) through its distribution
function, the distances are tested for spread (the sum of their squares is chi-square
with as many degrees of freedom as points, two-sided) and for distribution
(Kolmogorov-Smirnov).

Each test has a false-alarm rate of FALSE_ALARM, so that the file fails by chance at
fewer than 1 in 100,000 seeds, if means of replicates are normal.  They are nearly:
a skewness γ moves the distances by γ/(2 sqrt R), and what that does to the sum of
squares is far below its own spread.
"""

import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import scipy.stats
from threadpoolctl import threadpool_limits

from montecarlo.claims.running import find_reference
from montecarlo.estimation.engine import Budget, Plan, run
from montecarlo.estimation.samples import SampleStore
from montecarlo.estimation.summaries import Summaries, has_interval, row_keys
from montecarlo.sampling.design_points import parse_point
from montecarlo.study.presets import Grid
from montecarlo.study.table import FAR_BELOW
from montecarlo.study.tasks import finish

FALSE_ALARM = 4e-6
REPLICATES = 128
DIVISORS = ("none", "sqrt")
SEED = 20
#: What a test must see: errors that are a fifth too small, or a common shift.
TOO_WIDE, SHIFT = 1.25, 0.5
#: Fewer than this would not see them (`test_power`).
FEWEST = 480

DIMENSIONS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
GRID = Grid(
    d_k=DIMENSIONS,
    n_keys=(3, 4, 6, 8, 12, 16, 24, 32),
    distribution_d_k=DIMENSIONS,
    distribution_n_keys=(8, 20),
    divisors=DIVISORS,
)
#: Queries of one distribution and keys of another.
MIXED = [
    parse_point(distribution, "gaussian", d_k, n_keys)
    for distribution in ("rademacher", "uniform")
    for d_k in DIMENSIONS
    for n_keys in (None, 4, 10, 16, 28)
]


def chosen_row(point):
    """The row of a point that is looked at, with its exact value, or None."""
    rows = [
        (key, exact)
        for key in row_keys(point, DIVISORS)
        if has_interval(point, key.quantity)
        and (exact := find_reference(point, key)) is not None
    ]
    if not rows:
        return None
    digest = hashlib.sha256(f"row of {point.name}".encode()).digest()
    return rows[int.from_bytes(digest[:8], "big") % len(rows)]


def measure_distances(points, seed):
    """Distances to the references, brought to N(0, 1); one per point."""
    store = SampleStore()
    budgets = dict.fromkeys(points, Budget(REPLICATES, REPLICATES))
    with ThreadPoolExecutor(2) as executor, threadpool_limits(1, "blas"):
        plan, work = Plan(budgets, seed, DIVISORS), partial(finish, executor)
        run(plan, store, work, lambda store: ())
    distances = {}
    for point in points:
        chosen = chosen_row(point)
        if chosen is None:
            continue
        key, exact = chosen
        found = Summaries(point, store.samples(point), DIVISORS).estimate(key)
        assert found.n_replicates == REPLICATES
        assert exact.error <= FAR_BELOW * found.std_error, (point, key)
        z = (found.value - exact.value) / found.std_error
        distances[point, key] = to_normal(z)
    return distances


def to_normal(z):
    """Bring Student's t to N(0, 1), from the nearer tail so that nothing is lost."""
    tail = scipy.stats.t.sf(abs(z), REPLICATES - 1)
    return math.copysign(scipy.stats.norm.isf(tail), z)


def p_values(u):
    """Probability, under N(0, 1), of a spread and of a distribution as far off or
    further.
    """
    below = scipy.stats.chi2.cdf(np.square(u).sum(), len(u))
    above = scipy.stats.chi2.sf(np.square(u).sum(), len(u))
    return {
        "spread": min(1.0, 2.0 * min(below, above)),
        "distribution": scipy.stats.kstest(u, "norm").pvalue,
    }


def passes(u):
    """Tell whether distances look like N(0, 1)."""
    return min(p_values(u).values()) > FALSE_ALARM


def points_of_the_test():
    """The points whose rows are looked at."""
    return [c for c in [*GRID.points(), *MIXED] if chosen_row(c) is not None]


@pytest.mark.slow
def test_distances_are_standard_normal():
    """Distances to exact values follow N(0, 1); a quarter wider or half an error moved
    they do not, nor when a quarter narrower.
    """
    distances = measure_distances(points_of_the_test(), SEED)
    u = np.array(list(distances.values()))

    assert len(u) >= FEWEST
    worst = sorted(distances.items(), key=lambda item: -abs(item[1]))[:3]
    assert passes(u), (p_values(u), worst)
    assert not passes(TOO_WIDE * u)
    assert not passes(u / TOO_WIDE)
    assert not passes(u + SHIFT)


def test_power():
    """Of 400 samples of N(0, 1) of the size of the test above at least 98 % pass; of
    ones that are too wide, too narrow or shifted at least 97 % fail.
    """
    samples = np.random.default_rng(49).normal(size=(400, FEWEST))

    assert np.mean([passes(u) for u in samples]) > 0.98
    for wrong in (
        lambda u: TOO_WIDE * u,
        lambda u: u / TOO_WIDE,
        lambda u: u + SHIFT,
    ):
        assert np.mean([not passes(wrong(u)) for u in samples]) > 0.97


def test_rows_of_every_kind_are_chosen():
    """The choice reaches all quantities with a reference, pairs and rows, every divisor
    and every distribution that has a reference.
    """
    chosen = {c: chosen_row(c)[0] for c in points_of_the_test()}

    assert len(chosen) >= FEWEST
    assert len({key.quantity for key in chosen.values()}) >= 16
    assert {key.divisor for key in chosen.values()} == set(DIVISORS)
    assert {c.n_keys is None for c in chosen} == {True, False}
    assert len({c.distribution_k for c in chosen}) >= 7
