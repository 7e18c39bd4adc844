"""Keys of other sequences: none of one's own, none twice, and the same each time."""

import numpy as np

from montecarlo.sampling.positions import keys_of_others, pooled_positions

OWNERS = np.repeat(np.arange(5), 20)


def test_own_keys_are_left_out():
    """No key of the sequence itself is drawn, and none twice where there are enough."""
    for sequence in range(5):
        drawn = keys_of_others(1, (0, 0), sequence, OWNERS, 40)
        assert not (OWNERS[drawn] == sequence).any()
        assert len(set(drawn)) == 40
    assert len(keys_of_others(1, (0, 0), 0, OWNERS, 100)) == 100


def test_draws_belong_to_their_place():
    """Seed, layer, head and sequence each change what is drawn; nothing else does."""
    places = [(1, (0, 0), 0), (2, (0, 0), 0), (1, (1, 0), 0), (1, (0, 1), 0)]
    places.append((1, (0, 0), 1))
    drawn = [tuple(keys_of_others(*place, OWNERS, 30)) for place in places]
    assert len(set(drawn)) == len(places)
    assert drawn == [tuple(keys_of_others(*place, OWNERS, 30)) for place in places]


def test_pool_holds_different_keys_in_order():
    """A part of a sequence's keys goes into the pool, or all of few."""
    chosen = pooled_positions(1, (0, 0), 0, 100, 30)
    assert len(set(chosen)) == 30
    assert (np.diff(chosen) > 0).all()
    assert chosen.max() < 100
    assert np.array_equal(pooled_positions(1, (0, 0), 0, 10, 30), np.arange(10))
