"""What the divisor is worth: the same training with another one, made up for.

With c times the divisor's inverse, W_Q and W_K divided by sqrt(c) and their rate by a
power of c, a network goes the same way: of gradient descent the power is 1, of Adam,
which divides the gradient by its size, the half.  A factor of 4 to a whole power is
exact in floating point, so that then all weights are equal to the bit.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from montecarlo.attention.divisors import DIVISORS
from montecarlo.training.arms import D_K
from montecarlo.training.retrieval import (
    Optimiser,
    Run,
    Sequences,
    Weights,
    draw_sequences,
    draw_weights,
    train,
)

#: The power of c that the rate is divided by.
EXPONENTS: dict[Optimiser, float] = {"sgd": 1.0, "adam": 0.5}
FACTORS = (3.0, 4.0, 10.0, 16.0)
#: At which all learn well; the seed is neither for choosing rates nor judged.
RATE: dict[Optimiser, float] = {"sgd": 3.0, "adam": 0.01}
SEED, STEPS = 50, 100
#: Adam's, too small to act.
NO_EPSILON = 1e-30


@dataclass(frozen=True, slots=True)
class Rescaled:
    """How far a rescaled run went from the plain one.

    Attributes
    ----------
    optimiser : str
    d_k : int
    factor : float
        c, by which the divisor was smaller.
    steps : int
    weights : float
        Largest absolute difference of any weight, at the end.
    loss : float
        Largest relative difference of the loss, at any step.
    """

    optimiser: Optimiser
    d_k: int
    factor: float
    steps: int
    weights: float
    loss: float


def measure_rescaled(
    exponents: Mapping[Optimiser, float] = EXPONENTS, steps: int = STEPS
) -> Iterator[Rescaled]:
    """Train with divisors that are smaller by `FACTORS`, for the least and largest d_k.

    Parameters
    ----------
    exponents : mapping, optional
        Others than the theorem's show that they matter.
    steps : int
    """
    draw = lru_cache(maxsize=steps)(draw_sequences)
    for optimiser, exponent in exponents.items():
        for d_k in (D_K[0], D_K[-1]):
            run = partial(_train_rescaled, optimiser, d_k, exponent, steps, draw)
            plain = run(1.0)
            for factor in FACTORS:
                other = run(factor)
                off = (
                    math.sqrt(factor) * now - before
                    for now, before in (
                        (other.weights.queries, plain.weights.queries),
                        (other.weights.keys, plain.weights.keys),
                    )
                )
                weights = max(float(np.abs(one).max()) for one in off)
                loss = float(np.abs(other.losses / plain.losses - 1.0).max())
                yield Rescaled(optimiser, d_k, factor, steps, weights, loss)


def _train_rescaled(  # noqa: PLR0913, PLR0917 - what a run is
    optimiser: Optimiser,
    d_k: int,
    exponent: float,
    steps: int,
    draw: Callable[[int, int], Sequences],
    factor: float,
) -> Run:
    drawn, root = draw_weights(SEED, d_k), math.sqrt(factor)
    return train(
        SEED,
        Weights(drawn.queries / root, drawn.keys / root),
        DIVISORS["sqrt"].value(d_k) / factor,
        optimiser,
        RATE[optimiser] / factor**exponent,
        steps,
        NO_EPSILON,
        draw,
    )
