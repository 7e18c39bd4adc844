"""Rows of a model's sequences: even, and the same each time."""

import numpy as np

from montecarlo.sampling.streams import row_positions


def test_rows_belong_to_their_place():
    """Layer, head and sequence change them; nothing else."""
    places = [((0, 0), 0), ((1, 0), 0), ((0, 1), 0)]
    places += [((0, 0), sequence) for sequence in (1, 10, 64, 128, 1024)]
    drawn = [tuple(row_positions(*place, 1000, 30)) for place in places]
    assert len(set(drawn)) == len(places)
    assert drawn == [tuple(row_positions(*place, 1000, 30)) for place in places]
    assert all((np.diff(one) > 0).all() for one in drawn)
    assert np.array_equal(row_positions((0, 0), 0, 10, 30), np.arange(10))
