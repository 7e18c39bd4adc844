"""Exact values: closed forms for q·k and expectations over an attention row.

Nothing here is sampled.  Of `attention`, only the divisors are imported: a reference
must not share a mistake with the simulation that it checks.

`expected_row` returns E p_max, E H, E ‖J‖_F² and more for a row of up to a million
keys, each with its numerical error.  `largest_weight_share` and
`largest_weight_quantile` give the distribution of p_max, and so the share of saturated
rows.  `query_gradient_squared` is the mean squared norm of the gradient with respect to
the query.
"""

from montecarlo.theory.exact_rows import (
    expected_row,
    largest_weight_quantile,
    largest_weight_share,
)
from montecarlo.theory.query_gradients import query_gradient_squared

__all__ = [
    "expected_row",
    "largest_weight_quantile",
    "largest_weight_share",
    "query_gradient_squared",
]
