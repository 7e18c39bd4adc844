"""Pairs of a head's rows whose attention weight can be used, and what each counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array
from montecarlo.model.rows import WeightBlock, format_of, spacing_of, unit_of

#: Weights that are fewer times the least number of their format are left out.
FEWEST_STEPS = 32
#: What float64 leaves of logarithms and their sums, at least.
LEAST_UNIT = 2.0**-48
Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Pairs:
    """Pairs of a head's rows whose weight can be used, one after the other.

    Attributes
    ----------
    scores, logs, weights : ndarray, shape (n,)
        Score, logarithm of the attention weight, and what it counts.
    rows, offsets, keys, places : ndarray of int, shape (n,)
        Of each pair: its row; the key's place less the query's; the key, of which each
        sequence has its own; the two places, the same in all sequences.
    unit : float
        What rounding moves an attention weight by, as a part of it.
    """

    scores: Array
    logs: Array
    weights: Array
    rows: Labels
    offsets: Labels
    keys: Labels
    places: Labels
    unit: float

    @cached_property
    def totals(self) -> Array:
        """Sum of what counts in each row."""
        return np.asarray(np.bincount(self.rows, self.weights), dtype=np.float64)

    @property
    def n_rows(self) -> int:
        """Rows with at least one pair."""
        return int(np.count_nonzero(self.totals))

    def within(self, values: Array) -> Array:
        """Return values less their mean over the row."""
        with np.errstate(invalid="ignore"):
            means = np.bincount(self.rows, self.weights * values) / self.totals
        found: Array = values - means[self.rows]
        return found

    def square(self, values: Array) -> float:
        """Return the weighted sum of squares."""
        return float((self.weights * values * values).sum())


def gather_pairs(blocks: Sequence[WeightBlock]) -> Pairs:
    """Return the pairs of blocks whose attention weight can be used."""
    number_format = format_of([block.weights for block in blocks])
    unit = max(unit_of(number_format), LEAST_UNIT)
    least = spacing_of(number_format)
    longest = max(block.scores.shape[1] for block in blocks)
    reals: list[tuple[Array, ...]] = []
    labels: list[tuple[Labels, ...]] = []
    n_rows = n_keys = 0
    for block in blocks:
        row, key = np.nonzero(block.weights >= FEWEST_STEPS * least)
        p = block.weights[row, key]
        counts = unit**2 / (unit**2 + (least / p) ** 2 / 4.0)  # a half step beside it
        reals.append((block.scores[row, key], np.log(p), counts))
        places = block.places[row] * longest + key
        labels.append((row + n_rows, block.offsets[row, key], key + n_keys, places))
        n_rows, n_keys = n_rows + len(block.weights), n_keys + block.weights.shape[1]
    scores, logs, weights = (
        np.concatenate(parts) for parts in zip(*reals, strict=True)
    )
    rows, offsets, keys, pairs = (
        np.concatenate(parts) for parts in zip(*labels, strict=True)
    )
    return Pairs(scores, logs, weights, rows, offsets, keys, pairs, unit)
