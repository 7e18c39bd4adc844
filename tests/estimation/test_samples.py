"""The store: batches in any order, put together by index."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from montecarlo.estimation.engine import SampleStore
from montecarlo.sampling.batches import join, pack
from montecarlo.sampling.design_points import parse_point
from tests.samples import sample_all

ONE, OTHER = (
    parse_point("gaussian", "gaussian", 2, 4),
    parse_point("uniform", "uniform", 2),
)
N = 9
DIVISORS = ("sqrt",)


def store_of(starts, point=ONE):
    """A store that was given batches in this order; each ends where the next begins."""
    ends = dict(zip(sorted(starts), [*sorted(starts)[1:], N], strict=True))
    store = SampleStore()
    for start in starts:
        batch = sample_all(point, 1, start, ends[start], DIVISORS)
        store.add(point, start, ends[start], pack(batch))
    return store


@settings(max_examples=10, deadline=None, derandomize=True)
@given(data=st.data(), cuts=st.sets(st.integers(1, N - 1)))
def test_batches_in_any_order(data, cuts):
    """However cut and ordered: the bytes of one batch."""
    starts = data.draw(st.permutations([0, *cuts]))
    whole = sample_all(ONE, 1, 0, N, DIVISORS)
    samples = join(store_of(starts).packed(ONE))

    assert samples.means.tobytes() == whole.means.tobytes()
    assert samples.n_replicates == N
    for found, expected in zip(samples.counts, whole.counts, strict=True):
        assert np.array_equal(found, expected)
        assert found.dtype == np.int64
