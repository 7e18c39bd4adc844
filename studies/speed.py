"""How many times as fast as what people would do instead, to the same standard error.

Run as ``python -m studies.speed [--quick]``: one process, one core, one sitting.  Out:
``studies/speed.csv``, and the same table on the terminal.

A contender is a function of a seed that does some work and returns estimates with
standard errors, by name; the same names for all contenders of a task.  They are timed
in turn, and what they say of their errors is held against the spread of their runs.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.gradients import SECULAR_STEPS, jacobian_frobenius
from montecarlo.attention.quantities import (
    ELEMENT_ROWS,
    SPECTRAL_ROWS,
    costly_rows,
    query_rows,
)
from montecarlo.attention.softmax import (
    Array,
    entropy,
    measure_gaps,
    softmax_rows,
    weight_max,
)
from montecarlo.estimation.summaries import (
    RowKey,
    Summaries,
    columns_of,
    every_key,
)
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.sampling.replicates import SCORES_AT_ONCE, sample, stack
from studies.program import HERE, parse, run_program, write_table

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
ROWS = ((128, 32, 6, 4), (1024, 16, 4, 2), (16384, 8, 3, 1))
ROUNDS = 7
#: Probability that a right standard error is called wrong.
FALSE_ALARM = 1e-6
Line = dict[str, object]
Estimates = dict[str, tuple[float, float]]
#: The row family: quantity of the table, under each divisor.
FAMILY = ("jacobian_frobenius", "entropy", "weight_max")
D_K = 64  # of the row family
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


def ours(point: DesignPoint, replicates: int, keys: dict[str, RowKey]) -> Contender:
    """Return this package, measuring every row of a point."""
    columns = columns_of(point, every_key(point, tuple(DIVISORS)))

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
    """Yield who estimates the row family: first ours; no Jacobians of 16384 keys.

    Ours is the package's own functions on its own draws, of these quantities alone.
    """
    yield Contender("ours", replicates, lambda seed: _family(seed, n_keys, replicates))
    for kind in (np.float64, np.float32):
        yield _of_blocks(
            f"ten lines, {kind.__name__}", blocks, n_keys, _ten_lines, kind
        )
    if n_keys <= 1024:
        yield _of_blocks("explicit Jacobians", blocks, n_keys, _explicit, np.float64)


def _family(seed: int, n_keys: int, replicates: int) -> Estimates:
    point = parse_point("gaussian", "gaussian", D_K, n_keys)
    at_once = max(1, SCORES_AT_ONCE // math.prod(point.shape))
    means: dict[str, list[Array]] = {}
    for first in range(0, replicates, at_once):
        indices = range(first, min(first + at_once, replicates))
        drawn = [draw_matrices(point, seed, index) for index in indices]
        q, k = (stack(matrices) for matrices in zip(*drawn, strict=True))
        gaps = measure_gaps(q @ k.transpose(0, 2, 1))
        for divisor, rule in DIVISORS.items():
            sums = softmax_rows(gaps, rule.value(D_K)).sums
            measured = jacobian_frobenius(sums), entropy(sums), weight_max(sums)
            for name, values in _named(divisor, measured).items():
                means.setdefault(name, []).append(values.mean(axis=-1))
    return _between({name: np.concatenate(parts) for name, parts in means.items()})


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
    pulled = w[: query_rows(n_keys)] @ k
    lengths = np.vecdot(w, w), np.vecdot(pulled, pulled)
    r = e[: costly_rows(SPECTRAL_ROWS, n_keys)]
    squares, y = r * r, np.ones(len(r), dtype=np.float32)
    for _ in range(SECULAR_STEPS):
        share = np.reciprocal(2.0 - r)
        terms = squares * share
        y = np.vecdot(terms, share) + terms.sum(axis=1)
    p = np.exp(-e[: costly_rows(ELEMENT_ROWS, n_keys)].astype(np.float64))
    np.sort(p, axis=1)
    for values in (z, z, z, z, *lengths, y, p * (1.0 - p)):
        place = np.ceil(64.0 * np.log10(values.ravel() + 1.0)).astype(np.intp)
        place.sort()
        rises = np.arange(float(place.size))
        np.bincount(place), np.bincount(place, rises), np.bincount(place, rises**2)


def _draw(rng: np.random.Generator, size: int) -> np.ndarray:
    half = size * D_K // 2
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
    return draws.reshape(size, D_K)


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
    whole = ours(point, replicates, keys).run
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
    options = parse("speed", __doc__, argv, quick=False, output=TABLE)
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
