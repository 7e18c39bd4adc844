"""Dependence of keys on queries: moments, names, and what it leaves as it was.

Moments are means over replicates, compared with their exact values by Student's t: each
comparison fails by chance at a rate of 1e-7, and there are fewer than 40.
"""

import math

import numpy as np
import pytest
import scipy.stats

from montecarlo.sampling.design_points import parse_dependence, parse_point
from montecarlo.sampling.distributions import parse_distribution
from montecarlo.sampling.matrices import draw_matrices
from tests.samples import every_column, sample_all

FALSE_ALARM = 1e-7
N = 40
LIMIT = float(scipy.stats.t.isf(FALSE_ALARM / 2.0, N - 1))


def far(values, expected):
    """How many limits the mean of replicates is from what is expected."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    return abs(values.mean() - expected) / (LIMIT * error + 1e-6 * abs(expected))


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("none", "none"),
        ("pairs(1)", "pairs(1.0)"),
        ("pairs(.5)", "pairs(0.5)"),
        ("planted( 0.250 )", "planted(0.25)"),
        ("planted(0)", "planted(0.0)"),
        ("planted(1e-3)", "planted(0.001)"),
        ("pairs(1e-05)", "pairs(1e-05)"),
    ],
)
def test_canonical_names(name, canonical):
    """Ways to write a dependence are one name, which stands for itself."""
    found = parse_dependence(name)

    assert found.name == canonical
    assert parse_dependence(canonical) == found
    assert parse_point("gaussian", "gaussian", 4, 8, "none").dependence.name == "none"


@pytest.mark.parametrize(
    "distribution", ["gaussian", "rademacher", "laplace", "uniform"]
)
@pytest.mark.parametrize("rho", [0.25, 1.0])
def test_moments_of_matching_pairs(distribution, rho):
    """E q·k = rho d, entries keep their variance, and E (q·k)² is the closed form:
    d (1 + rho²) + (rho d)² for Gaussian entries, d (1 + rho (kurtosis - 1) - rho²) +
    (rho d)² where entries are copied.  Those of half the correlation are refused.
    """
    d_k = 16
    point = parse_point(distribution, distribution, d_k, None, f"pairs({rho})")
    batch = sample_all(point, 3, 0, N, ("none",))
    means = dict(
        zip(
            (name for _, name in every_column(point, ("none",)).means),
            batch.means.T,
            strict=True,
        )
    )

    def second(r):
        copied = r * (parse_distribution(distribution).kurtosis - 1.0) - r**2
        return (
            d_k * (1.0 + (r**2 if distribution == "gaussian" else copied))
            + (r * d_k) ** 2
        )

    assert far(means["s"], rho * d_k) < 1.0
    assert far(means["s2"], second(rho)) < 1.0
    assert far(means["k2"], 1.0) < 1.0
    assert far(means["k"], 0.0) < 1.0
    assert far(means["s"], 0.5 * rho * d_k) > 1.0
    assert far(means["s2"], second(0.5 * rho)) > 1.0


@pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
def test_planted_keys_belong_to_their_queries(distribution):
    """Key i is correlated with query i and with no other; further keys with none."""
    rho, d_k = 0.5, 64
    point = parse_point(distribution, distribution, d_k, 48, f"planted({rho})")
    n_queries, n_keys = point.shape
    assert n_queries <= n_keys
    own, others, further, squares = [], [], [], []
    for index in range(N):
        q, k = draw_matrices(point, 4, index)
        products = q.astype(np.float64) @ k.astype(np.float64).T / d_k
        matching = np.eye(n_queries, n_keys, dtype=bool)
        own.append(products[matching].mean())
        square = products[:, :n_queries][~matching[:, :n_queries]]
        others.append(square.mean())
        further.append(np.diagonal(np.roll(products, 1, axis=0)).mean())
        squares.append(np.square(k, dtype=np.float64).mean())

    assert far(np.array(own), rho) < 1.0
    assert far(np.array(others), 0.0) < 1.0
    assert far(np.array(squares), 1.0) < 1.0
    assert far(np.array(own), 0.9 * rho) > 1.0
    assert far(np.array(further), rho) > 1.0  # another query's key
