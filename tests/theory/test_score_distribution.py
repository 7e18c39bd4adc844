"""The distribution of q·k for Gaussian entries, against its density and against the
normal.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from montecarlo.theory.references import GAP_AT
from montecarlo.theory.score_distribution import (
    distribution_gap,
    expected_maximum,
    log_score_tail,
    score_cdf,
)

DIMENSIONS = (1, 2, 16, 64)


def exact_log_tail(x, d_k):
    """Logarithm of P(q·k > x), however small: the density without its decay to x."""
    order = 0.5 * (d_k - 1)

    def decayed(s):
        log = order * math.log(0.5 * s) - (s - x) - scipy.special.gammaln(0.5 * d_k)
        return scipy.special.kve(order, s) * math.exp(log) / math.sqrt(math.pi)

    ends = [x + step for step in (0.0, 0.5, 2.0, 10.0, 60.0, 400.0)]
    parts = [
        scipy.integrate.quad(decayed, a, b, epsabs=0.0, epsrel=1e-11)[0]
        for a, b in pairwise(ends)
    ]
    return math.log(math.fsum(parts)) - x


@pytest.mark.parametrize("d_k", DIMENSIONS)
@pytest.mark.parametrize("z", [0.05, 0.742, 2.0, 5.0])
def test_distribution_is_the_integral_of_the_density(d_k, z):
    """That of one dimension more is not."""
    x = z * math.sqrt(d_k)
    tail = math.exp(exact_log_tail(x, d_k))

    assert score_cdf(x, d_k) == pytest.approx(1.0 - tail, abs=1e-10)
    assert score_cdf(-x, d_k) == pytest.approx(tail, abs=1e-10)
    assert abs(score_cdf(x, d_k + 1) - (1.0 - tail)) > 1e-7
    assert math.exp(log_score_tail(x, d_k)) == pytest.approx(tail, rel=1e-9)


@pytest.mark.parametrize("d_k", DIMENSIONS)
@pytest.mark.parametrize("x", [3.0, 11.09, 88.7])
def test_far_tails(d_k, x):
    """Tails keep their relative precision, at 1e-40 as at 0.1."""
    assert log_score_tail(x, d_k) == pytest.approx(exact_log_tail(x, d_k), abs=1e-9)


@pytest.mark.parametrize(
    ("d_k", "largest"),
    [
        (1, 0.1075),
        (2, 0.0620),
        (4, 0.0333),
        (8, 0.0171),
        (16, 0.00860),
        (64, 0.002152),
        (256, 0.000538),
    ],
)
def test_largest_gap_to_normal(d_k, largest):
    """The printed one, and for large d_k where it is measured."""
    places = np.linspace(0.0, 3.0, 301)
    found = max(abs(distribution_gap(float(x), d_k)) for x in places)

    assert found == pytest.approx(largest, rel=6e-3)
    assert 0.0 < distribution_gap(GAP_AT, d_k) <= found * (1.0 + 1e-6)
    if d_k >= 64:
        assert distribution_gap(GAP_AT, d_k) == pytest.approx(found, rel=1e-3)
        assert d_k * found == pytest.approx(0.13765, rel=2e-3)


@pytest.mark.parametrize(
    ("n", "printed"),
    [
        (16, 1.766),
        (64, 2.344),
        (256, 2.827),
        (1024, 3.248),
        (4096, 3.626),
        (65536, 4.291),
        (10**6, 4.863),
    ],
)
def test_expected_maximum(n, printed):
    """The expected largest of n normal numbers, to the printed digits."""
    assert expected_maximum(n) == pytest.approx(printed, abs=5.1e-4)
