"""Approximate time and memory of a replicate, and limits on them.

Work is divided into batches by these estimates, and requests that would take too long
or too much memory raise `InputError`.  Times are seconds on one core of the machine on
which they were measured.  Results do not depend on them, and neither do the limits
depend on the machine, so that a study that runs on one also runs on another.
"""

import math
from functools import lru_cache

from montecarlo.attention.divisors import parse_divisor
from montecarlo.attention.number_formats import FORMAT_ROWS, FORMAT_SCORES
from montecarlo.attention.rows import n_query_rows
from montecarlo.errors import InputError
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.distributions import SCIPY
from montecarlo.sampling.matrices import ENTRIES_AT_ONCE
from montecarlo.sampling.rare_events import BLOCK

#: Seconds per drawn entry: of distributions that need logarithms of more uniforms, of
#: most of SciPy's, and of all others.
SLOW_FAMILIES = ("laplace", "logistic", "student")
SLOW_SECONDS, SCIPY_SECONDS, DRAW_SECONDS = 3.9e-9, 4e-8, 2.2e-9
#: Seconds per entry of a token, query or key that is normalised.
TOKEN_SECONDS = 6e-10
#: Seconds per multiply-add of a float32 matrix product.
PRODUCT_SECONDS = 1.75e-11
#: Seconds per score of a pair, and per score of a row and divisor.
PAIR_SECONDS = 1.2e-9
ROW_SECONDS = 4.2e-9
#: Seconds per score and divisor for all number formats together.
FORMAT_SECONDS = 2e-7
#: Additional seconds per replicate, and per divisor and block of queries.
FIXED_SECONDS = 5e-5
DIVISOR_SECONDS = 3e-5


def replicate_seconds(point: DesignPoint, n_divisors: int) -> float:
    """Return the approximate time of one replicate on one core, in seconds.

    ``n_divisors`` is the number of divisors under which rows are evaluated.
    """
    n_queries, n_keys = point.shape
    scores = n_queries * n_keys
    q, k = point.distribution_q.family, point.distribution_k.family
    draws = point.d_k * (n_queries * _draw_seconds(q) + n_keys * _draw_seconds(k))
    initialisation = point.initialisation
    if initialisation is not None:
        tokens = initialisation.width * (n_queries + n_keys)
        weights = initialisation.width * 2 * point.d_k
        draws = (tokens + weights) * DRAW_SECONDS
        draws += tokens * (TOKEN_SECONDS + point.d_k * PRODUCT_SECONDS)
    if point.is_normalised:
        draws += point.d_k * (n_queries + n_keys) * TOKEN_SECONDS
    if not point.has_rows:
        product = scores * point.d_k * PRODUCT_SECONDS
        return FIXED_SECONDS + draws + product + scores * PAIR_SECONDS
    n_scored = n_keys  # mean number of scores of a query
    n_pulled = min(n_queries, n_query_rows(n_keys))  # rows of the query gradient
    longest, at_once = point.mask.longest(n_keys), point.queries_at_once
    if point.is_masked:
        n_pulled = n_queries
    if point.mask.is_causal:
        n_scored = min(n_keys, longest - longest**2 // (2 * n_keys) + at_once)
    products = (n_queries + n_divisors * n_pulled) * n_scored
    n_blocks = math.ceil(n_queries / at_once)
    rows = n_divisors * (
        n_blocks * DIVISOR_SECONDS + n_queries * n_scored * ROW_SECONDS
    )
    if point.formats:
        compared = min(scores, FORMAT_ROWS * n_keys, FORMAT_SCORES)
        rows += n_divisors * compared * FORMAT_SECONDS
    return FIXED_SECONDS + draws + products * point.d_k * PRODUCT_SECONDS + rows


def _draw_seconds(family: str) -> float:
    """Return the approximate time in seconds to draw one entry of Q or K.

    ``family`` is the name of its distribution, without mean and std.
    """
    if family.startswith(SCIPY):
        return SCIPY_SECONDS
    return SLOW_SECONDS if family.startswith(SLOW_FAMILIES) else DRAW_SECONDS


GIBIBYTE = 2**30
#: Smallest standard deviation of the divided scores of a row.
LEAST_SPREAD = 1e-6
#: Largest memory of one replicate, which each worker needs, and its largest time on one
#: core.
MOST_BYTES = GIBIBYTE
MOST_SECONDS = 60.0
#: Largest time on one core for a request to `measure` or `grid`.
MOST_ASKED_SECONDS = 600.0
#: Bytes per score of a row: for scores, exponentials and products with the Jacobian.
SCORE_BYTES = 64
FLOAT, DOUBLE = 4, 8
#: Arrays of a block of `estimate_tail`: q, z, k and q k.
TAIL_ARRAYS = 4


def replicate_bytes(point: DesignPoint, n_divisors: int) -> float:
    """Return the approximate memory of one replicate in bytes.

    ``n_divisors`` is the number of divisors under which rows are evaluated.

    Notes
    -----
    Only the largest arrays count, as often as they exist at the same time.  For the
    dozen points that were measured, the memory was at most 1.2 times this result.
    """
    n_queries, n_keys = point.shape
    d_k = float(point.d_k)
    if not point.has_rows:
        standard = point.distribution_q.is_standard and point.distribution_k.is_standard
        standard = standard and not point.is_normalised
        needed = FLOAT * d_k * (n_queries + n_keys) * (2 if standard else 3)
    else:
        pulled = 2 * min(n_queries, n_query_rows(n_keys))
        if point.is_masked:  # values, and gradients of keys and values
            pulled = 2 * (1 + n_divisors) * n_queries
        needed = FLOAT * d_k * (n_queries + n_keys + pulled)
        needed += FLOAT * 2 * min(d_k * n_keys, ENTRIES_AT_ONCE)
        needed += SCORE_BYTES * float(point.queries_at_once) * n_keys
    if point.initialisation is not None:
        tokens = 2 * float(max(n_queries, n_keys))
        needed += FLOAT * point.initialisation.width * (tokens + 3 * d_k)
    return needed


@lru_cache(maxsize=4096)
def require_affordable(point: DesignPoint, n_divisors: int) -> None:
    """Raise `InputError` if a replicate exceeds `MOST_BYTES` or `MOST_SECONDS`."""
    needed = replicate_bytes(point, n_divisors)
    seconds = replicate_seconds(point, n_divisors)
    if needed <= MOST_BYTES and seconds <= MOST_SECONDS:
        return
    sizes = {"d_k": point.d_k, "n_keys": point.n_keys}
    if point.initialisation is not None:
        sizes["width"] = point.initialisation.width
    named = ", ".join(f"{name}={size}" for name, size in sizes.items() if size)
    raise InputError(
        f"sizes must take at most {_memory(MOST_BYTES)} and {MOST_SECONDS:.0f} s a "
        f"replicate, got {named}: about {_memory(needed)} and {say_time(seconds)}"
    )


@lru_cache(maxsize=4096)
def require_spread(point: DesignPoint, divisor: str) -> None:
    """Raise `InputError` if division would make the scores of a row nearly equal.

    Also if the value of a divisor is out of range at the point.

    Parameters
    ----------
    point : DesignPoint
        Without rows, only the values of divisors are checked.
    divisor : str
        Canonical name of a divisor, or of two with a slash: ``none/sqrt``.

    Notes
    -----
    Relative to 1/n, weights differ from it by about the standard deviation of the
    divided scores, and quantities by its square.  If it is below `LEAST_SPREAD`,
    float64 does not resolve that.
    """
    for name in divisor.split("/"):
        rule = parse_divisor(name)
        if rule.needs_keys and not point.has_rows:
            continue  # there is no such divisor of pairs
        spread = point.row_spread / rule.value(point.d_k, point.n_keys)
        if point.has_rows and spread < LEAST_SPREAD:
            raise InputError(
                "divisor must leave the scores of a row a standard deviation of at "
                f"least {LEAST_SPREAD:g}, got {name}: about {spread:.2g}"
            )


def require_affordable_tail(d_k: int) -> None:
    """Raise `InputError` if `estimate_tail` would exceed `MOST_BYTES`."""
    needed = float(d_k) * BLOCK * DOUBLE * TAIL_ARRAYS
    if needed > MOST_BYTES:
        raise InputError(
            f"d_k of an overflow probability must take at most {_memory(MOST_BYTES)}, "
            f"got {d_k}: about {_memory(needed)}"
        )


def require_soon(option: str, number: int, seconds: float) -> None:
    """Raise `InputError` if sampling would take more than `MOST_ASKED_SECONDS`.

    Parameters
    ----------
    option : str
        Option to reduce, for the message.
    number : int
        Number of replicates.
    seconds : float
        Time of one replicate.
    """
    if (needed := number * seconds) > MOST_ASKED_SECONDS:
        raise InputError(
            f"{option} must take at most {say_time(MOST_ASKED_SECONDS)} on one core, "
            f"got {number} replicates: about {say_time(needed)}"
        )


def _memory(needed: float) -> str:
    """Return a number of bytes as text in GiB, such as ``1.5 GiB``."""
    return f"{needed / GIBIBYTE:.3g} GiB"


def say_time(seconds: float) -> str:
    """Return a time in seconds as text in a suitable unit.

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
