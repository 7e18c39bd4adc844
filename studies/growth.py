"""How the cost of an answer grows with d_k, n, the tolerance and the error rate.

Run as ``python -m studies.growth``: one core.  Out: the tables of ``docs/cost.md``,
made anew between their marks.
"""

import math
from collections.abc import Iterator, Sequence

from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS
from montecarlo.estimation.summaries import RowKey, Summaries
from montecarlo.sampling.batches import Batch
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.replicates import sample
from studies.program import ROOT, markdown, parse, run_program
from studies.speed import median_seconds_of

PAGE = ROOT / "docs" / "cost.md"
START, END = "<!-- growth: made by python -m studies.growth -->", "<!-- end -->"
DIMENSIONS = (1, 4, 16, 64, 256, 1024, 4096)
LENGTHS = (8, 32, 128, 512, 2048, 8192, 32768)
TOLERANCES = (0.02, 0.01, 0.005, 0.0025, 0.00125)
ERROR_RATES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
Line = tuple[str, ...]
#: Where the tolerance and the error rate are varied, and what stays while the other is.
PLACE = parse_point("gaussian", "gaussian", 64)
TOLERANCE, ERROR_RATE = 0.005, 1e-3
MOST = 4096


def replicate_milliseconds(point: DesignPoint) -> float:
    """Return the CPU time of a replicate under all divisors, in milliseconds."""
    count = max(4, min(64, 2**26 // (math.prod(point.shape) * point.d_k)))
    divisors = tuple(DIVISORS)
    (seconds,) = median_seconds_of(lambda seed: sample(point, seed, 0, count, divisors))
    return 1e3 * seconds / count


def replicates_needed(samples: Batch, tolerance: float, error_rate: float) -> int:
    """Return with how many replicates an interval of Var(q·k) is narrow enough.

    The tolerance is half of its width over the value, the error rate one-sided.

    Raises
    ------
    ValueError
        If all of the samples are too few.
    """
    count = 8
    while count <= samples.n_replicates:
        part = Batch(samples.means[:count], ())
        key = RowKey("none", "score_variance", "value")
        one = Summaries(PLACE, part, ("none",)).estimate(key)
        low, high = one.interval(error_rate)
        if high - low <= 2.0 * tolerance * one.value:
            return count
        count += max(1, count // 16)
    raise ValueError(f"tolerance must be wide enough for {MOST}, got {tolerance!r}")


def by_dimension(dimensions: Sequence[int]) -> Iterator[Line]:
    """Yield d_k, time of a block of pairs, and of 128 rows of 128 keys."""
    yield "$d_k$", "block of pairs, ms", "128 rows of 128 keys, ms"
    for d_k in dimensions:
        places = (parse_point("gaussian", "gaussian", d_k, n) for n in (None, 128))
        yield str(d_k), *(f"{replicate_milliseconds(place):.2f}" for place in places)


def by_length(lengths: Sequence[int]) -> Iterator[Line]:
    """Yield n, rows of a replicate, its time, and nanoseconds per score."""
    yield "$n$", "rows", "ms", "ns per score"
    for n_keys in lengths:
        place = parse_point("gaussian", "gaussian", 64, n_keys)
        time = replicate_milliseconds(place)
        scores = math.prod(place.shape)
        yield (
            str(n_keys),
            str(place.shape[0]),
            f"{time:.2f}",
            f"{1e6 * time / scores:.0f}",
        )


def by_tolerance(samples: Batch, tolerances: Sequence[float]) -> Iterator[Line]:
    """Yield the tolerance, replicates needed, and these times its square."""
    yield "tolerance", "replicates", "replicates × tolerance²"
    for tolerance in tolerances:
        count = replicates_needed(samples, tolerance, ERROR_RATE)
        yield f"{tolerance:.3%}", str(count), f"{count * tolerance**2:.4f}"


def by_error_rate(samples: Batch, rates: Sequence[float]) -> Iterator[Line]:
    """Yield the error rate, replicates needed, and these over -ln of it."""
    yield "error rate", "replicates", "replicates / ln(1/rate)"
    for rate in rates:
        count = replicates_needed(samples, TOLERANCE, rate)
        yield f"{rate:g}", str(count), f"{count / -math.log(rate):.1f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write the tables into the page."""
    options = parse("growth", __doc__, argv, page=PAGE)
    before, rest = options.page.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    with threadpool_limits(limits=1):
        batch = sample(PLACE, 1, 0, MOST, ("none",))
        samples = Batch(batch.means, ())
        tables = [
            markdown(by_dimension(DIMENSIONS)),
            markdown(by_length(LENGTHS)),
            markdown(by_tolerance(samples, TOLERANCES)),
            markdown(by_error_rate(samples, ERROR_RATES)),
        ]
    text = "\n\n".join([START, *tables, END])
    options.page.write_text(before + text + after, encoding="utf-8", newline="\n")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("growth", main))
