"""Slopes and ratios along d_k: exact power laws, propagated errors, open ends."""

import math

import numpy as np
import pytest

from montecarlo.estimation.estimates import Estimate, log_log_slope, ratio_of_ends
from montecarlo.estimation.intervals import Interval

SIZES = (16, 64, 256, 1024)
N = 128


def estimates_of(values, relative=0.0):
    """Estimates with errors relative to their values."""
    return [Estimate(float(v), relative * float(v), N) for v in values]


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 2.0])
def test_power_distribution(power):
    """An exact power law has its power as slope, without error, and as ratio."""
    values = [3.0 * size**power for size in SIZES]
    slope, ratio = (
        log_log_slope(SIZES, estimates_of(values)),
        ratio_of_ends(estimates_of(values)),
    )

    assert slope.value == pytest.approx(power, abs=1e-13)
    assert slope.std_error == pytest.approx(0.0, abs=1e-15)
    assert ratio.value == pytest.approx((1024 / 16) ** power, rel=1e-12)
    assert slope.n_replicates == ratio.n_replicates == N


def test_slope_is_least_squares():
    """The slope of any values is that of a straight line through the logarithms."""
    values = [1.0, 3.0, 2.5, 7.0]
    fitted = np.polyfit(np.log(SIZES), np.log(values), 1)[0]

    assert log_log_slope(SIZES, estimates_of(values)).value == pytest.approx(fitted)


@pytest.mark.parametrize("what", ["slope", "ratio"])
def test_propagated_error_is_the_spread(what):
    """The error is the spread of 5000 simulated values, to six standard errors of a
    spread (false alarm 2e-9); half the error would be seen.
    """
    rng, runs, relative = np.random.default_rng(47), 5000, 0.02
    truth = np.array([1.0, 2.0, 8.0, 9.0])
    # errors that differ, so that each must get its own weight
    errors = relative * truth * np.array([1.0, 2.0, 0.5, 1.5])
    drawn = rng.normal(truth, errors, size=(runs, 4))

    def measure(values):
        parts = [Estimate(v, e, N) for v, e in zip(values, errors, strict=True)]
        return log_log_slope(SIZES, parts) if what == "slope" else ratio_of_ends(parts)

    spread = np.std([measure(values).value for values in drawn])
    error = measure(truth).std_error
    limit = 6.0 / math.sqrt(2.0 * runs)
    assert abs(error / spread - 1.0) < limit
    assert abs(0.5 * error / spread - 1.0) > limit


def test_sides_are_kept_apart():
    """An estimate with a long upper side makes the ratio long below where it is the
    first, and long above where it is the last.
    """
    skewed = Estimate(1.0, 0.0, N, bounds=lambda error_rate: Interval(0.9, 3.0))
    sharp = Estimate(1.0, 0.0, N)

    assert ratio_of_ends([skewed, sharp]).interval(0.1) == pytest.approx(
        (1 / 3, 1 / 0.9)
    )
    assert ratio_of_ends([sharp, skewed]).interval(0.1) == pytest.approx((0.9, 3.0))


def test_estimate_that_may_be_zero_opens_one_side():
    """Where an end of an interval is at or below 0, that side of the slope is open and
    the other is not.
    """
    vague, sharp = Estimate(1.0, 10.0, N), Estimate(1.0, 0.01, N)
    low, high = log_log_slope((1, 2), [sharp, vague]).interval(0.01)
    assert low == -math.inf
    assert math.isfinite(high)
    low, high = ratio_of_ends([vague, sharp]).interval(0.01)
    assert 0.0 < low < 1.0
    assert high == math.inf


@pytest.mark.parametrize(
    ("values", "ratio"),
    [
        ((0.0, 1.0), math.inf),
        ((1.0, 0.0), 0.0),
        ((0.0, 0.0), math.nan),
        ((1e-320, 1.0), math.inf),
    ],
)
def test_values_without_logarithm(values, ratio):
    """Gradients underflow to exact 0: the ratio is infinite, 0 or not defined, and
    never an exception that would end a study.
    """
    found = ratio_of_ends(estimates_of(values, 0.1)).value

    assert found == pytest.approx(ratio, nan_ok=True)


def test_slope_through_zeros_is_not_defined():
    """Two values of exact 0 leave the slope undefined, and its interval too."""
    slope = log_log_slope(SIZES, estimates_of([0.0, 1.0, 1.0, 0.0], 0.1))

    assert math.isnan(slope.value)
    assert any(map(math.isnan, slope.interval(0.01)))
