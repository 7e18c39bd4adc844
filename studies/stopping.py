"""What stopping when decided saves against a fixed size, at the same error rate.

Run as ``python -m studies.stopping [--preset NAME]``.  The points of a preset
are sampled to each size that the report analyses, all of them, and judged there with
intervals that need not share their error with other analyses; and once as the report
does it.  In: nothing.  Out: ``studies/stopping.csv``, one row for each way, with CPU
seconds of sampling and how many cases of the checks stay undecided.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.judging import Judge
from montecarlo.claims.outcomes import Judgement
from montecarlo.claims.recorded import Recorded
from montecarlo.claims.running import (
    Study,
    error_rates_of,
    exact_value,
    needed_budgets,
    run_study,
)
from montecarlo.claims.simulation import Simulation, split_error_rate
from montecarlo.claims.verdicts import Verdict
from montecarlo.estimation.engine import Budget, Plan, SampleStore, run
from montecarlo.estimation.summaries import Summaries
from montecarlo.study.executors import make_executor
from montecarlo.study.presets import PRESETS
from montecarlo.study.tasks import finish
from studies.program import HERE, parse, run_program, write_table

TABLE = HERE / "stopping.csv"


@dataclass(frozen=True, slots=True)
class Way:
    """How much to sample, and what it came to.

    Attributes
    ----------
    way : str
        ``fixed 256``: as many replicates of each point; ``until decided``.
    replicates : int
        Of all points.
    cpu_seconds : float
        Of sampling; until decided, interim analyses included.
    cases, undecided : int
        Of all checks that apply; those that are left undecided.
    """

    way: str
    replicates: int
    cpu_seconds: float
    cases: int
    undecided: int


def compare(study: Study) -> Iterator[Way]:
    """Yield what each way to choose the size of a study comes to."""
    budgets = needed_budgets(study)
    store, used = SampleStore(), 0.0
    analyses = max(len(budget.analyses()) for budget in budgets.values())
    with make_executor(1) as executor:
        for index in range(analyses):
            wanted = {
                point: budget.analyses()[min(index, len(budget.analyses()) - 1)]
                for point, budget in budgets.items()
            }
            exact = {point: Budget(number, number) for point, number in wanted.items()}
            started = time.process_time()
            plan = Plan(exact, study.seed, study.grid.divisors)
            run(plan, store, partial(finish, executor), lambda _: ())
            used += time.process_time() - started
            once = dict.fromkeys(budgets, 1)
            simulation = Simulation(once, study.grid.divisors, exact_value)
            rates = split_error_rate(
                study.catalogue, simulation, once, study.error_rate
            )
            name = f"fixed {study.grid.first * 2**index}"
            yield _way(name, study, store, used, rates.simultaneous_error)
        store = SampleStore()
        ends: list[float] = []
        started = time.process_time()
        run_study(
            study,
            executor,
            store=store,
            sampled=lambda: ends.append(time.process_time()),
        )
    used = ends[0] - started
    alpha = error_rates_of(study).simultaneous_error
    yield _way("until decided", study, store, used, alpha)


def _way(
    name: str, study: Study, store: SampleStore, seconds: float, alpha: float
) -> Way:
    budgets = needed_budgets(study)
    most = {point: budget.analyses()[-1] for point, budget in budgets.items()}
    made = {
        c: Summaries(c, store.samples(c), study.grid.divisors) for c in store.points()
    }
    simulation = Simulation(most, study.grid.divisors, exact_value, made.__getitem__)
    evidence = Recorded(study.catalogue, simulation)
    verdicts = list(_verdicts(Judge(evidence, alpha).judge(study.catalogue)))
    return Way(
        name,
        sum(map(store.n_replicates, budgets)),
        round(seconds, 1),
        len(verdicts),
        verdicts.count(Verdict.UNDECIDED),
    )


def _verdicts(judged: Judgement) -> Iterator[Verdict]:
    """Yield the outcome of every case of a verdict, and of what would be right."""
    rights = (claim.right for claim in judged.claims)
    said = [check for right in rights if right is not None for check in right.checks]
    for check in (*judged.judged_checks(), *said):
        for case in check.cases:
            if case.outcome != Verdict.NOT_APPLICABLE:
                yield case.outcome


def main(argv: Sequence[str] | None = None) -> int:
    """Compare, print, and write the table."""
    options = parse("stopping", __doc__, argv, preset="standard", output=TABLE)
    preset, ways = options.preset, []
    for way in compare(Study(read_catalogue(), PRESETS[preset], preset=preset)):
        print(way, flush=True)
        ways.append(asdict(way))
    write_table(options.output, ways)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("stopping", main))
