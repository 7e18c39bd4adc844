"""Estimates against closed forms, brute force and SciPy."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from montecarlo.attention.quantities import RECIPROCAL, SHARE
from montecarlo.estimation.estimates import (
    POINTWISE,
    Estimate,
    bounded_estimate,
    jackknife,
    log_log_slope,
    mean_estimate,
    median_estimate,
    ratio,
    share_estimate,
)
from montecarlo.estimation.intervals import Interval

VALUES = np.random.default_rng(41).lognormal(size=23)
#: Relative: the two sides differ by rounding.
CLOSE = 1e-12


def test_scaled_estimate():
    """Times a factor, value, error and interval are that many times as large."""
    estimate = mean_estimate(np.tile(VALUES, 8))  # few would have no finite interval
    doubled = estimate.times(2.0)
    ends = [2.0 * end for end in estimate.interval(1e-4)]

    assert np.isfinite(ends).all()
    assert [*doubled.interval(1e-4)] == pytest.approx(ends, rel=CLOSE)
    bounded = Estimate(1.0, 1.0, 9, bounds=estimate.interval)
    assert bounded.times(2.0).interval(1e-4) == doubled.interval(1e-4)


def test_jackknife_is_leaving_one_out():
    """Value and error, with the correction of bias, are those of a loop."""
    moments = np.stack([VALUES, np.roll(VALUES, 1) + 1.0])
    n = len(VALUES)
    left_out = []
    for i in range(n):
        kept = np.delete(moments, i, axis=1).mean(axis=1)
        left_out.append(kept[0] / kept[1])
    whole = moments[0].mean() / moments[1].mean()
    estimate = jackknife(moments, lambda m: m[0] / m[1])

    assert estimate.value == pytest.approx(n * whole - (n - 1) * np.mean(left_out))
    spread = np.square(left_out - np.mean(left_out)).sum()
    bias = (n - 1) * (np.mean(left_out) - whole)
    expected = math.sqrt((n - 1) / n * spread + bias**2)
    assert estimate.std_error == pytest.approx(expected)
    assert estimate.n_replicates == n


def test_interval_is_made_on_its_scale():
    """That of one over the kurtosis, turned back; open where it may be 0."""
    values = np.tile(VALUES, 8)
    moments = np.stack([values + 5.0, np.ones_like(values)])
    plain = jackknife(moments, lambda m: m[0] / m[1] ** 2)
    reciprocal = jackknife(moments, lambda m: -1.0 / (m[0] / m[1] ** 2 + 3.0))
    scaled = jackknife(moments, lambda m: m[0] / m[1] ** 2, RECIPROCAL)
    low, high = reciprocal.interval(0.05)

    assert (scaled.value, scaled.std_error) == (plain.value, plain.std_error)
    expected = (-1.0 / low - 3.0, -1.0 / high - 3.0)
    assert scaled.interval(0.05) == pytest.approx(expected, rel=CLOSE)
    assert scaled.interval(0.05).high > plain.interval(0.05).high
    assert RECIPROCAL.back(np.array([0.0, 0.1])) == pytest.approx(math.inf)


ESTIMATES = st.builds(
    lambda value, error: Estimate(value, value * error, 64),
    st.floats(1e-3, 1e3),
    st.floats(0.0, 0.5),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(over=ESTIMATES, under=ESTIMATES, error_rate=st.floats(1e-6, 0.2))
def test_ratio_holds_every_corner(over, under, error_rate):
    """Its interval is that of the corners of the two intervals."""
    low, high = ratio(over, under).interval(error_rate)
    above, below = (
        [max(0.0, end) for end in part.interval(0.5 * error_rate)]
        for part in (over, under)
    )
    corners = [a / b if b > 0.0 else math.inf for a in above for b in below if a or b]

    assert low == pytest.approx(min(corners), rel=1e-9)
    assert high == pytest.approx(max(corners), rel=1e-9)
    value = over.value / under.value
    assert ratio(over, under).value == pytest.approx(value, rel=1e-9)
    assert low <= value * (1 + 1e-9)
    assert high >= value * (1 - 1e-9)


@pytest.mark.parametrize(
    ("over", "under", "expected", "ends"),
    [(0.0, 0.0, math.nan, (0.0, math.inf)), (1.0, 0.0, math.inf, (math.inf, math.inf))],
)
def test_ratio_over_zero(over, under, expected, ends):
    """0 over 0 may be anything; what is not 0 over 0 is infinite."""
    found = ratio(Estimate(over, 0.0, 64), Estimate(under, 0.0, 64))
    assert found.value == pytest.approx(expected, nan_ok=True)
    assert found.interval(0.025) == ends


def clopper_pearson(hits, rows, error_rate):
    """SciPy's exact interval of a probability."""
    found = scipy.stats.binomtest(hits, rows).proportion_ci(1.0 - 2.0 * error_rate)
    return found.low, found.high


def share_by_hand(hits, n_rows, error_rate):
    """Value and interval of a share, where there is no skewness."""
    n, rows = len(hits), n_rows * len(hits)
    value = sum(hits) / rows
    inside = (sum(hits) + 0.5) / (rows + 1)
    floor = math.sqrt(inside * (1.0 - inside) / rows)
    error = max(np.std(np.array(hits) / n_rows, ddof=1) / math.sqrt(n), floor)
    half = scipy.stats.t.isf(error_rate, n - 1) * error
    low, high = clopper_pearson(sum(hits), rows, error_rate)
    return value, (min(low, value - half), max(high, value + half))


@pytest.mark.parametrize("error_rate", [0.025, 1e-6])
@pytest.mark.parametrize(
    "hits",
    [[0] * 200, [64] * 200, [1] * 200, [0, 64] * 8, [31, 33] * 100, [3] * 4, [0, 0]],
    ids=lambda hits: f"{hits[:2]}x{len(hits)}",
)
def test_share(hits, error_rate):
    """The exact binomial interval, or the t interval if wider; the error is as wide."""
    estimate = share_estimate(np.array(hits) / 64.0, 64)
    value, ends = share_by_hand(hits, 64, error_rate)

    assert estimate.value == value
    assert estimate.n_replicates == len(hits)
    assert estimate.interval(error_rate) == pytest.approx(ends, rel=1e-9, abs=1e-15)
    _, (low, high) = share_by_hand(hits, 64, POINTWISE)
    t = scipy.stats.t.isf(0.025, len(hits) - 1)
    assert estimate.std_error == pytest.approx((high - low) / (2.0 * t), rel=1e-9)


def misses(p, n, error_rate):
    """Exact probabilities that the interval of n rows misses the share, by side."""
    sides = np.zeros(2)
    for hits, weight in enumerate(scipy.stats.binom.pmf(np.arange(n + 1), n, p)):
        low, high = share_estimate(np.arange(n) < hits, 1).interval(error_rate)
        sides += weight * np.array([high < p, low > p])
    return sides


@pytest.mark.parametrize("p", [0.001, 0.01, 0.04, 0.2, 0.5, 0.9, 0.99])
def test_share_of_independent_rows_misses_as_seldom_as_it_says(p):
    """Over all outcomes, on each side."""
    assert (misses(p, 64, 0.025) <= 0.025).all()
    assert (misses(p, 64, 1e-3) <= 1e-3).all()


@pytest.mark.parametrize("p", [0.001, 0.01, 0.05, 0.99])
def test_rare_values_of_a_bounded_mean_are_allowed_for(p):
    """Over all outcomes of 64 values, -1 or 2."""
    for error_rate in (0.025, 1e-3):
        sides = np.zeros(2)
        for hits, weight in enumerate(scipy.stats.binom.pmf(np.arange(65), 64, p)):
            values = 3.0 * (np.arange(64) < hits) - 1.0
            estimate = bounded_estimate(values, (-1.0, 2.0))
            low, high = ((1.0 + x) / 3.0 for x in estimate.interval(error_rate))
            sides += weight * np.array([high < p, low > p])
        assert (sides <= error_rate).all()


def test_bounded_mean_of_values_that_agree_is_not_certain():
    """All replicates alike: the interval is Hoeffding's, the error as wide as it."""
    estimate = bounded_estimate(np.ones(32), SHARE)
    low, high = estimate.interval(1e-6)

    assert (low, high) == (pytest.approx(1.0 - math.sqrt(math.log(1e6) / 64.0)), 1.0)
    t = scipy.stats.t.isf(0.025, 31)
    width = math.sqrt(math.log(40.0) / 64.0)
    assert estimate.std_error == pytest.approx(width / (2.0 * t), rel=1e-9)


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (0.99, 0.1, (0.79, 1.0)),
        (0.01, 0.1, (0.0, 0.21)),
        (0.5, 1.0, (0.0, 1.0)),
        (0.5, math.nan, (math.nan, math.nan)),
    ],
)
def test_an_interval_ends_with_its_range(value, error, expected):
    """What lies beyond is cut off; the standard error stays."""
    plain = Estimate(value, error, 2**20)
    estimate = plain.in_range(SHARE)

    assert estimate.interval(0.025) == pytest.approx(expected, abs=0.01, nan_ok=True)
    assert (estimate.value, estimate.n_replicates) == (value, 2**20)
    assert estimate.std_error == pytest.approx(error, nan_ok=True)
    assert Estimate(1.0 + 1e-9, error, 2).in_range(SHARE).value == 1.0


def test_a_mean_is_known_no_better_than_it_is_rounded():
    """Eight last places are the least error."""
    values = 1.0 + 2.0**-52 * np.tile([0.0, 1.0], 2**12)
    assert mean_estimate(values).std_error == pytest.approx(2.0**-50)
    assert mean_estimate(np.ones(8)).std_error == 0.0
    varied = mean_estimate(VALUES)
    error = VALUES.std(ddof=1) / math.sqrt(len(VALUES))
    assert varied.std_error == pytest.approx(error)


SEEDS = np.arange(1.0, 49.0)


@pytest.mark.parametrize("error_rate", [0.025, 1e-3, 1.6e-6])
def test_ends_are_those_of_the_sign_test(error_rate):
    """The lower end is the first value that the one-sided sign test cannot exclude."""
    low, high = median_estimate(SEEDS).interval(error_rate)
    kept = [
        value
        for number, value in enumerate(SEEDS, start=1)  # so many do not exceed it
        if binomtest(number, len(SEEDS), 0.5, "less").pvalue > error_rate
    ]
    assert low == kept[0]
    assert low + high == SEEDS[0] + SEEDS[-1]


def test_never_is_a_number_of_steps_like_others():
    """A minority of infinite values moves no finite end; a majority is the median."""
    values = SEEDS.copy()
    values[-8:] = math.inf
    found = median_estimate(values)
    assert (found.value, found.interval(0.025)) == (24.5, (17.0, 32.0))
    assert median_estimate(np.where(SEEDS > 20.0, math.inf, SEEDS)).value == math.inf


def test_what_could_be_anything_counts_against_both_ends():
    """Of a ratio of two infinite numbers nothing is known: the interval widens."""
    values = SEEDS.copy()
    values[:4] = math.nan
    low, high = median_estimate(values).interval(0.025)
    plain = median_estimate(SEEDS).interval(0.025)
    assert (low, high) == (plain.low, plain.high + 4.0)
    assert median_estimate(np.full(48, math.nan)).interval(0.025) == (
        -math.inf,
        math.inf,
    )


SIZES = (16, 64, 256, 1024)
N_SLOPE = 128


def estimates_of(values, relative=0.0):
    """Estimates with errors relative to their values."""
    return [Estimate(float(v), relative * float(v), N_SLOPE) for v in values]


def test_slope_is_least_squares():
    """The slope of any values is that of a straight line through the logarithms."""
    values = [1.0, 3.0, 2.5, 7.0]
    fitted = np.polyfit(np.log(SIZES), np.log(values), 1)[0]

    assert log_log_slope(SIZES, estimates_of(values)).value == pytest.approx(fitted)


def test_propagated_error_is_the_spread():
    """The error is the spread of 5000 simulated values, to six standard errors of a
    spread (false alarm 2e-9); half the error would be seen.
    """
    rng, runs, relative = np.random.default_rng(47), 5000, 0.02
    truth = np.array([1.0, 2.0, 8.0, 9.0])
    # errors that differ, so that each must get its own weight
    errors = relative * truth * np.array([1.0, 2.0, 0.5, 1.5])
    drawn = rng.normal(truth, errors, size=(runs, 4))

    def measure(values):
        parts = [Estimate(v, e, N_SLOPE) for v, e in zip(values, errors, strict=True)]
        return log_log_slope(SIZES, parts)

    spread = np.std([measure(values).value for values in drawn])
    error = measure(truth).std_error
    limit = 6.0 / math.sqrt(2.0 * runs)
    assert abs(error / spread - 1.0) < limit
    assert abs(0.5 * error / spread - 1.0) > limit


def test_estimate_that_may_be_zero_opens_one_side():
    """The side of an end at or below 0, and no other."""
    vague, sharp = Estimate(1.0, 10.0, N_SLOPE), Estimate(1.0, 0.01, N_SLOPE)
    low, high = log_log_slope((1, 2), [sharp, vague]).interval(0.01)
    assert low == -math.inf
    assert math.isfinite(high)
    low, high = log_log_slope((1, 2), [vague, sharp]).interval(0.01)
    assert math.isfinite(low)
    assert high == math.inf


def test_few_seeds_bound_nothing():
    """Of five seeds no end misses at a rate of 1 %: there is none."""
    assert median_estimate(SEEDS[:5]).interval(0.01) == (-math.inf, math.inf)
    assert median_estimate(SEEDS[:7]).interval(0.01) == (1.0, 7.0)


@pytest.mark.parametrize("value", [1.001, -0.001, math.inf])
def test_a_value_that_cannot_be_is_left_to_be_seen(value):
    """What lies beyond its range by more than rounding is wrong."""
    wrong = Estimate(value, 1e-4, 2**20)
    assert wrong.in_range(SHARE) == wrong
    if math.isfinite(value):
        low, high = bounded_estimate(np.full(8, value), SHARE).interval(0.025)
        assert low > 1.0 or high < 0.0


def test_sides_are_kept_apart():
    """A long upper side makes a slope long below, or above, by its place."""
    skewed = Estimate(1.0, 0.0, N_SLOPE, bounds=lambda error_rate: Interval(0.9, 3.0))
    sharp = Estimate(1.0, 0.0, N_SLOPE)

    # of sizes 1 and e the slope is the logarithm of the ratio of the values
    short, long = math.log(1 / 0.9), math.log(3.0)
    sizes = (1.0, math.e)
    assert log_log_slope(sizes, [skewed, sharp]).interval(0.1) == pytest.approx(
        (-long, short)
    )
    assert log_log_slope(sizes, [sharp, skewed]).interval(0.1) == pytest.approx(
        (-short, long)
    )
