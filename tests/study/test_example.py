"""The rows that the first figure of a report shows."""

import numpy as np

from montecarlo.sampling.matrices import draw_matrices
from montecarlo.study.example import N_QUERIES, POINT, example_curves


def weights_of(seed, divisor):
    """Weights of the curve of a divisor, shape (queries, keys)."""
    mine = [line for line in example_curves(seed) if line.divisor == divisor]
    assert [line.x for line in mine] == list(range(N_QUERIES * 32))
    assert all(line.std_error is None for line in mine)
    return np.array([line.estimate for line in mine]).reshape(N_QUERIES, 32)


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
