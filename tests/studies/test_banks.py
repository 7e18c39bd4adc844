"""Judged samples are judged as the report judges, and misses counted as they are."""

import numpy as np
import pytest

from montecarlo.attention.quantities import QUANTILES, ROW_QUANTITIES
from montecarlo.estimation.engine import SampleStore
from montecarlo.estimation.summaries import QUANTILE_RATIO, RowKey, Summaries
from montecarlo.sampling.batches import pack
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.replicates import sample
from studies.banks import (
    DIVISORS,
    estimate,
    index_chunks,
    make_row,
    pooled_value,
    read_or_draw,
    row_keys,
)

SIZE, SEED = 192, 5
PAIRS = parse_point("laplace", "laplace", 4)
ROWS = parse_point("gaussian", "gaussian", 16, 32)
PLANTED = parse_point("gaussian", "gaussian", 16, 32, "planted(0.5)")
POINTS = (PAIRS, ROWS, PLANTED)


@pytest.fixture(scope="module")
def banks():
    """A small bank of each kind of point."""
    return {c: read_or_draw(c, SEED, SIZE, None) for c in POINTS}


@pytest.mark.parametrize("point", POINTS, ids=lambda c: c.name)
def test_estimates_are_those_of_the_report(banks, point):
    """All of a bank gives every row the estimate that a study of its size gives."""
    store = SampleStore()
    store.add(point, 0, SIZE, pack(sample(point, SEED, 0, SIZE, DIVISORS)))
    summaries = Summaries(point, store.samples(point), DIVISORS)
    for key in row_keys(point):
        found = estimate(banks[point], key, np.arange(SIZE))
        expected = summaries.estimate(key)
        assert found.value == pytest.approx(expected.value, rel=1e-12), key
        low, high = expected.within
        ends = [min(max(end, low), high) for end in found.interval(1e-4)]
        assert ends == pytest.approx(list(expected.interval(1e-4))), key
        assert pooled_value(banks[point], key)[0] == found.value


@pytest.mark.parametrize("point", POINTS, ids=lambda c: c.name)
def test_many_samples_at_once_are_judged_as_one(banks, point):
    """Samples that go through NumPy together miss where each alone misses."""
    bank = banks[point]
    for key in row_keys(point):
        row = make_row(bank, key)
        (indices,) = index_chunks(SIZE, 24, 60, seed=9)
        low, high = row.sample(indices)(0.1)
        truth = row.truth if key.summary not in QUANTILES else edge_of(key, row)
        for number, some in enumerate(indices):
            alone = estimate(bank, key, some).interval(0.1)
            if key.summary in QUANTILES:
                missed = (alone.low >= truth[1], alone.high <= truth[0])
            else:
                missed = (alone.low > truth, alone.high < truth)
            together = (low[number] > row.truth, high[number] < row.truth)
            assert together == missed, key


def edge_of(key, row):
    """The lower and upper edge of the bin that a quantile of a bank lies in."""
    edges = ROW_QUANTITIES[key.quantity].grid.edges()
    return edges[int(row.truth) - 1], edges[int(row.truth)]


def test_misses_are_found(banks):
    """A truth that is off by five standard errors is missed on the right side."""
    key = RowKey("none", "score_variance", "value")
    row = make_row(banks[PAIRS], key)
    (indices,) = index_chunks(SIZE, 48, 200, seed=3)
    low, high = row.sample(indices)(0.01)
    _, error = pooled_value(banks[PAIRS], key)
    shift = 5.0 * error * np.sqrt(SIZE / 48)

    assert (high < row.truth + shift).mean() > 0.9
    assert (low > row.truth - shift).mean() > 0.9
    assert (low > row.truth).mean() < 0.1
    assert (high < row.truth).mean() < 0.1


@pytest.mark.parametrize(
    "key",
    [
        RowKey("none", "saturated", "mean"),
        RowKey("sqrt", "saturated", "mean"),
        RowKey("sqrt", "jacobian_frobenius", QUANTILE_RATIO),
        RowKey("none/sqrt", "jacobian_frobenius", QUANTILE_RATIO),
    ],
    ids=str,
)
def test_ends_are_the_report_s(key):
    """Both ends of shares and spreads are those of the estimate of each sample."""
    point = parse_point("gaussian", "gaussian", 64, 32)  # shares between 0 and 1
    bank = read_or_draw(point, SEED, SIZE, None)
    (indices,) = index_chunks(SIZE, 96, 20, seed=9)
    low, high = make_row(bank, key).sample(indices)(1e-3)
    for number, some in enumerate(indices):
        expected = estimate(bank, key, some).interval(1e-3)
        assert (low[number], high[number]) == pytest.approx(expected, rel=1e-9)


def test_a_bank_that_is_kept_is_the_one_that_was_drawn(tmp_path):
    """Read back, it has the same bytes."""
    drawn, kept = (read_or_draw(ROWS, SEED, 8, tmp_path) for _ in range(2))
    assert len(list(tmp_path.iterdir())) == 1
    assert np.array_equal(kept.means, drawn.means)
    assert all(np.array_equal(kept.bins[c], drawn.bins[c]) for c in drawn.bins)
