"""Runs of one seed: every arm, width, optimiser and rate, from the same start."""

import math

import numpy as np
import pytest

from montecarlo.training.arms import ARMS, D_K, LEARNED, RATES
from montecarlo.training.runs import LAST, count_steps, run_seed


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


BELOW, ABOVE = 0.5 * LEARNED, 2.0 * LEARNED


@pytest.mark.parametrize(
    ("losses", "steps"),
    [
        ([ABOVE] * 7 + [BELOW] * 40, 7),
        ([BELOW] * 40, 0),
        ([ABOVE] * 3 + [BELOW] * 5 + [ABOVE] + [BELOW] * 40, 9),  # left once more
        ([ABOVE] * 7 + [LEARNED] + [BELOW] * 40, 8),  # not yet below
        ([ABOVE] * 7 + [BELOW] * LAST, 7),
        ([ABOVE] * 7 + [BELOW] * (LAST - 1), None),  # not yet for good
        ([ABOVE] * 7 + [BELOW] * 40 + [math.nan], None),
        ([ABOVE] * 7 + [math.inf] * 40, None),
    ],
)
def test_steps_are_those_before_a_loss_is_below_for_good(losses, steps):
    """Of curves that are known: the last loss above is that of the last step."""
    assert count_steps(np.array(losses)) == steps
