"""Averages over the length of the query, and the panels they are made of."""

import math

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy import integrate, stats

from montecarlo.theory import row_expectations
from montecarlo.theory.row_expectations import (
    edges,
    expect_fixed_length,
    expect_gaussian_length,
    make_panel,
)
from montecarlo.theory.row_integrals import expect_gaussian_row


@pytest.mark.parametrize("n_keys", [2, 128, 16384])
@pytest.mark.parametrize("index", [0, 1, 4, 6, 7, 10, 15])
def test_panels_are_as_good_as_they_say(index, n_keys):
    """Between the nodes a panel is off by less than it states, and by under 1e-6."""
    panel = make_panel(index, n_keys)
    low, high = edges(index)
    for part in (0.04, 0.37, 0.5, 0.96):
        std = low + part * (high - low)
        x = row_expectations._coordinate(np.array([std]), index)
        found = chebyshev.chebval(x, panel.coefficients)[:, 0]
        direct = expect_gaussian_row(std, n_keys).values
        assert (np.abs(found - direct) <= panel.errors).all()
        assert (panel.errors <= 1e-6 * direct).all()


@pytest.mark.parametrize(
    ("d_k", "n_keys", "scale"),
    [(1, 16, 1.0), (1, 256, 0.5), (2, 64, 4.0), (16, 128, 0.25), (512, 64, 512**-0.5)],
)
def test_averages_agree_with_adaptive_quadrature(d_k, n_keys, scale):
    """Averaging rows of one length over chi_d by another method gives the same."""

    def integrand(length):
        values = expect_gaussian_row(scale * length, n_keys).values
        return values * stats.chi.pdf(length, d_k)

    low, high = max(1e-9, math.sqrt(d_k) - 6.0), math.sqrt(d_k) + 6.5
    found = expect_gaussian_length(d_k, n_keys, scale)
    # The tails left out weigh 2e-9 at most, times values that change by a few units.
    value, _ = integrate.quad_vec(integrand, low, high, epsrel=1e-9, limit=60)
    assert (np.abs(found.values - value) <= 1e-7 * value).all()
    assert (found.errors <= 1e-6 * found.values).all()


def test_fixed_length_is_the_row_at_that_length():
    """Rademacher queries of 16 entries have |q| = 4."""
    found = expect_fixed_length(16, 64, 0.5)
    assert (found.values == expect_gaussian_row(2.0, 64).values).all()
