"""What to divide scores by, by kinds of rows: the table at the foot of the report.

Run ``python -m studies.practice`` where theory, or a kind of `studies.practice_rows`,
was changed: some minutes of one core.  Exact values at two d_k, and factors on scores
that hold them for more keys, found as roots of exact values; each is also drawn, from
queries, keys and values themselves, but for mean squares of many keys, to which rare
rows give most: those from rows of scores in which one key is raised.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from threadpoolctl import threadpool_limits

from montecarlo.report.content.practice import FILE, Practice, Value
from montecarlo.sampling.streams import named_stream
from studies.practice_rows import RowValues, expect, planted_weight
from studies.program import parse, run_program

Array = NDArray[np.float64]
SEED = 1
#: Keys and d_k that are compared; tables of keys are of the first d_k, and the other
#: way round.
FEWER, MORE = 1024, 131072
D_K = (64, 256)
#: Weight of a sink with fewer keys, correlation of a planted key.
HALF, CORRELATION = 0.5, 0.5
#: Kinds of rows that are compared at the two d_k; at the two numbers of keys, with the
#: standard deviation of the scores for fewer.  Scores of ``logarithm`` are also
#: multiplied by ln n, over that of fewer keys.
SIZES = ("softmax", "unit", "rms", "sink", "sigmoid")
GROWTH = {
    "softmax 1": ("softmax", 1.0),
    "softmax 2": ("softmax", 2.0),
    "unit": ("unit", 1.0),
    "sink": ("sink", 1.0),
    "sigmoid": ("sigmoid", 1.0),
    "logarithm": ("logarithm", 1.0),
}
#: Between each two of these a factor is looked for.
PLACES = (0.3, 0.6, 0.9, 1.2, 1.6, 2.0, 2.5, 3.2, 4.0, 6.0, 8.0)
#: Replicates of a few keys and of many, and queries of each.
REPLICATES = {FEWER: 512, MORE: 48}
QUERIES = 16
#: Rows of many keys that a mean square is drawn from.
RAISED = 2000

#: Value of a row that is to stay: (values, n) -> number.
KEPT: dict[str, Callable[[RowValues, int], float]] = {
    "share": lambda row, n: row.entropy - math.log(n),
    "fraction": lambda row, n: row.entropy / math.log(n),
    "gradient": lambda row, _: row.gradient,
    "largest": lambda row, _: row.largest,
    "entropy": lambda row, _: row.entropy,
}


# --- Exact values and their roots -----------------------------------------------------


def sink_logit() -> float:
    """Return the logit with which a sink has half of the weight, for fewer keys."""
    middle = math.log(FEWER)

    def off(logit: float) -> float:
        return expect("sink", FEWER, D_K[0], 1.0, logit).beside - HALF

    return float(brentq(off, middle - 2.0, middle + 4.0))


def beside_of(kind: str, n: int) -> float:
    """Return what stands beside scores: moved with n, so that it keeps pace."""
    if kind == "sink":
        return sink_logit() + math.log(n / FEWER)
    return -math.log(n) if kind == "sigmoid" else 0.0


def row_of(kind: str, std: float, n: int, factor: float) -> RowValues:
    """Return the exact values of a row of `GROWTH`."""
    if kind == "logarithm":
        kind, std = "softmax", std * math.log(n) / math.log(FEWER)
    return expect(kind, n, D_K[0], std * factor, beside_of(kind, n))


def find_factor(kind: str, std: float, kept: str) -> float | None:
    """Return what scores of more keys are multiplied by, so that a value stays.

    Returns
    -------
    float or None
        The smallest such factor of `PLACES`; None where there is none: with sigmoids
        that saturate the entropy rises again.
    """
    value = KEPT[kept]
    level = value(row_of(kind, std, FEWER, 1.0), FEWER)

    def off(factor: float) -> float:
        return value(row_of(kind, std, MORE, factor), MORE) - level

    for low, high in pairwise(PLACES):
        if off(low) * off(high) <= 0.0:
            return float(brentq(off, low, high, xtol=1e-9))
    return None


def find_added(kind: str) -> float:
    """Return what is added to a logit or a bias so that weight or sum stay."""
    given = beside_of(kind, FEWER)
    level = expect(kind, FEWER, D_K[0], 1.0, given).beside

    def off(added: float) -> float:
        return expect(kind, MORE, D_K[0], 1.0, given + added).beside - level

    near = math.log(MORE / FEWER)
    return float(brentq(off, -near - 1.0, near + 1.0, xtol=1e-9))


# --- The same from queries, keys and values that are drawn ----------------------------


class Spec(NamedTuple):
    """A row to be drawn: its kind, what its scores are multiplied by, what is beside.

    With the factor 1 scores have the variance 1.
    """

    kind: str
    factor: float
    beside: float


def draw_rows(spec: Spec, q: Array, keys: Array, v: Array) -> Array:
    """Return the values of the row of each query, as textbooks write them.

    Parameters
    ----------
    spec : Spec
    q, keys, v : ndarray, shapes (m, d_k), (n, d_k) and (n,)
        Before any normalisation; a value has one entry.

    Returns
    -------
    ndarray, shape (m, 4)
        As `RowValues`; the gradient is squared.
    """
    root = np.sqrt(q.shape[1])
    queries, scale = q, spec.factor / root
    if spec.kind == "unit":
        queries = q / np.sqrt((q * q).sum(axis=1, keepdims=True))
        keys = keys / np.sqrt((keys * keys).sum(axis=1, keepdims=True))
        scale = spec.factor * root
    elif spec.kind == "rms":
        queries = q / np.sqrt((q * q).mean(axis=1, keepdims=True))
        keys = keys / np.sqrt((keys * keys).mean(axis=1, keepdims=True))
    x = scale * (queries @ keys.T)
    if spec.kind == "sigmoid":
        p = 1.0 / (1.0 + np.exp(-x - spec.beside))
        beside = p.sum(axis=1)
        by_x = p * (1.0 - p) * v
    else:
        e, sink = np.exp(x), np.exp(spec.beside) if spec.kind == "sink" else 0.0
        total = e.sum(axis=1, keepdims=True) + sink
        p, beside = e / total, sink / total[:, 0]
        by_x = p * (v - (p @ v)[:, np.newaxis])
    by_q = scale * (by_x @ keys)
    if queries is not q:  # through the normalisation: across the query alone
        along = (by_q * q).sum(axis=1) / (q * q).sum(axis=1)
        by_q -= along[:, np.newaxis] * q
        by_q *= np.sqrt((queries * queries).sum(axis=1) / (q * q).sum(axis=1))[:, None]
    share = p / p.sum(axis=1, keepdims=True)
    entropy = -(share * np.log(share)).sum(axis=1)
    return np.stack([entropy, p.max(axis=1), (by_q**2).sum(axis=1), beside], axis=1)


def draw(name: str, specs: Sequence[Spec], n: int, d_k: int) -> list[Array]:
    """Return the means of each replicate, for some specs of the same kind.

    Returns
    -------
    list of ndarray, shape (n_replicates, 4)
        All of the same queries, keys and values.
    """
    rng, found = named_stream(SEED, f"practice {name} {n} {d_k}"), []
    for _ in range(REPLICATES[n]):
        shapes = (QUERIES, d_k), (n, d_k), (n,)
        q, keys, v = (rng.standard_normal(shape) for shape in shapes)
        found.append([draw_rows(one, q, keys, v).mean(axis=0) for one in specs])
    return list(np.swapaxes(np.array(found), 0, 1))


def draw_squares(name: str, spec: Spec, n: int, d_k: int) -> Array:
    """Return squared gradients of rows with a raised key, weighted; one for each row.

    Notes
    -----
    Of many keys a mean square is that of few rows, in which some key has an unusual
    score: a plain mean misses them.  It is n times the mean of what one key adds, and
    that key is drawn with a score s (z + a) for s z, a = 2 s, where the squares of its
    exponential lie, or √(2 ln n), where the largest of n are; each row has the weight
    exp(-a z - a²/2), so that the mean stays.  For ∂o/∂q = Kᵀ J v a key adds
    what its line of the Jacobian J gives, in the mean over v and over what is across q.
    """
    rng, found = named_stream(SEED, f"practice raised {name} {n} {d_k}"), []
    for _ in range(RAISED):
        length = np.sqrt(rng.chisquare(d_k))
        scale = spec.factor / np.sqrt(d_k)
        s = spec.factor if spec.kind == "unit" else scale * length
        z = rng.standard_normal(n)
        raised = min(2.0 * s, np.sqrt(2.0 * np.log(n)))
        weight = np.exp(-raised * z[0] - raised**2 / 2.0)
        z[0] += raised
        x, along, rest = s * z, z, d_k - 1.0
        if spec.kind == "unit":
            cosine = z / np.sqrt(z**2 + rng.chisquare(d_k - 1, n))
            scale = spec.factor * np.sqrt(d_k) / length
            x, along = spec.factor * np.sqrt(d_k) * cosine, np.zeros(n)
            rest = 1.0 - cosine[0] ** 2
        if spec.kind == "sigmoid":
            p = 1.0 / (1.0 + np.exp(-x - spec.beside))
            line = np.zeros(n)
            line[0] = p[0] * (1.0 - p[0])
        else:
            e = np.exp(x)
            sink = np.exp(spec.beside) if spec.kind == "sink" else 0.0
            p = e / (e.sum() + sink)
            line = -p[0] * p
            line[0] += p[0]
        square = scale**2 * (rest * (line @ line) + (line @ along) ** 2)
        found.append(n * weight * square)
    return np.array(found)


def draw_planted(n: int, d_k: int, divisor: float) -> Array:
    """Return the weight of a planted key, means of each replicate."""
    rng, found = named_stream(SEED, f"practice planted {n} {d_k} {divisor}"), []
    for _ in range(REPLICATES[n]):
        q, z = rng.standard_normal((2, QUERIES, d_k))
        others = rng.standard_normal((n - 1, d_k))
        right = CORRELATION * q + np.sqrt(1.0 - CORRELATION**2) * z
        own = np.exp((q * right).sum(axis=1) / divisor)
        rest = np.exp(q @ others.T / divisor).sum(axis=1)
        found.append((own / (own + rest)).mean())
    return np.array(found)


def check(exact: float, values: Array, **changed: float) -> Value:
    """Set the mean over replicates beside an exact value."""
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    return Value(exact, float(values.mean()), error, **changed)


def check_root(exact: float, squares: Array, **changed: float) -> Value:
    """Likewise the root of the mean over replicates."""
    found = check(exact**2, squares)
    root = math.sqrt(found.drawn)
    return Value(exact, root, found.std_error / (2.0 * root), **changed)


# --- The table ------------------------------------------------------------------------


def size_line(kind: str) -> dict[str, tuple[Value, Value]]:
    """Compute and draw a kind of row for each d_k."""
    beside, found = beside_of(kind, FEWER), []
    for d_k in D_K:
        exact = expect(kind, FEWER, d_k, 1.0, beside)
        (drawn,) = draw(f"size {kind}", [Spec(kind, 1.0, beside)], FEWER, d_k)
        found.append(check_row(exact, drawn))
    small, large = found
    return {name: (small[name], large[name]) for name in small}


def check_row(exact: RowValues, drawn: Array) -> dict[str, Value]:
    """Check entropy, largest weight and gradient."""
    return {
        "entropy": check(exact.entropy, drawn[:, 0]),
        "largest": check(exact.largest, drawn[:, 1]),
        "gradient": check_root(exact.gradient, drawn[:, 2]),
    }


def growth_line(kind: str, std: float) -> dict[str, Value | None]:
    """Find the factors of a kind of row, and draw what they hold."""
    found = {kept: find_factor(kind, std, kept) for kept in KEPT}
    factors = {kept: factor for kept, factor in found.items() if factor is not None}
    plain = "softmax" if kind == "logarithm" else kind
    times = std * (math.log(MORE) / math.log(FEWER) if kind == "logarithm" else 1.0)
    beside = beside_of(kind, MORE)
    specs = [Spec(plain, times * factor, beside) for factor in factors.values()]
    drawn = draw(f"growth {kind} {std}", specs, MORE, D_K[0])
    row = row_of(kind, std, FEWER, 1.0)
    line: dict[str, Value | None] = dict.fromkeys(KEPT)
    for (kept, factor), spec, rows in zip(factors.items(), specs, drawn, strict=True):
        level = KEPT[kept](row, FEWER)
        if kept == "gradient":
            squares = draw_squares(f"{kind} {std}", spec, MORE, D_K[0])
            line[kept] = check_root(level, squares, factor=factor)
        else:
            line[kept] = check(level, kept_values(kept, rows), factor=factor)
    return line


def kept_values(kept: str, rows: Array) -> Array:
    """Return what is to stay of each replicate of more keys, but for the gradient."""
    entropy, log_n = rows[:, 0], math.log(MORE)
    values = {"share": entropy - log_n, "fraction": entropy / log_n}
    return rows[:, 1] if kept == "largest" else values.get(kept, entropy)


def beside_line(kind: str) -> dict[str, Value]:
    """Compute and draw what stands beside scores, left alone and moved."""
    given, added = beside_of(kind, FEWER), find_added(kind)
    places = {"fewer": (FEWER, 0.0), "more": (MORE, 0.0), "held": (MORE, added)}
    line = {}
    for name, (n, moved) in places.items():
        exact = expect(kind, n, D_K[0], 1.0, given + moved).beside
        stream = f"beside {kind} {moved == 0.0}"
        (drawn,) = draw(stream, [Spec(kind, 1.0, given + moved)], n, D_K[0])
        line[name] = check(exact, drawn[:, 3], added=moved)
    return line


def planted() -> dict[str, tuple[Value, ...]]:
    """Compute and draw the weight of a planted key under two divisors."""

    def check_one(d_k: int, divisor: float) -> Value:
        exact = planted_weight(FEWER, d_k, divisor, CORRELATION)
        return check(exact, draw_planted(FEWER, d_k, divisor))

    few, many = D_K
    return {
        "root": (check_one(few, math.sqrt(few)), check_one(many, math.sqrt(many))),
        "linear": (check_one(many, math.sqrt(few) * many / few),),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Compute, draw and write."""
    options = parse("practice", __doc__, argv, output=FILE)
    with threadpool_limits(1, "blas"):
        record = Practice(
            SEED,
            (FEWER, MORE),
            D_K,
            {kind: size_line(kind) for kind in SIZES},
            {name: growth_line(*one) for name, one in GROWTH.items()},
            {kind: beside_line(kind) for kind in ("sink", "sigmoid")},
            planted(),
            CORRELATION,
        )
    content = msgspec.json.format(msgspec.json.encode(record), indent=1)
    options.output.write_bytes(content + b"\n")
    print(f"{len(record.z_scores)} values: rms z {record.rms_z:.2f}", end=", ")
    print(f"largest {record.largest_z:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("practice", main))
