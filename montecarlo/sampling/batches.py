"""Batches: the means and counts of replicates, packed to be kept and sent.

A packed batch leaves out the empty bins, which are nearly all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array

Counts = NDArray[np.int64]
Places = NDArray[np.int32]
Shapes = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Means and counts of consecutive replicates of a point, or of all of them.

    Attributes
    ----------
    means : ndarray, shape (n_replicates, n_columns)
        One line per replicate; the columns are those of `mean_columns`.
    counts : tuple of ndarray of int64, shape (3, n_bins) or (6, n_bins)
        For each of `count_columns`: what `count_bins` or `count_some` returns, summed
        over replicates.
    """

    means: Array
    counts: tuple[Counts, ...]

    @property
    def n_replicates(self) -> int:
        """Number of replicates."""
        return len(self.means)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Pickle the packed batch."""
        packed = pack(self)
        return _unpack, (packed.means, packed.places, packed.counts, packed.shapes)


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """A batch without its empty bins.

    Attributes
    ----------
    means : ndarray, shape (n_replicates, n_columns)
    places : ndarray of int32, shape (n_filled,)
        Of the filled bins, in all counts laid end to end.
    counts : ndarray of int64, shape (n_filled,)
    shapes : tuple of (int, int)
        Of each count.
    """

    means: Array
    places: Places
    counts: Counts
    shapes: Shapes


def pack(batch: Batch) -> PackedBatch:
    """Leave out the empty bins of a batch."""
    shapes = tuple((len(counts), counts.shape[1]) for counts in batch.counts)
    flat = np.concatenate([np.zeros(0, np.int64), *map(np.ravel, batch.counts)])
    places = np.flatnonzero(flat).astype(np.int32)
    return PackedBatch(batch.means, places, flat[places], shapes)


def _unpack(means: Array, places: Places, counts: Counts, shapes: Shapes) -> Batch:
    return join([PackedBatch(means, places, counts, shapes)])


def join(parts: Iterable[PackedBatch]) -> Batch:
    """Put batches of one point together, in the order given.

    There is at least one.
    """
    parts = list(parts)
    shapes = parts[0].shapes
    ends = np.cumsum([rows * n_bins for rows, n_bins in shapes], dtype=np.int64)
    flat = np.zeros(int(ends[-1]) if len(ends) else 0, np.int64)
    for part in parts:
        flat[part.places] += part.counts  # no place stands twice in a part
    pieces = np.split(flat, ends[:-1]) if len(ends) else []
    counts = tuple(map(np.reshape, pieces, shapes))
    return Batch(np.concatenate([part.means for part in parts]), counts)
