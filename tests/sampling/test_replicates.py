"""Replicates: the same bytes in any company, and counts that are what they say."""

import dataclasses
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.quantities import ROW_QUANTITIES
from montecarlo.attention.rows import (
    ELEMENT_ROWS,
    SPECTRAL_ROWS,
    n_costly_rows,
    n_query_rows,
)
from montecarlo.estimation.summaries import columns_of, every_key
from montecarlo.sampling import batches, replicates
from montecarlo.sampling.design_points import parse_point, stream
from montecarlo.sampling.replicates import part_column, sample
from tests.samples import every_column, sample_all

SEED = 5
ALL = tuple(DIVISORS)
N = 7
#: Few and many keys, odd lengths, one query, more scores than go through NumPy at once.
POINTS = [
    parse_point("gaussian", "gaussian", 16, 32),
    parse_point("uniform", "laplace", 1, 2),
    parse_point("student_t3", "student_t5(mean=0.5)", 7, 33),
    parse_point("rademacher", "logistic", 129, 300),
    parse_point("gaussian(std=2.0)", "gaussian", 3, 5001),
    parse_point("gaussian", "gaussian", 2, 2**18 + 1),
    parse_point("laplace", "gaussian", 33),
]
INITIALISATION = "init(kind=xavier_uniform,norm=layer,shape=fused,width=48)"
#: The same with what breaks the texts' premise, and with number formats.
FURTHER = [
    parse_point("gaussian", "gaussian", 16, 32, formats=True),
    parse_point("gaussian", "gaussian", 4, 2**13, formats=True),
    parse_point("gaussian", "gaussian", 16, 32, "planted(0.5)"),
    parse_point("laplace", "laplace(mean=0.5)", 7, 33, "planted(0.25)", formats=True),
    parse_point("rademacher", "rademacher", 16, None, "pairs(0.5)"),
    parse_point("gaussian", "gaussian", 16, None, "pairs(1.0)"),
    parse_point("gaussian", "gaussian", 16, 32, initialisation=INITIALISATION),
    parse_point("gaussian", "gaussian", 16, None, initialisation=INITIALISATION),
]
EVERY = [*POINTS, *FURTHER]
EVERY_ID = [f"{c.name};formats={c.formats}" for c in EVERY]
SMALL = POINTS[0]
IDS = [point.name for point in POINTS]


def affordable(point):
    """How many replicates of a point the tests can afford."""
    return 3 if (point.n_keys or 0) > 1000 else N


@pytest.mark.parametrize("point", EVERY, ids=EVERY_ID)
def test_one_by_one_equals_all_at_once(point):
    """A replicate gives the same bytes alone as in a batch, and counts add up."""
    n = affordable(point)
    together = sample_all(point, SEED, 0, n, ALL)
    alone = [sample_all(point, SEED, i, i + 1, ALL) for i in range(n)]

    assert together.means.tobytes() == b"".join(one.means.tobytes() for one in alone)
    for i, counts in enumerate(together.counts):
        assert np.array_equal(counts, sum(one.counts[i] for one in alone))


def test_threads_unpack_beside_each_other():
    """Also where the collector has callbacks: before Python 3.12 two headers that were
    parsed at once ended in a SystemError, without the lock some of these.
    """
    packed = batches.pack(sample_all(SMALL, SEED, 0, 1, ALL))
    gc.callbacks.append(lambda *_: sum(range(200)))
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(3) as executor:
            assert all(executor.map(lambda _: batches.join([packed]), range(300)))
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)


def test_each_replicate_has_a_v_of_its_own(monkeypatch):
    """The generator of v is asked for once a replicate, by its own index."""
    asked = []

    def record(seed, point, index, which):
        asked.append((seed, point, index, which))
        return stream(seed, point, index, which)

    monkeypatch.setattr(replicates, "stream", record)
    sample_all(SMALL, SEED, 0, 200, ("none", "sqrt"))

    assert asked == [(SEED, SMALL, index, "v") for index in range(200)]


@pytest.mark.parametrize("point", [*POINTS[:3], *FURTHER[:3]], ids=str)
def test_rows_do_not_see_each_other(point):
    """A column is the same bytes whatever other rows are asked for, or alone."""
    keys = list(every_key(point, ALL))
    every, columns = sample_all(point, SEED, 0, 3, ALL), every_column(point, ALL)
    for key in keys[:: len(keys) // 12]:
        mine = columns_of(point, [key])
        alone = sample(point, SEED, 0, 3, mine)
        for number, column in enumerate(mine.means):
            expected = every.means[:, columns.means.index(column)]
            assert np.array_equal(alone.means[:, number], expected, equal_nan=True)
        for number, column in enumerate(mine.counts):
            expected = every.counts[columns.counts.index(column)]
            assert np.array_equal(alone.counts[number], expected)


FORMATS = FURTHER[0]


@pytest.mark.parametrize("point", [FORMATS, FURTHER[3]], ids=str)
def test_number_formats_change_nothing_else(point):
    """With number formats the other columns and all counts are the same bytes."""
    plain = dataclasses.replace(point, formats=False)
    with_formats, without = (sample_all(c, SEED, 0, 3, ALL) for c in (point, plain))
    columns, fewer = every_column(point, ALL).means, every_column(plain, ALL).means

    chosen = [i for i, column in enumerate(columns) if "@" not in column[1]]
    assert [columns[i] for i in chosen] == list(fewer)
    assert with_formats.means[:, chosen].tobytes() == without.means.tobytes()
    for one, other in zip(with_formats.counts, without.counts, strict=True):
        assert np.array_equal(one, other)


def test_scores_do_not_tie_before_they_are_rounded():
    """In float64 all weights of a long row differ.  Of 16,384 scores in float32 dozens
    tie; in float64 any two of all rows do with a probability of 1e-7.
    """
    point = parse_point("gaussian", "gaussian", 16, 2**14, formats=True)
    values = sample_all(point, SEED, 0, 1, ("sqrt",)).means[0]
    found = dict(zip(every_column(point, ("sqrt",)).means, values, strict=True))

    assert found["sqrt", "format_distinct_share@float64@shifted_wide"] == 1.0
    assert found["sqrt", "format_distinct_share@float32@shifted_wide"] < 1.0


@pytest.mark.parametrize("point", POINTS[:4], ids=IDS[:4])
def test_rises_are_those_of_powers_of_cumulative_counts(point):
    """Cumulated, the rises are sums over replicates of powers of cumulative counts."""
    together = sample_all(point, SEED, 0, N, ALL).counts
    alone = [sample_all(point, SEED, i, i + 1, ALL).counts for i in range(N)]
    for i, counts in enumerate(together):
        below = [np.cumsum(one[i][0]) for one in alone]
        rows = [one[-1] for one in below]
        powers = [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (1, 2)]
        for risen, (power, of_rows) in zip(counts, powers, strict=False):
            expected = sum(
                c**power * m**of_rows for c, m in zip(below, rows, strict=True)
            )

            assert np.array_equal(np.cumsum(risen), expected)
            assert risen.dtype == np.int64


@pytest.mark.parametrize("point", EVERY, ids=EVERY_ID)
def test_every_row_is_counted_once(point):
    """Each histogram counts every row that its quantity has."""
    n = affordable(point)
    batch = sample_all(point, SEED, 0, n, ALL)
    columns = every_column(point, ALL).means
    n_queries = point.shape[0]
    for (divisor, name), (number, *_) in zip(
        every_column(point, ALL).counts, batch.counts, strict=True
    ):
        most = {
            "jacobian_spectral": n_costly_rows(SPECTRAL_ROWS, point.n_keys),
            "element_gradient": n_costly_rows(ELEMENT_ROWS, point.n_keys),
            "gradient_query": n_query_rows(point.n_keys),
        }.get(name.partition("_saturated")[0], n_queries)
        values = n * min(most, n_queries)
        if ROW_QUANTITIES[name].given:
            column = columns.index((divisor, part_column(name, "rows")))
            values = round(values * batch.means[:, column].mean())
        if name == "element_gradient":  # each element of the first rows
            values *= point.n_keys
        assert number.sum() == values
