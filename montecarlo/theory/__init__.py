"""What theory gives exactly: closed forms of q·k and expectations over a row.

Nothing here is sampled, and nothing of `attention` but the names of divisors and
quantities is used: a reference must not share a mistake with what it is compared to.

`expected_row` is for everybody: E p_max, E H, E ‖J‖_F² and more of a row of up to a
million keys, each with its numerical error; `largest_weight_share` and
`largest_weight_quantile` have the distribution of p_max, saturated rows among it;
`query_gradient_squared` is the mean square of the gradient by the query.
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
