"""Sequential sampling: rounds that double the replicates of the undecided points.

It knows nothing of claims, workers or commands.  It is given a store for finished
batches, a function that runs batches on workers, and one that returns the points that
are still undecided.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from montecarlo.sampling.batches import pack
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.replicates import Columns, sample

#: Suffix of the file of a batch that is being written.
PART = ".part"


@dataclass(slots=True)
class SampleStore:
    """Finished batches of packed replicates, in memory or in files.

    A batch is identified by its point, the index of its first replicate, and the index
    after its last replicate.

    Attributes
    ----------
    journal : Path or None
        Existing folder with a file for each batch; None: memory.
    """

    journal: Path | None = None
    _batches: dict[DesignPoint, dict[tuple[int, int], bytes | Path]] = field(
        default_factory=dict
    )

    def add(self, point: DesignPoint, start: int, stop: int, packed: bytes) -> None:
        """Store the packed replicates ``start`` to ``stop - 1`` of a point as a batch.

        Batches may be added in any order.
        """
        file = self._file(point, start, stop)
        if file is not None:  # atomic: after a kill it is complete or missing
            part = file.with_suffix(PART)
            part.write_bytes(packed)
            part.replace(file)
        self._batches.setdefault(point, {})[start, stop] = file or packed

    def recall(self, point: DesignPoint, start: int, stop: int) -> bool:
        """Add a batch if its file is in the journal; return whether the file is there.

        The file is not read.  Without a journal the result is False.
        """
        file = self._file(point, start, stop)
        if file is None or not file.exists():
            return False
        self._batches.setdefault(point, {})[start, stop] = file
        return True

    def n_replicates(self, point: DesignPoint) -> int:
        """Return the number of stored replicates of a point."""
        return sum(stop - start for start, stop in self._batches.get(point, ()))

    def packed(self, point: DesignPoint) -> list[bytes]:
        """Return all batches of a point as bytes, in the order of their replicates.

        There must be at least one batch.
        """
        stored = [batch for _, batch in sorted(self._batches[point].items())]
        return [one.read_bytes() if isinstance(one, Path) else one for one in stored]

    def _file(self, point: DesignPoint, start: int, stop: int) -> Path | None:
        """Return the path of the file of a batch; None without a journal."""
        name = hashlib.sha256(point.name.encode()).hexdigest()[:16]
        return self.journal and self.journal / f"{name}-{start}-{stop}"


#: Seconds of sampling in a batch, large compared to the time to send it to a worker.
BATCH_SECONDS = 0.15
#: Smallest number of replicates of a point: a standard error needs two.
LEAST = 2
#: Arguments of a function that a worker calls.
Task = tuple[Any, ...]
#: Maps a function, tasks and a predicate to pairs of a task and its finished future, in
#: any order.  A task for which the predicate is true when its turn comes is skipped.
Finish = Callable[
    [Callable[..., bytes], Iterable[Task], Callable[[Task], bool]],
    Iterator[tuple[Task, Future[bytes]]],
]
#: The indices of the replicates of a batch, and the exception that sampling raised.
FailedBatch = tuple[range, BaseException]
#: Reports progress: a point, its replicates that have just finished, and its replicates
#: that have just been requested.
Advance = Callable[[DesignPoint, int, int], None]


@dataclass(frozen=True, slots=True)
class Budget:
    """Numbers of replicates of a point: at its first analysis, and in all at most.

    An analysis decides whether the replicates of a point suffice.
    """

    first: int
    most: int

    def analyses(self) -> tuple[int, ...]:
        """Return the numbers of replicates at which a point is analysed, ascending.

        They begin with ``first``.  Each is twice the one before, and none exceeds
        ``most``: (4, 8, 16) for ``Budget(4, 17)``.  Empty if ``most`` is below
        ``first``.
        """
        n_analyses = (self.most // self.first).bit_length()
        return tuple(self.first * 2**n for n in range(n_analyses))


@dataclass(frozen=True, slots=True)
class Plan:
    """The points that the engine samples, with seed, columns and budgets.

    Attributes
    ----------
    budgets : mapping
        Budget of each point.
    seed : int
    columns : mapping
        Point -> the numbers to which each of its replicates is reduced.
    """

    budgets: Mapping[DesignPoint, Budget]
    seed: int
    columns: Mapping[DesignPoint, Columns]

    def seconds(self, point: DesignPoint) -> float:
        """Return the approximate time that a replicate of a point takes, in seconds."""
        return replicate_seconds(point, len(self.columns[point].divisors))

    def batches(self, point: DesignPoint, indices: range) -> Iterator[range]:
        """Yield the parts of ``indices`` that are sampled as batches, as ranges.

        A batch is expected to take about `BATCH_SECONDS`.  It has at least one
        replicate.
        """
        size = max(1, round(BATCH_SECONDS / self.seconds(point)))
        for first in range(0, len(indices), size):
            yield indices[first : first + size]


def run(
    plan: Plan,
    store: SampleStore,
    finish: Finish,
    undecided: Callable[[SampleStore], Iterable[DesignPoint]],
    advance: Advance = lambda *_: None,
) -> dict[DesignPoint, FailedBatch]:
    """Sample every point of a plan until it is decided or its budget is spent.

    Parameters
    ----------
    plan : Plan
    store : SampleStore
        Receives the finished batches.
    finish : callable
        Runs batches on workers, see `Finish`.
    undecided : callable
        Store -> the points that need more replicates; called after each round.
    advance : callable
        Called with the progress, see `Advance`.

    Returns
    -------
    dict
        Point -> its first failed batch, for each point at which sampling raised an
        exception.  Such a point is not sampled in further rounds.  Empty if there was
        no exception.
    """

    def missing(wanted: Mapping[DesignPoint, int]) -> Iterator[Task]:
        """Yield the arguments of `sample_packed` for each batch that has to be sampled.

        ``wanted`` is the number of replicates that each point is to have.  Batches that
        are in the journal are added to ``store`` and not yielded.  ``advance`` is
        called with the progress.
        """
        for point, stop in wanted.items():
            advance(point, 0, stop - store.n_replicates(point))
        for point, stop in wanted.items():
            for batch in plan.batches(point, range(store.n_replicates(point), stop)):
                span = batch.start, batch.stop
                if store.recall(point, *span):
                    advance(point, len(batch), 0)
                else:
                    yield point, plan.seed, *span, plan.columns[point]

    failures: dict[DesignPoint, FailedBatch] = {}
    active: Iterable[DesignPoint] = plan.budgets
    analyses = {point: budget.analyses() for point, budget in plan.budgets.items()}
    for number in count():
        # a point may become active again: a slope depends on several points
        wanted = {
            point: numbers[number]
            for point, numbers in analyses.items()
            if point in active and number < len(numbers)
        }
        if not wanted:
            break
        tasks = sorted(
            missing(wanted),
            key=lambda task: -plan.seconds(task[0]) * (task[3] - task[2]),
        )  # longest first, so that no worker is left with a long one at the end
        for task, future in finish(
            sample_packed, tasks, lambda task: task[0] in failures
        ):
            point, _, first, last, _ = task
            if error := future.exception():
                failures.setdefault(point, (range(first, last), error))
                continue
            store.add(point, first, last, future.result())
            advance(point, last - first, 0)
        active = set(undecided(store)).difference(failures)
    return failures


def sample_packed(
    point: DesignPoint, seed: int, start: int, stop: int, columns: Columns
) -> bytes:
    """Draw replicates as `sample` does; return the batch as bytes, from `pack`."""
    return pack(sample(point, seed, start, stop, columns))
