"""Projections at initialisation: variances of weights, entries and scores; names.

Each comparison with a closed form fails by chance at a rate of 1e-7, and there are
fewer than 60.
"""

import math

import numpy as np
import pytest
import scipy.stats

from montecarlo.sampling import matrices
from montecarlo.sampling.design_points import (
    NORMS,
    SHAPES,
    WEIGHT_KINDS,
    Initialisation,
    parse_initialisation,
    parse_point,
)
from montecarlo.sampling.matrices import project
from montecarlo.theory.moments import projected_variance
from montecarlo.theory.references import reference
from tests.samples import every_column, sample_all

N = 24
LIMIT = float(scipy.stats.t.isf(0.5e-7, N - 1))
WIDTH, D_K = 96, 16


def named(kind="lecun_normal", norm="layer", shape="full", width=WIDTH):
    """The canonical name of an initialisation."""
    return f"init(kind={kind},norm={norm},shape={shape},width={width})"


#: Variances of a weight, by PyTorch's and Keras's definitions, from width and fan out.
VARIANCES = {
    "xavier_uniform": lambda i, o: (6.0 / (i + o)) / 3.0,
    "xavier_normal": lambda i, o: 2.0 / (i + o),
    # kaiming_uniform_ with a = sqrt 5, nn.Linear: bound sqrt(6/((1 + 5) i))
    "kaiming_linear": lambda i, o: (6.0 / ((1.0 + 5.0) * i)) / 3.0,
    "he_normal": lambda i, o: 2.0 / i,
    "lecun_normal": lambda i, o: 1.0 / i,
    "normal_002": lambda i, o: 0.0004,
}
FAN_OUT = {"head": D_K, "full": WIDTH, "fused": 3 * WIDTH}


@pytest.mark.parametrize("kind", WEIGHT_KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_weight_variance(kind, shape):
    """The variance of a weight is what the library's definition gives, and that of an
    entry, for theory, as many times that as tokens are wide.
    """
    expected = VARIANCES[kind](WIDTH, FAN_OUT[shape])

    found = Initialisation(kind, "rms", shape, WIDTH)
    assert found.weight_variance(D_K) == pytest.approx(expected, rel=1e-15)
    assert projected_variance(found, D_K) == pytest.approx(WIDTH * expected, rel=1e-12)


@pytest.mark.parametrize("kind", WEIGHT_KINDS)
@pytest.mark.parametrize("norm", NORMS)
def test_variances_of_entries_and_scores(kind, norm):
    """By width and weight; with a tenth more they are not."""
    shape = "fused" if kind.startswith("xavier") else "full"
    point = parse_point(
        "gaussian", "gaussian", D_K, initialisation=named(kind, norm, shape, WIDTH)
    )
    weight = VARIANCES[kind](WIDTH, FAN_OUT[shape])
    names = [name for _, name in every_column(point, ("none",)).means]
    means = sample_all(point, 7, 0, N, ("none",)).means
    expected = {
        "q2": WIDTH * weight,
        "k2": WIDTH * weight,
        "s2": D_K * (WIDTH * weight) ** 2,
        "s": 0.0,
    }
    for name, value in expected.items():
        values = means[:, names.index(name)]
        limit = LIMIT * values.std(ddof=1) / math.sqrt(N)
        assert abs(values.mean() - value) < limit, name
        if name in ("q2", "k2"):
            assert abs(1.1 * values.mean() - value) > 1.1 * limit, name
    assert reference("score_variance", point, "sqrt", "value").value == (
        pytest.approx(expected["s2"] / D_K, rel=1e-12)
    )


def tokens_of(norm, monkeypatch):
    """The normalised tokens that `project` makes: the projection is the identity."""
    distribution = matrices.DISTRIBUTIONS["gaussian"]
    rng = np.random.default_rng(8)
    drawn = distribution.draw(rng, (50, WIDTH)) * np.float32(3.0) + np.float32(2.0)
    draws = iter([drawn.copy(), np.eye(WIDTH, dtype=np.float32)])
    fixed = type(distribution)("gaussian", lambda rng, shape: next(draws), 3.0)
    monkeypatch.setattr(matrices, "DISTRIBUTIONS", {"gaussian": fixed})
    initialisation = Initialisation("lecun_normal", norm, "full", WIDTH)
    return drawn, project(initialisation, 50, WIDTH, rng) * math.sqrt(WIDTH)


@pytest.mark.parametrize("norm", NORMS)
def test_norms(norm, monkeypatch):
    """LayerNorm by mean and deviation, RMSNorm by the root of the mean square."""
    drawn, tokens = tokens_of(norm, monkeypatch)
    if norm == "layer":
        drawn = drawn - drawn.mean(axis=1, keepdims=True)
    size = np.sqrt(np.square(drawn, dtype=np.float64).mean(axis=1, keepdims=True))

    assert tokens == pytest.approx(drawn / size, rel=1e-4, abs=1e-4)


def test_other_ways_to_write_an_initialisation():
    """Blanks and leading zeros are no other initialisation."""
    written = "init(kind=he_normal, norm=rms, shape=head, width=0512)"

    assert parse_initialisation(written).name == named("he_normal", "rms", "head", 512)
    one = parse_point("gaussian", "gaussian", 8, initialisation=written)
    assert one.initialisation.name == named("he_normal", "rms", "head", 512)
