"""Sampled data with known faults comes back with the right diagnosis."""

import math
from itertools import combinations

import numpy as np
import pytest

from montecarlo.model.arrays import open_arrays
from montecarlo.model.observing import (
    HeadEstimate,
    observe_model,
    state_of,
)

D_K, SEQUENCES, TOKENS = 32, 48, 64
#: What a fault alone adds to the variance of q·k, as a part of it.
SIZE = 0.2
FAULTS = ("entries", "anisotropy", "mean_q", "mean_k", "correlation")
#: Each interval misses on a side with this probability: 80 of them, once in 10,000.
RATE = 6e-7
ROOT_D = float(np.sqrt(D_K))


def sampled(faults, seed=1):
    """Draw queries and keys with faults, each of the size that adds 20 %."""
    rng = np.random.default_rng(seed)
    shape = (SEQUENCES, TOKENS, D_K)
    q, noise = rng.normal(size=shape), rng.normal(size=shape)
    rho = np.sqrt(SIZE) if "correlation" in faults else 0.0
    k = rho * q + np.sqrt(1.0 - rho**2) * noise
    if "anisotropy" in faults:
        # half of the variances 1 + a, half 1 - a: tr Σ² = d (1 + a²)
        away = np.sqrt(SIZE) * np.repeat([1.0, -1.0], D_K // 2)
        q, k = (x * np.sqrt(1.0 + away) for x in (q, k))
    if "entries" in faults:
        q = q * np.sqrt(1.0 + SIZE)
    scale = np.sqrt(1.0 + SIZE) if "entries" in faults else 1.0
    if "mean_q" in faults:
        q = q + scale * np.sqrt(SIZE)  # relative to the entries' own variance
    if "mean_k" in faults:
        k = k + np.sqrt(SIZE)
    return q, k


def opened(q, k):
    """Return a model of one head."""
    return open_arrays({"q": q, "k": k}, axes=("sequence", "token", "d"))


def diagnosed(faults, seed=1):
    """Return a sampled head's diagnosis and quantities."""
    model = opened(*sampled(faults, seed))
    (view,) = observe_model(model, ROOT_D).heads
    return view


@pytest.mark.parametrize(
    "faults", [(), *combinations(FAULTS, 1), *combinations(FAULTS, 2)]
)
def test_planted_faults_are_named(faults):
    """What is planted fails, nothing else does, and each part has its size."""
    view = diagnosed(faults)
    failing = {fault.name for fault in view.failing}
    # keys like the query at its own place make pairs of a sequence more alike, by
    # 1/TOKENS of what they do there
    assert failing - {"sequence"} == set(faults)
    if "correlation" not in faults:
        assert "sequence" not in failing
    for fault in view.assumptions:
        planted = 1.0 + SIZE * (fault.name in faults)
        if fault.name == "sequence":
            continue
        low, high = fault.factor.interval(RATE)
        assert low <= planted <= high, fault.name
        # 20 % is told from nothing, and from 40 %
        assert high - low < 0.95 * SIZE, fault.name


@pytest.mark.parametrize(
    ("scale", "state"),
    [(0.1, "flat"), (1.0, "balanced"), (2.5, "peaked"), (40.0, "saturated")],
)
def test_state_follows_the_spread(scale, state):
    """More spread makes rows of weights from flat to saturated."""
    q, k = sampled(())
    model = opened(q * scale, k)
    assert observe_model(model, ROOT_D).heads[0].state == state


def test_saturated_is_half_of_the_rows():
    """By the border of the claims, however large the mean of the largest weights is."""
    found = {
        name: HeadEstimate(value, value, math.nan, 1)
        for name, value in (
            ("effective_share", 0.1),
            ("weight_max", 0.93),
            ("saturated_rows", 0.4),
        )
    }
    assert state_of(found) == "peaked"
    found["saturated_rows"] = found["saturated_rows"]._replace(value=0.5)
    assert state_of(found) == "saturated"


def test_one_sequence_says_nothing_of_sequences():
    """Whether keys of a sequence are its own kind needs another to be compared with."""
    q, k = sampled(("correlation",))
    model = opened(q[:1], k[:1])
    (view,) = observe_model(model, ROOT_D).heads
    assert "sequence" not in {fault.name for fault in view.assumptions}
    assert "sequence" in {fault.name for fault in diagnosed(()).assumptions}
