"""Rows of cosines: quadrature and simulation, without code of `cosine_scores`."""

import math

import numpy as np
import pytest
from scipy import integrate, special

from studies.cosine_scores import cosine_nodes, expect_cosines

#: Standard errors that a simulation may be off by: once in 10**7, by chance, for each
#: of 18 means.
FAR = 5.5
ROWS = 20000


def density(x, d_k):
    """Density of a cosine of directions in d_k dimensions."""
    return (1.0 - x * x) ** (0.5 * (d_k - 3)) / special.beta(0.5 * (d_k - 1), 0.5)


def values_of(scores):
    """Each quantity of each row, as textbooks write it."""
    p = special.softmax(scores, axis=1)
    squares = (p**2).sum(axis=1)
    return {
        "log_partition": special.logsumexp(scores, axis=1),
        "entropy": -special.xlogy(p, p).sum(axis=1),
        "inverse_participation": squares,
        "jacobian_trace": 1.0 - squares,
        "jacobian_frobenius_squared": squares - 2.0 * (p**3).sum(axis=1) + squares**2,
        "weight_max": p.max(axis=1),
    }


@pytest.mark.parametrize("d_k", [3, 4, 7, 64])
def test_one_cosine(d_k):
    """Its moments, by an adaptive quadrature of its density."""
    scores, probability = cosine_nodes(d_k, 5.0)
    for power in (2, 4):
        mean, _ = integrate.quad(
            lambda x, power=power: (5.0 * x) ** power * density(x, d_k), -1.0, 1.0
        )
        assert scores**power @ probability == pytest.approx(mean, rel=1e-9)
    assert scores**2 @ probability == pytest.approx(25.0 / d_k, rel=1e-12)


@pytest.mark.parametrize(
    ("d_k", "n_keys", "gain"), [(2, 16, 10.0), (5, 33, 5.0), (64, 128, 24.0)]
)
def test_drawn_rows_agree(d_k, n_keys, gain):
    """Of a query and keys that are drawn; those of another gain or n do not."""
    rng = np.random.default_rng(7)
    along = rng.standard_normal((ROWS, n_keys))
    across = rng.chisquare(d_k - 1, (ROWS, n_keys))
    drawn = values_of(gain * along / np.sqrt(along**2 + across))

    def farthest(n, scale):
        exact = expect_cosines(d_k, n, scale)
        return max(
            abs(exact[name] - one.mean()) * math.sqrt(ROWS) / one.std()
            for name, one in drawn.items()
        )

    assert farthest(n_keys, gain) < FAR
    assert farthest(2 * n_keys, gain) > 3 * FAR
    assert farthest(n_keys, 1.1 * gain) > 3 * FAR
