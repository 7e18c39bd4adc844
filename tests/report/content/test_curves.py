"""Curves: the exact distribution of scores, and rows as they were drawn."""

import numpy as np
import pandas as pd
from scipy.special import ndtr

from montecarlo.report.content.curves import (
    CURVES,
    DISTRIBUTION_D_K,
    DISTRIBUTION_SCORES,
    EXAMPLE,
    EXAMPLE_POINT,
    EXAMPLE_QUERIES,
    SCORE_DISTRIBUTION,
    example_weights,
    score_distributions,
)
from montecarlo.sampling.matrices import draw_matrices


def test_curves_of_the_exact_distribution():
    """Odd about 0, smaller for larger d_k, and what a simulation of d_k = 1 finds."""
    table = pd.DataFrame(score_distributions(), columns=CURVES[SCORE_DISTRIBUTION])
    gaps = table.groupby("d_k")["distribution_gap"]
    by_d_k = {d_k: rows.to_numpy() for d_k, rows in gaps}

    assert tuple(by_d_k) == DISTRIBUTION_D_K
    for gap in by_d_k.values():
        np.testing.assert_allclose(gap, -gap[::-1], atol=1e-12)
    largest = [np.abs(gap).max() for gap in by_d_k.values()]
    assert sorted(largest, reverse=True) == largest
    q, k = np.random.default_rng(5).standard_normal((2, 1_000_000))
    x = 0.5
    share = np.mean(q * k <= x) - ndtr(x)
    # five standard errors of a share
    assert abs(share - by_d_k[1][DISTRIBUTION_SCORES.tolist().index(x)]) < 5 * 0.5e-3


def weights_of(seed, divisor):
    """Weights of the curve of a divisor, shape (queries, keys)."""
    table = pd.DataFrame(example_weights(seed), columns=CURVES[EXAMPLE])
    mine = table[table["divisor"].eq(divisor)]
    assert mine["weight_number"].tolist() == list(range(EXAMPLE_QUERIES * 128))
    return mine["weight"].to_numpy().reshape(EXAMPLE_QUERIES, 128)


def test_example_is_softmax_of_the_study_s_own_draws():
    """Weights are those of the first replicate's first queries, keys as drawn."""
    q, k = draw_matrices(EXAMPLE_POINT, 7, 0)
    scores = q[:EXAMPLE_QUERIES].astype(float) @ k.T.astype(float)
    for divisor, c in (("none", 1.0), ("sqrt", 8.0)):
        e = np.exp((scores - scores.max(axis=1, keepdims=True)) / c)
        wanted = e / e.sum(axis=1, keepdims=True)
        assert np.allclose(weights_of(7, divisor), wanted, rtol=1e-10, atol=0.0)
