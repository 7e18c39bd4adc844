"""What theory gives exactly: closed forms of q·k and expectations over a row.

Nothing here is sampled, and nothing of `attention` but the names of divisors and
quantities is used: a reference must not share a mistake with what it is compared to.
"""
