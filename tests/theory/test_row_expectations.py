"""Averages over the length of the query, panels, and sums against enumeration."""

import itertools
import math

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from montecarlo.theory import row_expectations
from montecarlo.theory.row_expectations import (
    expect_rademacher_pairs,
    interpolate_panel,
    panel_edges,
    rademacher_scores,
)
from montecarlo.theory.row_integrals import ROW_NAMES, expect_gaussian_row


@pytest.mark.parametrize("n_keys", [2, 128, 16384])
@pytest.mark.parametrize("index", [0, 1, 4, 6, 7, 10, 15])
def test_panels_are_as_good_as_they_say(index, n_keys):
    """Between the nodes a panel is off by less than it states, and by under 1e-6."""
    coefficients, errors = interpolate_panel(index, n_keys)
    low, high = panel_edges(index)
    for part in (0.04, 0.37, 0.5, 0.96):
        std = low + part * (high - low)
        x = row_expectations._panel_coordinate(np.array([std]), index)
        found = chebyshev.chebval(x, coefficients)[:, 0]
        direct = expect_gaussian_row(std, n_keys).values
        assert (np.abs(found - direct) <= errors).all()
        assert (errors <= 1e-6 * direct).all()


def enumerate_rows(d_k, n_keys, scale):
    """Average over all rows of n values of q·k, each with its probability."""
    values = 2.0 * np.arange(d_k + 1) - d_k
    probabilities = np.array([math.comb(d_k, b) for b in range(d_k + 1)]) / 2.0**d_k
    index = np.array(list(itertools.product(range(d_k + 1), repeat=n_keys)))
    probability = probabilities[index].prod(axis=1)
    x = scale * values[index]
    z = np.exp(x).sum(axis=1)
    p = np.exp(x) / z[:, np.newaxis]
    y2 = (p**2).sum(axis=1)
    rows = {
        "log_partition": np.log(z),
        "entropy": -(p * np.log(p)).sum(axis=1),
        "inverse_participation": y2,
        "jacobian_trace": 1.0 - y2,
        "jacobian_frobenius_squared": y2 - 2.0 * (p**3).sum(axis=1) + y2**2,
        "weight_max": p.max(axis=1),
    }
    return {name: (row * probability).sum() for name, row in rows.items()}


@pytest.mark.parametrize(
    ("d_k", "n_keys", "scale"),
    [(1, 2, 1.0), (1, 7, 3.0), (2, 6, 0.5), (3, 4, 2.0), (4, 5, 1.0), (7, 3, 1e-3)],
)
def test_values_are_those_of_all_rows(d_k, n_keys, scale):
    """Sums over d + 1 points equal the enumeration of (d + 1)^n rows."""
    row = expect_rademacher_pairs(d_k, n_keys, scale)
    expected = enumerate_rows(d_k, n_keys, scale)
    for name, value, error in zip(ROW_NAMES, row.values, row.errors, strict=True):
        assert abs(value - expected[name]) <= 1e-11 * expected[name], name
        assert abs(value - expected[name]) <= error <= 1e-8 * value, name


@pytest.mark.parametrize("d_k", [1, 2, 17, 1000])
def test_distribution_of_the_score_is_binomial(d_k):
    """Probabilities are binomial coefficients over 2^d, to rounding."""
    values, probabilities = rademacher_scores(d_k)
    for value, probability in zip(values, probabilities, strict=True):
        exact = math.comb(d_k, (d_k + int(value)) // 2) / 2**d_k
        assert math.isclose(probability, exact, rel_tol=1e-12)
    assert math.isclose(probabilities.sum(), 1.0, rel_tol=1e-14)
