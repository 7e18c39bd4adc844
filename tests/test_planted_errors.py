"""A report that cannot notice a mistake is worth nothing: planted ones are noticed.

Each mistake is planted in the function that makes it, the quick study is run, and some
verdict must be worse than in the clean run of the same seed: lost support, or newly
refuted or conditional.  A verdict that became better does not count, nor does a crash.
Clean runs are compared with plants, never with a list, so there is no false alarm to
state; what may fail by chance is that a mistake is missed, and every cell that shows one
is beyond its window by many standard errors.

Mistakes in a number are at most twice as large as the tolerance that is to notice them.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest

from montecarlo.attention import gradients, rows, softmax
from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.softmax import SoftmaxRows, measure_gaps, softmax_rows
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.presets import PRESETS
from montecarlo.sampling import replicates
from montecarlo.sampling.conditions import Condition, stream
from montecarlo.sampling.laws import LAWS
from montecarlo.study import Study, run_study

Plant = Callable[[pytest.MonkeyPatch], None]
QUICK = PRESETS["quick"]
#: What the fast tests can afford: one number of keys and one law.
SMALL = msgspec.structs.replace(QUICK, d_k=(16, 64, 256), n_keys=(32,), laws=())
SEEDS = (1, 2, 3)


def verdicts_of(grid, seed):
    """The verdict of each claim and each self-check of a study, by its id."""
    with ThreadPoolExecutor(2) as executor:
        found = run_study(Study(read_catalogue(), grid, seed), executor).claims
    return {one["id"]: one["verdict"] for one in found["claims"] + found["self_checks"]}


@cache
def clean_verdicts(grid, seed):
    """The verdicts without any mistake; called before anything is planted."""
    return verdicts_of(grid, seed)


def worsened(clean, planted):
    """The verdicts that show a mistake."""
    return {
        id_: (before, planted[id_])
        for id_, before in clean.items()
        if planted[id_] != before
        and (before == "supported" or planted[id_] in ("refuted", "conditional"))
    }


def plant_variance(monkeypatch):
    """The draws of a law have variance 1.1; the tolerance is 5 %."""
    law = LAWS["gaussian"]

    def draw(rng, shape):
        return np.float32(math.sqrt(1.1)) * law.draw(rng, shape)

    monkeypatch.setitem(LAWS, "gaussian", replace(law, draw=draw))


def plant_exponent(monkeypatch):
    """sqrt(d_k) is d_k**0.495: a variance of 1.07 at d_k = 1024, tolerance 5 %."""
    wrong = replace(DIVISORS["sqrt"], value=lambda d_k: d_k**0.495)
    monkeypatch.setitem(DIVISORS, "sqrt", wrong)


def plant_wrong_axis(monkeypatch):
    """Weights are normalised over the queries of a key, not over the keys of a query.

    The rows of these weights are then handed on in the form that all formulas expect.
    """

    def over_queries(gaps, divisor):
        scores = (gaps.below + gaps.largest[..., np.newaxis]) / divisor
        p = np.exp(scores - scores.max(axis=-2, keepdims=True))
        p /= p.sum(axis=-2, keepdims=True)
        wrong = measure_gaps(np.log(p))
        one = softmax_rows(wrong, 1.0)
        p_max = np.exp(wrong.largest)
        return SoftmaxRows(gaps, divisor, one.e, 1.0 / p_max - 1.0, one.s2, one.s3)

    monkeypatch.setattr(replicates, "softmax_rows", over_queries)


def plant_constant_normaliser(monkeypatch):
    """Exponentials are not divided by their sum at all."""
    monkeypatch.setattr(softmax, "normaliser", np.ones_like)


def plant_normaliser_without_largest(monkeypatch):
    """The largest exponential is missing in the sum that they are divided by."""
    monkeypatch.setattr(softmax, "normaliser", lambda s1: s1)


def plant_same_stream(monkeypatch):
    """Keys are drawn from the generator of the queries."""

    def same(seed, condition, index, which):
        return stream(seed, condition, index, "q" if which == "k" else which)

    monkeypatch.setattr(replicates, "stream", same)


def lose(name, formula) -> Plant:
    """Replace a formula of `gradients` by one that has lost a term."""

    def plant(monkeypatch):
        monkeypatch.setattr(gradients, name, formula)

    plant.__doc__ = f"A term of {name} is lost."
    return plant


def frobenius_terms(r):
    """The four terms of the squared Frobenius norm (see `gradients`)."""
    a2, a3 = r.s2 / r.z**2, r.s3 / r.z**3
    return (r.s1 / r.z**2) ** 2, a2, -2.0 * a3, 2.0 * a2 / r.z**2, a2**2


def lose_frobenius(lost) -> Plant:
    """Lose one term of the squared Frobenius norm, and so of the norm."""
    kept = [number for number in range(5) if number != lost]
    return lose(
        "jacobian_frobenius_squared",
        lambda r: sum(frobenius_terms(r)[number] for number in kept),
    )


PLANTS: dict[str, Plant] = {
    "variance": plant_variance,
    "exponent": plant_exponent,
    "wrong-axis": plant_wrong_axis,
    "normaliser-one": plant_constant_normaliser,
    "normaliser-rest": plant_normaliser_without_largest,
    "same-stream": plant_same_stream,
    "trace-without-s1": lose("jacobian_trace", lambda r: (r.s1**2 - r.s2) / r.z**2),
    "trace-without-s1-squared": lose(
        "jacobian_trace", lambda r: (2.0 * r.s1 - r.s2) / r.z**2
    ),
    "trace-without-s2": lose(
        "jacobian_trace", lambda r: (2.0 * r.s1 + r.s1**2) / r.z**2
    ),
    "frobenius-without-largest": lose_frobenius(0),
    "frobenius-without-squares": lose_frobenius(1),
    "frobenius-without-cubes": lose_frobenius(2),
    "frobenius-without-mixed": lose_frobenius(3),
    "frobenius-without-fourth": lose_frobenius(4),
}
