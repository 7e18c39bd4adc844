"""What a replicate costs, roughly: to cut work into batches and to tell users.

Seconds on one core of the machine that the project was written on; only ratios matter
for batches, and no result depends on them.
"""

from montecarlo.attention.number_formats import FORMAT_ROWS, FORMAT_SCORES
from montecarlo.attention.row_block import query_rows
from montecarlo.sampling.design_points import DesignPoint
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
#: Seconds per entry of a token that is normalised and projected, beyond its draw.
TOKEN_SECONDS = 6e-10
#: Seconds per multiply-add of a float32 product.
PRODUCT_SECONDS = 1.75e-11
#: Seconds per score: of a pair, and of a row under one divisor.
PAIR_SECONDS = 1.2e-9
ROW_SECONDS = 4.2e-9
#: Seconds per score and divisor that is compared in all number formats.
FORMAT_SECONDS = 2e-7
#: Seconds per entry and draw of a tail, which is in float64.
TAIL_SECONDS = 3e-8
#: Seconds per replicate, whatever its size, and per divisor.
FIXED_SECONDS = 5e-5
DIVISOR_SECONDS = 3e-5


def replicate_seconds(point: DesignPoint, n_divisors: int) -> float:
    """Return about how long one replicate takes on one core, in seconds."""
    n_queries, n_keys = point.shape
    scores = n_queries * n_keys
    q, k = point.distribution_q.family, point.distribution_k.family
    draws = point.d_k * (
        n_queries * DRAW_SECONDS.get(q, GAUSSIAN_SECONDS)
        + n_keys * DRAW_SECONDS.get(k, GAUSSIAN_SECONDS)
    )
    initialisation = point.initialisation
    if initialisation is not None:
        entries = initialisation.width * (n_queries + n_keys + 2 * point.d_k)
        draws = entries * GAUSSIAN_SECONDS
        tokens = initialisation.width * (n_queries + n_keys)
        draws += tokens * (TOKEN_SECONDS + point.d_k * PRODUCT_SECONDS)
    if not point.has_rows:
        product = scores * point.d_k * PRODUCT_SECONDS
        return FIXED_SECONDS + draws + product + scores * PAIR_SECONDS
    pulled = n_divisors * min(
        n_queries, query_rows(n_keys)
    )  # products of gradients and keys
    products = (n_queries + pulled) * n_keys * point.d_k * PRODUCT_SECONDS
    rows = n_divisors * (DIVISOR_SECONDS + scores * ROW_SECONDS)
    if point.formats:
        compared = min(scores, FORMAT_ROWS * n_keys, FORMAT_SCORES)
        rows += n_divisors * compared * FORMAT_SECONDS
    return FIXED_SECONDS + draws + products + rows


def tail_seconds(d_k: int) -> float:
    """Return about how long a block of an overflow probability takes on one core."""
    return BLOCK * d_k * TAIL_SECONDS
