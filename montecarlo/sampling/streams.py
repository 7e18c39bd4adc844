"""Random streams by name, and what is drawn from them besides replicates.

Rows of models of scores that are not QKᵀ, positions in sequences that are given, and
replicates drawn again.  Each stream depends on the seed and a name, or on the seed, the
head and the sequence, and on nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray

from montecarlo.sampling.design_points import point_key

Array = NDArray[np.float64]
#: Scores drawn for an estimate, rows at least and at most, and scores held at once.
SCORES, FEWEST, MOST_ROWS, AT_ONCE = 2**25, 256, 2**16, 2**20


def named_stream(seed: int, name: str) -> Generator:
    """Return the generator that a seed and a name stand for."""
    return Generator(SFC64(SeedSequence(seed, spawn_key=point_key(name))))


@dataclass(slots=True)
class ModelRows:
    """What one estimate draws; the same for the same seed and name.

    Attributes
    ----------
    seed : int
    name : str
    """

    seed: int
    name: str
    _generator: Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._generator = named_stream(self.seed, self.name)

    def normal(self, n_keys: int) -> Iterator[Array]:
        """Yield standard normal rows, shape (rows, n_keys), until there are enough."""
        for rows in _chunks(n_keys, MOST_ROWS):
            yield self._generator.standard_normal((rows, n_keys))

    def causal(self, n_keys: int) -> Iterator[tuple[Array, float]]:
        """Yield standard normal rows of a causal mask, each with its weight.

        The mean of a value times the weight is that over the rows of 1, 2, ... n keys.

        Notes
        -----
        Half of the lengths are uniform, half as likely as 1/length: of a mean to which
        few short rows give most, uniform ones alone would have a tail that no interval
        knows of.  No weight is above 2.
        """
        n_rows = sum(_chunks(max(1, n_keys // 8), MOST_ROWS // 4))
        lengths = np.arange(1, n_keys + 1)
        harmonic = 1.0 / lengths
        likely = 0.5 / n_keys + 0.5 * harmonic / harmonic.sum()
        for length in self._generator.choice(lengths, n_rows, p=likely):
            weight = 1.0 / (n_keys * likely[length - 1])
            yield self._generator.standard_normal((1, length)), float(weight)

    def lengths(self, d_k: int, n_rows: int) -> Array:
        """Return |x| of vectors of so many standard normal entries; 0 for none."""
        if d_k == 0:
            return np.zeros(n_rows)
        return np.sqrt(self._generator.chisquare(d_k, n_rows))

    def pairs(self, d_k: int) -> Iterator[tuple[Array, Array]]:
        """Yield pairs of independent standard normal vectors, shape (pairs, d_k)."""
        for pairs in _chunks(d_k, MOST_ROWS):
            shape = (pairs, d_k)
            yield (
                self._generator.standard_normal(shape),
                self._generator.standard_normal(shape),
            )


def _chunks(width: int, most: int) -> Iterator[int]:
    """Yield how many rows of a width are drawn at a time."""
    left = min(most, max(FEWEST, SCORES // width))
    while left > 0:
        rows = min(left, max(1, AT_ONCE // width))
        yield rows
        left -= rows


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
    seed: int, head: tuple[int, int], sequence: int, n_tokens: int, counts: list[int]
) -> list[Positions]:
    """Choose some rows of a sequence, some of these, and so on.

    Parameters
    ----------
    seed : int
    head : (int, int)
        Layer and head.
    sequence, n_tokens : int
    counts : list of int
        How many; all, where there are fewer.

    Returns
    -------
    list of ndarray of int, ascending
        One row drawn from each of as many equal stretches: even, and no
        rhythm of the text is met by one of theirs.
    """
    rng = _generator(seed, head, sequence, ROWS)
    chosen, found = np.arange(n_tokens), []
    for count in counts:
        if count < len(chosen):
            ends = np.arange(count + 1) * len(chosen) // count
            chosen = chosen[rng.integers(ends[:-1], ends[1:])]
        found.append(chosen)
    return found


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


Indices = NDArray[np.int64]
#: Samples that are drawn together.
CHUNK = 2048


def index_chunks(
    size: int, n_replicates: int, samples: int, seed: int
) -> Iterator[Indices]:
    """Yield which replicates of a bank each sample holds, in chunks of samples.

    So many replicates of a bank of some size, drawn with replacement, make a sample.

    Yields
    ------
    ndarray of int64, shape (at most CHUNK, n_replicates)
    """
    rng = Generator(SFC64(seed))
    for first in range(0, samples, CHUNK):
        shape = (min(CHUNK, samples - first), n_replicates)
        yield rng.integers(size, size=shape)
