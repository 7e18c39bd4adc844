"""Heads whose scale is known, computed as models do: every step in a number format."""

import numpy as np
import pytest
from scipy.special import softmax

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.model.arrays import Rows

TOKENS, D_K = 48, 64
SEQUENCES = 2


def rotate(x):
    """Apply rotary embeddings, the halves of an entry's pair apart."""
    tokens, d_k = x.shape
    angles = np.arange(tokens)[:, None] * 1e4 ** (-np.arange(0, d_k, 2) / d_k)
    first, second = x[:, : d_k // 2], x[:, d_k // 2 :]
    turned = (
        first * np.cos(angles) - second * np.sin(angles),
        first * np.sin(angles) + second * np.cos(angles),
    )
    return np.concatenate(turned, axis=1)


def attend(rng, number_format, *, tokens, d_k, scale, added):
    """Attend over one sequence; returns its rows.

    What is added to a plain head is given by name: ``bias`` (i, j -> logit), ``cap``,
    ``sink`` (a logit), ``seen`` (i, j -> bool), ``change`` (entries -> entries, after
    the capture), ``by_row`` (a factor of each row), ``size`` of the entries.
    """
    nearest = NUMBER_FORMATS[number_format].round
    size = added.get("size", 1.0)
    q, k = (nearest(rng.normal(size=(tokens, d_k)) * size) for _ in "qk")
    v = nearest(rng.normal(size=(tokens, d_k)))
    change = added.get("change", lambda x: x)
    logits = nearest(nearest(change(q) @ change(k).T) * scale)
    i, j = np.arange(tokens)[:, None], np.arange(tokens)
    if "by_row" in added:
        logits = logits * added["by_row"][:, None]
    if "cap" in added:
        logits = nearest(added["cap"] * np.tanh(logits / added["cap"]))
    if "bias" in added:
        logits = nearest(logits + added["bias"](i, j))
    if "seen" in added:
        logits = np.where(added["seen"](i, j), logits, -np.inf)
    if "sink" in added:
        logits = np.concatenate([logits, np.full((tokens, 1), added["sink"])], axis=1)
    p = nearest(softmax(logits, axis=1))[:, :tokens]
    made = {"weights": p, "v": v, "outputs": nearest(p @ v)}
    return Rows(q, k, q @ k.T, np.arange(tokens), 0, made)


@pytest.fixture
def make_head():
    """Return what makes a head: rows of some sequences, with weights and outputs."""

    def make(  # noqa: PLR0917
        rng, number_format, scale, tokens=TOKENS, d_k=D_K, sequences=SEQUENCES, **added
    ):
        return [
            attend(rng, number_format, tokens=tokens, d_k=d_k, scale=scale, added=added)
            for _ in range(sequences)
        ]

    return make


@pytest.fixture
def turn():
    """Return what turns entries as rotary embeddings do."""
    return rotate
