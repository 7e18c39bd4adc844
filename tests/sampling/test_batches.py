"""Batches are sent and kept without their empty bins, and come back whole."""

import numpy as np
import pytest

from montecarlo.sampling.batches import join, pack
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.replicates import sample

ROWS = parse_point("gaussian", "gaussian", 4, 8)
PAIRS = parse_point("laplace", "laplace", 2)
DIVISORS = ("none", "sqrt")


@pytest.mark.parametrize("point", [ROWS, PAIRS], ids=lambda c: c.name)
def test_batch_comes_back_whole(point):
    """Packed and joined, nothing is changed."""
    batch = sample(point, 1, 0, 3, DIVISORS)
    back = join([pack(batch)])
    assert back.means.tobytes() == batch.means.tobytes()
    assert len(back.counts) == len(batch.counts)
    for one, other in zip(back.counts, batch.counts, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_parts_add_up():
    """Counts of parts add up, also where both fill a bin; means stand in order."""
    parts = [sample(ROWS, 1, i, i + 2, DIVISORS) for i in (0, 2, 4)]
    whole = join(map(pack, parts))

    assert np.array_equal(whole.means, sample(ROWS, 1, 0, 6, DIVISORS).means)
    for counts, *pieces in zip(whole.counts, *(p.counts for p in parts), strict=True):
        assert np.array_equal(counts, np.sum(pieces, axis=0))
    assert any((p[0] > 0).sum() for p in parts[0].counts)
