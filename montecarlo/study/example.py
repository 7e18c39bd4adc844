"""A few rows of attention as they were drawn: what the first figure of a report shows.

In: the seed of a study.  Out: rows of curves.csv.
"""

from collections.abc import Iterator

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.softmax import (
    measure_gaps,
    softmax_rows,
    weights_in_order,
    widen,
)
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.study.columns import CurveLine
from montecarlo.study.table import curve_line

#: Name of the curve; ``x`` counts through the weights row by row, from 0.
EXAMPLE = "example_weight"
POINT = parse_point("gaussian", "gaussian", 64, 32)
N_QUERIES = 16
SHOWN_DIVISORS = ("none", "sqrt")


def example_curves(seed: int) -> Iterator[CurveLine]:
    """Yield weights of the first queries of a replicate, unscaled and scaled.

    Parameters
    ----------
    seed : int
        The study's; the draws are those that its estimates are made of, where its grid
        has the point.

    Yields
    ------
    CurveLine
        Without a standard error: a weight that was drawn has none.
    """
    q, k = draw_matrices(POINT, seed, 0)
    gaps = measure_gaps(widen(q[:N_QUERIES]) @ widen(k).T)
    for divisor in SHOWN_DIVISORS:
        rows = softmax_rows(gaps, DIVISORS[divisor].value(POINT.d_k))
        for x, weight in enumerate(weights_in_order(rows).ravel().tolist()):
            yield curve_line(POINT, divisor, EXAMPLE, float(x), weight)
