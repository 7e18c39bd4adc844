"""Queries and keys that are normalised: lengths, gains, and what stays as it was."""

import math
from dataclasses import replace

import numpy as np
import pytest

from montecarlo.attention.rows import RowBlock
from montecarlo.sampling.design_points import (
    parse_normalisation,
    parse_point,
    stream,
)
from montecarlo.sampling.matrices import draw_matrices, normalise
from montecarlo.sampling.replicates import (
    PAIR_MEANS,
    pair_means,
    score_blocks,
    score_moments,
)

INITIALISATION = "init(kind=he_normal,norm=layer,shape=full,width=32)"


def drawn(normalisation, *, distribution="gaussian", d_k=16, **more):
    """Q and K of a replicate."""
    point = parse_point(
        distribution, distribution, d_k, normalisation=normalisation, **more
    )
    return draw_matrices(point, 1, 0)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"distribution": "student_t3"},
        {"distribution": "gaussian(mean=2.0,std=0.01)"},
        {"n_keys": 32, "dependence": "planted(0.5)"},
        {"dependence": "pairs(0.5)", "distribution": "laplace"},
        {"initialisation": INITIALISATION},
    ],
)
@pytest.mark.parametrize(
    ("normalisation", "length"), [("l2(gain=10)", 1.0), ("rms(gain=3)", 4.0)]
)
def test_lengths(normalisation, length, more):
    """Every query and key has the length, whatever is drawn; a gain changes none."""
    for vectors in drawn(normalisation, **more):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
        assert vectors.dtype == np.float32
        assert lengths == pytest.approx(length, rel=3e-7)


def test_a_row_of_zeros_stays_one():
    """No division by 0: in one dimension a draw is 0 now and then."""
    vectors = np.array([[0.0], [-3.0]], np.float32)
    found = normalise(vectors, parse_normalisation("rms"))
    assert found.tolist() == [[0.0], [-1.0]]


def test_planted_keys_are_correlated_before():
    """Query i and key i share entries that were correlated as they were drawn."""
    q, k = drawn("l2", d_k=4096, n_keys=16, dependence="planted(0.6)")
    cosines = np.vecdot(q, k[: len(q)])
    assert cosines == pytest.approx(0.6, abs=6 / math.sqrt(4096))


def test_the_gain_multiplies_the_product_once():
    """Of pairs: scores, but no entries; of rows: scores and gradients by the query."""
    plain, ten = (
        parse_point("gaussian", "gaussian", 16, normalisation=f"l2(gain={gain})")
        for gain in (1, 10)
    )
    q, k = draw_matrices(ten, 1, 0)
    means = dict(zip(PAIR_MEANS, pair_means(ten, 1, range(1))[0], strict=True))
    scores = 10.0 * (q.astype(np.float64) @ k.astype(np.float64).T)
    assert means["q2"] == pytest.approx((q.astype(np.float64) ** 2).mean())
    assert means["abs"] == pytest.approx(np.abs(scores).mean(), rel=1e-5)
    assert score_moments(ten) == (0.0, pytest.approx(100.0 / 16.0))
    assert score_moments(plain) == (0.0, pytest.approx(1.0 / 16.0))

    rows = replace(ten, n_keys=32)
    matrices = [draw_matrices(rows, 1, 0)]
    (scored,) = score_blocks(rows, 1, range(1), matrices)
    block = RowBlock(scored, 2.0)
    q, k = (x.astype(np.float64) for x in draw_matrices(rows, 1, 0))
    scores = 10.0 * q @ k.T
    assert block.sums.raw_largest[0] == pytest.approx(scores.max(axis=1), rel=1e-5)
    v = stream(1, rows, 0, "v").standard_normal(32)
    weights = np.exp(scores[0] / 2.0) / np.exp(scores[0] / 2.0).sum()
    gradient = 10.0 * k.T @ (weights * (v - weights @ v)) / 2.0
    assert block.gradient_query[0, 0] == pytest.approx(
        np.linalg.norm(gradient), rel=1e-5
    )


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("none", "none"),
        ("l2", "l2"),
        ("l2(gain=1)", "l2"),
        ("rms ( gain = 1e1 )", "rms(gain=10.0)"),
        ("l2(gain=0.00001)", "l2(gain=1e-05)"),
    ],
)
def test_names(typed, name):
    """A canonical name stands for itself; a gain of 1 is left out."""
    assert parse_normalisation(typed).name == name
    assert parse_normalisation(name).name == name


def test_unknown_variances_leave_the_gap_undefined():
    """Of dependent pairs, and of entries with a mean on both sides."""
    for names, more in (
        (("gaussian", "gaussian"), {"dependence": "pairs(0.5)"}),
        (("uniform(mean=1.0)", "laplace(mean=1.0)"), {}),
    ):
        point = parse_point(*names, 8, normalisation="l2", **more)
        assert math.isinf(score_moments(point)[1])
        assert np.isnan(pair_means(point, 1, range(1))[0, -1])
