"""The training record: a layer of attention that learns to retrieve, by divisor.

Run as ``python -m studies.training [--short] [--jobs N]``: an hour; interrupted, the
same command goes on.  Raw runs stay in the work folder; the record has what claims and
pages need of them.  With --short some runs are made again, in seconds, and compared
with the record: status 1 if they differ.

The rate of an arm is searched twice, on tuning seeds: among `RATES`, half a decade
apart, and then among rates a factor `SPACING` apart around the best of these, on as
long as the best of them is the last on a side.

Seeds are judged in `LOOKS`: where a check of the catalogue is undecided, its optimiser
and d_k get twice as many.

`studies.retrieval` is what is trained.
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
    CASE,
    COMPARED,
    D_K,
    FOLDER,
    LOOKS,
    MEASURED,
    RATES,
    SEARCHED,
    SLOPE,
    SPACING,
    STEPS,
    Record,
    Rescaled,
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
#: Quantities that are recorded for the seeds of the first look alone.
FIRST_LOOK = ("training_rates",)
#: An optimiser and a d_k; with the name of an arm between; and with a rate.
Case = tuple[str, int]
Arm = tuple[str, str, int]
Setting = tuple[str, str, int, float]
ALL_ARMS: tuple[Arm, ...] = tuple(product(RATES, ARMS, D_K))
#: Fine rates that are tried on each side of the best coarse one at first, and more by
#: so many as long as the last one is the best.
SIDE = 4
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

#: (stage, settings) -> raw runs, and (stage, seeds, settings) -> raw runs.
RunStage = Callable[[str, Sequence[Any]], pd.DataFrame]
RunSeeds = Callable[[str, Sequence[int], Sequence[Any]], pd.DataFrame]


class Rates(NamedTuple):
    """Rates that were chosen for an arm: of coarse ones, of fine ones, beside it."""

    coarse: float
    fine: float
    below: float
    above: float


# --- Runs, and the search for rates ---------------------------------------------------


def run_settings(seed: int, settings: Sequence[Setting], steps: int = STEPS) -> Arrays:
    """Train some settings on the sequences of a seed; returns columns of raw runs."""
    draw = lru_cache(maxsize=steps)(draw_sequences)
    return columns([run_setting(seed, one, steps, draw) for one in settings])


def columns(lines: Sequence[Mapping[str, object]]) -> Arrays:
    """Return lines with the same names as one array for each name."""
    return {name: np.array([one[name] for one in lines]) for name in lines[0]}


def run_seeds(
    run: Callable[[int, Sequence[Any]], Arrays], jobs: int, work: Path, name: str
) -> Callable[[str, Sequence[int], Sequence[Any]], pd.DataFrame]:
    """Return a function that runs the settings of a stage for some seeds, on workers.

    What became of a seed is kept in a folder, by the name, the stage and all that it
    depends on, and read where the folder has it.
    """
    work.mkdir(parents=True, exist_ok=True)

    def run_stage(
        stage: str, seeds: Sequence[int], settings: Sequence[Any]
    ) -> pd.DataFrame:
        found, settings = [], tuple(settings)
        with make_executor(jobs) as executor:
            futures = {
                seed: executor.submit(
                    keep,
                    work,
                    f"{name}-{stage}-{seed}",
                    (seed, settings),
                    partial(run, seed, settings),
                )
                for seed in seeds
            }
            for number, (seed, future) in enumerate(futures.items(), 1):
                found.append(pd.DataFrame(future.result()))
                print(f"{name} {stage}: {seed}, {number} of {len(seeds)}", flush=True)
        return pd.concat(found, ignore_index=True)

    return run_stage


def fine_rate(coarse: float, place: int) -> float:
    """Return the rate so many places above a coarse one, to three digits."""
    return float(f"{coarse * SPACING**place:.3g}")


def search_rates(
    run: RunStage,
    rates: Mapping[str, Sequence[float]],
    arms: Sequence[Arm],
    side: int = SIDE,
) -> dict[Arm, Rates]:
    """Search the rate of each arm, on seeds that are not judged.

    Parameters
    ----------
    run : callable
        (stage, settings) -> raw runs of all tuning seeds.
    rates : mapping of str to sequence of float
        Coarse ones, by optimiser.
    arms : sequence of tuple
        Optimiser, name and d_k of each.
    side : int
        Fine rates on each side of the best coarse one at first, and how many more
        where the last one is the best.
    """
    coarse = choose_rates(run("coarse", [(*a, r) for a in arms for r in rates[a[0]]]))
    span = dict.fromkeys(arms, (-side, side))
    wanted = {arm: range(-side, side + 1) for arm in arms}
    found: list[pd.DataFrame] = []
    best: dict[Arm, int] = {}
    while wanted:
        settings = [
            (*arm, fine_rate(coarse[arm], place))
            for arm, places in wanted.items()
            for place in places
        ]
        found.append(run(f"fine-{len(found) + 1}", settings))
        chosen, wanted = choose_rates(pd.concat(found)), {}
        for arm, (low, high) in span.items():
            places = range(low, high + 1)
            by_rate = {fine_rate(coarse[arm], place): place for place in places}
            best[arm] = by_rate[chosen[arm]]
            if best[arm] == low:
                wanted[arm], span[arm] = range(low - side, low), (low - side, high)
            elif best[arm] == high:
                wanted[arm] = range(high + 1, high + side + 1)
                span[arm] = low, high + side
    return {
        arm: Rates(
            coarse[arm],
            *(fine_rate(coarse[arm], best[arm] + place) for place in (0, -1, 1)),
        )
        for arm in arms
    }


def choose_rates(runs: pd.DataFrame) -> dict[Arm, float]:
    """Choose the rate of each arm.

    The one with the smallest median number of steps, where never is infinite; of equal
    ones that at which more seeds learned, then the smaller mean of the loss at the end,
    then the smaller rate.

    Raises
    ------
    InputError
        If a setting has not all of the seeds, each once.
    """
    best: dict[Any, tuple[float, ...]] = {}
    seeds = sorted(set(runs["seed"]))
    for setting, some in runs.groupby(SETTING):
        *names, rate = cast("tuple[str, str, int, float]", setting)
        if sorted(some["seed"]) != seeds:
            raise InputError(
                f"runs must have all seeds {seeds} to choose rates on, got "
                f"{sorted(some['seed'])} of {setting}"
            )
        steps = some["steps"].to_numpy()
        learned, left = int(np.isfinite(steps).sum()), float(some["final_loss"].mean())
        found = (float(np.median(steps)), -learned, left, rate)
        arm = tuple(names)
        best[arm] = min(found, best.get(arm, found))
    return {arm: rate for arm, (*_, rate) in best.items()}


def judge_seeds(
    run: RunSeeds, chosen: Mapping[Arm, Rates], arms: Sequence[Arm]
) -> pd.DataFrame:
    """Run the first seeds to be judged, and more where checks are open.

    The first at all coarse rates, and at those beside the chosen one; all at the chosen
    one, and at that of `COMPARED`.
    """
    always = {
        arm: {chosen[arm].fine, chosen[arm[0], COMPARED, arm[2]].fine} for arm in arms
    }
    settings = [
        (*arm, rate)
        for arm in arms
        for rate in sorted(always[arm] | {*RATES[arm[0]]} | {*chosen[arm]})
    ]
    found = [run(f"judged-{LOOKS[0]}", JUDGED[: LOOKS[0]], settings)]
    cases: Collection[Case] = {(arm[0], arm[2]) for arm in arms}
    for before, look in pairwise(LOOKS):
        cases = find_undecided(pd.concat(found), chosen, cases)
        print(f"undecided after {before} seeds: {sorted(cases)}", flush=True)
        if not cases:
            break
        settings = [
            (*arm, rate)
            for arm in arms
            if (arm[0], arm[2]) in cases
            for rate in sorted(always[arm])
        ]
        found.append(run(f"judged-{look}", JUDGED[before:look], settings))
    return pd.concat(found, ignore_index=True)


def find_undecided(
    runs: pd.DataFrame, chosen: Mapping[Arm, Rates], among: Collection[Case]
) -> list[Case]:
    """Return where checks of the catalogue are undecided, as the report judges them.

    At its error rate; a comparison with the smallest d_k needs more seeds of both.
    What is counted on the first seeds alone is not among them.
    """
    record = Record(*reduce_runs(round_runs(runs), chosen), (), {})
    study = Study(read_catalogue(), PRESETS["standard"])
    evidence = Evidence({}, (), exact_value, record=record)
    judge = Judge(evidence, error_rates_of(study, record=record).stated)
    found: set[Case] = set()
    for check in study.catalogue.checks():
        if check.quantity not in TRAINING_QUANTITIES or check.quantity in FIRST_LOOK:
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


def reduce_runs(
    runs: pd.DataFrame, chosen: Mapping[Arm, Rates]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Reduce raw runs of judged seeds to the tables of `Record`."""
    by_setting = {
        setting: mine.set_index("seed") for setting, mine in runs.groupby(SETTING)
    }
    steps, search = [], []
    for arm, rates in chosen.items():
        optimiser, _, d_k = arm
        if (*arm, rates.fine) not in by_setting:
            continue
        at = by_setting[*arm, rates.fine]
        same = by_setting[*arm, chosen[optimiser, COMPARED, d_k].fine]
        tried = [by_setting[*arm, rate]["steps"] for rate in RATES[optimiser]]
        first = min((one.index for one in tried), key=len)  # of the first look
        part = at[[*ARM, "rate", "steps", "final_loss"]].assign(
            steps_same_rate=same["steps"]
        )
        steps.append(part.reset_index())
        line = at.loc[first, ARM].assign(
            coarse_rate=rates.coarse,
            steps_coarse=by_setting[*arm, rates.coarse]["steps"],
            steps_below=by_setting[*arm, rates.below]["steps"],
            steps_above=by_setting[*arm, rates.above]["steps"],
            rates=sum(np.isfinite(one.loc[first]).astype(int) for one in tried),
        )
        search.append(line.reset_index())
    return (
        pd.concat(steps, ignore_index=True)[[*ARM, "seed", *MEASURED]],
        pd.concat(search, ignore_index=True)[[*ARM, "seed", *SEARCHED]],
        reduce_starts(runs),
    )


def reduce_starts(runs: pd.DataFrame) -> pd.DataFrame:
    """Return first gradients by arm, and the slope of first updates on them, by seed.

    What is before the first step has no rate, and an update is in proportion to it.
    """
    parts = []
    for case, mine in runs.groupby([*CASE, "seed"]):
        each = mine.groupby("arm")[["rate", "gradient", "update"]].first()
        logs = np.log(each["update"] / each["rate"]), np.log(each["gradient"])
        slope = float(f"{np.polyfit(logs[1], logs[0], 1)[0]:.{DIGITS}g}")
        named = dict(zip([*CASE, "seed"], case, strict=True))
        parts.append({**named, **each["gradient"][[*ARMS]], SLOPE: slope})
    return pd.DataFrame(parts)


def pick_reference(runs: pd.DataFrame) -> pd.DataFrame:
    """Pick runs of one seed to compare with: of each arm that at the lowest rate.

    Of coarse rates at which it learns; there rounding grows little, so that another
    processor gives the same digits.  At the largest d_k it grows at every rate.
    """
    coarse = {rate for rates in RATES.values() for rate in rates}
    mine = runs[runs["seed"].eq(JUDGED[0]) & runs["d_k"].isin(COMPARED_D_K)]
    mine = mine[mine["rate"].isin(coarse) & np.isfinite(mine["steps"])]
    return pd.DataFrame(mine.groupby(ARM).head(1))


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
    folder: Path,
    runs: pd.DataFrame,
    chosen: Mapping[Arm, Rates],
    rescaled: Iterable[Rescaled],
) -> None:
    """Write the files of the record, of raw runs of judged seeds."""
    rounded = round_runs(runs)
    steps, search, gradients = reduce_runs(rounded, chosen)
    write_table(folder / "steps.csv", steps)
    write_table(folder / "search.csv", search)
    write_table(folder / "gradients.csv", gradients)
    write_table(folder / REFERENCE, pick_reference(rounded))
    content = {
        "command": "python -m studies.training",
        "configuration": configuration(),
        "seeds": {"tuning": [*TUNING], "judged": sorted({*map(int, steps["seed"])})},
        "rescaled": [asdict(one) for one in rescaled],
    }
    write_about(folder / "record.json", content)


def configuration() -> dict[str, object]:
    """Return what is trained, and how."""
    names = ("WIDTH", "KEY", "N_KEYS", "N_QUERIES", "BATCH", "STEPS", "WARM_UP")
    return {
        **{name.lower(): getattr(retrieval, name) for name in names},
        "d_k": D_K,
        "arms": ARMS,
        "rates": RATES,
        "spacing": SPACING,
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
        run_setting(seed, (*arm, RATES[arm[0]][0]), 1)
        for seed in seeds
        for arm in ALL_ARMS
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
    run = run_seeds(run_settings, options.jobs, options.work, "training")
    chosen = search_rates(
        lambda stage, settings: run(stage, TUNING, settings), RATES, ALL_ARMS
    )
    runs = judge_seeds(run, chosen, ALL_ARMS)
    write_record(options.output, runs, chosen, measure_rescaled())
    read_record.cache_clear()
    print("\n".join(tell(read_record(options.output).runs)))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("training", main))
