"""What theory gives exactly: closed forms of q·k and expectations over a row.

Nothing here is sampled, and nothing of `attention` but the names of divisors and
quantities is used: a reference must not share a mistake with what it is compared to.

`expected_row` is for everybody: E p_max, E H, E ‖J‖_F² and more of a row of up to a
million keys, each with its numerical error.
"""

from montecarlo.theory.exact_rows import expected_row

__all__ = ["expected_row"]
