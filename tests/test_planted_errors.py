"""A report that cannot notice a mistake is worth nothing: planted ones are noticed.

Each mistake is planted in the function that makes it, the quick study is run, and some
verdict must be worse than in the clean run of the same seed: lost support, or newly
refuted or conditional.  A verdict that became better does not count, nor does a crash.
Nothing here can fail because a clean run is unlucky: plants are compared with the clean
run of their seed.  What may fail by chance is that a mistake is missed, and cases that
show one lie beyond their regions by many standard errors.

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

from montecarlo.attention import gradients, softmax
from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.softmax import SoftmaxRows, measure_gaps, softmax_rows
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, run_study
from montecarlo.sampling import blocks, matrices, replicates
from montecarlo.sampling.design_points import parse_point, stream
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.study.presets import PRESETS

Plant = Callable[[pytest.MonkeyPatch], None]
QUICK = PRESETS["quick"]
#: Where lost terms of J show in the quick grid, and what fast tests can afford.
GRADIENTS = msgspec.structs.replace(
    QUICK, d_k=(16, 64), distributions=("rademacher",), distribution_d_k=(16,)
)
SMALL = msgspec.structs.replace(
    QUICK, d_k=(16, 64, 256), n_keys=(32,), distributions=()
)
SEEDS = (1, 2)


def verdicts_of(grid, seed):
    """The verdict of each claim and each self-check of a study, by its id."""
    with ThreadPoolExecutor(2) as executor:
        found = run_study(Study(read_catalogue(), grid, seed), executor).claims
    return {one.id: one.verdict for one in (*found.claims, *found.self_checks)}


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
        and (before == "supported" or planted[id_] == "refuted")
    }


def plant_variance(monkeypatch):
    """The draws of a distribution have variance 1.1; the tolerance is 5 %."""
    distribution = DISTRIBUTIONS["gaussian"]

    def draw(rng, shape):
        return np.float32(math.sqrt(1.1)) * distribution.draw(rng, shape)

    monkeypatch.setitem(DISTRIBUTIONS, "gaussian", replace(distribution, draw=draw))


def plant_exponent(monkeypatch):
    """sqrt(d_k) is d_k**0.495: a variance of 1.07 at d_k = 1024, tolerance 5 %."""
    wrong = replace(DIVISORS["sqrt"], power=0.495)
    monkeypatch.setitem(DIVISORS, "sqrt", wrong)


def plant_wrong_axis(monkeypatch):
    """Weights are normalised over the queries of a key, not over the keys of a query.

    The rows of these weights are then handed on in the form that all formulas expect.
    """

    def over_queries(gaps, divisor):
        scores = gaps.rest + (gaps.second + gaps.largest)[..., np.newaxis]
        softmax.put(scores, gaps.where, gaps.largest)
        scores = scores / divisor
        p = np.exp(scores - scores.max(axis=-2, keepdims=True))
        p /= p.sum(axis=-2, keepdims=True)
        wrong = measure_gaps(np.log(np.maximum(p, 1e-300)))
        one = softmax_rows(wrong, 1.0)
        sums = replace(one.sums, s1=1.0 / np.exp(wrong.largest) - 1.0, divisor=divisor)
        return SoftmaxRows(gaps, sums, one.e.astype(gaps.rest.dtype))

    monkeypatch.setattr(blocks, "softmax_rows", over_queries)


def plant_constant_normaliser(monkeypatch):
    """Exponentials are not divided by their sum at all."""
    monkeypatch.setattr(softmax, "normaliser", np.ones_like)


def plant_normaliser_without_largest(monkeypatch):
    """The largest exponential is missing in the sum that they are divided by."""
    monkeypatch.setattr(softmax, "normaliser", lambda s1: s1)


def plant_same_stream(monkeypatch):
    """Keys are drawn from the generator of the queries."""

    def same(seed, point, index, which):
        return stream(seed, point, index, "q" if which == "k" else which)

    monkeypatch.setattr(matrices, "stream", same)


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
WHOLE = (
    "variance",
    "exponent",
    "wrong-axis",
    "same-stream",
    "normaliser-one",
    "normaliser-rest",
)


def find_worse(monkeypatch, name, grid, seed):
    """Run a study with a mistake and compare it with the same study without."""
    clean = clean_verdicts(grid, seed)
    PLANTS[name](monkeypatch)
    return worsened(clean, verdicts_of(grid, seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["variance", "trace-without-s2"])
def test_mistake_is_noticed_by_a_small_study(monkeypatch, name):
    """A part of the quick study notices a mistake in a distribution and one in the
    Jacobian.
    """
    assert find_worse(monkeypatch, name, SMALL, seed=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # some divide by 0
@pytest.mark.parametrize("name", WHOLE)
def test_mistake_is_noticed_by_the_quick_study(monkeypatch, name):
    """Mistakes in drawing, scaling and softmax make some verdict worse.

    At one seed: cases lie beyond their regions by many standard errors, and the whole
    quick study takes twice as long as a part of it.
    """
    assert find_worse(monkeypatch, name, QUICK, seed=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # one takes a root of less than 0
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [n for n in PLANTS if n not in WHOLE])
def test_lost_term_is_noticed_by_part_of_the_quick_study(monkeypatch, name, seed):
    """Each term of tr J and of ‖J‖_F² is missed when it is lost, by the part of the
    quick study that looks at it.
    """
    assert find_worse(monkeypatch, name, GRADIENTS, seed)


@pytest.mark.parametrize("name", PLANTS)
def test_mistake_is_planted(monkeypatch, name):
    """Every mistake changes what a replicate comes to, so a missed one is a miss."""

    def means():
        point = parse_point("gaussian", "gaussian", 64, 32)
        return replicates.sample(point, 1, 0, 2, ("sqrt",)).means

    before = means()
    PLANTS[name](monkeypatch)
    assert (means() != before).any()


def test_terms_are_those_of_the_formula():
    """The terms that are lost one by one add up to the squared norm."""
    scores = np.random.default_rng(3).normal(scale=2.0, size=(4, 9))
    row = softmax_rows(measure_gaps(scores), 1.0).sums

    whole = gradients.jacobian_frobenius_squared(row)
    assert sum(frobenius_terms(row)) == pytest.approx(whole, rel=1e-12)
    assert all((term != 0.0).all() for term in frobenius_terms(row))
