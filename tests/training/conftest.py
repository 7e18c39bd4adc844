"""A record that is made in a second: runs that nobody trained."""

import numpy as np
import pytest

from montecarlo.training import record, recording, rescaling
from montecarlo.training.arms import ARMS, RATES
from montecarlo.training.record import read_record
from montecarlo.training.rescaling import Rescaled
from montecarlo.training.runs import Trial

N_STEPS, D_K, JUDGED = 7, (16,), range(100, 105)


def invented_runs(seed, _steps=None):
    """A line for each setting: the third rate is best, the last one diverges."""
    rng = np.random.default_rng(seed)
    for optimiser, rates in RATES.items():
        for d_k in D_K:
            for arm in ARMS:
                for place, rate in enumerate(rates):
                    luck = float(rng.random())
                    losses = np.linspace(1.0, luck, N_STEPS)
                    if place == len(rates) - 1:
                        losses[2:] = np.inf
                    steps = None if place > 4 else 10 * abs(place - 2) + int(9 * luck)
                    final = float(losses[-1])
                    yield Trial(
                        *(optimiser, arm, d_k, rate, seed, steps, final),
                        *(1.0 + luck, rate * (1.0 + luck), losses),
                    )


@pytest.fixture
def invented(monkeypatch):
    """Nothing is trained; returns the seeds that were asked for, in their order."""
    asked = []

    def run_seed(seed, steps):
        asked.append(seed)
        return invented_runs(seed, steps)

    monkeypatch.setattr(recording, "run_seed", run_seed)
    for module in (record, recording):
        monkeypatch.setattr(module, "JUDGED", JUDGED)
    same = Rescaled("sgd", 16, 4.0, rescaling.STEPS, 0.0, 0.0)
    monkeypatch.setattr(recording, "measure_rescaled", lambda: [same])
    read_record.cache_clear()
    yield asked
    read_record.cache_clear()
