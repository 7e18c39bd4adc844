"""How often the nominal 95 % intervals of the tables cover the exact value.

Run as ``python -m studies.coverage [--runs N] [--jobs N]``.  Every run is a small
study of its own seed, through the real engine, with the replicates of the report's
first look.  In: nothing.  Out: ``studies/coverage.csv``, one row per distribution,
d_k, quantity and divisor, written anew after each point.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

from montecarlo.estimation.engine import Budget, Plan, SampleStore, run
from montecarlo.estimation.estimates import POINTWISE
from montecarlo.estimation.summaries import RowKey, Summaries
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.study.executors import make_executor
from montecarlo.study.presets import PRESETS
from montecarlo.study.table import find_reference
from montecarlo.study.tasks import finish
from studies.program import HERE, parse, run_program, write_table

TABLE = HERE / "coverage.csv"
RUNS = 2000
#: Runs sent to a worker at once.
CHUNK = 50
#: Replicates of the report's first look.
REPLICATES = PRESETS["standard"].first
DIVISORS = ("none", "sqrt")
N_KEYS = 32
PLACES = (
    ("gaussian", 1),
    ("gaussian", 4),
    ("gaussian", 64),
    ("rademacher", 4),
    ("rademacher", 64),
)
OUTCOMES = ("covered", "below", "above")
Counts = dict[RowKey, Counter[str]]


def plans() -> Iterator[tuple[DesignPoint, tuple[RowKey, ...]]]:
    """Yield the points, those of pairs first, and the rows looked at in each."""
    for distribution, d_k in PLACES:
        key = RowKey("none", "score_variance", "value")
        yield parse_point(distribution, distribution, d_k), (key,)
    for distribution, d_k in PLACES:
        keys = [RowKey(name, "inverse_participation", "mean") for name in DIVISORS]
        yield parse_point(distribution, distribution, d_k, N_KEYS), tuple(keys)


def count(point: DesignPoint, keys: tuple[RowKey, ...], seeds: range) -> Counts:
    """Count how the intervals of each row lie to the exact value, one run a seed.

    Returns
    -------
    dict
        Row to the number of intervals that covered the exact value, lay wholly below
        it, and lay wholly above it.
    """
    exact = {}
    for key in keys:
        found = find_reference(point, key)
        if found is None:
            raise ValueError(f"row must have an exact value, got {key}")
        exact[key] = found.value
    counts: Counts = {key: Counter() for key in keys}
    with ThreadPoolExecutor(1) as executor:
        for seed in seeds:
            budgets = {point: Budget(REPLICATES, REPLICATES)}
            store = SampleStore()
            plan = Plan(budgets, seed, DIVISORS, batch=REPLICATES)
            run(plan, store, partial(finish, executor), undecided=lambda store: ())
            summaries = Summaries(point, store.samples(point), DIVISORS)
            for key in keys:
                low, high = summaries.estimate(key).interval(POINTWISE)
                side = "below" if high < exact[key] else "above"
                covered = low <= exact[key] <= high
                counts[key]["covered" if covered else side] += 1
    return counts


def measure(runs: int, executor: Executor) -> Iterator[list[dict[str, object]]]:
    """Yield the lines of the table, one point after the other."""
    for point, keys in plans():
        futures = [
            executor.submit(count, point, keys, range(first, min(first + CHUNK, runs)))
            for first in range(0, runs, CHUNK)
        ]
        found = [future.result() for future in futures]
        yield [
            line(point, key, sum((counts[key] for counts in found), Counter()))
            for key in keys
        ]


def line(point: DesignPoint, key: RowKey, counts: Counter[str]) -> dict[str, object]:
    """Return one line of the table: shares of the runs with their standard errors."""
    runs = counts.total()
    shares = {outcome: counts[outcome] / runs for outcome in OUTCOMES}
    return {
        "distribution": point.distribution_k.name,
        "d_k": point.d_k,
        "quantity": key.quantity,
        "divisor": key.divisor,
        "runs": runs,
        **shares,
        **{
            f"{outcome}_std_error": round(math.sqrt(share * (1 - share) / runs), 6)
            for outcome, share in shares.items()
        },
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, write the table and print it."""
    options = parse("coverage", __doc__, argv, runs=RUNS, jobs=1, output=TABLE)
    lines: list[dict[str, object]] = []
    with make_executor(options.jobs) as executor:
        for new in measure(options.runs, executor):
            lines += new
            write_table(options.output, lines)
            for one in new:
                print(*list(one.values())[:8], flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("coverage", main))
