"""Who is timed: this package, what people would do instead, and the floor.

Each contender is a function of a seed that does some work and returns estimates with
standard errors, by name; the same names for all contenders of a task.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.special

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
from montecarlo.estimation.summaries import RowKey, Summaries
from montecarlo.sampling.blocks import SCORES_AT_ONCE, stack
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.sampling.replicates import sample

try:
    import torch
except ImportError:
    torch = None

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
    """Return this package, measuring all that the report measures in a point."""
    divisors = tuple(DIVISORS)

    def run(seed: int) -> Estimates:
        batch = sample(point, seed, 0, replicates, divisors)
        samples = batch
        summaries = Summaries(point, samples, divisors)
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
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, pairs, d_k))
    scores = (q * k).sum(1)
    error = np.square(scores - scores.mean()).std() / math.sqrt(pairs)
    return {"variance": (float(scores.var()), float(error))}


def _torch(seed: int, d_k: int, pairs: int) -> Estimates:
    torch.manual_seed(seed)
    q, k = torch.randn(2, pairs, d_k)
    scores = (q * k).sum(1)
    error = torch.square(scores - scores.mean()).std() / math.sqrt(pairs)
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
    s, found = q @ k.T, {}
    for divisor, rule in DIVISORS.items():
        p = scipy.special.softmax(s / kind(rule.value(D_K)), axis=1)
        p2 = (p**2).sum(1)
        norm = np.sqrt(np.maximum(p2 - 2 * (p**3).sum(1) + p2**2, 0))
        values = norm, scipy.special.entr(p).sum(1), p.max(1)
        found |= {
            f"{name}, {divisor}": x for name, x in zip(FAMILY, values, strict=True)
        }
    return found


def _explicit(rng: np.random.Generator, n: int, kind: type) -> dict[str, Array]:
    q, k = (rng.standard_normal((size, D_K), dtype=kind) for size in (EXPLICIT, n))
    s, found = q @ k.T, {}
    for divisor, rule in DIVISORS.items():
        rows = scipy.special.softmax(s / kind(rule.value(D_K)), axis=1)
        norm = [np.linalg.norm(np.diag(p) - np.outer(p, p)) for p in rows]
        values = np.array(norm), scipy.special.entr(rows).sum(1), rows.max(1)
        found |= {
            f"{name}, {divisor}": x for name, x in zip(FAMILY, values, strict=True)
        }
    return found


def _named(divisor: str, values: tuple[Array, ...]) -> dict[str, Array]:
    return {f"{name}, {divisor}": x for name, x in zip(FAMILY, values, strict=True)}


def floor(n_keys: int, replicates: int, *, whole: bool) -> Callable[[int], None]:
    """Return what rows cannot do without, in bare NumPy, in the report's block shape.

    The draws, the product, and under each divisor the exponentials and four sums along
    rows: that is the row family.  Nothing else: no check of an argument, no name, no
    quantity made of the sums, no largest score split off a second time.

    Parameters
    ----------
    n_keys, replicates : int
    whole : bool
        Whether also what all the other quantities need, on as many rows as the report:
        J v and its product with the keys, the steps of the spectral norm, elements and
        their order in float64, and the counts of all that has quantiles.
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


def _reduce_further(e: Array, z: Array, v: Array, k: Array) -> None:
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
