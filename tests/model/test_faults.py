"""Sampled data with known faults has the parts of the variance that these make."""

import math
from itertools import combinations

import numpy as np
import pytest

from montecarlo.model.arrays import open_arrays
from montecarlo.model.observing import HeadEstimate, head_state, observe_model

D_K, SEQUENCES, TOKENS = 32, 48, 64
#: What a fault alone adds to the variance of q·k, as a part of it.
SIZE = 0.2
FAULTS = ("entries", "anisotropy", "mean_q", "mean_k")
#: Each interval misses on a side with this probability: 44 of them, once in 20,000.
RATE = 6e-7
ROOT_D = float(np.sqrt(D_K))


def sampled(faults, seed=1):
    """Draw queries and keys with faults, each of the size that adds 20 %."""
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, SEQUENCES, TOKENS, D_K))
    if "anisotropy" in faults:
        # half of the variances 1 + a, half 1 - a: tr Σ² = d (1 + a²)
        away = np.sqrt(SIZE) * np.repeat([1.0, -1.0], D_K // 2)
        q, k = (x * np.sqrt(1.0 + away) for x in (q, k))
    scale = np.sqrt(1.0 + SIZE) if "entries" in faults else 1.0
    q = q * scale
    if "mean_q" in faults:
        q = q + scale * np.sqrt(SIZE)  # relative to the entries' own variance
    if "mean_k" in faults:
        k = k + np.sqrt(SIZE)
    return q, k


def opened(q, k):
    """Return a model of one head."""
    return open_arrays({"q": q, "k": k}, axes=("sequence", "token", "d"))


SOME_FAULTS = [(), *combinations(FAULTS, 1), *combinations(FAULTS, 2)]


@pytest.mark.parametrize("faults", SOME_FAULTS)
def test_planted_faults_have_their_parts(faults):
    """Each part has its size, and its interval tells a fault from none."""
    (head,) = observe_model(opened(*sampled(faults)), ROOT_D).heads
    entries = D_K * (1.0 + SIZE * ("entries" in faults))
    for name in FAULTS:
        planted = entries * (SIZE * (name in faults) if name != "entries" else 1.0)
        low, high = head.estimates[f"part_{name}"].interval(RATE)
        assert low <= planted <= high, name
        assert high - low < 0.95 * SIZE * entries, name
    assert sum(head.shares.values()) == pytest.approx(1.0, rel=1e-12)


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
    values = {"effective_share": 0.1, "weight_max": 0.93, "saturated_rows": 0.4}
    found = {n: HeadEstimate(one, one, math.nan, 1) for n, one in values.items()}
    assert head_state(found) == "peaked"
    found["saturated_rows"] = found["saturated_rows"]._replace(value=0.5)
    assert head_state(found) == "saturated"
