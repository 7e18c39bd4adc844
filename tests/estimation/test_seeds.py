"""Medians of seeds: exact ends, infinite values, and ratios that may be anything."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from montecarlo.estimation.estimates import median_estimate

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


def test_few_seeds_bound_nothing():
    """Of five seeds no end misses at a rate of 1 %: there is none."""
    assert median_estimate(SEEDS[:5]).interval(0.01) == (-math.inf, math.inf)
    assert median_estimate(SEEDS[:7]).interval(0.01) == (1.0, 7.0)


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
