"""What the divisor is worth: nothing, with initialisation and rate of its own."""

import pytest
from threadpoolctl import threadpool_limits

from montecarlo.training.arms import JUDGED, TUNING
from montecarlo.training.rescaling import (
    EXPONENTS,
    FACTORS,
    SEED,
    measure_rescaled,
)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Products of this size are slower on two, and on a busy machine very much so."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="module")
def measured():
    """What the record holds, made anew: by optimiser, d_k and factor."""
    return {(one.optimiser, one.d_k, one.factor): one for one in measure_rescaled()}


def test_powers_of_four_are_the_same_to_the_bit(measured):
    """Of gradient descent, for the least d_k and the largest, after 100 steps."""
    exact = [one for one in measured.values() if one.optimiser == "sgd"]
    exact = [one for one in exact if one.factor in {4.0, 16.0}]
    assert len(exact) == 4
    assert {(one.weights, one.loss, one.steps) for one in exact} == {(0.0, 0.0, 100)}


def test_others_differ_by_rounding(measured):
    """Rounding grows with the steps, and is far below anything that is learned."""
    assert len(measured) == 2 * 2 * len(FACTORS)
    assert max(one.loss for one in measured.values()) < 5e-7
    assert any(one.weights for one in measured.values() if one.factor == 10.0)


@pytest.mark.parametrize(("optimiser", "wrong"), [("sgd", 0.5), ("adam", 1.0)])
def test_a_wrong_exponent_is_seen(optimiser, wrong):
    """The theorem's exponents are not each other's."""
    assert EXPONENTS[optimiser] != wrong
    found = list(measure_rescaled({optimiser: wrong}, steps=40))
    assert min(one.loss for one in found) > 1e-3


def test_few_steps_differ_by_less():
    """Of a factor that is no power of 4: a unit of rounding or a few in each step."""
    for one in measure_rescaled({"sgd": 1.0}, steps=20):
        assert one.loss <= 20 * 1e-12


def test_its_seed_decides_nothing_else():
    """No rate is chosen on it, and nothing is judged."""
    assert SEED not in (*TUNING, *JUDGED)
