"""What looks like another scale and is none: found by somebody who tried to."""

from functools import partial

import numpy as np
import pytest
import scipy.special

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.cli.command_line import ObserveOptions
from montecarlo.model.answers import RTOL
from montecarlo.model.expected import divisors_within
from montecarlo.model.scales import applied_scale

AXES = ("sequence", "token", "d")
nearest = NUMBER_FORMATS["bfloat16"].round


softmax = partial(scipy.special.softmax, axis=-1)


def draw(shape, seed=0, size=1.0):
    """Return queries, keys, and their products."""
    q, k = size * np.random.default_rng(seed).normal(size=(2, *shape))
    return q, k, q @ np.swapaxes(k, -1, -2)


def told(q, k, **made):
    """Return what is told of the one head."""
    return applied_scale(q, k, axes=AXES, **made).iloc[0]


def causal(n):
    """Return what is added for a causal mask."""
    return np.where(np.tri(n, dtype=bool), 0.0, -np.inf)


@pytest.mark.parametrize("hidden", [1, 5])
def test_padded_rows_are_left_out(hidden):
    """Rows of which all keys were hidden by a large number are even, and no scale."""
    q, k, s = draw((4, 16, 32))
    mask = np.zeros((4, 16, 16))
    mask[3, :hidden] = -1e9
    weights = softmax((s / 32**0.5 + mask).astype(np.float32))
    found = told(q, k, weights=weights)
    assert found["outcome"] == "scale"
    assert found["rows_left_out"] == hidden
    assert found["implied_divisor"] == pytest.approx(32**0.5, rel=1e-5)
    weights[2] = 0.0
    found = told(q, k, weights=weights)
    assert (found["outcome"], found["rows_left_out"]) == ("scale", hidden + 16)


def test_scores_that_rounding_hides_are_not_a_scale_of_zero():
    """A small initialisation in bfloat16: too little is left to tell."""
    for size, outcome in ((0.08, "scale"), (0.04, "no_information")):
        q, k = (nearest(x) for x in draw((2, 32, 16), 1, size)[:2])
        weights = nearest(softmax(q @ np.swapaxes(k, -1, -2) / 4))
        assert told(q, k, weights=weights)["outcome"] == outcome


def test_a_cap_that_hardly_bends_widens_the_interval():
    """Scores with a common part in bfloat16: a cap is a line of another slope there."""
    for offset in (10.0, 12.0):
        q, k = np.random.default_rng(0).normal(size=(2, 2, 8, 64, 128))[:, 0]
        q[..., 0], k[..., 0] = offset * 128**0.5 / 8, 8.0
        q, k = nearest(q), nearest(k)
        s = nearest(nearest(q @ np.swapaxes(k, -1, -2)) / 128**0.5)
        logits = nearest(50.0 * np.tanh(s / 50.0)) + causal(64)
        found = told(q, k, weights=nearest(softmax(logits)))
        inside = found["ci_low"] <= 128**-0.5 <= found["ci_high"]
        assert found["outcome"] != "scale" or inside


def test_a_bias_does_not_buy_tolerance():
    """ALiBi with a cap, and a soft mask with keys normalised later: nothing fits."""
    q, k, s = draw((2, 8, 64, 32))
    q, k, s = 0.5 * q[0], k[0], 0.5 * s[0]
    away = np.abs(np.arange(64)[:, None] - np.arange(64))
    capped = 2 * np.tanh(s / 32**0.5 / 2) - 0.5 * away + causal(64)
    found = told(q, k, weights=softmax(capped).astype(np.float32))
    assert found["outcome"] == "no_fit"
    rng = np.random.default_rng(5)
    penalty = np.where(rng.random((8, 1, 64)) < 0.3, -20.0, 0.0)
    other = k * np.exp(0.2 * rng.normal(size=(8, 64, 1)))
    weights = softmax(s / 32**0.5 + penalty)
    assert told(q, other, weights=weights)["outcome"] == "no_fit"


@pytest.mark.parametrize("tokens", [2, 3, 4, 6])
def test_few_pairs_have_no_scale_by_chance(tokens):
    """Of weights of nothing none is told, and to right ones nothing is added."""
    for seed in range(40):
        q, k, s = draw((2, tokens, 8), seed)
        rng = np.random.default_rng((6, seed))
        other = softmax(rng.normal(size=s.shape) + causal(tokens))
        assert told(q, k, weights=other)["outcome"] in {"no_fit", "no_information"}
        right = softmax(s / 8**0.5 + causal(tokens)).astype(np.float32)
        found = told(q, k, weights=right)
        assert found["form"] in {"plain", ""}
        assert found["outcome"] in {"scale", "no_information"}


def test_a_value_is_named_once():
    """Of one head, or one entry, powers of it are no names of their own."""
    names = [one.name for one in divisors_within(3.99, 4.01, 16, 1)]
    assert names == ["sqrt"]
    assert [one.name for one in divisors_within(0.99, 1.01, 1, 4)] == ["none"]
    names = [one.name for one in divisors_within(7.99, 8.01, 64, 64)]
    assert names == ["sqrt", "sqrt_heads"]


@pytest.mark.parametrize("tokens", [2, 3])
def test_few_outputs_have_no_scale_by_chance(tokens):
    """Of outputs that belong to nothing none is told, however few there are."""
    for seed in range(20):
        q, k, _ = draw((1, tokens, 8), seed)
        v, outputs = np.random.default_rng((8, seed)).normal(size=(2, 1, tokens, 2))
        found = told(q, k, v=v, outputs=outputs)
        assert found["outcome"] in {"no_fit", "no_information"}


def test_the_command_s_tolerance_is_the_library_s():
    """It stands twice, so that help need not import what tells scales."""
    assert float(ObserveOptions.rtol) == RTOL
