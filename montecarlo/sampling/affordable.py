"""What a replicate may cost: sizes that nobody can sample are refused beforehand.

The limits do not depend on the machine, so that a study that runs here runs elsewhere.
What is refused is an `InputError`: what it may take, and what it would.
"""

from functools import lru_cache

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.row_block import query_rows
from montecarlo.errors import InputError
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.matrices import keys_at_once
from montecarlo.sampling.rare_events import BLOCK

GIBIBYTE = 2**30
#: Standard deviation of the divided scores of a row, at least.
LEAST_SPREAD = 1e-6
#: Memory of one replicate, which each worker needs, and its time on one core.
MOST_BYTES = GIBIBYTE
MOST_SECONDS = 60.0
#: What is sampled without a report's budgets, in seconds on one core.
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
        needed = FLOAT * d_k * (n_queries + n_keys) * (2 if standard else 3)
    else:
        pulled = 2 * n_divisors * min(n_queries, query_rows(n_keys))
        needed = FLOAT * d_k * (n_queries + 3 * keys_at_once(point) + pulled)
        needed += SCORE_BYTES * float(n_queries) * n_keys
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
    """Refuse a divisor that is beyond all use in a point, or a ratio with such a one.

    Weights of rows differ from equal ones by about the standard deviation of their
    scores, and what is said of them by its square: float64 holds no less.
    """
    for name in divisor.split("/"):
        rule = parse_divisor(name)
        if rule.needs_keys and not point.has_rows:
            continue  # which is no divisor of pairs
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
    """Refuse more replicates, of so many seconds each, than can be waited for.

    The message names the option that is to be made smaller.
    """
    if (needed := number * seconds) > MOST_ASKED_SECONDS:
        raise InputError(
            f"{option} must take at most {say_time(MOST_ASKED_SECONDS)} on one core, "
            f"got {number} replicates: about {say_time(needed)}"
        )


def _memory(needed: float) -> str:
    return f"{needed / GIBIBYTE:.3g} GiB"


def say_time(seconds: float) -> str:
    """Return seconds in a unit that says something.

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
