"""Runs of one seed: every arm, width, optimiser and rate, from the same start."""

import math

from montecarlo.training.arms import ARMS, D_K, RATES
from montecarlo.training.runs import run_seed


def test_every_combination_is_run_from_the_same_start():
    """Before the first step the loss and gradient of an arm know no rate."""
    trials = list(run_seed(5, steps=2))
    names = [(one.optimiser, one.arm, one.d_k, one.rate) for one in trials]
    wanted = len(ARMS) * len(D_K) * sum(map(len, RATES.values()))
    assert len(set(names)) == len(names) == wanted
    starts = {}
    for one in trials:
        starts.setdefault((one.arm, one.d_k), set()).add((one.losses[0], one.gradient))
        assert one.steps is None  # two steps of a warm-up teach nothing
        if one.optimiser == "sgd":  # a step is the rate, warmed up, times the gradient
            assert math.isclose(one.update, one.rate / 20 * one.gradient)
    assert {len(found) for found in starts.values()} == {1}
    assert len({loss for found in starts.values() for loss, _ in found}) > len(D_K)
