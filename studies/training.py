"""The training record: a layer of attention that learns to retrieve, by divisor.

Run as ``python -m studies.training [--short] [--jobs N]``: an hour; interrupted, the
same command goes on.  With --short two of its seeds are trained again, in two minutes,
and compared with the record: status 1 if they differ.

A token carries a key and a value, both random; a query carries the key of one of the
tokens, and noise.  What attention returns is the mean of the values by its weights, and
the loss its mean squared distance from the value of the token asked for: 0 where all
weight stands there, about 2 where it stands on another token.  V and O are fixed, and
read the value; W_Q and W_K are learned, through softmax and its Jacobian.  All arms see
the same seeds: the same weights but for their scale, the same sequences.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.attention.divisors import DIVISORS
from montecarlo.records.training import (
    ARMS,
    D_K,
    FOLDER,
    MEASURED,
    RATES,
    RUN,
    SETTING,
    STEPS,
    Chosen,
    Rescaled,
    Runs,
    choose_rates,
    read_record,
    require_paired,
)
from montecarlo.sampling.streams import named_stream
from montecarlo.study.executors import available_cores, make_executor
from montecarlo.study.fingerprint import made_with
from montecarlo.study.workers import limit_blas
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
TUNING, JUDGED = range(12), range(200, 248)
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
    """W_Q and W_K, each of shape (WIDTH, d_k)."""

    queries: Array
    keys: Array


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
    weights: Weights, data: Sequences, divisor: float
) -> tuple[float, Weights]:
    """Return the loss of some sequences, and its gradients by W_Q and W_K.

    With S = X_q M X_kᵀ / c, M = W_Q W_Kᵀ, p the softmax of its rows, o = p v and the
    loss the mean of (o - v_asked)²: the gradient by o is 2 (o - v_asked) / size, by p
    its product with v, by S (the Jacobian of softmax) p (g - Σ p g), by M
    X_qᵀ (·) X_k / c, and by W_Q and W_K the products of that with the other.
    """
    values = data.tokens[..., KEY:]
    matrix = weights.queries @ weights.keys.T
    scores = data.queries @ matrix @ data.tokens.swapaxes(1, 2) / divisor
    scores -= scores.max(axis=-1, keepdims=True)
    p = np.exp(scores)
    p /= p.sum(axis=-1, keepdims=True)
    error = p @ values - np.take_along_axis(values, data.asked[..., None], axis=1)
    loss = float(np.mean(error**2))

    by_weights = (2.0 / error.size) * error @ values.swapaxes(1, 2)
    by_scores = p * (by_weights - (p * by_weights).sum(axis=-1, keepdims=True))
    by_matrix = np.tensordot(
        data.queries, by_scores @ data.tokens, axes=((0, 1), (0, 1))
    )
    by_matrix /= divisor
    return loss, Weights(by_matrix @ weights.keys, by_matrix.T @ weights.queries)


def train(  # noqa: PLR0913, PLR0917 - what an arm, an optimiser and a rate are
    seed: int,
    weights: Weights,
    divisor: float,
    optimiser: str,
    rate: float,
    steps: int = STEPS,
    epsilon: float = EPSILON,
    draw: Callable[[int, int], Sequences] = draw_sequences,
) -> Run:
    """Train from given weights on the sequences of a seed.

    A loss that is no number ends the run: it diverged, which is a result.
    """
    learned = np.stack([weights.queries, weights.keys])
    mean, square = np.zeros_like(learned), np.zeros_like(learned)
    losses = np.full(steps, np.inf)
    first = (math.nan, math.nan)
    for step in range(steps):
        with np.errstate(all="ignore"):
            loss, by = loss_and_gradients(Weights(*learned), draw(seed, step), divisor)
            if not math.isfinite(loss):
                break
            losses[step] = loss
            gradient = np.stack([by.queries, by.keys])
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
            if step == 0:
                first = (float(np.linalg.norm(gradient)), float(np.linalg.norm(move)))
    return Run(losses, *first, Weights(*learned))


# --- Runs of a seed -------------------------------------------------------------------


def count_steps(losses: Array) -> float:
    """Count the steps until a loss is below `LEARNED` for good; infinite: never.

    One that is below by chance, while the rate still rises, and then leaves has not
    learned, nor one that is not yet below for the `LAST` steps.
    """
    above = np.flatnonzero(~(losses < LEARNED))
    steps = int(above[-1]) + 1 if above.size else 0
    return steps if steps <= len(losses) - LAST else math.inf


def settings() -> Iterator[tuple[str, str, int, float]]:
    """Yield what is compared: optimiser, arm, d_k and rate."""
    for d_k in D_K:
        for arm in ARMS:
            for optimiser, rates in RATES.items():
                for rate in rates:
                    yield optimiser, arm, d_k, rate


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
    run = train(seed, weights, divisor, optimiser, rate, steps, draw=draw)
    final = float(np.mean(run.losses[-LAST:]))
    measured = (count_steps(run.losses), final, run.gradient, run.update)
    names = (*setting, seed, *measured)
    return dict(zip((*RUN, *MEASURED), names, strict=True)), run.losses


def run_seed(seed: int, steps: int = STEPS) -> Arrays:
    """Train all settings; returns the columns of the record, and ``losses``."""
    draw = lru_cache(maxsize=steps)(draw_sequences)
    runs = [run_setting(seed, setting, steps, draw) for setting in settings()]
    lines, losses = zip(*runs, strict=True)
    return {**columns(lines), "losses": np.stack(losses).astype(np.float32)}


def columns(lines: Sequence[Mapping[str, object]]) -> Arrays:
    """Return lines with the same names as one array for each name."""
    return {name: np.array([one[name] for one in lines]) for name in lines[0]}


def run_seeds(
    name: str,
    run: Callable[[int], Arrays],
    seeds: Sequence[int],
    jobs: int,
    work: Path | None,
) -> Arrays:
    """Run seeds on workers, each once, and join what became of them, in their order.

    Those that a folder keeps are read; no folder keeps nothing.
    """
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    found = []
    with make_executor(jobs) as executor:
        futures = [
            executor.submit(keep, work, f"{name}-{seed}", seed, partial(run, seed))
            for seed in seeds
        ]
        for number, (seed, future) in enumerate(zip(seeds, futures, strict=True)):
            found.append(future.result())
            print(f"seed    {seed}, {number + 1} of {len(seeds)}", flush=True)
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


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
        "seeds": {"tuning": [*TUNING], "judged": [*JUDGED]},
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
    found = run_seeds("seed", run_seed, seeds, jobs, None)
    found.pop("losses")
    kept = record.runs[record.runs["seed"].isin(seeds)]
    same = _libraries(made_with()) == _libraries(record.about)
    lines, agree = compare(round_runs(pd.DataFrame(found)), kept, exact=same)
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
    found = run_seeds("seed", run_seed, [*TUNING, *JUDGED], options.jobs, options.work)
    losses = found.pop("losses")
    limit_blas()
    write_record(options.output, pd.DataFrame(found), losses, measure_rescaled())
    read_record.cache_clear()
    print("\n".join(tell(read_record(options.output))))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("training", main))
