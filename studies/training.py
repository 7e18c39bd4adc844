"""The training record: a layer of attention that learns to retrieve, by divisor.

Run as ``python -m studies.training [--short] [--jobs N]``: an hour; interrupted, the
same command goes on.  Raw runs stay in the work folder; the record has what claims and
pages need of them.  With --short some runs are made again, in seconds, and compared
with the record: status 1 if they differ.

The rate of an arm, an optimiser and a d_k is searched on seeds that are not judged, by
half decades and then by the eighths of one around the best.  Seeds are judged in
`LOOKS`: where a check of the catalogue is undecided, its optimiser and d_k get twice as
many.  `studies.retrieval` is what is trained.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from montecarlo.attention.divisors import DIVISORS
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.judging import Judge
from montecarlo.claims.recorded import TRAINING_QUANTITIES
from montecarlo.claims.running import Study, error_rates_of, exact_value
from montecarlo.claims.simulation import Evidence
from montecarlo.claims.training import (
    ARM,
    ARMS,
    AROUND,
    CASE,
    COMPARED,
    D_K,
    FINE,
    FOLDER,
    LOOKS,
    MEASURED,
    RATES,
    SLOPE,
    STEPS,
    Record,
    Rescaled,
    beside,
    fine_rate,
    is_fine,
    place_of,
    read_record,
)
from montecarlo.claims.verdicts import Outcome
from montecarlo.errors import InputError
from montecarlo.study.executors import available_cores, limit_blas, make_executor
from montecarlo.study.fingerprint import made_with
from montecarlo.study.presets import PRESETS
from studies import retrieval
from studies.program import ROOT, Arrays, keep, parse, run_program
from studies.retrieval import (
    LAST,
    LEARNED,
    RUN,
    SETTING,
    Run,
    Weights,
    draw_sequences,
    draw_weights,
    run_setting,
    train,
)

#: Seeds on which rates are chosen, and those that are judged; none is both.
TUNING, JUDGED = range(12), range(200, 200 + LOOKS[-1])
#: An optimiser and a d_k.
Case = tuple[str, int]
CASES: tuple[Case, ...] = tuple(product(RATES, D_K))
#: To how many significant digits what was measured of a run is kept.
DIGITS = 5
#: Of `measure_rescaled`: the power of c that a rate is divided by, the factors c, the
#: rates, at which all learn well, a seed that is neither tuned on nor judged, and
#: Adam's epsilon, too small to act.
EXPONENTS = {"sgd": 1.0, "adam": 0.5}
FACTORS = (3.0, 4.0, 10.0, 16.0)
RESCALED_RATE = {"sgd": 3.0, "adam": 0.01}
RESCALED_SEED, RESCALED_STEPS, NO_EPSILON = 50, 100, 1e-30
#: Of --short: seeds whose first steps, and d_k whose runs, are compared, and the
#: largest relative difference that kernels of another processor may make.
FIRST_SEEDS, COMPARED_D_K, CLOSE = 2, D_K[:-1], 1e-4

#: The file of runs to compare with, beside the tables of the record.
REFERENCE = "reference.csv"

Chosen = dict[tuple[str, str, int], float]
#: Arms, and the rates that each is trained at.
Tried = tuple[tuple[str, float], ...]
#: The code of a run, beside what samples and divides.
SOURCES = (Path(retrieval.__file__),)


# --- Runs of a seed -------------------------------------------------------------------


def run_case(
    seed: int, optimiser: str, d_k: int, tried: Tried, steps: int = STEPS
) -> Arrays:
    """Train arms at rates, on sequences that are drawn once; returns raw runs."""
    draw = lru_cache(maxsize=steps)(draw_sequences)
    return columns(
        [
            run_setting(seed, (optimiser, arm, d_k, rate), steps, draw)
            for arm, rate in tried
        ]
    )


def columns(lines: Sequence[Mapping[str, object]]) -> Arrays:
    """Return lines with the same names as one array for each name."""
    return {name: np.array([one[name] for one in lines]) for name in lines[0]}


class Search(NamedTuple):
    """A search for the rate of each arm, optimiser and d_k, on seeds of its own.

    Attributes
    ----------
    run : callable
        (seed, optimiser, d_k, arms and rates) -> columns of raw runs.
    coarse : mapping
        An optimiser and d_k to arms and rates, half a decade apart.
    seeds : sequence of int
    name : str
        How names of the files of its runs begin.
    sources : tuple of Path
        The code of a run.
    """

    run: Callable[[int, str, int, Tried], Arrays]
    coarse: Mapping[Case, Tried]
    seeds: Sequence[int]
    name: str = ""
    sources: tuple[Path, ...] = SOURCES

    def run_all(
        self,
        wanted: Mapping[Case, Tried],
        seeds: Sequence[int],
        jobs: int,
        work: Path,
    ) -> pd.DataFrame:
        """Run seeds at what is wanted of each case, on workers; returns raw runs.

        Those that a folder keeps, by what they are made of, are read.
        """
        work.mkdir(parents=True, exist_ok=True)
        found, futures = [], {}
        with make_executor(jobs) as executor:
            for (optimiser, d_k), seed in product(wanted, seeds):
                part = (seed, optimiser, d_k, wanted[optimiser, d_k])
                name = "-".join(map(str, (*filter(None, [self.name]), *part[:-1])))
                made_of = [part, ARMS, STEPS]
                make = partial(self.run, *part)
                futures[name] = executor.submit(
                    keep, work, name, made_of, make, self.sources
                )
            for number, (name, future) in enumerate(futures.items()):
                found.append(pd.DataFrame(future.result()))
                print(f"{name}, {number + 1} of {len(futures)}", flush=True)
        return pd.concat(found, ignore_index=True)

    def run_tuning(self, jobs: int, work: Path) -> pd.DataFrame:
        """Run its seeds at coarse rates, and at fine ones until each best is inside."""
        wanted, found = dict(self.coarse), pd.DataFrame()
        while wanted:
            made = self.run_all(wanted, self.seeds, jobs, work)
            found = pd.concat([found, made], ignore_index=True)
            wanted = self.find_lacking(found)
        return found

    def grids(self, runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the runs at coarse rates, and at fine ones; powers of 10 are both."""
        settings = runs[SETTING].itertuples(index=False, name=None)
        coarse = [
            (arm, rate) in self.coarse[optimiser, d_k]
            for optimiser, arm, d_k, rate in settings
        ]
        return runs[coarse], runs[runs["rate"].map(is_fine)]

    def choose(self, runs: pd.DataFrame) -> Chosen:
        """Choose the best of the fine rates."""
        return choose_rates(self.grids(runs)[1], self.seeds)

    def find_lacking(self, runs: pd.DataFrame) -> dict[Case, Tried]:
        """Return fine rates that were not tried, `AROUND` on each side of a best one.

        The best is at first that of the coarse search, and then of the fine one.
        """
        coarse, fine = self.grids(runs)
        best = choose_rates(coarse if len(coarse) == len(runs) else fine, self.seeds)
        tried = set(fine[SETTING].itertuples(index=False, name=None))
        lacking: dict[Case, Tried] = {}
        for (optimiser, arm, d_k), rate in best.items():
            places = range(place_of(rate) - AROUND, place_of(rate) + AROUND + 1)
            around = [(optimiser, arm, d_k, fine_rate(place)) for place in places]
            new = tuple((arm, one[-1]) for one in around if one not in tried)
            if new:
                before = lacking.get((optimiser, d_k), ())
                lacking[optimiser, d_k] = (*before, *new)
        return lacking


def searched() -> Search:
    """Return what is searched: a rate of each arm, optimiser and d_k."""
    coarse = {case: tuple(product(ARMS, RATES[case[0]])) for case in CASES}
    return Search(run_case, coarse, TUNING)


def list_judged(search: Search, tuned: pd.DataFrame) -> list[dict[Case, Tried]]:
    """Return what judged seeds are run at, by case, in the order of running.

    The best fine rate of each arm with its neighbours, and that of `COMPARED`; then
    coarse rates.
    """
    chosen, fine, rest = search.choose(tuned), {}, {}
    for (optimiser, d_k), coarse in search.coarse.items():
        compared = chosen[optimiser, COMPARED, d_k]
        wanted = [
            (arm, rate)
            for arm in ARMS
            for rate in (*beside(chosen[optimiser, arm, d_k]), compared)
        ]
        fine[optimiser, d_k] = tuple(dict.fromkeys(wanted))
        rest[optimiser, d_k] = tuple(one for one in coarse if one not in wanted)
    return [fine, rest]


def run_until_decided(jobs: int, work: Path) -> pd.DataFrame:
    """Search rates, and run seeds that are judged: more where a check is open."""
    search = searched()
    tuned = search.run_tuning(jobs, work)
    wanted = list_judged(search, tuned)
    cases: Collection[Case] = CASES
    found = [tuned]
    for before, look in pairwise((0, *LOOKS)):
        if before:
            cases = find_undecided(pd.concat(found), cases)
            print(f"undecided after {before} seeds: {sorted(cases)}", flush=True)
        if not cases:
            break
        for tried in wanted:
            mine = {case: tried[case] for case in cases}
            found.append(search.run_all(mine, JUDGED[before:look], jobs, work))
    return pd.concat(found, ignore_index=True)


def find_undecided(runs: pd.DataFrame, among: Collection[Case] = CASES) -> list[Case]:
    """Return where checks of the catalogue are undecided, as the report judges them.

    At its error rate; a comparison with the smallest d_k needs more seeds of both.
    """
    record = Record(*reduce_runs(round_runs(runs)), (), {})
    study = Study(read_catalogue(), PRESETS["standard"])
    evidence = Evidence({}, (), exact_value, record=record)
    judge = Judge(evidence, error_rates_of(study).stated)
    found: set[Case] = set()
    for check in study.catalogue.checks():
        if check.quantity not in TRAINING_QUANTITIES:
            continue
        for case in judge.judge_check(check).cases:
            if case.outcome == Outcome.UNDECIDED and case.d_k is not None:
                sizes = {case.d_k}
                if check.quantity == "training_growth":
                    sizes.add(D_K[0])
                found |= {(case.part, d_k) for d_k in sizes}
    return [case for case in among if case in found]


# --- What a divisor is worth ----------------------------------------------------------


def measure_rescaled(
    exponents: Mapping[str, float] = EXPONENTS, steps: int = RESCALED_STEPS
) -> Iterator[Rescaled]:
    """Train with divisors that are smaller by `FACTORS`, and make up for them.

    With c times the divisor's inverse, W_Q and W_K divided by sqrt(c) and their rate by
    a power of c, a network goes the same way: of gradient descent the power is 1, of
    Adam, which divides the gradient by its size, the half.  A factor of 4 to a whole
    power is exact in floating point, so that then all weights are equal to the bit.

    Other exponents than the theorem's show that they matter.
    """
    draw = lru_cache(maxsize=steps)(draw_sequences)

    def run(optimiser: str, d_k: int, factor: float) -> Run:
        drawn, root = draw_weights(RESCALED_SEED, d_k), math.sqrt(factor)
        return train(
            RESCALED_SEED,
            Weights(drawn.queries / root, drawn.keys / root),
            DIVISORS["sqrt"].value(d_k) / factor,
            optimiser,
            RESCALED_RATE[optimiser] / factor ** exponents[optimiser],
            steps,
            NO_EPSILON,
            draw,
        )

    for optimiser in exponents:
        for d_k in (D_K[0], D_K[-1]):
            plain = run(optimiser, d_k, 1.0)
            for factor in FACTORS:
                other, root = run(optimiser, d_k, factor), math.sqrt(factor)
                queries = root * other.weights.queries - plain.weights.queries
                keys = root * other.weights.keys - plain.weights.keys
                weights = max(float(np.abs(one).max()) for one in (queries, keys))
                loss = float(np.abs(other.losses / plain.losses - 1.0).max())
                yield Rescaled(optimiser, d_k, factor, steps, weights, loss)


# --- From raw runs to the record ------------------------------------------------------


def round_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs sorted, and what was measured of them rounded, as it is kept."""
    rounded = {
        name: [float(f"{value:.{DIGITS}g}") for value in runs[name]]
        for name in runs.columns.difference(RUN, sort=False)
    }
    return runs[RUN].assign(**rounded).sort_values(RUN, ignore_index=True)


def choose_rates(runs: pd.DataFrame, seeds: Sequence[int]) -> Chosen:
    """Choose the rate of each arm, optimiser and d_k, on seeds that are not judged.

    The one with the smallest median number of steps, where never is infinite; of equal
    ones that at which more seeds learned, then the smaller mean of the loss at the end,
    then the smaller rate.

    Raises
    ------
    InputError
        If a setting has not all of the seeds, each once.
    """
    best: dict[Any, tuple[float, ...]] = {}
    for setting, some in runs[runs["seed"].isin(seeds)].groupby(SETTING):
        *names, rate = cast("tuple[str, str, int, float]", setting)
        if sorted(some["seed"]) != sorted(seeds):
            raise InputError(
                f"runs must have all seeds {seeds[0]} to {seeds[-1]} to choose rates "
                f"on, got {sorted(some['seed'])} of {setting}"
            )
        steps = some["steps"].to_numpy()
        learned, left = int(np.isfinite(steps).sum()), float(some["final_loss"].mean())
        found = (float(np.median(steps)), -learned, left, rate)
        arm = tuple(names)
        best[arm] = min(found, best.get(arm, found))
    return {arm: rate for arm, (*_, rate) in best.items()}


def reduce_runs(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Reduce raw runs to the tables of `Record`: of judged seeds, at chosen rates."""
    search, parts = searched(), []
    coarse, fine = search.grids(runs)
    chosen, first = (choose_rates(some, TUNING) for some in (fine, coarse))
    judged = runs[runs["seed"].isin(JUDGED)]
    tried = dict(iter(coarse.groupby(ARM)))
    for names, mine in judged.groupby(ARM):
        arm = optimiser, _, d_k = cast("tuple[str, str, int]", names)
        lower, rate, higher = beside(chosen[arm])
        others = {
            "steps_lower": lower,
            "steps_higher": higher,
            "steps_same_rate": chosen[optimiser, COMPARED, d_k],
            "steps_coarse": first[arm],
        }
        at = dict(iter(mine.set_index("seed").groupby("rate")))
        part = at[rate][[*ARM, "rate", "steps", "final_loss"]].assign(
            **{name: at[other]["steps"] for name, other in others.items()},
            rates=np.isfinite(tried[arm]["steps"]).groupby(tried[arm]["seed"]).sum(),
        )
        parts.append(part.reset_index())
    table = pd.concat(parts, ignore_index=True)
    starts = reduce_starts(coarse[coarse["seed"].isin(JUDGED)])
    return table[[*ARM, "seed", *MEASURED]], starts


def table_search(runs: pd.DataFrame, seeds: Collection[int]) -> pd.DataFrame:
    """Return how each rate that was tried fared: seeds that learn, and median steps."""
    tuned = runs[runs["seed"].isin(seeds)].groupby(SETTING)["steps"]
    learned = tuned.agg(lambda steps: int(np.isfinite(steps).sum()))
    return pd.DataFrame({"learned": learned, "median": tuned.median()}).reset_index()


def reduce_starts(runs: pd.DataFrame) -> pd.DataFrame:
    """Return first gradients by arm, and the slope of first updates on them, by seed.

    What is before the first step has no rate, and an update is in proportion to it.
    """
    parts = []
    for case, mine in runs.groupby([*CASE, "seed"]):
        first = mine.groupby("arm")["gradient"].first()
        logs = np.log(mine["update"] / mine["rate"]), np.log(mine["gradient"])
        slope = float(np.polyfit(logs[1], logs[0], 1)[0])
        named = dict(zip([*CASE, "seed"], case, strict=True))
        parts.append({**named, **{arm: first[arm] for arm in ARMS}, SLOPE: slope})
    return pd.DataFrame(parts)


def pick_reference(runs: pd.DataFrame) -> pd.DataFrame:
    """Pick runs of one seed to compare with: of each arm that at the lowest rate.

    Of rates at which it learns; there rounding grows little, so that another processor
    gives the same digits.  At the largest d_k it grows at every rate.
    """
    mine = runs[runs["seed"].eq(JUDGED[0]) & runs["d_k"].isin(COMPARED_D_K)]
    return pd.DataFrame(mine[np.isfinite(mine["steps"])].groupby(ARM).head(1))


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table; never is an empty number of steps."""
    steps = {
        str(name): table[name].replace(np.inf, np.nan).astype("Int64")
        for name in table
        if str(name).startswith("steps")
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    table.assign(**steps).to_csv(path, index=False, lineterminator="\n")


def write_about(path: Path, content: Mapping[str, object]) -> None:
    """Write what a record is, and what it was made with."""
    text = json.dumps({**content, **made_with()}, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def write_record(
    folder: Path, runs: pd.DataFrame, rescaled: Iterable[Rescaled]
) -> None:
    """Write the files of the record, of raw runs."""
    rounded = round_runs(runs)
    steps, gradients = reduce_runs(rounded)
    write_table(folder / "steps.csv", steps)
    write_table(folder / "gradients.csv", gradients)
    write_table(folder / "search.csv", table_search(rounded, TUNING))
    write_table(folder / REFERENCE, pick_reference(searched().grids(rounded)[0]))
    content = {
        "command": "python -m studies.training",
        "configuration": configuration(),
        "seeds": {"tuning": [*TUNING], "judged": sorted({*map(int, steps["seed"])})},
        "rescaled": [asdict(one) for one in rescaled],
    }
    write_about(folder / "record.json", content)


def configuration() -> dict[str, object]:
    """Return what is trained, and how."""
    names = ("WIDTH", "KEY", "N_KEYS", "N_QUERIES", "BATCH", "WARM_UP")
    return {
        **{name.lower(): getattr(retrieval, name) for name in names},
        "steps": STEPS,
        "d_k": D_K,
        "arms": ARMS,
        "rates": RATES,
        "fine": FINE,
        "around": AROUND,
        "learned": LEARNED,
        "last": LAST,
        "looks": LOOKS,
    }


def tell(runs: pd.DataFrame) -> Iterator[str]:
    """Yield a line for each arm: its rate, and what became of its judged seeds."""
    for arm, mine in runs.groupby([*(c for c in ARM if c in runs), "rate"]):
        steps, names = mine["steps"], " ".join(map(str, cast("tuple[Any, ...]", arm)))
        yield (
            f"{names}: median {steps.median():g} steps, {np.isfinite(steps).sum()} of "
            f"{len(steps)} learn"
        )


# --- A part of the record made again, and compared ------------------------------------


def reproduce(jobs: int) -> bool:
    """Make first steps and the runs of the reference again, and compare them.

    These come out on any machine.  At higher rates a layer doubles a difference in the
    last bit of a product every few steps, so that a run may end elsewhere.
    """
    record, reference = read_record(), read_reference()
    seeds = sorted({*record.runs["seed"]})[:FIRST_SEEDS]
    kept = record.gradients[record.gradients["seed"].isin(seeds)]
    settings = reference[RUN].itertuples(index=False)
    with make_executor(jobs) as executor:
        runs = [executor.submit(run_setting, run[-1], run[:-1]) for run in settings]
        made = pd.DataFrame([run.result() for run in runs])
    starts, again = compare(make_starts(seeds), kept), compare(made, reference)
    print(f"first steps of seeds {seeds}: {starts:.2g} is the largest difference")
    print(f"{len(reference)} runs at low rates: {again:.2g} is the largest difference")
    agree = max(starts, again) <= CLOSE
    print(f"{'agrees' if agree else 'does not agree'}; asked: {CLOSE:g}, relative")
    return agree


def read_reference(folder: Path = FOLDER) -> pd.DataFrame:
    """Read the runs to compare with."""
    return pd.DataFrame(pd.read_csv(folder / REFERENCE))


def make_starts(seeds: Sequence[int]) -> pd.DataFrame:
    """Make first gradients and slopes of some seeds, as the record has them."""
    runs = [
        run_setting(seed, (optimiser, arm, d_k, RATES[optimiser][0]), 1)
        for seed in seeds
        for optimiser, d_k in CASES
        for arm in ARMS
    ]
    return reduce_starts(pd.DataFrame(runs))


def compare(found: pd.DataFrame, kept: pd.DataFrame) -> float:
    """Return the largest relative difference of tables; infinite where lines differ.

    Slopes, of which some are near 0, by their difference.
    """
    by = [name for name in RUN if name in kept]
    one, other = (table.sort_values(by, ignore_index=True) for table in (found, kept))
    if not one[by].equals(other[by]):
        return math.inf
    size = other.drop(columns=by).abs()
    if SLOPE in size:
        size[SLOPE] = 1.0
    off = (one[size.columns] - other[size.columns]).abs() / size
    return float(off.fillna(math.inf).to_numpy().max())


def main(argv: Sequence[str] | None = None) -> int:
    """Make the record, or a part of it again."""
    work, jobs = ROOT / "work" / "training", available_cores()
    options = parse(
        *("training", __doc__, argv),
        short=False,
        jobs=jobs,
        work=work,
        output=FOLDER,
    )
    limit_blas()
    if options.short:
        return 0 if reproduce(options.jobs) else 1
    runs = run_until_decided(options.jobs, options.work)
    write_record(options.output, runs, measure_rescaled())
    read_record.cache_clear()
    print("\n".join(tell(read_record(options.output).runs)))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("training", main))
