"""Keys of other sequences: none of one's own, none twice, and the same each time."""

import numpy as np
import pytest

from montecarlo.sampling.streams import keys_of_others, pooled_positions, row_positions

OWNERS = np.repeat(np.arange(5), 20)


def test_own_keys_are_left_out():
    """No key of the sequence itself is drawn, and none twice where there are enough."""
    for sequence in range(5):
        drawn = keys_of_others(1, (0, 0), sequence, OWNERS, 40)
        assert not (OWNERS[drawn] == sequence).any()
        assert len(set(drawn)) == 40
    assert len(keys_of_others(1, (0, 0), 0, OWNERS, 100)) == 100


#: What is drawn for a seed, a head and a sequence.
DRAWS = {
    "keys": lambda *place: keys_of_others(*place, OWNERS, 30),
    "pool": lambda *place: pooled_positions(*place, 1000, 30),
    "rows": lambda *place: row_positions(*place, 1000, 30),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_belong_to_their_place(name):
    """Seed, layer, head and sequence change them; nothing else."""
    places = [(1, (0, 0), 0), (2, (0, 0), 0), (1, (1, 0), 0), (1, (0, 1), 0)]
    # keys of others leave out those of the sequence: five sequences have keys
    places += [(1, (0, 0), sequence) for sequence in (1, 10, 64, 128, 1024)]
    drawn = [tuple(DRAWS[name](*place)) for place in places]
    assert len(set(drawn)) == len(places)
    assert drawn == [tuple(DRAWS[name](*place)) for place in places]


def test_pool_holds_different_keys_in_order():
    """A part of a sequence's keys goes into the pool, or all of few."""
    chosen = pooled_positions(1, (0, 0), 0, 100, 30)
    assert len(set(chosen)) == 30
    assert (np.diff(chosen) > 0).all()
    assert chosen.max() < 100
    assert np.array_equal(pooled_positions(1, (0, 0), 0, 10, 30), np.arange(10))
