"""The layer of attention that learns to retrieve: its loss, and a run of training.

A token carries a key and a value, both random; a query carries the key of one of the
tokens, and noise.  What attention returns is the mean of the values by its weights, and
the loss its mean squared distance from the value of the token asked for: 0 where all
weight stands there, about 2 where it stands on another token.  V and O are fixed, and
read the value; W_Q and W_K are learned, through softmax and its Jacobian, and of
normalised queries and keys the gain of their product.  Arms that are compared see the
same seeds: the same weights but for their scale, the same sequences.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.divisors import DIVISORS
from montecarlo.claims.training import ARM, ARMS, STEPS
from montecarlo.sampling.streams import named_stream

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Width of a token, and how much of it is its key, of which the smallest d_k that is
#: tried holds the whole; tokens and queries of a sequence, sequences of a step.
WIDTH, KEY = 64, 16
N_KEYS, N_QUERIES, BATCH = 32, 16, 16
WARM_UP = 20
#: Adam's, as in the paper that introduced it.
MEMORY, MEMORY_OF_SQUARES, EPSILON = 0.9, 0.999, 1e-8
#: A run has learned from the step on from which its loss stays below this.
LEARNED = 0.1
#: Steps at the end whose mean is the loss that is left.
LAST = 20
#: What names a setting of an arm, and a run; what is measured of a run.
SETTING = [*ARM, "rate"]
RUN = [*SETTING, "seed"]
OF_RUN = ["steps", "final_loss", "gradient", "update"]


@dataclass(frozen=True, slots=True)
class Sequences:
    """What a step learns from; the same for every arm.

    Attributes
    ----------
    queries : ndarray, shape (BATCH, N_QUERIES, WIDTH)
    tokens : ndarray, shape (BATCH, N_KEYS, WIDTH)
    asked : ndarray of int, shape (BATCH, N_QUERIES)
        Places of the tokens that the queries ask for.
    wanted : ndarray, shape (BATCH, N_QUERIES, WIDTH - KEY)
        Values of these.
    """

    queries: Array
    tokens: Array
    asked: Indices
    wanted: Array


@dataclass(frozen=True, slots=True)
class Weights:
    """W_Q and W_K, each of shape (WIDTH, d_k), and the gain of normalised ones."""

    queries: Array
    keys: Array
    gain: float = 1.0


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
    chosen = np.take_along_axis(tokens, asked[..., None], axis=1)
    queries[..., :KEY] = chosen[..., :KEY]
    return Sequences(queries, tokens, asked, chosen[..., KEY:])


def draw_weights(seed: int, d_k: int, query_std: float = WIDTH**-0.5) -> Weights:
    """Draw W_Q and W_K, the latter so that entries of k have variance 1."""
    rng = named_stream(seed, f"training;retrieval;weights;d_k={d_k}")
    queries, keys = rng.standard_normal((2, WIDTH, d_k))
    return Weights(query_std * queries, WIDTH**-0.5 * keys)


def loss_and_gradients(
    weights: Weights, data: Sequences, divisor: float, *, normalised: bool = False
) -> tuple[float, Weights]:
    """Return the loss of some sequences, and its gradients by what is learned.

    With S = X_q M X_kᵀ / c, M = W_Q W_Kᵀ, p the softmax of its rows, o = p v and the
    loss the mean of (o - v_asked)²: the gradient by o is 2 (o - v_asked) / size, by p
    its product with v, by S (the Jacobian of softmax) p (g - Σ p g), by M
    X_qᵀ (·) X_k / c, and by W_Q and W_K the products of that with the other.

    Normalised: S = a X_q M X_kᵀ / (c r_q r_k) with the gain a and root mean squares
    r_q² = x_q A x_qᵀ / d_k, A = W_Q W_Qᵀ, likewise r_k.  The gradient by a is
    Σ (·) S / a, by A -X_qᵀ w X_q / 2 with w the sums of (·) S over keys by x_q A x_qᵀ.
    """
    values = data.tokens[..., KEY:]
    matrix = weights.queries @ weights.keys.T
    scores = data.queries @ matrix @ data.tokens.swapaxes(1, 2) / divisor
    if normalised:
        d_k = weights.keys.shape[1]
        q_squares, k_squares = (
            np.einsum("bnw,bnw->bn", x @ (w @ w.T), x)
            for x, w in ((data.queries, weights.queries), (data.tokens, weights.keys))
        )
        by_size = d_k / np.sqrt(q_squares[..., None] * k_squares[:, None])
        unit = scores * by_size
        scores = weights.gain * unit
    scores -= scores.max(axis=-1, keepdims=True)
    p = np.exp(scores)
    p /= p.sum(axis=-1, keepdims=True)
    error = p @ values - data.wanted
    loss = float(np.mean(error**2))

    by_weights = (2.0 / error.size) * error @ values.swapaxes(1, 2)
    by_scores = p * (by_weights - (p * by_weights).sum(axis=-1, keepdims=True))
    if normalised:
        by_units = by_scores * unit
        by_scores *= weights.gain * by_size
    by_matrix = _outer(data.queries, by_scores @ data.tokens)
    by_matrix /= divisor
    by_queries, by_keys = by_matrix @ weights.keys, by_matrix.T @ weights.queries
    if not normalised:
        return loss, Weights(by_queries, by_keys, 0.0)
    by_q_squares = -weights.gain * by_units.sum(axis=2) / q_squares
    by_k_squares = -weights.gain * by_units.sum(axis=1) / k_squares
    by_queries += (
        _outer(data.queries, by_q_squares[..., None] * data.queries) @ weights.queries
    )
    by_keys += _outer(data.tokens, by_k_squares[..., None] * data.tokens) @ weights.keys
    return loss, Weights(by_queries, by_keys, float(by_units.sum()))


def _outer(left: Array, right: Array) -> Array:
    """Return the sum of outer products of vectors, over sequences and places."""
    found: Array = np.tensordot(left, right, axes=((0, 1), (0, 1)))
    return found


def train(  # noqa: PLR0913, PLR0917 - what an arm, an optimiser and a rate are
    seed: int,
    weights: Weights,
    divisor: float,
    optimiser: str,
    rate: float,
    steps: int = STEPS,
    epsilon: float = EPSILON,
    draw: Callable[[int, int], Sequences] = draw_sequences,
    *,
    normalised: bool = False,
) -> Run:
    """Train from given weights on the sequences of a seed.

    A loss that is no number ends the run: it diverged, which is a result.
    """
    now, learned = weights, _flat(weights)
    mean, square = np.zeros_like(learned), np.zeros_like(learned)
    losses = np.full(steps, np.inf)
    first = (math.nan, math.nan)
    for step in range(steps):
        with np.errstate(all="ignore"):
            loss, by = loss_and_gradients(
                now, draw(seed, step), divisor, normalised=normalised
            )
            if not math.isfinite(loss):
                break
            losses[step] = loss
            gradient = _flat(by)
            change = gradient
            if optimiser == "adam":
                mean *= MEMORY
                mean += (1.0 - MEMORY) * gradient
                square *= MEMORY_OF_SQUARES
                square += (1.0 - MEMORY_OF_SQUARES) * gradient**2
                change = mean / (1.0 - MEMORY ** (step + 1))
                size = square / (1.0 - MEMORY_OF_SQUARES ** (step + 1))
                np.sqrt(size, out=size)
                size += epsilon
                change /= size
            move = rate * min(1.0, (step + 1) / WARM_UP) * change
            learned = learned - move
            queries, keys = learned[:-1].reshape(2, *weights.queries.shape)
            now = Weights(queries, keys, float(learned[-1]))
            if step == 0:  # of what all arms learn
                gradient, move = gradient[:-1], move[:-1]
                first = (float(np.linalg.norm(gradient)), float(np.linalg.norm(move)))
    return Run(losses, *first, now)


def _flat(weights: Weights) -> Array:
    parts = (weights.queries.ravel(), weights.keys.ravel(), [weights.gain])
    return np.concatenate(parts)


# --- Runs of a seed -------------------------------------------------------------------


def count_steps(losses: Array) -> float:
    """Count the steps until a loss is below `LEARNED` for good; infinite: never.

    One that is below by chance, while the rate still rises, and then leaves has not
    learned, nor one that is not yet below for the `LAST` steps.
    """
    above = np.flatnonzero(~(losses < LEARNED))
    steps = int(above[-1]) + 1 if above.size else 0
    return steps if steps <= len(losses) - LAST else math.inf


def run_setting(
    seed: int,
    setting: tuple[str, str, int, float],
    steps: int = STEPS,
    draw: Callable[[int, int], Sequences] = draw_sequences,
) -> dict[str, Any]:
    """Train one setting; returns its line of raw runs."""
    optimiser, arm, d_k, rate = setting
    std = (WIDTH * (d_k if arm == "small-queries" else 1)) ** -0.5
    weights, divisor = draw_weights(seed, d_k, std), DIVISORS[ARMS[arm]].value(d_k)
    run = train(
        *(seed, weights, divisor, optimiser, rate, steps),
        draw=draw,
        normalised=arm == "normalised",
    )
    final = float(np.mean(run.losses[-LAST:]))
    measured = (count_steps(run.losses), final, run.gradient, run.update)
    names = (*setting, seed, *measured)
    return dict(zip((*RUN, *OF_RUN), names, strict=True))
