"""Normalised queries and keys in questions of one's own, against a textbook loop."""

import math

import numpy as np
import pytest

from montecarlo import measure

#: Standard errors of both together that a loop may be off by: of about normal means
#: one in 10**6, by chance, for each of four cells.
FAR = 5.0
DRAWS = 3000


def loop(draw, length, factor, n_keys, of_row):
    """Mean and standard error over rows, each of a fresh query and fresh keys."""
    found = []
    for _ in range(DRAWS):
        q, *keys = (length * x / math.sqrt(x @ x) for x in draw(1 + n_keys))
        scores = [factor * float(q @ k) for k in keys]
        exponentials = [math.exp(s - max(scores)) for s in scores]
        found.append(of_row([e / sum(exponentials) for e in exponentials]))
    return np.mean(found), np.std(found, ddof=1) / math.sqrt(DRAWS)


def entropy(p):
    """Minus the sum of p ln p."""
    return -sum(x * math.log(x) for x in p if x)


RNG = np.random.default_rng(8)
CELLS = [
    ("gaussian", RNG.standard_normal, 7, "l2(gain=10)", 1.0, 10.0, "none", 1.0),
    ("laplace", RNG.laplace, 5, "rms(gain=2)", math.sqrt(5), 2.0, "sqrt", math.sqrt(5)),
]


@pytest.mark.parametrize(
    ("quantity", "of_row"), [("entropy", entropy), ("weight_max", max)]
)
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell[3])
def test_a_loop_gives_the_same(cell, quantity, of_row):
    """Within the errors of both; without the normalisation it is far away."""
    name, sampler, d_k, normalisation, length, gain, divisor, number = cell

    def draw(n):
        return sampler(size=(n, d_k))

    mean, error = loop(draw, length, gain / number, 11, of_row)
    asked = {"quantity": quantity, "divisor": divisor, "relative_error": 0.005}
    found = measure(name, d_k=d_k, n_keys=11, normalisation=normalisation, **asked)
    both = math.hypot(error, found.std_error)
    assert abs(found.estimate - mean) < FAR * both
    plain = measure(name, d_k=d_k, n_keys=11, **asked)
    assert abs(plain.estimate - mean) > 2 * FAR * both
