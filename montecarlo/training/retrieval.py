"""Retrieval: one layer of attention that learns which token a query asks for.

A token carries a key and a value, both random; a query carries the key of one of the
tokens, and noise.  What attention returns is the mean of the values by its weights, and
the loss its mean squared distance from the value of the token asked for: 0 where all
weight stands there, about 2 where it stands on another token.  V and O are fixed, and
read the value; W_Q and W_K are learned, through softmax and its Jacobian.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from montecarlo.sampling.streams import named_stream

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Optimiser = Literal["sgd", "adam"]

#: Width of a token, and how much of it is its key, of which the smallest d_k that is
#: tried holds the whole; tokens and queries of a sequence, sequences of a step.
WIDTH, KEY = 64, 16
N_KEYS, N_QUERIES, BATCH = 32, 16, 16
STEPS, WARM_UP = 300, 20
#: Adam's, as in the paper that introduced it.
MEMORY, MEMORY_OF_SQUARES, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True, slots=True)
class Sequences:
    """What a step learns from; the same for every arm.

    Attributes
    ----------
    queries : ndarray, shape (BATCH, N_QUERIES, WIDTH)
    tokens : ndarray, shape (BATCH, N_KEYS, WIDTH)
    asked : ndarray of int, shape (BATCH, N_QUERIES)
        Places of the tokens that the queries ask for.
    """

    queries: Array
    tokens: Array
    asked: Indices


@dataclass(frozen=True, slots=True)
class Weights:
    """W_Q and W_K, each of shape (WIDTH, d_k)."""

    queries: Array
    keys: Array


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one seed.

    Attributes
    ----------
    losses : ndarray, shape (steps,)
        Of each step's batch, before the step; infinite from where it diverged.
    gradient, update : float
        Norms over W_Q and W_K, of the first step.
    weights : Weights
        At the end.
    """

    losses: Array
    gradient: float
    update: float
    weights: Weights


def draw_sequences(seed: int, step: int) -> Sequences:
    """Draw what a step of a seed learns from; entries have variance 1.

    Keys have length sqrt(KEY), so that no token answers where another is asked for.
    """
    rng = named_stream(seed, f"training;retrieval;step={step}")
    tokens = rng.standard_normal((BATCH, N_KEYS, WIDTH))
    queries = rng.standard_normal((BATCH, N_QUERIES, WIDTH))
    keys = tokens[..., :KEY]
    keys *= math.sqrt(KEY) / np.linalg.norm(keys, axis=-1, keepdims=True)
    asked = rng.random((BATCH, N_KEYS)).argsort(axis=-1)[:, :N_QUERIES]
    queries[..., :KEY] = np.take_along_axis(keys, asked[..., None], axis=1)
    return Sequences(queries, tokens, asked)


def draw_weights(seed: int, d_k: int, query_std: float = WIDTH**-0.5) -> Weights:
    """Draw W_Q and W_K, the latter so that entries of k have variance 1."""
    rng = named_stream(seed, f"training;retrieval;weights;d_k={d_k}")
    queries, keys = rng.standard_normal((2, WIDTH, d_k))
    return Weights(query_std * queries, WIDTH**-0.5 * keys)


def loss_and_gradients(
    weights: Weights, data: Sequences, divisor: float
) -> tuple[float, Weights]:
    """Return the loss of some sequences, and its gradients by W_Q and W_K.

    With S = X_q M X_kᵀ / c, M = W_Q W_Kᵀ, p the softmax of its rows, o = p v and the
    loss the mean of (o - v_asked)²: the gradient by o is 2 (o - v_asked) / size, by p
    its product with v, by S (the Jacobian of softmax) p (g - Σ p g), by M
    X_qᵀ (·) X_k / c, and by W_Q and W_K the products of that with the other.
    """
    values = data.tokens[..., KEY:]
    matrix = weights.queries @ weights.keys.T
    scores = data.queries @ matrix @ data.tokens.swapaxes(1, 2) / divisor
    scores -= scores.max(axis=-1, keepdims=True)
    p = np.exp(scores)
    p /= p.sum(axis=-1, keepdims=True)
    error = p @ values - np.take_along_axis(values, data.asked[..., None], axis=1)
    loss = float(np.mean(error**2))

    by_weights = (2.0 / error.size) * error @ values.swapaxes(1, 2)
    by_scores = p * (by_weights - (p * by_weights).sum(axis=-1, keepdims=True))
    by_matrix = np.tensordot(
        data.queries, by_scores @ data.tokens, axes=((0, 1), (0, 1))
    )
    by_matrix /= divisor
    return loss, Weights(by_matrix @ weights.keys, by_matrix.T @ weights.queries)


def train(  # noqa: PLR0913, PLR0917 - what an arm, an optimiser and a rate are
    seed: int,
    weights: Weights,
    divisor: float,
    optimiser: Optimiser,
    rate: float,
    steps: int = STEPS,
    epsilon: float = EPSILON,
    draw: Callable[[int, int], Sequences] = draw_sequences,
) -> Run:
    """Train from given weights on the sequences of a seed.

    A loss that is no number ends the run: it diverged, which is a result.
    """
    learned = np.stack([weights.queries, weights.keys])
    mean, square = np.zeros_like(learned), np.zeros_like(learned)
    losses = np.full(steps, np.inf)
    first = (math.nan, math.nan)
    for step in range(steps):
        with np.errstate(all="ignore"):
            loss, by = loss_and_gradients(Weights(*learned), draw(seed, step), divisor)
            if not math.isfinite(loss):
                break
            losses[step] = loss
            gradient = np.stack([by.queries, by.keys])
            change = gradient
            if optimiser == "adam":
                mean = MEMORY * mean + (1.0 - MEMORY) * gradient
                square *= MEMORY_OF_SQUARES
                square += (1.0 - MEMORY_OF_SQUARES) * gradient**2
                unbiased = mean / (1.0 - MEMORY ** (step + 1))
                size = np.sqrt(square / (1.0 - MEMORY_OF_SQUARES ** (step + 1)))
                change = unbiased / (size + epsilon)
            move = rate * min(1.0, (step + 1) / WARM_UP) * change
            learned = learned - move
            if step == 0:
                first = (float(np.linalg.norm(gradient)), float(np.linalg.norm(move)))
    return Run(losses, *first, Weights(*learned))
