"""Random streams by name, and what is drawn from them besides replicates.

Positions in sequences that are given.  Each stream depends
on the seed and a name, or on the seed, the head and the sequence, and on nothing else.
"""

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray

from montecarlo.sampling.design_points import point_key


def named_stream(seed: int, name: str) -> Generator:
    """Return the generator that a seed and a name stand for."""
    return Generator(SFC64(SeedSequence(seed, spawn_key=point_key(name))))


Positions = NDArray[np.intp]
#: Children of a sequence's seed.
POOLED, DRAWN, ROWS = 0, 1, 2


def pooled_positions(
    seed: int, head: tuple[int, int], sequence: int, n_tokens: int, count: int
) -> Positions:
    """Choose which keys of a sequence go into its head's pool.

    Parameters
    ----------
    seed : int
    head : (int, int)
        Layer and head.
    sequence, n_tokens : int
    count : int
        How many; all, where the sequence has fewer.

    Returns
    -------
    ndarray of int, ascending
    """
    if count >= n_tokens:
        return np.arange(n_tokens)
    rng = _generator(seed, head, sequence, POOLED)
    return np.sort(rng.choice(n_tokens, count, replace=False))


def row_positions(
    seed: int, head: tuple[int, int], sequence: int, n_tokens: int, count: int
) -> Positions:
    """Choose some rows of a sequence.

    Parameters
    ----------
    seed : int
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
    return _generator(seed, head, sequence, ROWS).integers(ends[:-1], ends[1:])


def keys_of_others(
    seed: int, head: tuple[int, int], sequence: int, owners: Positions, count: int
) -> Positions:
    """Draw keys from a pool, none of which belongs to a sequence.

    Parameters
    ----------
    seed : int
    head : (int, int)
        Layer and head.
    sequence : int
        The one whose keys are left out.
    owners : ndarray of int, shape (n_pooled,)
        The sequence of each key of the pool.
    count : int

    Returns
    -------
    ndarray of int, shape (count,)
        Places in the pool; different ones where there are enough.
    """
    others = np.flatnonzero(owners != sequence)
    rng = _generator(seed, head, sequence, DRAWN)
    return rng.choice(others, count, replace=others.size < count)


def _generator(
    seed: int, head: tuple[int, int], sequence: int, which: int
) -> Generator:
    child = SeedSequence(seed, spawn_key=(*head, sequence, which))
    return Generator(SFC64(child))
