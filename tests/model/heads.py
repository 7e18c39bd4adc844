"""Heads whose scale is known, computed as models do: every step in a number format."""

import numpy as np
from scipy.special import softmax

from montecarlo.attention.number_formats import ALL_FORMATS
from montecarlo.model.arrays import Rows

TOKENS = 48


def attend(seed, number_format="float32", scale=None, *, shape=(2, TOKENS, 64), **more):
    """Return queries, keys, values, weights and outputs, axes (..., token, d).

    Without a scale it is that of the root of d_k.  What is more than a plain head:
    ``size`` of the entries, ``rows`` (a
    factor of each), ``cap``, ``bias``, ``seen``, ``sink`` (a logit), ``axis`` of
    softmax, ``kept`` (the format of the weights), ``fused`` (scores not rounded).
    """
    rng = np.random.default_rng(seed)
    nearest = ALL_FORMATS[number_format].round
    step = (lambda x: x) if more.get("fused") else nearest
    q, k = (nearest(more.get("size", 1.0) * rng.normal(size=shape)) for _ in "qk")
    v = nearest(rng.normal(size=shape))
    scores = step(q @ k.swapaxes(-1, -2))
    logits = step(scores * (shape[-1] ** -0.5 if scale is None else scale))
    logits *= np.reshape(more.get("rows", 1.0), (-1, 1))
    if "cap" in more:
        logits = step(more["cap"] * np.tanh(logits / more["cap"]))
    logits = step(logits + more.get("bias", 0.0))
    logits = np.where(more.get("seen", True), logits, -np.inf)
    if "sink" in more:
        sink = np.full((*logits.shape[:-1], 1), more["sink"])
        logits = np.concatenate([logits, sink], axis=-1)
    weights = softmax(logits, axis=more.get("axis", -1))[..., : shape[-2]]
    p = ALL_FORMATS[more.get("kept", number_format)].round(weights)
    return {"q": q, "k": k, "v": v, "weights": p, "outputs": nearest(p @ v)}


def weighted(scale, shape, seed=1):
    """Return queries and keys in float64, and the weights of a scale, or of several."""
    q, k = np.random.default_rng(seed).normal(size=(2, *shape))
    weights = softmax(scale * (q @ k.swapaxes(-1, -2)), axis=-1)
    return {"q": q, "k": k, "weights": weights}


def rows_of(arrays):
    """Return rows of each sequence, axes (sequence, token, d)."""
    found = []
    for one in zip(*arrays.values(), strict=True):
        made = dict(zip(arrays, one, strict=True))
        q, k = made["q"], made["k"]
        found.append(Rows(q, k, q @ k.T, np.arange(len(q)), 0, made))
    return found
