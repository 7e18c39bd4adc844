"""A distribution of one's own: in every question, in processes, if it is so."""

import itertools
import math

import numpy as np
import pytest

from montecarlo import distribution, grid, measure
from montecarlo.errors import InputError
from montecarlo.sampling.distributions import OWN, parse_distribution

EXPONENTIAL = np.random.Generator.standard_exponential


@pytest.fixture(autouse=True)
def exponential():
    """Name the exponential distribution, for one test."""
    yield distribution("exponential", EXPONENTIAL, mean=1.0, kurtosis=9.0)
    OWN.clear()


def test_it_is_standardised(exponential):
    """It has mean 0 and variance 1, and its skewness is that of an exponential: 2.

    Of 10**6 draws, with the sixth moment 265 of it: within 7 standard errors.
    """
    drawn = exponential.sample(np.random.default_rng(5), (1000, 1000)).astype(float)
    assert abs(drawn.mean()) < 7e-3
    assert abs((drawn**2).mean() - 1.0) < 7 * math.sqrt(8e-6)
    assert abs((drawn**3).mean() - 2.0) < 7 * math.sqrt(261e-6)
    assert drawn.min() >= -1.0


def test_it_is_measured_beside_theory():
    """Variance and kurtosis have exact values by the moments that were said."""
    for name, exact in (("score_variance", 8.0), ("score_excess_kurtosis", 78.0 / 8)):
        found = measure("exponential", d_k=8, quantity=name, divisor="none", most=1024)
        assert found.reference == pytest.approx(exact, rel=1e-14)
        assert abs(found.estimate - exact) < 7.0 * found.std_error


def test_it_is_shifted_like_others():
    """A mean and a standard deviation can be given by name."""
    shifted = parse_distribution("exponential(mean=1.0,std=2.0)")
    assert (shifted.name, shifted.mean, shifted.std) == (
        "exponential(mean=1.0,std=2.0)",
        1.0,
        2.0,
    )
    assert shifted.sample(np.random.default_rng(1), (1000,)).min() >= -1.0


def test_processes_draw_the_same():
    """A worker that never heard of the name draws what this process draws."""
    wanted = {"d_k": [4, 8], "n_keys": [8], "quantity": ["entropy"], "most": 64}
    one = grid("exponential", **wanted)
    assert grid("exponential", **wanted, jobs=2).equals(one)
    assert not grid("gaussian", **wanted).estimate.equals(one.estimate)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, f, _: np.append(x[:-1], f[-1]), "the same entries"),
        (lambda x, f, _: np.append(x[:5000], f[5000:]), "the same entries"),
        (lambda x, f, _: np.append(np.sign(x[:-1]), 1.0), "the same entries"),
        (lambda x, _, calls: x if calls <= 10 else x[::-1], "other entries from an"),
        (lambda x, _, calls: x if calls <= 100 else 1.5 * x, "other entries from an"),
        (lambda x, *_: x + 0.5j, "real numbers"),
        (lambda x, *_: np.ma.masked_greater(x, 2.0), "without a mask"),
        (lambda x, *_: np.ma.array(x), "without a mask"),
        (lambda x, *_: x.astype("U32"), "real numbers"),
        (lambda x, *_: (1000.0 * x).astype("m8[s]"), "real numbers"),
    ],
)
def test_every_entry_is_compared(change, message):
    """One entry, a tail, a sign or a late call that ignores the generator."""
    calls = itertools.count(1)

    def partly(rng, shape):
        drawn = rng.normal(size=math.prod(shape))
        fixed = np.random.default_rng(3).normal(size=drawn.size)
        return change(drawn, fixed, next(calls)).reshape(shape)

    with pytest.raises(InputError, match=message):
        distribution("partly", partly, kurtosis=3.0)
    assert "partly" not in OWN


@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.9, 0.99, 0.999])
def test_discrete_sampler_is_not_refused(zeros):
    """Its entries are often the same from different generators, by chance: Poisson
    probabilities of 1e-11 and normal ones of 7 standard errors, for any seed.
    """

    def drawn(rng, shape):
        return (rng.random(shape) >= zeros) * rng.choice([-1.0, 1.0], shape)

    std = math.sqrt(1.0 - zeros)
    assert distribution("sparse", drawn, std=std, kurtosis=1.0 / std**2)
