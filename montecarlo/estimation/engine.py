"""The engine: samples conditions in rounds that double, until nothing is undecided.

It knows nothing of claims: it is handed a function that says which conditions are
still undecided, a store for finished batches, and workers.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

from montecarlo.estimation.failures import failed_batch, raise_failures
from montecarlo.estimation.samples import SampleStore
from montecarlo.estimation.tasks import Task, finish
from montecarlo.sampling.conditions import Condition
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.replicates import sample

#: Work sent to a worker at once, in seconds: long against the cost of sending it.
BATCH_SECONDS = 0.15


@dataclass(frozen=True, slots=True)
class Budget:
    """Replicates of a condition: at the first look, and at most."""

    first: int
    most: int

    def looks(self) -> tuple[int, ...]:
        """Return the numbers of replicates at which a condition is looked at."""
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
        Condition to Budget.
    seed : int
    divisors : tuple of str
    batch : int or None
        Replicates sent to a worker at once; None: by cost.  Changes no byte.
    """

    budgets: Mapping[Condition, Budget]
    seed: int
    divisors: tuple[str, ...]
    batch: int | None = None

    def batches(
        self, condition: Condition, start: int, stop: int
    ) -> Iterable[tuple[int, int]]:
        """Split the replicates ``start`` to ``stop - 1`` into batches."""
        seconds = replicate_seconds(condition, len(self.divisors))
        size = self.batch or max(1, round(BATCH_SECONDS / seconds))
        for first in range(start, stop, size):
            yield first, min(first + size, stop)


def run(
    plan: Plan,
    store: SampleStore,
    executor: Executor,
    undecided: Callable[[SampleStore], Iterable[Condition]],
    advance: Callable[[Condition, int, int], None] = lambda *_: None,
) -> None:
    """Sample every condition of a plan until it is decided or its budget is spent.

    Parameters
    ----------
    plan : Plan
    store : SampleStore
        Takes the finished batches.
    executor : concurrent.futures.Executor
    undecided : callable
        Store -> conditions that need more replicates; called after each round.
    advance : callable
        (condition, replicates finished, replicates newly wanted), for a progress bar.

    Raises
    ------
    RuntimeError
        If sampling failed in some conditions, at the end of the others: which, why,
        and the commands that replay it.  Or if workers could not be replaced.
    """
    active = list(plan.budgets)
    failures: dict[Condition, str] = {}
    looks = max((len(budget.looks()) for budget in plan.budgets.values()), default=0)
    for look in range(looks):
        wanted = {
            condition: plan.budgets[condition].looks()[look]
            for condition in active
            if look < len(plan.budgets[condition].looks())
        }
        _sample_round(plan, store, executor, wanted, failures, advance)
        if len(failures) == len(plan.budgets):
            break
        remaining = set(undecided(store)).difference(failures)
        # also those that were decided before: a slope changes with any of its places
        active = [condition for condition in plan.budgets if condition in remaining]
        if not active:
            break
    raise_failures(failures)


def _sample_round(  # noqa: PLR0913, PLR0917 - the five of `run`, and what has failed
    plan: Plan,
    store: SampleStore,
    executor: Executor,
    wanted: Mapping[Condition, int],
    failures: dict[Condition, str],
    advance: Callable[[Condition, int, int], None],
) -> None:
    """Bring each condition to its wanted number of replicates, but those that fail."""
    batches: list[tuple[float, Condition, int, int]] = []
    for condition, stop in wanted.items():
        have = store.n_replicates(condition)
        advance(condition, 0, stop - have)
        seconds = replicate_seconds(condition, len(plan.divisors))
        for first, last in plan.batches(condition, have, stop):
            if store.recall(condition, first, last):
                advance(condition, last - first, 0)
                continue
            batches.append((seconds * (last - first), condition, first, last))
    # the longest first, so that no worker is left alone with one at the end
    batches.sort(key=lambda batch: -batch[0])
    tasks = [
        Task(sample, (condition, plan.seed, first, last, plan.divisors))
        for _, condition, first, last in batches
    ]
    for task, future in finish(executor, tasks, lambda t: t.arguments[0] in failures):
        condition, seed, first, last, _ = task.arguments
        error = future.exception()
        if isinstance(error, Exception):  # others end the run
            told = failed_batch(condition, seed, range(first, last), error)
            failures.setdefault(condition, told)
            continue
        store.add(condition, first, future.result())
        advance(condition, last - first, 0)
