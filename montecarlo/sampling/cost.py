"""What a replicate costs, roughly: to cut work into batches and to refuse too much.

Seconds on one core of the machine that the project was written on; only ratios matter
for batches, and no result depends on them.  The limits do not depend on the machine, so
that a study that runs here runs elsewhere; what is refused is an `InputError`.
"""

import math
from functools import lru_cache

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.number_formats import FORMAT_ROWS, FORMAT_SCORES
from montecarlo.attention.rows import query_rows
from montecarlo.errors import InputError
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.distributions import SCIPY
from montecarlo.sampling.matrices import ENTRIES_AT_ONCE
from montecarlo.sampling.rare_events import BLOCK

#: Seconds per drawn entry; the others are drawn like the Gaussian.
DRAW_SECONDS = {
    "laplace": 4e-9,
    "logistic": 3.6e-9,
    "student_t10": 3.9e-9,
    "student_t5": 3.9e-9,
    "student_t3": 3.9e-9,
}
GAUSSIAN_SECONDS = 2.2e-9
#: Of a distribution of SciPy's, mostly.
SCIPY_SECONDS = 4e-8
#: Seconds per entry of a token, query or key that is normalised, beyond its draw.
TOKEN_SECONDS = 6e-10
#: Seconds per multiply-add of a float32 product.
PRODUCT_SECONDS = 1.75e-11
#: Seconds per score: of a pair, and of a row under one divisor.
PAIR_SECONDS = 1.2e-9
ROW_SECONDS = 4.2e-9
#: Seconds per score and divisor that is compared in all number formats.
FORMAT_SECONDS = 2e-7
#: Seconds per replicate, whatever its size, and per divisor.
FIXED_SECONDS = 5e-5
DIVISOR_SECONDS = 3e-5


def replicate_seconds(point: DesignPoint, n_divisors: int) -> float:
    """Return about how long one replicate takes on one core, in seconds."""
    n_queries, n_keys = point.shape
    scores = n_queries * n_keys
    q, k = point.distribution_q.family, point.distribution_k.family
    draws = point.d_k * (n_queries * _draw_seconds(q) + n_keys * _draw_seconds(k))
    initialisation = point.initialisation
    if initialisation is not None:
        entries = initialisation.width * (n_queries + n_keys + 2 * point.d_k)
        draws = entries * GAUSSIAN_SECONDS
        tokens = initialisation.width * (n_queries + n_keys)
        draws += tokens * (TOKEN_SECONDS + point.d_k * PRODUCT_SECONDS)
    if point.is_normalised:
        draws += point.d_k * (n_queries + n_keys) * TOKEN_SECONDS
    if not point.has_rows:
        product = scores * point.d_k * PRODUCT_SECONDS
        return FIXED_SECONDS + draws + product + scores * PAIR_SECONDS
    n_scored = n_keys  # of a query, in the mean
    n_pulled = min(n_queries, query_rows(n_keys))  # products of gradients and keys
    n_blocks = 1
    if point.is_masked:
        longest, at_once = point.mask.longest(n_keys), point.queries_at_once
        n_pulled, n_blocks = n_queries, math.ceil(n_queries / at_once)
    if point.mask.is_causal:
        n_scored = min(n_keys, longest - longest**2 // (2 * n_keys) + at_once)
    products = (n_queries + n_divisors * n_pulled) * n_scored
    rows = n_divisors * (
        n_blocks * DIVISOR_SECONDS + n_queries * n_scored * ROW_SECONDS
    )
    if point.formats:
        compared = min(scores, FORMAT_ROWS * n_keys, FORMAT_SCORES)
        rows += n_divisors * compared * FORMAT_SECONDS
    return FIXED_SECONDS + draws + products * point.d_k * PRODUCT_SECONDS + rows


def _draw_seconds(family: str) -> float:
    """Return about how long an entry of a family of distributions takes."""
    if family.startswith(SCIPY):
        return SCIPY_SECONDS
    return DRAW_SECONDS.get(family, GAUSSIAN_SECONDS)


GIBIBYTE = 2**30
#: Standard deviation of the divided scores of a row, at least.
LEAST_SPREAD = 1e-6
#: Memory of one replicate, which each worker needs, and its time on one core.
MOST_BYTES = GIBIBYTE
MOST_SECONDS = 60.0
#: Seconds on one core that `measure` and `grid` may take.
MOST_ASKED_SECONDS = 600.0
#: Bytes per score of a row: scores, exponentials, and products under each divisor.
SCORE_BYTES = 64
FLOAT, DOUBLE = 4, 8
#: Arrays of a block of a tail: q, z, k and a product.
TAIL_ARRAYS = 4


def replicate_bytes(point: DesignPoint, n_divisors: int) -> float:
    """Return about how much memory one replicate takes, in bytes.

    Notes
    -----
    The largest arrays alone, counted as often as they are there at once; held against
    the memory that some dozen points took, at most 1.2 times too little.
    """
    n_queries, n_keys = point.shape
    d_k = float(point.d_k)
    if not point.has_rows:
        standard = point.distribution_q.is_standard and point.distribution_k.is_standard
        standard = standard and not point.is_normalised
        needed = FLOAT * d_k * (n_queries + n_keys) * (2 if standard else 3)
    else:
        pulled = 2 * min(n_queries, query_rows(n_keys))
        if point.is_masked:  # values, and the gradients by keys and by values
            pulled = 2 * (1 + n_divisors) * n_queries
        needed = FLOAT * d_k * (n_queries + n_keys + pulled)
        needed += FLOAT * 2 * min(d_k * n_keys, ENTRIES_AT_ONCE)
        needed += SCORE_BYTES * float(point.queries_at_once) * n_keys
    initialisation = point.initialisation
    if initialisation is not None:
        needed += (
            FLOAT * initialisation.width * (2 * float(max(n_queries, n_keys)) + 3 * d_k)
        )
    return needed


@lru_cache(maxsize=4096)
def require_affordable(point: DesignPoint, n_divisors: int) -> None:
    """Refuse a point of which one replicate takes too much."""
    needed = replicate_bytes(point, n_divisors)
    seconds = replicate_seconds(point, n_divisors)
    if needed <= MOST_BYTES and seconds <= MOST_SECONDS:
        return
    sizes = {"d_k": point.d_k, "n_keys": point.n_keys}
    initialisation = point.initialisation
    if initialisation is not None:
        sizes["width"] = initialisation.width
    named = ", ".join(f"{name}={size}" for name, size in sizes.items() if size)
    raise InputError(
        f"sizes must take at most {_memory(MOST_BYTES)} and {MOST_SECONDS:.0f} s a "
        f"replicate, got {named}: about {_memory(needed)} and {say_time(seconds)}"
    )


@lru_cache(maxsize=4096)
def require_spread(point: DesignPoint, divisor: str) -> None:
    """Refuse divisors, also in a ratio, that leave a point's rows of scores too flat.

    Weights differ from equal ones by about the standard deviation of the scores, and
    quantities by its square: float64 resolves no less.
    """
    for name in divisor.split("/"):
        rule = parse_divisor(name)
        if rule.needs_keys and not point.has_rows:
            continue  # pairs have no such divisor
        left = point.row_spread / rule.value(point.d_k, point.n_keys)
        if point.has_rows and left < LEAST_SPREAD:
            raise InputError(
                "divisor must leave the scores of a row a standard deviation of at "
                f"least {LEAST_SPREAD:g}, got {name}: about {left:.2g}"
            )


def require_affordable_tail(d_k: int) -> None:
    """Refuse a d_k whose overflow probability takes too much memory."""
    needed = float(d_k) * BLOCK * DOUBLE * TAIL_ARRAYS
    if needed > MOST_BYTES:
        raise InputError(
            f"d_k of an overflow probability must take at most {_memory(MOST_BYTES)}, "
            f"got {d_k}: about {_memory(needed)}"
        )


def require_soon(option: str, number: int, seconds: float) -> None:
    """Refuse more replicates than `MOST_ASKED_SECONDS` allow, at so many seconds each.

    ``option`` is the option to reduce, for the message.
    """
    if (needed := number * seconds) > MOST_ASKED_SECONDS:
        raise InputError(
            f"{option} must take at most {say_time(MOST_ASKED_SECONDS)} on one core, "
            f"got {number} replicates: about {say_time(needed)}"
        )


def _memory(needed: float) -> str:
    return f"{needed / GIBIBYTE:.3g} GiB"


def say_time(seconds: float) -> str:
    """Return seconds as a text in a readable unit.

    Examples
    --------
    >>> say_time(90.0), say_time(7200.0), say_time(700_000.0), say_time(1e9)
    ('90 s', '2 h', '8.1 days', '32 years')
    """
    for least, unit, name in (
        (31_557_600.0, 31_557_600.0, "years"),
        (345_600.0, 86_400.0, "days"),
        (3600.0, 3600.0, "h"),
    ):
        if seconds >= least:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds:.3g} s"
