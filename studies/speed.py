"""How many times as fast as what people would do instead, to the same standard error.

Run as ``python -m studies.speed [--quick]``: one process, one core, one sitting.  Out:
``studies/speed.csv``, and the same table on the terminal.  With ``--stages``: where the
standard report's CPU time goes, and what bare NumPy takes for the same draws, products
and exponentials; out: ``studies/stages.csv``, and the table of docs/cost.md.

A contender is a function of a seed that does some work and returns estimates with
standard errors, by name; the same names for all contenders of a task.  They are timed
in turn, and what they say of their errors is held against the spread of their runs.
"""

import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.gradients import SECULAR_STEPS
from montecarlo.attention.rows import (
    ELEMENT_ROWS,
    SPECTRAL_ROWS,
    n_costly_rows,
    n_query_rows,
)
from montecarlo.attention.softmax import Array
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study
from montecarlo.estimation.summaries import (
    RowKey,
    Summaries,
    columns_of,
    every_key,
)
from montecarlo.report.render.contents import page_rows
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.replicates import sample
from montecarlo.study.presets import PRESETS
from studies.program import HERE, ROOT, markdown, parse, run_program, write_table

try:
    import torch
except ImportError:
    torch = None

TABLE = HERE / "speed.csv"
COLUMNS = (
    *("task", "d_k", "n_keys", "against"),
    *("times", "least", "most"),
    *("ours_ms", "theirs_ms", "largest_spread"),
)
#: Blocks of pairs: those of the first look of the standard preset.
BLOCKS = 128
#: d_k of the variance; n_keys, replicates, blocks and runs of the row family.
VARIANCES = (16, 64, 256, 1024)
ROWS = ((128, 32, 6, 4), (1024, 16, 4, 2), (16384, 16, 3, 1))
ROUNDS = 7
#: Probability that a right standard error is called wrong.
FALSE_ALARM = 1e-6
Line = dict[str, object]
Estimates = dict[str, tuple[float, float]]
#: The row family: quantity of the table, under each divisor.
FAMILY = ("jacobian_frobenius", "entropy", "weight_max")
D_K = 64  # of the row family
#: A divisor like any; how often a short work is timed.
DIVISOR, REPEATS = np.float32(8.0), 3
#: Queries of the ten-line version, and of explicit Jacobians, which are slow by row.
QUERIES, EXPLICIT = 256, 4


@dataclass(frozen=True, slots=True)
class Contender:
    """Something that estimates.

    Attributes
    ----------
    name : str
    units : int
        Independent units of a run: pairs, blocks or replicates.
    run : callable
        Seed -> estimates with standard errors, by name.
    """

    name: str
    units: int
    run: Callable[[int], Estimates]


def ours(
    point: DesignPoint,
    replicates: int,
    keys: dict[str, RowKey],
    sampled: Iterable[RowKey] = (),
) -> Contender:
    """Return this package, on some rows of a point; ``sampled``: more are measured."""
    columns = columns_of(point, [*keys.values(), *sampled])

    def run(seed: int) -> Estimates:
        batch = sample(point, seed, 0, replicates, columns)
        summaries = Summaries(point, batch, columns)
        found = {name: summaries.estimate(key) for name, key in keys.items()}
        return {name: (one.value, one.std_error) for name, one in found.items()}

    return Contender("ours", replicates, run)


def variance_contenders(d_k: int, replicates: int, pairs: int) -> Iterator[Contender]:
    """Yield who estimates Var(q·k): ours, plain, then over entry variances; others."""
    point = parse_point("gaussian", "gaussian", d_k)
    for quantity in ("score_variance", "score_variance_ratio"):
        key = {"variance": RowKey("none", quantity, "value")}
        yield ours(point, replicates, key)
    yield Contender("NumPy notebook", pairs, lambda seed: _notebook(seed, d_k, pairs))
    if torch is not None:
        yield Contender(
            "PyTorch notebook", pairs, lambda seed: _torch(seed, d_k, pairs)
        )


def _notebook(seed: int, d_k: int, pairs: int) -> Estimates:
    q, k = np.random.default_rng(seed).standard_normal((2, pairs, d_k))
    return _variance((q * k).sum(1), np)


def _torch(seed: int, d_k: int, pairs: int) -> Estimates:
    torch.manual_seed(seed)
    q, k = torch.randn(2, pairs, d_k)
    return _variance((q * k).sum(1), torch)


def _variance(
    scores: Any,  # noqa: ANN401 - an array of NumPy's or PyTorch's
    library: Any,  # noqa: ANN401 - which of them
) -> Estimates:
    error = library.square(scores - scores.mean()).std() / math.sqrt(len(scores))
    return {"variance": (float(scores.var()), float(error))}


def row_contenders(n_keys: int, replicates: int, blocks: int) -> Iterator[Contender]:
    """Yield who estimates the row family: first ours; no Jacobians of 16384 keys."""
    point = parse_point("gaussian", "gaussian", D_K, n_keys)
    keys = {
        f"{name}, {divisor}": RowKey(divisor, name, "mean")
        for name in FAMILY
        for divisor in DIVISORS
    }
    yield ours(point, replicates, keys)
    for kind in (np.float64, np.float32):
        yield _of_blocks(
            f"ten lines, {kind.__name__}", blocks, n_keys, _ten_lines, kind
        )
    if n_keys <= 1024:
        yield _of_blocks("explicit Jacobians", blocks, n_keys, _explicit, np.float64)


def _between(means: dict[str, Array]) -> Estimates:
    """Return means over blocks of rows, with the errors between blocks."""
    return {
        key: (float(x.mean()), float(x.std(ddof=1) / math.sqrt(len(x))))
        for key, x in means.items()
    }


def _of_blocks(
    name: str,
    blocks: int,
    n_keys: int,
    evaluate: Callable[[np.random.Generator, int, type], dict[str, Array]],
    kind: type,
) -> Contender:
    """Return a contender whose errors are those between blocks of rows."""

    def run(seed: int) -> Estimates:
        rng = np.random.Generator(np.random.SFC64(seed))
        found = [evaluate(rng, n_keys, kind) for _ in range(blocks)]
        return _between({x: np.array([b[x].mean() for b in found]) for x in found[0]})

    return Contender(name, blocks, run)


def _ten_lines(rng: np.random.Generator, n: int, kind: type) -> dict[str, Array]:
    q, k = (rng.standard_normal((size, D_K), dtype=kind) for size in (QUERIES, n))
    s = q @ k.T
    found: dict[str, Array] = {}
    for divisor, rule in DIVISORS.items():
        p = scipy.special.softmax(s / kind(rule.value(D_K)), axis=1)
        p2 = (p**2).sum(1)
        norm = np.sqrt(np.maximum(p2 - 2 * (p**3).sum(1) + p2**2, 0))
        found |= _named(divisor, (norm, scipy.special.entr(p).sum(1), p.max(1)))
    return found


def _explicit(rng: np.random.Generator, n: int, kind: type) -> dict[str, Array]:
    q, k = (rng.standard_normal((size, D_K), dtype=kind) for size in (EXPLICIT, n))
    s = q @ k.T
    found: dict[str, Array] = {}
    for divisor, rule in DIVISORS.items():
        rows = scipy.special.softmax(s / kind(rule.value(D_K)), axis=1)
        norm = [np.linalg.norm(np.diag(p) - np.outer(p, p)) for p in rows]
        values = np.array(norm), scipy.special.entr(rows).sum(1), rows.max(1)
        found |= _named(divisor, values)
    return found


def _named(divisor: str, values: tuple[Array, ...]) -> dict[str, Array]:
    return {f"{name}, {divisor}": x for name, x in zip(FAMILY, values, strict=True)}


def floor(n_keys: int, replicates: int, *, whole: bool) -> Callable[[int], None]:
    """Return what rows cannot do without, in bare NumPy, in the report's block shape.

    The draws, the product, and under each divisor the exponentials and four sums along
    rows: that is the row family.  ``whole``: also what all other quantities need, on as
    many rows as the report.
    """
    n_queries, _ = parse_point("gaussian", "gaussian", D_K, n_keys).shape
    divisors = [rule.value(D_K) for rule in DIVISORS.values()]
    ones = np.ones(n_keys, dtype=np.float32)

    def run(seed: int) -> None:
        rng = np.random.Generator(np.random.SFC64(seed))
        for _ in range(replicates):
            q, k = (_draw(rng, size) for size in (n_queries, n_keys))
            v = rng.standard_normal(n_keys).astype(np.float32)
            s = q @ k.T
            gaps = s - s.max(axis=1, keepdims=True)
            for divisor in divisors:
                e = gaps / divisor
                np.exp(e, out=e)
                z = np.vecdot(e, ones)
                np.vecdot(e, e), np.vecdot(e * e, e), np.vecdot(e, gaps)
                if whole:
                    _reduce_further(e, z, v, k)

    return run


def _reduce_further(e: Array, z: Array, v: NDArray[np.float32], k: Array) -> None:
    """Reduce what the quantities beyond the row family need, under one divisor."""
    n_keys = e.shape[1]
    w = v - (np.vecdot(e, v) / z)[:, np.newaxis]
    w *= e
    pulled = w[: n_query_rows(n_keys)] @ k
    lengths = np.vecdot(w, w), np.vecdot(pulled, pulled)
    r = e[: n_costly_rows(SPECTRAL_ROWS, n_keys)]
    squares, y = r * r, np.ones(len(r), dtype=np.float32)
    for _ in range(SECULAR_STEPS):
        share = np.reciprocal(2.0 - r)
        terms = squares * share
        y = np.vecdot(terms, share) + terms.sum(axis=1)
    p = np.exp(-e[: n_costly_rows(ELEMENT_ROWS, n_keys)].astype(np.float64))
    np.sort(p, axis=1)
    for values in (z, z, z, z, *lengths, y, p * (1.0 - p)):
        place = np.ceil(64.0 * np.log10(values.ravel() + 1.0)).astype(np.intp)
        place.sort()
        rises = np.arange(float(place.size))
        np.bincount(place), np.bincount(place, rises), np.bincount(place, rises**2)


def _draw(rng: np.random.Generator, size: int, d_k: int = D_K) -> np.ndarray:
    half = size * d_k // 2
    uniforms = (rng.bit_generator.random_raw(half).view(np.uint32) >> 8).astype("f4")
    uniforms *= np.float32(2.0**-24)
    radius, angle = uniforms[:half], uniforms[half:]
    np.log(np.subtract(np.float32(1.0), radius, out=radius), out=radius)
    radius *= np.float32(-2.0)
    np.sqrt(radius, out=radius)
    angle *= np.float32(2.0 * math.pi)
    draws = np.empty((2, half), dtype=np.float32)
    np.multiply(radius, np.cos(angle, out=draws[0]), out=draws[0])
    np.multiply(radius, np.sin(angle, out=draws[1]), out=draws[1])
    return draws.reshape(size, d_k)


@dataclass(frozen=True, slots=True)
class Timed:
    """A contender, timed.

    Attributes
    ----------
    name : str
    seconds : float
        CPU time of a run, the median over rounds.
    errors : dict
        Estimate's name to its relative standard error: the root of its mean square
        over runs.
    spread : float
        Largest quotient over estimates of the spread between runs and that error, or
        one over it.
    """

    name: str
    seconds: float
    errors: dict[str, float]
    spread: float


def time_together(contenders: Sequence[Contender], runs: int) -> list[Timed]:
    """Time contenders in turn, warmed up, and compare their errors with their spread.

    Each runs so often in a round; raises as `check_error` does.
    """
    seconds: list[list[float]] = [[] for _ in contenders]
    found: list[list[dict[str, tuple[float, float]]]] = [[] for _ in contenders]
    for contender in contenders:
        contender.run(0)
    for round_ in range(ROUNDS):
        for number, contender in enumerate(contenders):
            seeds = range(1 + round_ * runs, 1 + (round_ + 1) * runs)
            start = time.process_time()
            found[number] += [contender.run(seed) for seed in seeds]
            seconds[number].append((time.process_time() - start) / runs)
    return [
        _timed(contender, statistics.median(times), values)
        for contender, times, values in zip(contenders, seconds, found, strict=True)
    ]


def _timed(
    contender: Contender, seconds: float, found: list[dict[str, tuple[float, float]]]
) -> Timed:
    errors, spreads = {}, []
    for name in found[0]:
        values, claimed = np.array([run[name] for run in found]).T
        error = float(np.sqrt(np.mean(claimed**2)))
        check_error(f"{contender.name}: {name}", values, error, contender.units)
        errors[name] = error / abs(float(values.mean()))
        quotient = float(values.std(ddof=1)) / error
        spreads.append(max(quotient, 1.0 / quotient))
    return Timed(contender.name, seconds, errors, max(spreads))


def check_error(name: str, values: np.ndarray, error: float, units: int) -> None:
    """Compare a standard error with the spread of the estimates over runs.

    Parameters
    ----------
    name : str
        For the message.
    values : ndarray
        One estimate per run.
    error : float
        What the runs say of their standard error, as the root of its mean square.
    units : int
        Independent units of a run, which their errors are made from.

    Raises
    ------
    ValueError
        If the quotient of the variances is outside the F distribution's quantiles at
        `FALSE_ALARM`.
    """
    runs = len(values)
    distribution = scipy.stats.f(runs - 1, runs * (units - 1))
    quotient = float(values.var(ddof=1)) / error**2
    low, high = distribution.ppf(FALSE_ALARM / 2.0), distribution.isf(FALSE_ALARM / 2.0)
    if not low <= quotient <= high:
        raise ValueError(
            f"standard error of {name} must agree with the spread over {runs} runs "
            f"(quotient of variances from {low:.2f} to {high:.2f}), got {quotient:.2f}"
        )


def ratios(one: Timed, other: Timed) -> list[float]:
    """Return how many times as long the other takes to the same standard errors."""
    quotient = other.seconds / one.seconds
    return [
        quotient * (other.errors[name] / error) ** 2
        for name, error in one.errors.items()
    ]


def median_seconds_of(*works: Callable[[int], object]) -> list[float]:
    """Return the CPU times of works of a seed, in turn: medians, warmed up."""
    for work in works:
        work(0)
    found: list[list[float]] = [[] for _ in works]
    for round_ in range(ROUNDS):
        for work, seconds in zip(works, found, strict=True):
            start = time.process_time()
            work(1 + round_)
            seconds.append(time.process_time() - start)
    return [statistics.median(seconds) for seconds in found]


def variance_lines(d_k: int, replicates: int, pairs: int, runs: int) -> Iterator[Line]:
    """Yield the lines of Var(q·k), and of its ratio to the entry variances."""
    plain, ratio, *others = time_together(
        list(variance_contenders(d_k, replicates, pairs)), runs
    )
    for task, one in (("Var(q·k)", plain), ("score_variance_ratio", ratio)):
        for other in others:
            yield _line((task, d_k, None), one, other)


def row_lines(n_keys: int, replicates: int, blocks: int, runs: int) -> Iterator[Line]:
    """Yield the lines of the row family: geometric means over its estimates."""
    one, *others = time_together(list(row_contenders(n_keys, replicates, blocks)), runs)
    for other in others:
        yield _line(("row family", D_K, n_keys), one, other)


def floor_lines(n_keys: int, replicates: int) -> Iterator[Line]:
    """Yield ours over a floor of the same reductions: the row family, and all."""
    point = parse_point("gaussian", "gaussian", D_K, n_keys)
    keys = {"entropy": RowKey("sqrt", FAMILY[1], "mean")}
    family = next(row_contenders(n_keys, replicates, 1)).run
    whole = ours(point, replicates, keys, every_key(point, tuple(DIVISORS))).run
    for task, mine, least in (
        ("row family", family, floor(n_keys, replicates, whole=False)),
        ("all row quantities", whole, floor(n_keys, replicates, whole=True)),
    ):
        one, other = (x / replicates for x in median_seconds_of(mine, least))
        numbers = (one / other, "", "", 1e3 * one, 1e3 * other, "")
        line = (task, D_K, n_keys, "ours over the floor", *numbers)
        yield dict(zip(COLUMNS, line, strict=True))


def _line(task: tuple[object, ...], one: Timed, other: Timed) -> Line:
    times = ratios(one, other)
    middle = statistics.geometric_mean(times)
    spread = max(one.spread, other.spread)
    numbers = (middle, min(times), max(times), 1e3 * one.seconds, 1e3 * other.seconds)
    return dict(zip(COLUMNS, (*task, other.name, *numbers, spread), strict=True))


# --- Where a report's time goes -------------------------------------------------------

STAGES_TABLE = HERE / "stages.csv"
PAGE = ROOT / "docs" / "cost.md"
MADE = re.compile(r"(?<=<!-- made: stages -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)
SAMPLING, SOFTMAX = "montecarlo.sampling.", "montecarlo.attention."
#: Stages, the first of which names a call of a stack is its own, by how calls begin.
STAGES = {
    "imports": ("importlib._bootstrap",),
    "references": ("montecarlo.theory",),
    "overflow probabilities": (f"{SAMPLING}rare_events",),
    "number formats": (
        *(f"{SAMPLING}replicates:_format_columns", f"{SOFTMAX}number_formats"),
        f"{SAMPLING}replicates:_format_means",
    ),
    "spectral norms": (f"{SOFTMAX}gradients:jacobian_spectral",),
    "gradients by the query": (f"{SOFTMAX}gradients:gradient_query",),
    "gradients by the scores": (
        f"{SOFTMAX}gradients:jacobian_times",
        f"{SOFTMAX}gradients:differences_to_largest",
    ),
    "counts for quantiles": (
        *(f"{SAMPLING}replicates:count_bins", f"{SAMPLING}replicates:count_some"),
        f"{SOFTMAX}grids",
    ),
    "draws and projections": (
        *(
            f"{SAMPLING}distributions",
            f"{SAMPLING}matrices",
            f"{SAMPLING}design_points",
        ),
    ),
    "moments of pairs": (f"{SAMPLING}replicates:_reduce_pairs",),
    "exponentials and sums": (f"{SOFTMAX}softmax:softmax_rows",),
    "largest scores": (f"{SOFTMAX}softmax:measure_gaps",),
    "other quantities of rows": (f"{SAMPLING}replicates:_row_columns",),
    "products of queries and keys": (
        *(f"{SAMPLING}replicates:score_blocks", f"{SAMPLING}replicates:pair_means"),
    ),
    "batches and journal": (
        *(f"{SAMPLING}batches", f"{SAMPLING}replicates", "montecarlo.study.folder:add"),
    ),
    "summaries and jackknife": ("montecarlo.study.table:table_of",),
    "judging": ("montecarlo.claims.judging",),
    "figures": ("montecarlo.report.figures",),
    "contents of pages": ("montecarlo.report.render.contents",),
}


def stage_of(calls: Sequence[str]) -> str:
    """Return the stage of a stack, by language where it is a page."""
    for stage, begins in STAGES.items():
        if any(call.startswith(begins) for call in calls):
            return stage
    pages = [call for call in calls if call.startswith("montecarlo.report.making:_r")]
    return f"pages, {pages[0].rpartition(':')[2]}" if pages else "planning and writing"


def watched_report() -> tuple[dict[str, float], dict[str, int]]:
    """Make the standard report; returns CPU seconds by stage, and replicates."""
    with TemporaryDirectory() as folder:
        stacks, output = Path(folder) / "stacks", Path(folder) / "report"
        command: list[str | Path] = [sys.executable, "-m", "studies.stacks"]
        command += [stacks, "report"]
        command += ["--jobs", "1", "--quiet", "--output", output]
        subprocess.run(command, check=True, cwd=ROOT)  # noqa: S603 - this program
        seconds: defaultdict[str, float] = defaultdict(float)
        for line in stacks.read_text(encoding="utf-8").splitlines():
            spent, *calls = json.loads(line)
            seconds[stage_of(calls)] += spent
        run = json.loads((output / "run.json").read_text(encoding="utf-8"))
    return dict(seconds), run["replicates"]


def stage_floors(replicates: Mapping[str, int]) -> dict[str, float]:
    """Return what stages cannot do without, in bare NumPy, at the sizes of a report.

    Entries are drawn as Gaussian ones; passes are those of `floor`.
    """
    study = Study(read_catalogue(), PRESETS["standard"], pages=page_rows)
    found = {"imports": import_seconds()}
    for point, keys in study.rows.items():
        names = columns_of(point, keys).means
        queries = {one for one, name in names if name.startswith("gradient_query")}
        divisors = {one for one, _ in names} if point.has_rows else set()
        for stage, work in works_of(point, len(divisors), len(queries)).items():
            seconds = replicates[point.name] * seconds_of(work)
            found[stage] = found.get(stage, 0.0) + seconds
    return found


def import_seconds() -> float:
    """Return the CPU time of a process that imports the libraries of a report."""
    libraries = "numpy, scipy.special, pandas, matplotlib.figure, jinja2, msgspec"
    before = os.times()
    command = [sys.executable, "-c", f"import {libraries}"]
    subprocess.run(command, check=True)  # noqa: S603 - this program
    after = os.times()
    spent: float = sum(after[2:4]) - sum(before[2:4])
    return spent


def seconds_of(work: Callable[[], object]) -> float:
    """Return the CPU time of a short work, the least of some."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def works_of(
    point: DesignPoint, divisors: int, by_query: int
) -> dict[str, Callable[[], object]]:
    """Return what a replicate of a point cannot do without, by stage."""
    rng = np.random.Generator(np.random.SFC64(1))
    (m, n), d_k = point.shape, point.d_k
    q, k = (_draw(rng, size, d_k) for size in (m, n))
    s = q @ k.T
    entries, width = (m + n) * d_k, 0
    if point.initialisation is not None:
        width = point.initialisation.width
        entries = width * (m + n + 2 * d_k)
    tokens, weights = _draw(rng, m + n, width), _draw(rng, width, d_k)
    gaps, e, rows = -np.abs(s), np.empty_like(s), s[: n_query_rows(n)]

    def sums() -> None:
        for _ in range(divisors):
            np.exp(np.divide(gaps, DIVISOR, out=e), out=e)
            np.vecdot(e, e), np.vecdot(e * e, e), np.vecdot(e, gaps), e.sum(axis=1)

    works: dict[str, Callable[[], object]] = {
        "draws and projections": lambda: (_draw(rng, entries, 1), tokens @ weights),
        "products of queries and keys": lambda: q @ k.T,
    }
    if not point.has_rows:
        square = s * s
        moments = (s, np.abs(s), square, square * s, square * square)
        return works | {"moments of pairs": lambda: [one.mean() for one in moments]}
    return works | {
        "largest scores": lambda: s - s.max(axis=1, keepdims=True),
        "exponentials and sums": sums,
        "gradients by the query": lambda: [rows @ k for _ in range(by_query)],
    }


def stage_lines() -> Iterator[Line]:
    """Yield the table of stages, and all together."""
    seconds, replicates = watched_report()
    floors = stage_floors(replicates)
    total = sum(seconds.values())
    for stage, spent in sorted(seconds.items(), key=lambda item: -item[1]):
        least = floors.get(stage)
        yield {
            "stage": stage,
            "seconds": f"{spent:.2f}",
            "share": f"{spent / total:.3f}",
            "floor": "" if least is None else f"{least:.2f}",
        }
    yield {"stage": "all", "seconds": f"{total:.2f}", "share": "1", "floor": ""}


def write_stages() -> int:
    """Print the table of stages, keep it, and put it into the page."""
    done = list(stage_lines())
    write_table(STAGES_TABLE, done)
    cells = [[str(cell) for cell in line.values()] for line in done]
    table = markdown([["stage", "CPU s", "share", "bare NumPy, s"], *cells])
    print(table)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MADE.sub(lambda _: table, page), encoding="utf-8")
    return 0


def lines(*, quick: bool) -> Iterator[Line]:
    """Yield all lines of the table; quick: of the smallest sizes, roughly."""
    blocks = 32 if quick else BLOCKS
    for d_k in VARIANCES[:1] if quick else VARIANCES:
        yield from variance_lines(d_k, blocks, 2 ** (16 if quick else 22) // d_k, 6)
    for n_keys, replicates, blocks, runs in ROWS[:1] if quick else ROWS:
        yield from row_lines(n_keys, replicates, blocks, runs)
        yield from floor_lines(n_keys, replicates)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it."""
    options = parse("speed", __doc__, argv, quick=False, stages=False, output=TABLE)
    if options.stages:
        with threadpool_limits(limits=1):
            return write_stages()
    if torch is None:
        print('PyTorch is not installed (pip install ".[benchmark]"): left out')
    done: list[Line] = []
    with threadpool_limits(limits=1):
        for line in lines(quick=options.quick):
            done.append({name: _shown(line[name]) for name in COLUMNS})
            print(*done[-1].values(), sep="  ", flush=True)
    write_table(options.output, done)
    return 0


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    raise SystemExit(run_program("speed", main))
