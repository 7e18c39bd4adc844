"""Tails under tilting: right far below what plain sampling reaches, with honest bounds.

A standardised distance beyond 6 has a probability of 2e-9 for a normal one.  The
estimates below are known to 5 %: at least 400 draws of the same size would give that,
and their skewness makes the tail ten to twenty times as heavy.  With the binomial limit
of coverage, at 1e-7, this file fails by chance less than once in 10**6 seeds.
"""

import math

import pytest
import scipy.stats

from montecarlo.sampling.rare_events import BLOCK, estimate_tail, tilt
from montecarlo.theory.score_distribution import log_score_tail

FAR = 6.0
#: (threshold, d_k): from 1e-1 to 1e-170, at all sizes; ln 65504 and ln of float32's.
CASES = [
    (1.0, 1),
    (88.7, 1),
    (11.09, 4),
    (11.09, 16),
    (88.7, 16),
    (30.0, 64),
    (88.7, 64),
    (400.0, 64),
    (88.7, 256),
    (120.0, 1024),
]


def blocks_of(d_k):
    """How many blocks of draws the tests can afford."""
    return max(2, min(16, 1024 // d_k))


@pytest.mark.parametrize(("x", "d_k"), CASES)
def test_estimates_agree_with_the_exact_distribution(x, d_k):
    """The estimate lies within its error of the exact tail, and knows it to 5 %."""
    log_value, error, _ = estimate_tail(x, d_k, 1, blocks_of(d_k))
    ratio = math.exp(log_score_tail(x, d_k) - log_value)

    assert error < 0.06
    assert abs(1.0 - ratio) < FAR * error


#: Two-sided error rate of the intervals below, their number, and how many may miss.
ERROR_RATE, RUNS = 0.2, 250
MOST = int(scipy.stats.binom(RUNS, ERROR_RATE).isf(1e-7))


def misses(x, d_k, part=1.0):
    """How many intervals, narrowed to a part, miss the exact tail."""
    exact = math.exp(log_score_tail(x, d_k))
    found = 0
    for seed in range(RUNS):
        log_value, _, half_width = estimate_tail(x, d_k, seed, 1, ERROR_RATE)
        value = math.exp(log_value)
        found += abs(value - exact) > part * half_width * value
    return found


def test_bernstein_intervals_cover():
    """Intervals of 80 % miss in no more than 20 % of the runs, at a probability of 6e-7
    and one block each; a tenth as wide they miss far more often.
    """
    x, d_k = 22.0, 4
    assert log_score_tail(x, d_k) < math.log(1e-6)
    assert misses(x, d_k) <= MOST
    assert misses(x, d_k, part=0.1) > MOST


def test_half_width():
    """The half-width is that of the theorem for draws in [0, 1], wider at a smaller
    error rate, and never below that of the normal distribution.
    """
    log_value, _, wide = estimate_tail(11.09, 16, 1, 2, 1e-6)
    same, error, narrow = estimate_tail(11.09, 16, 1, 2, 0.05)
    n, log_term = 2 * BLOCK, math.log(4.0 / 0.05)
    bound = math.exp(
        -tilt(11.09, 16) * 11.09 - 8.0 * math.log1p(-(tilt(11.09, 16) ** 2))
    )
    mean = math.exp(log_value) / bound
    spread = error * mean * math.sqrt(n)
    expected = math.sqrt(2.0 / n * log_term) * spread + 7.0 * log_term / (3 * (n - 1))

    assert 0.0 < mean < 1.0
    assert narrow == pytest.approx(expected / mean, rel=1e-9)
    assert wide > narrow > 1.96 * error
    assert log_value == same


def test_draws_belong_to_their_seed():
    """The same seed gives the same estimate, another seed another one."""
    one = estimate_tail(11.09, 16, 1, 2)

    assert estimate_tail(11.09, 16, 1, 2) == one
    assert estimate_tail(11.09, 16, 2, 2)[0] != one[0]
    assert estimate_tail(11.09, 16, 1, 3) != one
