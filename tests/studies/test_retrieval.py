"""The layer that learns to retrieve: its loss, its gradients and its optimisers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from studies.retrieval import (
    BATCH,
    KEY,
    N_QUERIES,
    WARM_UP,
    Weights,
    draw_sequences,
    draw_weights,
    loss_and_gradients,
    train,
)

pytestmark = pytest.mark.usefixtures("one_thread")


SEED = 5


def loop_loss(weights, data, divisor, normalised):
    """The loss query by query, in words of the textbook."""

    def project(matrix, x):
        found = matrix.T @ x
        return found / math.sqrt(np.mean(found**2)) if normalised else found

    gain = weights.gain if normalised else 1.0
    total = 0.0
    for b in range(BATCH):
        for i in range(N_QUERIES):
            q = project(weights.queries, data.queries[b, i])
            scores = [
                gain * (q @ project(weights.keys, token)) / divisor
                for token in data.tokens[b]
            ]
            e = [math.exp(s - max(scores)) for s in scores]
            p = [x / sum(e) for x in e]
            out = sum(
                w * token[KEY:] for w, token in zip(p, data.tokens[b], strict=True)
            )
            wanted = data.tokens[b, data.asked[b, i], KEY:]
            total += float(np.mean((out - wanted) ** 2))
    return total / (BATCH * N_QUERIES)


def weights_with_gain():
    """Weights, and a gain that is not the one they begin with."""
    return replace(draw_weights(SEED, 8), gain=1.7)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("divisor", [1.0, 4.0])
def test_loss_is_the_textbook_s(divisor, normalised):
    """Matrices at once give what a loop over queries and keys gives."""
    weights, data = weights_with_gain(), draw_sequences(SEED, 0)
    loss, _ = loss_and_gradients(weights, data, divisor, normalised=normalised)
    wanted = loop_loss(weights, data, divisor, normalised)
    assert math.isclose(loss, wanted, rel_tol=1e-12)


def slope_along(weights, data, divisor, normalised, **direction):
    """Change of the loss along a direction of what is learned: a central difference."""
    size = 1e-5

    def at(amount):
        moved = {
            name: getattr(weights, name) + amount * step
            for name, step in direction.items()
        }
        moved = replace(weights, **moved)
        return loss_and_gradients(moved, data, divisor, normalised=normalised)[0]

    return (at(size) - at(-size)) / (2.0 * size)


@pytest.mark.parametrize("side", ["queries", "keys", "gain"])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("divisor", [1.0, 2.5, 16.0])
def test_gradients_are_those_of_the_loss(side, divisor, normalised):
    """Along random directions, to the precision of a central difference.

    A missing 1/c or a divisor that is applied twice would be off by a factor 2.5.
    """
    weights, data = weights_with_gain(), draw_sequences(SEED, 1)
    _, by = loss_and_gradients(weights, data, divisor, normalised=normalised)
    rng = np.random.default_rng(11)
    for _ in range(3):
        direction = rng.standard_normal(np.shape(getattr(weights, side)))
        found = slope_along(weights, data, divisor, normalised, **{side: direction})
        wanted = float(np.sum(getattr(by, side) * direction))
        assert math.isclose(found, wanted, rel_tol=1e-5, abs_tol=1e-9)


def test_a_run_that_diverges_is_a_result():
    """Its losses are infinite from there on, and nothing is raised."""
    run = train(SEED, draw_weights(SEED, 16), 1.0, "sgd", 1e200, steps=5)
    assert np.isinf(run.losses[-1])
    assert math.isfinite(run.losses[0])


def adam_by_hand(epsilon, rate, steps):
    """Weights after some steps of Adam, entry by entry, as its paper has them."""
    data = [draw_sequences(SEED, step) for step in range(steps)]
    start = draw_weights(SEED, 8)
    entries = np.concatenate([start.queries.ravel(), start.keys.ravel()]).tolist()
    means, squares = [0.0] * len(entries), [0.0] * len(entries)
    for t in range(1, steps + 1):
        now = Weights(*np.array(entries).reshape(2, *start.queries.shape))
        _, by = loss_and_gradients(now, data[t - 1], 2.0)
        slopes = [*by.queries.ravel().tolist(), *by.keys.ravel().tolist()]
        for i, g in enumerate(slopes):
            means[i] = 0.9 * means[i] + 0.1 * g
            squares[i] = 0.999 * squares[i] + 0.001 * g * g
            m, v = means[i] / (1.0 - 0.9**t), squares[i] / (1.0 - 0.999**t)
            warm = min(1.0, t / WARM_UP)
            entries[i] -= rate * warm * m / (math.sqrt(v) + epsilon)
    return np.array(entries)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3])
def test_steps_of_adam_are_those_of_its_paper(epsilon):
    """Epsilon beside the root of the squares, not in it: at 1e-3, which is as large as
    these gradients, that moves weights by another amount.
    """
    weights = train(
        SEED, draw_weights(SEED, 8), 2.0, "adam", 0.1, steps=3, epsilon=epsilon
    ).weights
    found = np.concatenate([weights.queries.ravel(), weights.keys.ravel()])
    assert np.abs(found - adam_by_hand(epsilon, 0.1, 3)).max() < 1e-12
