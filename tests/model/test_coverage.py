"""How often the interval of a scale holds it, counted on heads that are made anew."""

import numpy as np
import pytest

from montecarlo.model.output_fits import fit_outputs
from montecarlo.model.weight_fits import fit_weights

#: Heads of each number format.
HEADS = 1000
SCALE, TOKENS, D_K = 0.23, 32, 16
#: Bounds of a share of 0.95 among so many, four of its standard deviations of 0.0069
#: away: beyond them once in 10,000 times.
LEAST, MOST = 0.922, 0.978


@pytest.mark.slow
@pytest.mark.parametrize("number_format", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("source", ["weights", "outputs"])
def test_intervals_hold_the_scale(make_head, number_format, source):
    """The interval of 95 % holds the scale in about 95 % of the heads."""
    held = 0
    for seed in range(HEADS):
        rng = np.random.default_rng((21, seed))
        made = make_head(rng, number_format, SCALE, TOKENS, D_K, 1)
        fit = fit_weights(made) if source == "weights" else fit_outputs(made)[0]
        low, high = fit.interval
        held += low <= SCALE <= high
    print(f"{source}, {number_format}: {held / HEADS:.4f}")  # noqa: T201
    assert LEAST <= held / HEADS <= MOST
