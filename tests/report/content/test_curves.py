"""Curves: rows as they were drawn."""

import numpy as np
import pandas as pd

from montecarlo.report.content.curves import (
    CURVES,
    EXAMPLE,
    EXAMPLE_POINT,
    EXAMPLE_QUERIES,
    example_weights,
)
from montecarlo.sampling.matrices import draw_matrices


def weights_of(seed, divisor):
    """Weights of the curve of a divisor, shape (queries, keys)."""
    table = pd.DataFrame(example_weights(seed), columns=CURVES[EXAMPLE])
    mine = table[table["divisor"].eq(divisor)]
    assert mine["weight_number"].tolist() == list(range(EXAMPLE_QUERIES * 128))
    return mine["weight"].to_numpy().reshape(EXAMPLE_QUERIES, 128)


def test_example_is_softmax_of_the_study_s_own_draws():
    """Weights are those of queries of the first replicate, keys as drawn; of a tenth of
    its queries, by their largest weight, the middle one is shown.
    """
    q, k = draw_matrices(EXAMPLE_POINT, 7, 0)
    scores = q.astype(float) @ k.T.astype(float)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    largest = (e / e.sum(axis=1, keepdims=True)).max(axis=1)
    chosen = sorted(np.argsort(largest)[[6, 19, 32, 44, 57, 70, 83, 96, 108, 121]])
    assert len(q) == 128
    assert abs(largest[chosen].mean() - largest.mean()) < 0.02
    for divisor, c in (("none", 1.0), ("sqrt", 8.0)):
        e = np.exp((scores - scores.max(axis=1, keepdims=True))[chosen] / c)
        wanted = e / e.sum(axis=1, keepdims=True)
        assert np.allclose(weights_of(7, divisor), wanted, rtol=1e-10, atol=0.0)
