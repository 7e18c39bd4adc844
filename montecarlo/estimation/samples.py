"""What has been sampled so far: batches of replicates, put together by index."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from montecarlo.attention.softmax import Array
from montecarlo.sampling.batches import Batch, Counts, PackedBatch, join, pack
from montecarlo.sampling.design_points import DesignPoint


@dataclass(frozen=True, slots=True)
class Samples:
    """All replicates of one point.

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
    """Batches in memory, by point and by index of their first replicate."""

    _batches: dict[DesignPoint, dict[int, PackedBatch]] = field(default_factory=dict)

    def add(self, point: DesignPoint, start: int, batch: Batch) -> None:
        """Take a finished batch, in any order."""
        self.add_packed(point, start, pack(batch))

    def add_packed(self, point: DesignPoint, start: int, packed: PackedBatch) -> None:
        """Take a finished batch that is packed already."""
        self._batches.setdefault(point, {})[start] = packed

    def recall(self, point: DesignPoint, start: int, stop: int) -> bool:
        """Take a batch from what an earlier run left, if it did; here none does."""
        del point, start, stop
        return False

    def n_replicates(self, point: DesignPoint) -> int:
        """Return how many replicates of a point are there."""
        return sum(len(b.means) for b in self._batches.get(point, {}).values())

    def points(self) -> Iterable[DesignPoint]:
        """Return the points that have replicates."""
        return self._batches.keys()

    def drop_after_gaps(self) -> None:
        """Drop the replicates of each point after the first that is not there.

        What is left does not depend on which batches happened to be finished.
        """
        for batches in self._batches.values():
            expected = 0
            for start, packed in sorted(batches.items()):
                if start != expected:
                    del batches[start]
                else:
                    expected += len(packed.means)

    def samples(self, point: DesignPoint) -> Samples:
        """Put the batches of a point together, in the order of the indices."""
        batches = sorted(self._batches[point].items())
        whole = join(packed for _, packed in batches)
        return Samples(whole.means, whole.counts)
