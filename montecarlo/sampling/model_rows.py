"""Random parts of models of scores that are not QKᵀ: rows, lengths and pairs, by name.

In: a seed and the name of an estimate.  Out: standard normal rows and the like, a
bounded number of scores at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from montecarlo.sampling.streams import named_stream

Array = NDArray[np.float64]

#: Scores drawn for an estimate, rows at least and at most, and scores held at once.
SCORES, FEWEST, MOST_ROWS, AT_ONCE = 2**25, 256, 2**16, 2**20


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
