"""Batches: means and counts of replicates, and their serialisation.

A packed batch omits empty bins, which are nearly all of them.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array

Counts = NDArray[np.int64]
#: NumPy parses headers as Python source.  Before Python 3.12, two threads must not do
#: that at once if the garbage collector has callbacks (cpython issue 106905).
_reading = Lock()


@dataclass(frozen=True, slots=True)
class Batch:
    """Means and counts of consecutive replicates of a design point.

    Attributes
    ----------
    means : ndarray, shape (n_replicates, n_columns)
        For each replicate, the mean for each of `Columns.means`.
    counts : tuple of ndarray of int64, shape (3, n_bins) or (6, n_bins)
        For each of `Columns.counts`, the result of `count_bins` or `count_some`.
    """

    means: Array
    counts: tuple[Counts, ...]

    @property
    def n_replicates(self) -> int:
        """Number of replicates in the batch."""
        return len(self.means)


def pack(batch: Batch) -> bytes:
    """Return a batch as bytes: a NumPy archive of its means and its histograms.

    The counts of all histograms are joined to one array, with their shapes beside it.
    Of it, only the counts of nonempty bins are stored, and the distance of each to the
    bin before, compressed.
    """
    flat = np.concatenate([np.zeros(0, np.int64), *map(np.ravel, batch.counts)])
    places = np.flatnonzero(flat != 0)  # bools take half the time of integers
    bins = np.array([np.diff(places, prepend=0), flat[places]], np.int64)
    file = BytesIO()
    np.savez(
        file,
        means=batch.means,
        shapes=np.array([counts.shape for counts in batch.counts], int),
        bins=np.frombuffer(zlib.compress(bins.tobytes(), 1), np.uint8),
    )
    return file.getvalue()


def join(parts: Iterable[bytes]) -> Batch:
    """Return packed batches of one point as a single `Batch`, in their order.

    ``parts`` are results of `pack`, at least one.
    """
    with _reading:
        files = [{**np.load(BytesIO(part))} for part in parts]
    shapes = files[0]["shapes"].tolist()
    ends = np.cumsum([rows * n_bins for rows, n_bins in shapes], dtype=np.int64)
    flat = np.zeros(int(ends[-1]) if len(ends) else 0, np.int64)
    for file in files:
        bins = np.frombuffer(zlib.decompress(file["bins"]), np.int64)
        rises, counts = bins.reshape(2, -1)
        flat[np.cumsum(rises)] += counts  # positions within a part differ
    pieces = np.split(flat, ends[:-1]) if len(ends) else []
    counts_of = tuple(map(np.reshape, pieces, shapes))
    return Batch(np.concatenate([file["means"] for file in files]), counts_of)
