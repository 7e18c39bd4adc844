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
    score_distribution,
)

DIMENSIONS = (1, 2, 16, 64)


def density(x, d_k):
    """Variance-gamma density by SciPy's scaled Bessel function, x > 0."""
    order = 0.5 * (d_k - 1)
    log = order * math.log(0.5 * x) - x - scipy.special.gammaln(0.5 * d_k)
    return scipy.special.kve(order, x) * math.exp(log) / math.sqrt(math.pi)


def upper(x, d_k):
    """P(q·k > x) by SciPy's quadrature, x > 0."""
    ends = [x, x + 2.0, x + 10.0, x + 60.0, x + 400.0]
    return sum(
        scipy.integrate.quad(density, a, b, args=(d_k,), epsabs=0.0, epsrel=1e-11)[0]
        for a, b in pairwise(ends)
    )


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
    tail = upper(x, d_k)

    assert score_distribution(x, d_k) == pytest.approx(1.0 - tail, abs=1e-10)
    assert score_distribution(-x, d_k) == pytest.approx(tail, abs=1e-10)
    assert abs(score_distribution(x, d_k + 1) - (1.0 - tail)) > 1e-7
    assert math.exp(log_score_tail(x, d_k)) == pytest.approx(tail, rel=1e-9)


@pytest.mark.parametrize("d_k", DIMENSIONS)
@pytest.mark.parametrize("x", [3.0, 11.09, 88.7])
def test_far_tails(d_k, x):
    """Tails keep their relative precision, at 1e-40 as at 0.1."""
    assert log_score_tail(x, d_k) == pytest.approx(exact_log_tail(x, d_k), abs=1e-9)


@pytest.mark.parametrize("d_k", [1024, 4096, 2**14, 2**18, 2**20])
def test_high_dimensions_are_normal(d_k):
    """Up to the correction of order 1/d_k; tail and distribution agree."""
    for z in (0.5, 2.0, 4.0):
        x = z * math.sqrt(d_k)
        tail = math.exp(log_score_tail(x, d_k))
        normal = scipy.stats.norm.sf(z)
        # Edgeworth: kurtosis 6/d over 24, times He3(z) φ(z)
        first = (z**3 - 3.0 * z) * scipy.stats.norm.pdf(z) / (4.0 * d_k)
        assert tail == pytest.approx(1.0 - score_distribution(x, d_k), abs=1e-9)
        assert tail - normal == pytest.approx(first, abs=30.0 / d_k**2 + 1e-9)


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
