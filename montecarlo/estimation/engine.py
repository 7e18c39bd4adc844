"""The engine: samples points in rounds that double, until nothing is undecided.

It knows neither claims nor workers nor commands.  It is given a function that returns
the points that are still undecided, a store for finished batches, and a function that
runs batches.  When all points are finished it returns which replicates failed, and why.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from montecarlo.sampling.batches import Batch, join, pack
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.replicates import Columns, sample


@dataclass(slots=True)
class SampleStore:
    """Packed batches in memory, by point and by the replicates that they hold.

    Attributes
    ----------
    _batches : dict
        Point to index of the first replicate to index after the last, and the batch.
    """

    _batches: dict[DesignPoint, dict[int, tuple[int, bytes]]] = field(
        default_factory=dict
    )

    def add(self, point: DesignPoint, start: int, stop: int, packed: bytes) -> None:
        """Take a finished batch, in any order."""
        self._batches.setdefault(point, {})[start] = stop, packed

    def recall(self, point: DesignPoint, start: int, stop: int) -> bool:
        """Load a batch that an earlier run stored, if any; this store keeps none."""
        del point, start, stop
        return False

    def n_replicates(self, point: DesignPoint) -> int:
        """Return how many replicates of a point are there."""
        batches = self._batches.get(point, {})
        return sum(stop - start for start, (stop, _) in batches.items())

    def drop_after_gaps(self) -> None:
        """Drop the replicates of each point after its first missing one.

        The rest does not depend on the order in which batches finished.
        """
        for batches in self._batches.values():
            expected = 0
            for start, (stop, _) in sorted(batches.items()):
                if start != expected:
                    del batches[start]
                else:
                    expected = stop

    def packed(self, point: DesignPoint) -> list[bytes]:
        """Return the batches of a point, in the order of the indices."""
        return [packed for _, (_, packed) in sorted(self._batches[point].items())]

    def samples(self, point: DesignPoint) -> Batch:
        """Put the batches of a point together, in the order of the indices."""
        return join(self.packed(point))


#: Work sent to a worker at once, in seconds: long against the cost of sending it.
BATCH_SECONDS = 0.15
#: Replicates of a point at least: of fewer there is no standard error.
LEAST = 2
Task = tuple[Any, ...]
#: Calls a function with each of some arguments, unless they are not wanted any more at
#: their turn, and yields them with what came of it, in any order.
Finish = Callable[
    [Callable[..., bytes], Iterable[Task], Callable[[Task], bool]],
    Iterator[tuple[Task, Future[bytes]]],
]


#: The indices of replicates that failed, and why.
FailedBatch = tuple[range, BaseException]


@dataclass(frozen=True, slots=True)
class Budget:
    """Replicates of a point: at the first interim analysis, and at most."""

    first: int
    most: int

    def analyses(self) -> tuple[int, ...]:
        """Return the numbers of replicates at which a point is analysed."""
        numbers = [self.first]
        while numbers[-1] * 2 <= self.most:
            numbers.append(numbers[-1] * 2)
        return tuple(numbers)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the engine is to sample.

    Attributes
    ----------
    budgets : mapping
        Point to Budget.
    seed : int
    columns : mapping
        Point to what its replicates are reduced to.
    batch : int or None
        Replicates sent to a worker at once; None: by cost.  Changes no byte.
    """

    budgets: Mapping[DesignPoint, Budget]
    seed: int
    columns: Mapping[DesignPoint, Columns]
    batch: int | None = None

    def seconds(self, point: DesignPoint) -> float:
        """Return about how long one replicate of a point takes."""
        return replicate_seconds(point, len(self.columns[point].divisors))

    def batches(
        self, point: DesignPoint, start: int, stop: int
    ) -> Iterable[tuple[int, int]]:
        """Split the replicates ``start`` to ``stop - 1`` into batches."""
        size = self.batch or max(1, round(BATCH_SECONDS / self.seconds(point)))
        for first in range(start, stop, size):
            yield first, min(first + size, stop)


def run(
    plan: Plan,
    store: SampleStore,
    finish: Finish,
    undecided: Callable[[SampleStore], Iterable[DesignPoint]],
    advance: Callable[[DesignPoint, int, int], None] = lambda *_: None,
) -> dict[DesignPoint, FailedBatch]:
    """Sample every point of a plan until it is decided or its budget is spent.

    Parameters
    ----------
    plan : Plan
    store : SampleStore
        Takes the finished batches.
    finish : callable
        Has batches sampled, as `Finish` says.
    undecided : callable
        Store -> points that need more replicates; called after each round.
    advance : callable
        (point, replicates finished, replicates newly wanted), for a progress bar.

    Returns
    -------
    dict
        The first batch that failed of each point in which sampling failed.
    """
    failures: dict[DesignPoint, FailedBatch] = {}
    active = list(plan.budgets)
    analyses = {point: budget.analyses() for point, budget in plan.budgets.items()}
    for number in range(max(map(len, analyses.values()), default=0)):
        wanted = {point: analyses[point][number] for point in active}
        tasks = sorted(
            _missing(plan, store, wanted, advance),
            key=lambda task: -plan.seconds(task[0]) * (task[3] - task[2]),
        )  # the longest first, or one is last, alone
        for task, future in finish(
            sample_packed, tasks, lambda task: task[0] in failures
        ):
            point, _, first, last, _ = task
            if error := future.exception():
                failures.setdefault(point, (range(first, last), error))
                continue
            store.add(point, first, last, future.result())
            advance(point, last - first, 0)
        if len(failures) == len(plan.budgets):
            break
        remaining = set(undecided(store)).difference(failures)
        # also those that were decided before: a slope changes with any of its places
        active = [
            point
            for point in plan.budgets
            if point in remaining and number + 1 < len(analyses[point])
        ]
        if not active:
            break
    return failures


def sample_packed(
    point: DesignPoint, seed: int, start: int, stop: int, columns: Columns
) -> bytes:
    """Return what `sample` returns, packed: that is left to the workers, too."""
    return pack(sample(point, seed, start, stop, columns))


def _missing(
    plan: Plan,
    store: SampleStore,
    wanted: Mapping[DesignPoint, int],
    advance: Callable[[DesignPoint, int, int], None],
) -> Iterator[Task]:
    """Yield what samples the batches that no earlier run has left."""
    for point, stop in wanted.items():
        advance(point, 0, stop - store.n_replicates(point))
    for point, stop in wanted.items():
        for first, last in plan.batches(point, store.n_replicates(point), stop):
            if store.recall(point, first, last):
                advance(point, last - first, 0)
            else:
                yield point, plan.seed, first, last, plan.columns[point]
