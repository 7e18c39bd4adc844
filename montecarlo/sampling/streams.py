"""Random streams for purposes other than replicates.

A stream depends only on a seed and a name, or on the head and sequence of a model.
"""

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray

from montecarlo.sampling.design_points import point_key


def named_stream(seed: int, name: str) -> Generator:
    """Return a random generator whose draws depend only on the seed and the name."""
    return Generator(SFC64(SeedSequence(seed, spawn_key=point_key(name))))


#: Seed of the positions in sequences of a model, and last element of their spawn key.
SEED, ROWS = 1, 2


def row_positions(
    head: tuple[int, int], sequence: int, n_tokens: int, count: int
) -> NDArray[np.intp]:
    """Return random positions in a sequence, one from each of ``count`` equal parts.

    The same arguments always give the same positions.

    Parameters
    ----------
    head : (int, int)
        Indices of layer and head.
    sequence : int
        Index of the sequence.
    n_tokens : int
        Its length.
    count : int
        Number of positions, at least 1.  From ``n_tokens`` on, all are returned.

    Returns
    -------
    ndarray of int, shape (min(count, n_tokens),)
        Ascending: one position drawn from each of ``count`` equal parts.  They are
        evenly spread, and not periodic as text may be.
    """
    if count >= n_tokens:
        return np.arange(n_tokens)
    ends = np.arange(count + 1) * n_tokens // count
    child = SeedSequence(SEED, spawn_key=(*head, sequence, ROWS))
    return Generator(SFC64(child)).integers(ends[:-1], ends[1:])
