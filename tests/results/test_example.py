"""The rows that the first figure of a report shows."""

import math

import numpy as np

from montecarlo.results.example import N_QUERIES, POINT, example_curves
from montecarlo.results.table import CURVE_COLUMNS
from montecarlo.sampling.matrices import draw_matrices


def weights_of(seed, divisor):
    """Weights of the curve of a divisor, shape (queries, keys)."""
    rows = [dict(zip(CURVE_COLUMNS, row, strict=True)) for row in example_curves(seed)]
    mine = [row for row in rows if row["divisor"] == divisor]
    assert [row["x"] for row in mine] == list(range(N_QUERIES * 32))
    assert all(math.isnan(row["std_error"]) for row in mine)
    return np.array([row["estimate"] for row in mine]).reshape(N_QUERIES, 32)


def test_example_is_softmax_of_the_study_s_own_draws():
    """Weights are those of the first replicate's first queries, keys as drawn."""
    q, k = draw_matrices(POINT, 7, 0)
    scores = q[:N_QUERIES].astype(float) @ k.T.astype(float)
    for divisor, c in (("none", 1.0), ("sqrt", 8.0)):
        e = np.exp((scores - scores.max(axis=1, keepdims=True)) / c)
        wanted = e / e.sum(axis=1, keepdims=True)
        assert np.allclose(weights_of(7, divisor), wanted, rtol=1e-10, atol=0.0)


def test_example_depends_on_the_seed_alone():
    """The same seed gives the same rows, another seed others."""
    assert list(map(str, example_curves(3))) == list(map(str, example_curves(3)))
    assert not np.allclose(weights_of(3, "none"), weights_of(4, "none"))
