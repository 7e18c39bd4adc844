"""How often intervals over seeds miss: counted on banks resampled from recorded runs.

A bank is 48 seeds drawn from those of the record, with replacement; what the record has
itself is what their intervals should hold.  Misses on one side, of 2,000 banks, are at
most those that a rate of `RATE` exceeds with probability 1e-6: 38 counts are looked at.
"""

import numpy as np
import pytest
from scipy.stats import binom

from montecarlo.estimation.estimates import median_estimate, share_of_seeds
from montecarlo.records.training import ARMS, D_K, RATES, read_record

BANKS, RATE = 2000, 0.01
MOST = binom.isf(1e-6, BANKS, RATE)


def steps_of(optimiser, arm, d_k):
    """Steps of each judged seed at the arm's rate."""
    record = read_record()
    runs = record.judged.set_index(["optimiser", "arm", "d_k", "rate"])
    setting = (optimiser, arm, d_k, record.chosen[optimiser, arm, d_k])
    return runs.sort_index().loc[setting].sort_values("seed")["steps"].to_numpy()


def count_misses(values, truth, estimate):
    """Count banks whose interval lies above the truth, and below it."""
    rng = np.random.default_rng(5)
    above = below = 0
    for _ in range(BANKS):
        bank = values[rng.integers(0, len(values), len(values))]
        low, high = estimate(bank).interval(RATE)
        above, below = above + (low > truth), below + (high < truth)
    return above, below


@pytest.mark.parametrize("d_k", D_K)
@pytest.mark.parametrize("optimiser", RATES)
@pytest.mark.parametrize("divisor", ["none", "linear"])
def test_medians_of_paired_ratios_miss_as_often_as_stated(divisor, optimiser, d_k):
    """Real ratios of steps, with ties and skewness as they are."""
    pairs = (steps_of(optimiser, arm, d_k) for arm in (divisor, "sqrt"))
    ratios = np.divide(*pairs)
    misses = count_misses(ratios, np.median(ratios), median_estimate)
    assert max(misses) <= MOST
    # the interval of a median that is not there would be seen
    moved = count_misses(ratios, 1.5 * np.median(ratios), median_estimate)
    assert max(moved) > MOST


def shares():
    """Yield settings at which some seeds learned and others did not, with hits."""
    runs = read_record().judged
    for setting, some in runs.groupby(["optimiser", "arm", "d_k", "rate"]):
        learned = np.isfinite(some["steps"]).to_numpy(float)
        if 5 <= learned.sum() <= len(learned) - 5:
            yield setting, learned


def test_shares_of_seeds_miss_as_often_as_stated():
    """Shares that no arm's chosen rate has: between 5 and 43 of 48 seeds."""
    found = dict(shares())
    assert len(found) >= 3
    assert {arm for _, arm, *_ in found} <= set(ARMS)
    for learned in list(found.values())[:7]:
        misses = count_misses(learned, learned.mean(), share_of_seeds)
        assert max(misses) <= MOST
