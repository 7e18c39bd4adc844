"""The gradient by the query, by a quadrature of its own and by drawing all of it."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import softmax

from montecarlo.theory import query_gradient_squared
from montecarlo.theory.query_gradients import expect_along_query

#: 5 points, two sides: one fails by chance in 300,000 runs.
FAR = 5.0
REPLICATES = 10_000


@pytest.mark.parametrize("std", [1e-3, 0.1, 0.49, 0.51, 3.0, 38.0])
def test_two_keys_are_one_integral(std):
    """J z = p(1 - p) D (1, -1) with D ~ N(0, 2) the difference of two scores."""

    def integrand(t):
        # over t = s D: p(1 - p) = 1/(4 cosh²(t/2))
        difference = t / std
        density = math.exp(-0.25 * difference**2) / math.sqrt(4.0 * math.pi) / std
        return 2.0 * (0.25 / math.cosh(0.5 * t) ** 2) ** 2 * difference**2 * density

    end = min(40.0, 20.0 * std)
    exact = 2.0 * quad(integrand, 0.0, end, epsabs=0.0, epsrel=1e-11)[0]
    found = expect_along_query(std, 2)
    assert found.value == pytest.approx(exact, rel=1e-9)
    assert found.error < 1e-9 * found.value


@pytest.mark.parametrize(
    ("n_keys", "d_k", "divisor"),
    [(8, 1, 1.0), (8, 2, 2.0), (32, 16, "none"), (64, 16, "sqrt"), (16, 64, "linear")],
)
def test_drawn_gradients_have_this_mean_square(n_keys, d_k, divisor):
    """Of whole matrices: nothing of the derivation is used.

    Given K and q, the mean over v is the sum of all squares of J K, whose row i is
    p_i (k_i - Σ p_j k_j).
    """
    rng = np.random.default_rng([n_keys, d_k])
    c = {"none": 1.0, "sqrt": math.sqrt(d_k), "linear": d_k}.get(divisor, divisor)
    queries = rng.standard_normal((REPLICATES, d_k, 1))
    keys = rng.standard_normal((REPLICATES, n_keys, d_k))
    weights = softmax(keys @ queries / c, axis=1)
    centred = keys - (weights * keys).sum(axis=1, keepdims=True)
    squares = ((weights * centred) ** 2).sum(axis=(1, 2))
    error = squares.std(ddof=1) / math.sqrt(REPLICATES)
    found = query_gradient_squared(n_keys, d_k=d_k, divisor=divisor)
    assert abs(squares.mean() - found.value) < FAR * error
    assert error < 0.03 * found.value
    assert found.error < 1e-8 * found.value
