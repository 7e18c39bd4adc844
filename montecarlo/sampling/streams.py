"""Random streams by name, and what is drawn from them besides replicates.

Positions in sequences that are given.  Each stream depends
on the seed and a name, or on the head and the sequence, and on nothing else.
"""

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray

from montecarlo.sampling.design_points import point_key


def named_stream(seed: int, name: str) -> Generator:
    """Return the generator that a seed and a name stand for."""
    return Generator(SFC64(SeedSequence(seed, spawn_key=point_key(name))))


Positions = NDArray[np.intp]
#: Seed of the rows of a model's sequences, and which child of a sequence's they are.
SEED, ROWS = 1, 2


def row_positions(
    head: tuple[int, int], sequence: int, n_tokens: int, count: int
) -> Positions:
    """Choose some rows of a sequence.

    Parameters
    ----------
    head : (int, int)
        Layer and head.
    sequence, n_tokens : int
    count : int
        How many; all, where there are fewer.

    Returns
    -------
    ndarray of int, ascending
        One row drawn from each of as many equal stretches: even, and no
        rhythm of the text is met by one of theirs.
    """
    if count >= n_tokens:
        return np.arange(n_tokens)
    ends = np.arange(count + 1) * n_tokens // count
    child = SeedSequence(SEED, spawn_key=(*head, sequence, ROWS))
    return Generator(SFC64(child)).integers(ends[:-1], ends[1:])
