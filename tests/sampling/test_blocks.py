"""Blocks of pairs: what the distribution of a score is standardised by."""

import math

import numpy as np
import pytest
import scipy.special

from montecarlo.attention.quantities import PAIR_MEANS
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.sampling.replicates import pair_means, score_moments

SEED = 23


def projected(kind, shape):
    """Queries and keys of 16 entries behind a projection from 48."""
    name = f"init(kind={kind},norm=rms,shape={shape},width=48)"
    return parse_point("gaussian", "gaussian", 16, initialisation=name)


def matching(distribution, rho):
    """Matching pairs of 16 entries."""
    return parse_point(distribution, distribution, 16, None, f"pairs({rho})")


#: Mean and variance of a score, by hand.
MOMENTS = [
    (parse_point("gaussian", "gaussian", 16), 0, 16),
    (parse_point("gaussian(std=2.0)", "laplace(std=3.0)", 4), 0, 4 * (4 * 9)),
    (parse_point("gaussian(mean=0.5)", "gaussian(mean=2.0)", 16), 16, 16 * 5.25),
    (parse_point("gaussian(mean=0.5)", "uniform(std=2.0)", 16), 0, 16 * 4 * 1.25),
    (projected("he_normal", "full"), 0, 16 * 2**2),
    (projected("xavier_uniform", "fused"), 0, 16 * (2 * 48 / (48 + 144)) ** 2),
    (projected("xavier_uniform", "head"), 0, 16 * (2 * 48 / (48 + 16)) ** 2),
    (matching("gaussian", 0.5), 8, 16 * 1.25),
    (matching("rademacher", 0.5), 8, 16 * 0.75),
    (matching("laplace(mean=1.0)", 0.25), 20, 16 * (1 + 1 + 0.5 + 2.25 - 0.0625)),
]
IDS = [point.name for point, _, _ in MOMENTS]


@pytest.mark.parametrize(("point", "mean", "variance"), MOMENTS, ids=IDS)
def test_moments(point, mean, variance):
    """Mean and variance of a score are those found by hand."""
    assert score_moments(point) == pytest.approx((mean, variance), rel=1e-12)


@pytest.mark.parametrize(("point", "mean", "variance"), MOMENTS, ids=IDS)
def test_gap_is_that_of_the_standardised_score(point, mean, variance):
    """The gap counts how many scores, less their mean and over their standard
    deviation, are at most 0.742: whatever the distributions, the dependence and the
    projection.
    """
    q, k = (x.astype(np.float64) for x in draw_matrices(point, SEED, 1))
    pairs = point.dependence.kind != "none"
    scores = (q * k).sum(axis=1) if pairs else q @ k.T
    standard = (scores - mean) / math.sqrt(variance)
    expected = (standard <= 0.742).mean() - scipy.special.ndtr(0.742)
    edge = (abs(standard - 0.742) < 1e-5).mean()  # float32 may say otherwise
    (found,) = pair_means(point, SEED, range(1, 2))[:, PAIR_MEANS.index("gap")]

    assert abs(found - expected) <= edge + 1e-12
    assert edge < 0.001
    assert abs(found) < 0.15


def test_distribution_without_a_variance_has_no_gap():
    """Copied entries without a fourth moment: scores cannot be standardised."""
    means = pair_means(matching("student_t3", 0.5), SEED, range(2))
    column = PAIR_MEANS.index("gap")

    assert np.isnan(means[:, column]).all()
    assert np.isfinite(np.delete(means, column, axis=1)).all()
