"""Runs of one seed under all arms, rates and widths of a head; and their table.

In: a seed.  Out: a line for each run: when it had learned, its loss at the end, and how
large its first gradient and first step were.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from montecarlo.training.arms import ARMS, D_K, LEARNED, RATES
from montecarlo.training.retrieval import (
    STEPS,
    Array,
    Optimiser,
    draw_sequences,
    draw_weights,
    train,
)

#: Steps at the end whose mean is the loss that is left.
LAST = 20


@dataclass(frozen=True, slots=True)
class Trial:
    """One run, and what became of it.

    Attributes
    ----------
    optimiser, arm : str
    d_k : int
    rate : float
    seed : int
    steps : int or None
        Steps until the loss was below `LEARNED` for good; None: never, or not yet for
        the `LAST` steps.
    final_loss : float
        Mean over the `LAST` steps; infinite for a run that diverged.
    gradient, update : float
        Norms over W_Q and W_K, of the first step.
    losses : ndarray, shape (STEPS,)
    """

    optimiser: Optimiser
    arm: str
    d_k: int
    rate: float
    seed: int
    steps: int | None
    final_loss: float
    gradient: float
    update: float
    losses: Array


def count_steps(losses: Array) -> int | None:
    """Count the steps until a loss is below `LEARNED` for good.

    One that is below by chance, while the rate still rises, and then leaves has not
    learned.
    """
    above = np.flatnonzero(~(losses < LEARNED))
    steps = int(above[-1]) + 1 if above.size else 0
    return steps if steps <= len(losses) - LAST else None


def run_seed(seed: int, steps: int = STEPS) -> Iterator[Trial]:
    """Train each arm at each rate from the weights, and on the sequences, of a seed."""
    sequences = lru_cache(maxsize=steps)(draw_sequences)
    for d_k in D_K:
        for arm in ARMS.values():
            weights = draw_weights(seed, d_k, arm.query_std(d_k))
            for optimiser, rates in RATES.items():
                for rate in rates:
                    run = train(
                        seed,
                        weights,
                        arm.divide_by(d_k),
                        optimiser,
                        rate,
                        steps,
                        draw=sequences,
                    )
                    yield Trial(
                        optimiser,
                        arm.name,
                        d_k,
                        rate,
                        seed,
                        count_steps(run.losses),
                        float(np.mean(run.losses[-LAST:])),
                        run.gradient,
                        run.update,
                        run.losses,
                    )
