"""What the explorer of the report page shows: montecarlo/theory/simulated_rows.json.

Run ``python -m studies.explorer`` where the theory was changed; a test makes a part of
it again.  For each number of keys, d_k and divisor there are the four statistics of a
row that the text speaks of.  Two are exact; two have no exact value and are drawn, each
until its standard error is `ERROR` of it.

Given |q| the scores are independent normals, so a row is drawn as order statistics of
n normals, and the largest of them alone where the others have no weight; |q| and the
largest score are drawn evenly, so that errors are smaller.  With z the scores in
standard deviations, KᵀJv is zᵀJv along the query; across it are d_k - 1 independent
normals of standard deviation ‖Jv‖.
"""

import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import chi2

from montecarlo.attention.divisors import DIVISORS
from montecarlo.sampling.streams import named_stream
from montecarlo.theory import expected_row, largest_weight_share
from studies.program import ROOT, parse, run_program

TABLE = ROOT / "montecarlo" / "theory" / "simulated_rows.json"
KEYS = (16, 64, 128, 256, 512, 1024, 4096, 16384)
D_K = tuple(2**i for i in range(3, 11))
CHOSEN = ("none", "sqrt", "2sqrt", "linear")
#: In the order of the table; the first two are exact.
STATISTICS = ("weight_max", "saturated", "effective_keys", "passed_on")
SATURATED = 0.9
#: Of what is drawn: its standard error over its value, at most.
ERROR = 0.003
#: Significant digits of the table.
DIGITS = 4
#: Scores of a block of draws, and blocks at least.
BLOCK, FEWEST = 2**18, 16
#: Keys whose weights together are less than this part of the second largest are none.
NOTHING = 1e-4
SEED = 1

Array = NDArray[np.float64]


def keys_with_weight(n_keys: int, std: float) -> int:
    """Return how many of the largest scores have weight, a power of 2 or all."""
    m = 4
    while m < n_keys:
        second, last = ndtri(1.0 - np.array([1.5, m]) / n_keys)
        if (n_keys - m) * math.exp(-std * (second - last)) < NOTHING:
            return m
        m *= 2
    return n_keys


def draw_evenly(rng: Generator, count: int) -> Array:
    """Draw uniform numbers in random order, one from each of as many equal parts."""
    return (rng.permutation(count) + rng.random(count)) / count


def draw_largest(rng: Generator, rows: int, m: int, n_keys: int) -> Array:
    """Draw the m largest of n normals, shape (rows, m), the largest first.

    Given the second, the first is uniform in the probability beyond that: evenly so.
    """
    waits = np.cumsum(rng.standard_exponential((rows, m)), axis=1)
    rest = rng.standard_gamma(n_keys + 1 - m, rows)
    waits[:, 0] = draw_evenly(rng, rows) * waits[:, 1]
    return np.asarray(-ndtri(waits / (waits[:, -1:] + rest[:, None])))


def draw_rows(
    rng: Generator, n_keys: int, d_k: int, divisor: float
) -> tuple[Array, Array]:
    """Draw e^H and ‖KᵀJv‖ of a block of rows, of one standard normal v each."""
    least = math.sqrt(float(chi2.ppf(0.05, d_k))) / divisor
    m = keys_with_weight(n_keys, least)
    rows = BLOCK // m
    z = draw_largest(rng, rows, m, n_keys)
    std = np.sqrt(chi2.ppf(draw_evenly(rng, rows), d_k))[:, None] / divisor
    v = rng.standard_normal(z.shape)
    # differences to the key of the largest weight: exact where others have hardly any
    z -= z[:, :1]
    v -= v[:, :1]
    scores = std * z
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    entropy = -np.log(p[:, 0]) - (p * scores).sum(axis=1)
    jv = p * (v - (p * v).sum(axis=1, keepdims=True))
    along = (z * jv).sum(axis=1)
    across = (jv**2).sum(axis=1) * rng.chisquare(d_k - 1, rows)
    return np.exp(entropy), np.sqrt(along**2 + across)


def error_of(blocks: Array) -> float:
    """Return the standard error of a mean over blocks."""
    return float(blocks.mean(axis=1).std(ddof=1)) / math.sqrt(len(blocks))


def draw_statistics(n_keys: int, d_k: int, divisor: str) -> tuple[float, float]:
    """Draw mean effective keys and median ‖KᵀJv‖, each to `ERROR`.

    Errors are those between blocks, within which rows are not independent.
    """
    rng = named_stream(SEED, f"explorer {n_keys} {d_k} {divisor}")
    c = DIVISORS[divisor].value(d_k)
    found: list[tuple[Array, Array]] = []
    wanted = FEWEST
    while len(found) < wanted:
        found.append(draw_rows(rng, n_keys, d_k, c))
        if len(found) == wanted:
            keys, passed = map(np.array, zip(*found, strict=True))
            mean, median = float(keys.mean()), float(np.median(passed))
            off = error_of(np.asarray(passed <= median, dtype=np.float64))
            low, high = np.quantile(passed, [0.5 - off, 0.5 + off])
            error = max(error_of(keys) / mean, (high - low) / 2.0 / median) / ERROR
            wanted = math.ceil(wanted * max(1.0, 1.1 * error**2))
    return mean, median


def statistics(n_keys: int, d_k: int, divisor: str) -> tuple[float, ...]:
    """Return what the table has of a setting, in the order of `STATISTICS`."""
    row = expected_row(n_keys, d_k=d_k, divisor=divisor)
    share = largest_weight_share(SATURATED, n_keys, d_k=d_k, divisor=divisor)
    drawn = draw_statistics(n_keys, d_k, divisor)
    values = row["weight_max"].value, share.value, *drawn
    return tuple(float(f"{value:.{DIGITS}g}") for value in values)


def settings() -> Iterator[tuple[int, int, str]]:
    """Yield the settings in the order of the table."""
    for n_keys in KEYS:
        for d_k in D_K:
            yield from ((n_keys, d_k, divisor) for divisor in CHOSEN)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the table."""
    options = parse("explorer", __doc__, argv, output=TABLE, jobs=1)
    with ProcessPoolExecutor(options.jobs) as executor:
        found = [*executor.map(statistics, *zip(*settings(), strict=True))]
    table = {
        "keys": KEYS,
        "d_k": D_K,
        "divisors": CHOSEN,
        "statistics": STATISTICS,
        "error": ERROR,
        "values": found,
    }
    text = json.dumps(table, separators=(",", ":"))
    options.output.write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("explorer", main))
