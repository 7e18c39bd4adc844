"""Attention weights alone: each of what they say, planted."""

import numpy as np
import pytest
from scipy.special import softmax

from montecarlo import attention_maps
from montecarlo.errors import InputError

SCORES = np.random.default_rng(1).normal(size=(2, 3, 12, 12))  # sequence, head, ...
AXES = ("sequence", "head", "token", "d")
CAUSAL = np.where(np.tri(12, dtype=bool), SCORES, -np.inf)


def head_of(weights):
    """Return the last row of the table."""
    return attention_maps(weights, AXES).iloc[-1]


def test_rows_are_as_written_out():
    """Of a causal head, from its own weights."""
    weights = softmax(CAUSAL, axis=-1)
    found, p = head_of(weights), weights[:, -1].reshape(-1, 12)
    entropy = -(p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=1)
    assert tuple(found[:2]) == (0, 2)
    assert found["entropy"] == pytest.approx(entropy.mean())
    assert found["effective_keys"] == pytest.approx(np.exp(entropy).mean())
    assert found["weight_max"] == pytest.approx(p.max(axis=1).mean())
    assert found["first_key"] == pytest.approx(p[:, 0].mean())
    assert tuple(found[-3:]) == (pytest.approx(1.0), "causal", "keys")


def test_sinks_axes_and_signs_are_told():
    """Weight that is elsewhere, softmax over the queries, and what is no weight."""
    with_sink = np.exp(SCORES) / (np.exp(SCORES).sum(axis=-1, keepdims=True) + 4.0)
    found = head_of(with_sink)
    assert (found["mask"], found["softmax"]) == ("none", "")
    assert found["row_sum"] == pytest.approx(with_sink[:, -1].sum(axis=-1).mean())
    for some in (SCORES, SCORES[:, :, :1]):  # rows add up to 12 on average
        assert head_of(softmax(some, axis=-2))["softmax"] == "queries"
    with pytest.raises(InputError, match="weights must be at least 0"):
        attention_maps(SCORES, AXES)
