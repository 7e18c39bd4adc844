"""What has been sampled so far: batches of replicates, put together by index."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from montecarlo.attention.softmax import Array
from montecarlo.sampling.conditions import Condition
from montecarlo.sampling.replicates import Batch, Counts


@dataclass(frozen=True, slots=True)
class Samples:
    """All replicates of one condition.

    Attributes
    ----------
    means : ndarray, shape (n_replicates, n_columns)
        In the order of their index.
    counts : tuple of ndarray of int64
        Summed over replicates.
    """

    means: Array
    counts: tuple[Counts, ...]

    @property
    def n_replicates(self) -> int:
        """Number of replicates."""
        return len(self.means)


@dataclass(slots=True)
class SampleStore:
    """Batches in memory, by condition and by index of their first replicate."""

    _batches: dict[Condition, dict[int, Batch]] = field(default_factory=dict)

    def add(self, condition: Condition, start: int, batch: Batch) -> None:
        """Take a finished batch, in any order."""
        self._batches.setdefault(condition, {})[start] = batch

    def recall(self, condition: Condition, start: int, stop: int) -> bool:
        """Take a batch from what an earlier run left, if it did; here none does."""
        del condition, start, stop
        return False

    def n_replicates(self, condition: Condition) -> int:
        """Return how many replicates of a condition are there."""
        return sum(len(b.means) for b in self._batches.get(condition, {}).values())

    def conditions(self) -> Iterable[Condition]:
        """Return the conditions that have replicates."""
        return self._batches.keys()

    def samples(self, condition: Condition) -> Samples:
        """Put the batches of a condition together, in the order of the indices.

        Raises
        ------
        KeyError
            If there are none.
        """
        batches = [batch for _, batch in sorted(self._batches[condition].items())]
        counts = tuple(
            np.sum(histograms, axis=0)
            for histograms in zip(*(b.counts for b in batches), strict=True)
        )
        return Samples(np.concatenate([b.means for b in batches]), counts)
