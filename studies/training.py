"""The training record: a layer of attention that learns to retrieve, by divisor.

Run as ``python -m studies.training [--short] [--jobs N]``: an hour; interrupted, the
same command goes on.  With --short two of its seeds are trained again, in two minutes,
and compared with the record: status 1 if they differ.

Seeds are judged in `LOOKS`: where a check of the catalogue is undecided, its optimiser
and d_k get twice as many.

A token carries a key and a value, both random; a query carries the key of one of the
tokens, and noise.  What attention returns is the mean of the values by its weights, and
the loss its mean squared distance from the value of the token asked for: 0 where all
weight stands there, about 2 where it stands on another token.  V and O are fixed, and
read the value; W_Q and W_K are learned, through softmax and its Jacobian, and of
normalised queries and keys the gain of their product.  Arms that are compared see the
same seeds: the same weights but for their scale, the same sequences.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.attention.divisors import DIVISORS
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.judging import Judge
from montecarlo.claims.recorded import TRAINING_QUANTITIES, Recorded
from montecarlo.claims.running import Study, error_rates_of, exact_value
from montecarlo.claims.simulation import Simulation
from montecarlo.claims.verdicts import Verdict
from montecarlo.records.training import (
    ARMS,
    D_K,
    FOLDER,
    LOOKS,
    MEASURED,
    RATES,
    RUN,
    SETTING,
    STEPS,
    Chosen,
    Record,
    Rescaled,
    Runs,
    choose_rates,
    make_runs,
    read_record,
    require_paired,
)
from montecarlo.sampling.streams import named_stream
from montecarlo.study.blas import limit_blas
from montecarlo.study.executors import available_cores, make_executor
from montecarlo.study.fingerprint import made_with
from montecarlo.study.presets import PRESETS
from studies.program import ROOT, Arrays, keep, parse, run_program

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Width of a token, and how much of it is its key, of which the smallest d_k that is
#: tried holds the whole; tokens and queries of a sequence, sequences of a step.
WIDTH, KEY = 64, 16
N_KEYS, N_QUERIES, BATCH = 32, 16, 16
WARM_UP = 20
#: Adam's, as in the paper that introduced it.
MEMORY, MEMORY_OF_SQUARES, EPSILON = 0.9, 0.999, 1e-8
#: A run has learned from the step on from which its loss stays below this.
LEARNED = 0.1
#: Steps at the end whose mean is the loss that is left.
LAST = 20
#: Seeds on which rates are chosen, and those that are judged; none is both.
TUNING, JUDGED = range(12), range(200, 200 + LOOKS[-1])
#: An optimiser and a d_k.
Case = tuple[str, int]
CASES: tuple[Case, ...] = tuple(product(RATES, D_K))
#: Significant digits that are kept; every which step of a curve, and the quantiles over
#: judged seeds.
DIGITS, EVERY = 5, 5
QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}
#: Of `measure_rescaled`: the power of c that a rate is divided by, the factors c, the
#: rates, at which all learn well, a seed that is neither tuned on nor judged, and
#: Adam's epsilon, too small to act.
EXPONENTS = {"sgd": 1.0, "adam": 0.5}
FACTORS = (3.0, 4.0, 10.0, 16.0)
RESCALED_RATE = {"sgd": 3.0, "adam": 0.01}
RESCALED_SEED, RESCALED_STEPS, NO_EPSILON = 50, 100, 1e-30
#: Seeds that are run again by --short.  With other kernels than the record's: relative
#: difference of numbers that agree; columns known before anything is learned, which
#: agree in all runs; share of runs that agree altogether.
SEEDS = 2
CLOSE, FIRST, SHARE = 1e-4, ["gradient", "update"], 1 / 3


@dataclass(frozen=True, slots=True)
class Sequences:
    """What a step learns from; the same for every arm.

    Attributes
    ----------
    queries : ndarray, shape (BATCH, N_QUERIES, WIDTH)
    tokens : ndarray, shape (BATCH, N_KEYS, WIDTH)
    asked : ndarray of int, shape (BATCH, N_QUERIES)
        Places of the tokens that the queries ask for.
    """

    queries: Array
    tokens: Array
    asked: Indices


@dataclass(frozen=True, slots=True)
class Weights:
    """W_Q and W_K, each of shape (WIDTH, d_k), and the gain of normalised ones."""

    queries: Array
    keys: Array
    gain: float = 1.0


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one seed.

    Attributes
    ----------
    losses : ndarray, shape (steps,)
        Of each step's batch, before the step; infinite from where it diverged.
    gradient, update : float
        Norms over W_Q and W_K, of the first step.
    weights : Weights
        At the end.
    """

    losses: Array
    gradient: float
    update: float
    weights: Weights


def draw_sequences(seed: int, step: int) -> Sequences:
    """Draw what a step of a seed learns from; entries have variance 1.

    Keys have length sqrt(KEY), so that no token answers where another is asked for.
    """
    rng = named_stream(seed, f"training;retrieval;step={step}")
    tokens = rng.standard_normal((BATCH, N_KEYS, WIDTH))
    queries = rng.standard_normal((BATCH, N_QUERIES, WIDTH))
    keys = tokens[..., :KEY]
    keys *= math.sqrt(KEY) / np.linalg.norm(keys, axis=-1, keepdims=True)
    asked = rng.random((BATCH, N_KEYS)).argsort(axis=-1)[:, :N_QUERIES]
    queries[..., :KEY] = np.take_along_axis(keys, asked[..., None], axis=1)
    return Sequences(queries, tokens, asked)


def draw_weights(seed: int, d_k: int, query_std: float = WIDTH**-0.5) -> Weights:
    """Draw W_Q and W_K, the latter so that entries of k have variance 1."""
    rng = named_stream(seed, f"training;retrieval;weights;d_k={d_k}")
    queries, keys = rng.standard_normal((2, WIDTH, d_k))
    return Weights(query_std * queries, WIDTH**-0.5 * keys)


def loss_and_gradients(
    weights: Weights, data: Sequences, divisor: float, *, normalised: bool = False
) -> tuple[float, Weights]:
    """Return the loss of some sequences, and its gradients by what is learned.

    With S = X_q M X_kᵀ / c, M = W_Q W_Kᵀ, p the softmax of its rows, o = p v and the
    loss the mean of (o - v_asked)²: the gradient by o is 2 (o - v_asked) / size, by p
    its product with v, by S (the Jacobian of softmax) p (g - Σ p g), by M
    X_qᵀ (·) X_k / c, and by W_Q and W_K the products of that with the other.

    Normalised: S = a X_q M X_kᵀ / (c r_q r_k) with the gain a and root mean squares
    r_q² = x_q A x_qᵀ / d_k, A = W_Q W_Qᵀ, likewise r_k.  The gradient by a is
    Σ (·) S / a, by A -X_qᵀ w X_q / 2 with w the sums of (·) S over keys by x_q A x_qᵀ.
    """
    values = data.tokens[..., KEY:]
    matrix = weights.queries @ weights.keys.T
    scores = data.queries @ matrix @ data.tokens.swapaxes(1, 2) / divisor
    if normalised:
        d_k = weights.keys.shape[1]
        q_squares, k_squares = (
            np.einsum("bnw,bnw->bn", x @ (w @ w.T), x)
            for x, w in ((data.queries, weights.queries), (data.tokens, weights.keys))
        )
        by_size = d_k / np.sqrt(q_squares[..., None] * k_squares[:, None])
        unit = scores * by_size
        scores = weights.gain * unit
    scores -= scores.max(axis=-1, keepdims=True)
    p = np.exp(scores)
    p /= p.sum(axis=-1, keepdims=True)
    error = p @ values - np.take_along_axis(values, data.asked[..., None], axis=1)
    loss = float(np.mean(error**2))

    by_weights = (2.0 / error.size) * error @ values.swapaxes(1, 2)
    by_scores = p * (by_weights - (p * by_weights).sum(axis=-1, keepdims=True))
    if normalised:
        by_units = by_scores * unit
        by_scores *= weights.gain * by_size
    by_matrix = _outer(data.queries, by_scores @ data.tokens)
    by_matrix /= divisor
    by_queries, by_keys = by_matrix @ weights.keys, by_matrix.T @ weights.queries
    if not normalised:
        return loss, Weights(by_queries, by_keys, 0.0)
    by_q_squares = -weights.gain * by_units.sum(axis=2) / q_squares
    by_k_squares = -weights.gain * by_units.sum(axis=1) / k_squares
    by_queries += (
        _outer(data.queries, by_q_squares[..., None] * data.queries) @ weights.queries
    )
    by_keys += _outer(data.tokens, by_k_squares[..., None] * data.tokens) @ weights.keys
    return loss, Weights(by_queries, by_keys, float(by_units.sum()))


def _outer(left: Array, right: Array) -> Array:
    """Return the sum of outer products of vectors, over sequences and places."""
    found: Array = np.tensordot(left, right, axes=((0, 1), (0, 1)))
    return found


def train(  # noqa: PLR0913, PLR0917 - what an arm, an optimiser and a rate are
    seed: int,
    weights: Weights,
    divisor: float,
    optimiser: str,
    rate: float,
    steps: int = STEPS,
    epsilon: float = EPSILON,
    draw: Callable[[int, int], Sequences] = draw_sequences,
    *,
    normalised: bool = False,
) -> Run:
    """Train from given weights on the sequences of a seed.

    A loss that is no number ends the run: it diverged, which is a result.
    """
    now, learned = weights, _flat(weights)
    mean, square = np.zeros_like(learned), np.zeros_like(learned)
    losses = np.full(steps, np.inf)
    first = (math.nan, math.nan)
    for step in range(steps):
        with np.errstate(all="ignore"):
            loss, by = loss_and_gradients(
                now, draw(seed, step), divisor, normalised=normalised
            )
            if not math.isfinite(loss):
                break
            losses[step] = loss
            gradient = _flat(by)
            change = gradient
            if optimiser == "adam":
                mean = MEMORY * mean + (1.0 - MEMORY) * gradient
                square *= MEMORY_OF_SQUARES
                square += (1.0 - MEMORY_OF_SQUARES) * gradient**2
                unbiased = mean / (1.0 - MEMORY ** (step + 1))
                size = np.sqrt(square / (1.0 - MEMORY_OF_SQUARES ** (step + 1)))
                change = unbiased / (size + epsilon)
            move = rate * min(1.0, (step + 1) / WARM_UP) * change
            learned = learned - move
            queries, keys = learned[:-1].reshape(2, *weights.queries.shape)
            now = Weights(queries, keys, float(learned[-1]))
            if step == 0:  # of what all arms learn
                gradient, move = gradient[:-1], move[:-1]
                first = (float(np.linalg.norm(gradient)), float(np.linalg.norm(move)))
    return Run(losses, *first, now)


def _flat(weights: Weights) -> Array:
    parts = (weights.queries.ravel(), weights.keys.ravel(), [weights.gain])
    return np.concatenate(parts)


# --- Runs of a seed -------------------------------------------------------------------


def count_steps(losses: Array) -> float:
    """Count the steps until a loss is below `LEARNED` for good; infinite: never.

    One that is below by chance, while the rate still rises, and then leaves has not
    learned, nor one that is not yet below for the `LAST` steps.
    """
    above = np.flatnonzero(~(losses < LEARNED))
    steps = int(above[-1]) + 1 if above.size else 0
    return steps if steps <= len(losses) - LAST else math.inf


def run_setting(
    seed: int,
    setting: tuple[str, str, int, float],
    steps: int = STEPS,
    draw: Callable[[int, int], Sequences] = draw_sequences,
) -> tuple[dict[str, Any], Array]:
    """Train one setting; returns its line of the record, and its losses."""
    optimiser, arm, d_k, rate = setting
    std = (WIDTH * (d_k if arm == "small-queries" else 1)) ** -0.5
    weights, divisor = draw_weights(seed, d_k, std), DIVISORS[ARMS[arm]].value(d_k)
    run = train(
        *(seed, weights, divisor, optimiser, rate, steps),
        draw=draw,
        normalised=arm == "normalised",
    )
    final = float(np.mean(run.losses[-LAST:]))
    measured = (count_steps(run.losses), final, run.gradient, run.update)
    names = (*setting, seed, *measured)
    return dict(zip((*RUN, *MEASURED), names, strict=True)), run.losses


def run_case(seed: int, optimiser: str, d_k: int, steps: int = STEPS) -> Arrays:
    """Train each arm at each rate; returns columns of the record, and ``losses``."""
    draw = lru_cache(maxsize=steps)(draw_sequences)
    runs = [
        run_setting(seed, (optimiser, arm, d_k, rate), steps, draw)
        for arm in ARMS
        for rate in RATES[optimiser]
    ]
    lines, losses = zip(*runs, strict=True)
    return {**columns(lines), "losses": np.stack(losses).astype(np.float32)}


def columns(lines: Sequence[Mapping[str, object]]) -> Arrays:
    """Return lines with the same names as one array for each name."""
    return {name: np.array([one[name] for one in lines]) for name in lines[0]}


def run_parts(
    run: Callable[..., Arrays],
    parts: Sequence[tuple[Any, ...]],
    jobs: int,
    work: Path | None,
    name: str = "",
) -> Arrays:
    """Run parts on workers, each once, and join what became of them, in their order.

    Those that a folder keeps, by a name and what they are, are read; no folder keeps
    nothing.
    """
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    found = []
    names = ["-".join(map(str, (*filter(None, [name]), *part))) for part in parts]
    with make_executor(jobs) as executor:
        futures = [
            executor.submit(keep, work, own, part, partial(run, *part))
            for own, part in zip(names, parts, strict=True)
        ]
        for number, (own, future) in enumerate(zip(names, futures, strict=True)):
            found.append(future.result())
            print(f"{own}, {number + 1} of {len(parts)}", flush=True)
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


def run_until_decided(jobs: int, work: Path | None) -> Arrays:
    """Run tuning seeds and the first to be judged, and more where checks are open."""
    cases: Collection[Case] = CASES
    parts = [(seed, *case) for case in CASES for seed in (*TUNING, *JUDGED[: LOOKS[0]])]
    found = run_parts(run_case, parts, jobs, work)
    for before, look in pairwise(LOOKS):
        cases = find_undecided(pd.DataFrame(lines_of(found)), cases)
        print(f"undecided after {before} seeds: {sorted(cases)}", flush=True)
        if not cases:
            break
        parts = [(seed, *case) for case in cases for seed in JUDGED[before:look]]
        more = run_parts(run_case, parts, jobs, work)
        found = {name: np.concatenate([found[name], more[name]]) for name in found}
    return found


def lines_of(found: Arrays) -> Arrays:
    """Return what was found without the losses, which are more than one a run."""
    return {name: some for name, some in found.items() if name != "losses"}


def find_undecided(table: pd.DataFrame, among: Collection[Case] = CASES) -> list[Case]:
    """Return where checks of the catalogue are undecided, as the report judges them.

    At its error rate; a comparison with the smallest d_k needs more seeds of both.
    """
    rounded = round_runs(table)
    runs = make_runs(rounded, seeds_of(rounded), {})
    record = Record(runs.runs, runs.chosen, runs.seeds, {}, pd.DataFrame(), ())
    study = Study(read_catalogue(), PRESETS["standard"])
    simulation = Simulation({}, (), exact_value)
    judge = Judge(
        Recorded(study.catalogue, simulation, record),
        error_rates_of(study).simultaneous_error,
    )
    found: set[Case] = set()
    for check in study.catalogue.checks():
        if check.quantity not in TRAINING_QUANTITIES:
            continue
        for case in judge.judge_check(check).cases:
            if case.outcome == Verdict.UNDECIDED and case.d_k is not None:
                sizes = {case.d_k}
                if check.quantity == "training_growth":
                    sizes.add(D_K[0])
                found |= {(case.part, d_k) for d_k in sizes}
    return [case for case in among if case in found]


def seeds_of(table: pd.DataFrame) -> dict[str, tuple[int, ...]]:
    """Return the seeds that rates are chosen on, and those that are judged."""
    run = set(table["seed"])
    judged = tuple(seed for seed in JUDGED if seed in run)
    return {"tuning": (*TUNING,), "judged": judged}


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


# --- The record -----------------------------------------------------------------------


def summarise_losses(
    table: pd.DataFrame, losses: NDArray[np.float32], chosen: Chosen
) -> pd.DataFrame:
    """Return quantiles of curves over judged seeds, at the chosen rates.

    Losses have shape (n_runs, n_steps), in the order of the table of runs.
    """
    judged = table["seed"].isin(JUDGED).to_numpy()
    found = []
    for arm, rate in sorted(chosen.items()):
        names = dict(zip(SETTING, (*arm, rate), strict=True))
        wanted = (table[list(names)] == list(names.values())).all(axis=1).to_numpy()
        curves = losses[judged & wanted, ::EVERY].astype(float)
        with np.errstate(invalid="ignore"):  # between two infinite ones nothing is
            ends = np.quantile(curves, list(QUANTILES.values()), axis=0)
        curve = dict(zip(QUANTILES, np.nan_to_num(ends, nan=np.inf), strict=True))
        steps = np.arange(0, losses.shape[1], EVERY)
        found.append(pd.DataFrame({**names, "step": steps, **curve}))
    return pd.concat(found, ignore_index=True)


def round_runs(table: pd.DataFrame) -> pd.DataFrame:
    """Return runs sorted, and what was measured of them rounded, as they are kept."""
    rounded = {
        name: [float(f"{value:.{DIGITS}g}") for value in table[name]]
        for name in table.columns.difference(RUN, sort=False)
    }
    return table[RUN].assign(**rounded).sort_values(RUN, ignore_index=True)


def write_runs(folder: Path, name: str, rounded: pd.DataFrame) -> None:
    """Write a table of runs; never is an empty number of steps."""
    require_paired(rounded)
    steps = rounded["steps"].replace(np.inf, np.nan).astype("Int64")
    _write(folder / f"{name}.csv", rounded.assign(steps=steps))


def _write(path: Path, table: pd.DataFrame) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    form = f"%.{DIGITS}g"
    table.to_csv(path, index=False, lineterminator="\n", float_format=form)


def write_about(path: Path, content: Mapping[str, object]) -> None:
    """Write what a record is, and what it was made with."""
    text = json.dumps({**content, **made_with()}, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def write_record(
    folder: Path,
    table: pd.DataFrame,
    losses: NDArray[np.float32],
    rescaled: Iterable[Rescaled],
) -> None:
    """Write the files of the record; runs and losses are in the same order."""
    rounded = round_runs(table)
    write_runs(folder, "runs", rounded)
    curves = summarise_losses(table, losses, choose_rates(rounded, TUNING))
    _write(folder / "losses.csv", curves)
    content = {
        "command": "python -m studies.training",
        "configuration": configuration(),
        "seeds": seeds_of(rounded),
        "rescaled": [asdict(one) for one in rescaled],
    }
    write_about(folder / "record.json", content)


def configuration() -> dict[str, object]:
    """Return what is trained, and how."""
    names = ("WIDTH", "KEY", "N_KEYS", "N_QUERIES", "BATCH", "STEPS", "WARM_UP")
    return {
        **{name.lower(): globals()[name] for name in names},
        "d_k": D_K,
        "arms": ARMS,
        "rates": RATES,
        "learned": LEARNED,
        "last": LAST,
        "looks": LOOKS,
    }


def tell(record: Runs) -> Iterator[str]:
    """Yield a line for each arm: its rate, and what became of its judged seeds."""
    for (optimiser, arm, d_k), rate in record.chosen.items():
        steps = record.judged.query(
            "optimiser == @optimiser and arm == @arm and d_k == @d_k and rate == @rate"
        )["steps"]
        yield (
            f"{optimiser:<7} {arm:<14} d_k {d_k:<4} rate {rate:<6g} median "
            f"{steps.median():g} steps, {np.isfinite(steps).sum()} of {len(steps)} "
            "learn"
        )


# --- A part of the record made again, and compared ------------------------------------


def reproduce(jobs: int) -> bool:
    """Run the first judged seeds again, and compare them with the record.

    With the libraries and the processor's kernels of the record every digit must come
    out.  Elsewhere the last bits of a product are others; where the rate is high a
    layer doubles such a difference every few steps, so that half of all runs end
    elsewhere, while the others agree to all digits that are kept.
    """
    record = read_record()
    seeds = record.seeds["judged"][:SEEDS]
    parts = [(seed, *case) for seed in seeds for case in CASES]
    found = pd.DataFrame(lines_of(run_parts(run_case, parts, jobs, None)))
    kept = record.runs[record.runs["seed"].isin(seeds)]
    same = _libraries(made_with()) == _libraries(record.about)
    lines, agree = compare(round_runs(found), kept, exact=same)
    print("\n".join(lines))
    return agree


def _libraries(about: dict[str, Any]) -> tuple[str, str]:
    return about["versions"]["numpy"], about["kernel"]


def compare(
    found: pd.DataFrame, kept: pd.DataFrame, *, exact: bool
) -> tuple[list[str], bool]:
    """Compare runs with the record's: what to print, and whether they agree."""
    if not found[RUN].reset_index(drop=True).equals(kept[RUN].reset_index(drop=True)):
        return ["runs are others than those of the record"], False
    one, other = (some[MEASURED].to_numpy(float) for some in (found, kept))
    with np.errstate(invalid="ignore"):
        off = np.abs(one - other) / np.maximum(np.abs(one), np.abs(other))
    off[one == other] = 0.0
    off = pd.DataFrame(np.nan_to_num(off, nan=np.inf), columns=MEASURED)
    lines = [f"{'':<11} largest relative difference, runs that differ of {len(off)}"]
    lines += [
        f"{name:<11} {off[name].max():<27.2g} {int((off[name] > 0.0).sum())}"
        for name in MEASURED
    ]
    if exact:
        agree = not off.to_numpy().any()
        asked = "every digit, with the libraries and kernels of the record"
    else:
        share = float((off <= CLOSE).all(axis=1).mean())
        agree = bool((off[FIRST] <= CLOSE).all(axis=None)) and share >= SHARE
        lines.append(f"within {CLOSE:g} in all columns: {share:.0%} of runs")
        asked = (
            f"{' and '.join(FIRST)} within {CLOSE:g} and all columns in {SHARE:.0%} of "
            "runs, with other libraries or kernels than the record's"
        )
    return [*lines, f"{'agrees' if agree else 'does not agree'}; asked: {asked}"], agree


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
    if options.short:
        return 0 if reproduce(options.jobs) else 1
    limit_blas()
    found = run_until_decided(options.jobs, options.work)
    table = pd.DataFrame(lines_of(found))
    write_record(options.output, table, found["losses"], measure_rescaled())
    read_record.cache_clear()
    print("\n".join(tell(read_record(options.output))))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("training", main))
