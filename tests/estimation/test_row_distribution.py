"""Quantiles over rows: against brute force over raw values, and at the grid's ends."""

import math

import numpy as np
import pytest
import scipy.stats

from montecarlo.attention.grids import DEEP, FINE, LogGrid
from montecarlo.attention.quantities import QUANTILES
from montecarlo.estimation.estimates import log_log_slope, ratio
from montecarlo.estimation.intervals import hall_quantile
from montecarlo.estimation.row_distribution import quantile_estimate, row_distribution
from montecarlo.sampling.replicates import count_bins, count_some

GRID = LogGrid((-3.0, 3.0), (200,))
#: One bin of GRID, as a factor.
BIN = 10.0 ** (1 / 200)
N, ROWS = 40, 64
LEVELS = (0.1, 0.5, 0.9)


def draw_values(rng, n=N, rows=ROWS):
    """Row values that share a factor within each replicate."""
    shared = rng.normal(scale=0.5, size=(n, 1))
    return np.exp(shared + rng.normal(size=(n, rows)))


def distribution_of(values, grid=GRID):
    """The estimated distribution of raw values, shape (n_replicates, n_rows)."""
    return row_distribution(
        count_bins(grid.bins(values), grid.n_bins), grid, len(values)
    )


VALUES = draw_values(np.random.default_rng(43))


def test_share_and_error_are_those_of_raw_values():
    """At every edge, by replicates and not by rows."""
    rows = distribution_of(VALUES)
    below = VALUES[..., np.newaxis] <= rows.edges  # no value lies on an edge
    per_replicate = below.mean(axis=1)

    assert rows.share == pytest.approx(per_replicate.mean(axis=0), abs=1e-12)
    variance = per_replicate.var(axis=0, ddof=1) / N
    inside = (rows.share * VALUES.size + 0.5) / (VALUES.size + 1)
    least = inside * (1.0 - inside) / VALUES.size  # that of independent rows
    # the variance is a difference of two numbers of order 1, known to 1e-16
    expected = np.maximum(variance, least)
    assert rows.error**2 == pytest.approx(expected, abs=1e-15)
    error = np.sqrt(variance)
    middle = np.abs(rows.share - 0.5) < 0.2
    naive = np.sqrt(rows.share * (1.0 - rows.share) / VALUES.size)
    assert (error[middle] > 1.5 * naive[middle]).all()


def test_replicates_that_agree_by_chance_are_not_believed():
    """No spread, and still no sharp quantile."""
    twice = np.repeat(VALUES[:1], 2, axis=0)
    low, high = quantile_estimate(distribution_of(twice), 0.5).interval(1e-5)
    assert low == 0.0
    assert high == math.inf
    few = VALUES[:32, :1]  # all below the true 90 % quantile once in 0.9**-32 = 29 runs
    assert quantile_estimate(distribution_of(few), 0.9).interval(1e-6).high == math.inf


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("error_rate", [0.025, 1e-4])
def test_quantile_is_that_of_raw_values(level, error_rate):
    """Value and interval, to a bin, by inverting at raw values."""
    places = np.sort(VALUES.ravel())
    per_replicate = (VALUES[..., np.newaxis] <= places).mean(axis=1)
    share = per_replicate.mean(axis=0)
    inside = (share * VALUES.size + 0.5) / (VALUES.size + 1)
    error = np.maximum(
        scipy.stats.sem(per_replicate), np.sqrt(inside * (1.0 - inside) / VALUES.size)
    )
    third = ((per_replicate - share) ** 3).mean(axis=0)
    binomial = inside * (1.0 - inside) / VALUES.size
    spread = np.maximum(per_replicate.var(axis=0), N * binomial)
    per_root = third / spread**1.5 / math.sqrt(N)
    t = scipy.stats.t.isf(error_rate, N - 1)
    low, value, high = (
        places[(curve >= level).argmax()] if (curve >= level).any() else math.inf
        for curve in (
            share - np.minimum(-t, hall_quantile(-t, per_root)) * error,
            share,
            share - np.maximum(t, hall_quantile(t, per_root)) * error,
        )
    )
    estimate = quantile_estimate(distribution_of(VALUES), level)
    found = estimate.interval(error_rate)

    assert estimate.value == pytest.approx(value, rel=BIN - 1.0)
    assert found.low <= low * BIN
    assert low <= found.low * BIN**2  # ends may be rounded outwards to whole bins
    assert found.high == pytest.approx(high, rel=BIN**2 - 1.0)
    assert found.low < estimate.value < found.high


@pytest.mark.parametrize("level", [0.10125, 0.3705, 0.50125, 0.9005])
def test_quantiles_lie_within_their_bins(level):
    """Found to a hundredth of a bin, wherever in its bin it lies."""
    even = 10.0 ** np.linspace(-1.0, 1.0, 20 * 2000, endpoint=False)
    rows = distribution_of(even.reshape(2000, 20).T)
    exact = 10.0 ** (2.0 * level - 1.0)

    found = quantile_estimate(rows, level).value
    assert found == pytest.approx(exact, rel=(BIN - 1.0) / 50.0)


@pytest.mark.parametrize("name", QUANTILES)
def test_quantiles_have_the_level_that_they_are_named_by(name):
    """Of N independent uniform values the one of rank k has a beta distribution with k
    and N + 1 - k: the estimate lies within its 1e-7 and 1 - 1e-7 quantiles (false alarm
    2e-7 each, 6e-7 for the three), which are so near that a level off by a hundredth
    shows.
    """
    level = {"q10": 0.1, "median": 0.5, "q90": 0.9}[name]
    values = np.random.default_rng(49).random((200, 1000))
    rank = math.ceil(level * values.size)
    exact = scipy.stats.beta(rank, values.size + 1 - rank)
    low, high = exact.ppf(1e-7), exact.isf(1e-7)
    rows = distribution_of(values, FINE)

    assert low <= quantile_estimate(rows, QUANTILES[name]).value <= high
    for off in (-0.01, 0.01):
        assert not low <= quantile_estimate(rows, level + off).value <= high


def test_values_beyond_the_grid():
    """Below and above it the interval holds the true value all the same."""
    for factor in (1e-8, 1e8):
        values = factor * VALUES
        for level in LEVELS:
            true = np.quantile(values, level)
            low, high = quantile_estimate(distribution_of(values), level).interval(0.3)
            assert low <= true <= high


def draw_some(rng, n=N, rows=ROWS):
    """Row values of which a number is missing that differs by replicate."""
    values = draw_values(rng, n, rows)
    part = rng.uniform(0.1, 0.9, size=(n, 1))
    return np.where(rng.random((n, rows)) < part, values * (0.5 + part), np.nan)


def distribution_of_some(values, grid=GRID):
    """The estimated distribution of the values that are there."""
    return row_distribution(count_some(values, grid), grid, len(values))


def test_share_of_some_rows_is_a_ratio():
    """Share, error and skewness of a ratio of sums of raw values."""
    values = draw_some(np.random.default_rng(47))
    rows = distribution_of_some(values)
    m = (~np.isnan(values)).sum(axis=1)[:, np.newaxis]
    below = (values[..., np.newaxis] <= rows.edges).sum(axis=1)
    share = below.sum(axis=0) / m.sum()
    moved = (below - share * m) / m.mean()  # what a replicate moves the share by
    inside = (share * m.sum() + 0.5) / (m.sum() + 1)
    least = inside * (1.0 - inside) / m.sum()
    expected = np.maximum(np.square(moved).sum(axis=0) / (N * (N - 1)), least)
    spread = np.maximum(np.square(moved).mean(axis=0), N * least)

    assert np.ptp(m) > ROWS / 2
    assert rows.share == pytest.approx(share, abs=1e-12)
    assert rows.error**2 == pytest.approx(expected, abs=1e-15)
    third = (moved**3).mean(axis=0)
    assert rows.skewness == pytest.approx(third / spread**1.5, abs=1e-6)
    middle = np.abs(share - 0.5) < 0.2
    each = (below / m).std(axis=0, ddof=1) / math.sqrt(N)
    assert not np.allclose(rows.error[middle], each[middle], rtol=0.02)


def test_what_is_known_to_a_bin_has_no_error_of_its_own():
    """Rows of nearly one value: the interval is a bin, whatever the replicates."""
    rng = np.random.default_rng(62)
    for n in (N, 16 * N):
        values = 0.7 * (1.0 + 1e-6 * rng.standard_normal((n, ROWS)))
        estimate = quantile_estimate(distribution_of(values), 0.5)
        low, high = estimate.interval(0.025)
        assert estimate.is_binned
        assert math.isnan(estimate.reported_error)
        assert low <= 0.7 <= high
        assert high / low == pytest.approx(BIN)
        assert estimate.times(3.0).is_binned
        assert ratio(estimate, estimate).is_binned
        assert log_log_slope((1.0, 2.0), [estimate, estimate]).is_binned
    spread = quantile_estimate(distribution_of(VALUES), 0.5)
    assert not spread.is_binned
    assert spread.reported_error == spread.std_error > 0.0


def test_a_bin_beside_the_end_of_a_range_has_no_error_of_its_own():
    """Rows of which one in ten has more than the least that there can be: whether the
    quantile is that, or in the bin above it, is open; the bin below holds nothing.
    """
    rng = np.random.default_rng(64)
    values = np.where(rng.random((N, ROWS)) < 0.1, 1.0 + 1e-6, 1.0)
    ends = [10.0 ** (place / 512.0) for place in (-1, 1)]
    grid = LogGrid((-7.0, 7.0), (512,))
    estimate = quantile_estimate(distribution_of(values, grid), 0.9)
    assert estimate.interval(0.025) == pytest.approx(ends)
    assert not estimate.is_binned
    cut = estimate.in_range((1.0, 128.0))
    assert cut.interval(0.025) == pytest.approx([1.0, ends[1]])
    assert math.isnan(cut.reported_error)


def test_a_quantile_near_its_top_is_known():
    """Counted by the distance from it: 1 - x is 0.002 (1 + 0.1 z), of which the 10 %
    quantile of x is known to 1e-5; on a grid without a top it is to a bin of 3.7 %.
    """
    rng = np.random.default_rng(63)
    values = 1.0 - 0.002 * (1.0 + 0.1 * rng.standard_normal((200, 64)))
    true = 1.0 - 0.002 * (1.0 + 0.1 * 1.2815515655446004)
    grid = LogGrid(DEEP.ends, DEEP.per_decade, 1.0)
    low, high = quantile_estimate(distribution_of(values, grid), 0.1).interval(1e-6)
    assert low <= true <= high <= low + 5e-5
    coarse = LogGrid((-60.0, 4.0), (64,))
    coarse = quantile_estimate(distribution_of(values, coarse), 0.1)
    assert coarse.is_binned
