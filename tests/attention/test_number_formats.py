"""Number formats: rounding to what their definitions say, sums, overflow, errors.

Bounds.  With u half the distance of 1 from the next number of a format, shifted weights
have relative errors of at most exp(u(|x| + gap + 1)) - 1, from rounding the score, the
difference and the exponential, and u each from the sum and the quotient.
"""

import math
from itertools import product

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from montecarlo.attention.number_formats import (
    ALL_FORMATS,
    FLOAT8,
    FLOAT8_SOFTMAX,
    MOST_STEPS,
    NUMBER_FORMATS,
    SOFTMAXES,
    format_ways,
    most_weight_error,
    softmax_in,
    weight_error,
)
from montecarlo.attention.quantities import FORMAT_QUANTITIES

HALF, BRAIN, SINGLE, DOUBLE = (
    NUMBER_FORMATS[name] for name in ("float16", "bfloat16", "float32", "float64")
)
#: Largest number, next number above 1 less 1, least normal number and least number
#: above 0, by IEEE 754 (2019), by Google for bfloat16, and for eight bits by table 1 of
#: Micikevicius et al. (2022), FP8 Formats for Deep Learning.
LIMITS = {
    "float16": (65504.0, 2.0**-10, 2.0**-14, 2.0**-24),
    "bfloat16": (2.0**127 * (2.0 - 2.0**-7), 2.0**-7, 2.0**-126, 2.0**-133),
    "float32": (2.0**127 * (2.0 - 2.0**-23), 2.0**-23, 2.0**-126, 2.0**-149),
    "float64": (2.0**1023 * (2.0 - 2.0**-52), 2.0**-52, 2.0**-1022, 2.0**-1074),
    "e4m3": (448.0, 2.0**-3, 2.0**-6, 2.0**-9),
    "e5m2": (57344.0, 2.0**-2, 2.0**-14, 2.0**-16),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_those_of_the_definition(name):
    """Each limit is a number; the next one, and half of the least, are not."""
    one = ALL_FORMATS[name]
    largest, step, normal, least = LIMITS[name]
    assert one.log_largest == pytest.approx(math.log(largest), rel=1e-15)
    assert one.bits == 1 - math.log2(step)
    numbers = np.array(
        [largest, 1.0 + step, normal, normal - least, least, 3.0 * least]
    )
    assert np.array_equal(one.round(numbers), numbers)
    if name != "float64":
        above = largest + step * 2.0 ** math.floor(math.log2(largest))
        between = np.array([above, 1.0 + 0.4 * step, 1.4 * least, 0.5 * least])
        assert one.round(between).tolist() == [math.inf, 1.0, least, 0.0]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("float16", np.float16),
        ("bfloat16", ml_dtypes.bfloat16),
        ("e4m3", ml_dtypes.float8_e4m3fn),
        ("e5m2", ml_dtypes.float8_e5m2),
    ],
)
def test_every_number_and_all_between_are_rounded(name, kind):
    """Numbers to themselves; what lies between two to the nearer, a tie to the even.

    All there are, of either sign, with NaN and what is too large.
    """
    bits = 8 * np.dtype(kind).itemsize
    patterns = np.arange(2 ** (bits - 1)).astype(f"u{bits // 8}")
    with np.errstate(invalid="ignore"):  # some NaNs signal
        numbers = patterns.view(kind).astype(np.float64)
    rounded = ALL_FORMATS[name].round
    assert np.array_equal(rounded(numbers), numbers, equal_nan=True)
    finite = numbers[np.isfinite(numbers)]
    middle = 0.5 * (finite[:-1] + finite[1:])
    step = np.diff(finite) / 64.0
    even = np.where(np.arange(middle.size) % 2 == 0, finite[:-1], finite[1:])
    for sign in (1.0, -1.0):
        assert np.array_equal(rounded(sign * middle), sign * even)
        assert np.array_equal(rounded(sign * (middle - step)), sign * finite[:-1])
        assert np.array_equal(rounded(sign * (middle + step)), sign * finite[1:])
    assert np.signbit(rounded(np.array([0.0, -0.0]))).tolist() == [False, True]


def test_bfloat16_is_rounded_once():
    """What lies above a tie by less than float32 sees is rounded up all the same."""
    assert BRAIN.round(np.array([1.0 + 2.0**-8 + 2.0**-30])) == [1.0 + 2.0**-7]


#: Number of equal terms of 1 at which a sum in the format stops growing.
STAGNATION = {"float16": 2048, "bfloat16": 256}


@pytest.mark.parametrize("name", STAGNATION)
@pytest.mark.parametrize("softmax", ["naive", "shifted"])
def test_sums_stop_growing(name, softmax):
    """Adding 1 by 1, float16 stops at 2048 and bfloat16 at 256."""
    most = STAGNATION[name]
    for n_keys in (most // 2, most, most + 1, MOST_STEPS):
        (weights,) = softmax_in(np.zeros((1, n_keys)), NUMBER_FORMATS[name], softmax)
        assert set(weights.tolist()) == {1.0 / min(n_keys, most)}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    row=st.lists(st.floats(-30.0, 30.0), min_size=1, max_size=30),
    name=st.sampled_from(["bfloat16", "float16", "float32"]),
)
def test_error_is_within_its_bound(row, name):
    """Weights differ from those of 40-digit arithmetic by what rounding may do."""
    with mpmath.workdps(40):
        terms = [mpmath.exp(mpmath.mpf(x)) for x in row]
        total = mpmath.fsum(terms)
        exact = np.array([[float(term / total) for term in terms]])
    scores = np.array([row])
    size = np.abs(scores).max() + np.ptp(scores) + 1.0
    _, step, _, least = LIMITS[name]
    u = 0.5 * step
    lost = len(row) * least  # exponentials and weights below the smallest number
    found = weight_error(
        softmax_in(scores, NUMBER_FORMATS[name], "shifted_wide"), exact
    )

    assert found <= math.expm1(u * size) + 2.0 * u + 2.0 * lost


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("row", "overflow", "distinct", "error"),
    [
        ([0.5, 0.25, 0.25, 0.0], 0.0, 0.75, 0.0),
        ([0.25, 0.5, 0.0, 0.25], 0.0, 0.75, 0.5),
        ([0.5, 0.25, 0.0, 0.0], 0.0, 0.75, 0.125),
        ([0.25, 0.25, 0.25, 0.25], 0.0, 0.25, 0.25),
        ([0.0, 0.0, 0.0, 0.0], 1.0, 0.25, 1.0),
        ([NAN, 0.0, 0.0, 0.0], 1.0, 0.25, 1.0),
        ([INF, 0.25, 0.25, 0.0], 1.0, 0.5, 1.0),
        ([0.0, 0.0, 0.0, 1.0], 0.0, 0.5, 1.0),
        ([1.0, 1.0, 1.0, 1.0], 0.0, 0.25, 1.5),
    ],
)
def test_quantities_of_a_row(row, overflow, distinct, error):
    """Overflow, different weights and error, done by hand."""
    weights, exact = np.array([row]), np.array([[0.5, 0.25, 0.25, 0.0]])
    values = {
        name: quantity.evaluate(weights, exact).tolist()
        for name, quantity in FORMAT_QUANTITIES.items()
    }
    assert values == {
        "format_overflow": [overflow],
        "format_distinct_share": [distinct],
        "format_error": [error],
    }


def test_combinations():
    """Every format in every way, but for long sums that are emulated step by step."""
    few = {(f.name, way) for f, way in format_ways(MOST_STEPS)}
    many = {(f.name, way) for f, way in format_ways(MOST_STEPS + 1)}

    assert few == {(name, way) for name in NUMBER_FORMATS for way in SOFTMAXES}
    emulated = {one.name for one in NUMBER_FORMATS.values() if one.native is None}
    assert "bfloat16" in emulated
    assert few - many == set(product(emulated, ("naive", "shifted")))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)],
)
@pytest.mark.parametrize("size", [1.0, 8.0])
def test_eight_bits_keep_exponentials(name, kind, size):
    """As kernels do: shifted exponentials are cast, and their exact sum divides."""
    scores = size * np.random.default_rng(3).standard_normal((40, 300))
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    cast = e.astype(kind).astype(float) / e.sum(axis=1, keepdims=True)
    weights = softmax_in(scores, FLOAT8[name], FLOAT8_SOFTMAX)

    assert np.array_equal(weights, cast)


def test_a_sum_that_stands_still_makes_weights_too_large():
    """Of 2048 equal exponentials bfloat16 adds up 256: more than all is too much."""
    weights = softmax_in(np.zeros((1, 2048)), NUMBER_FORMATS["bfloat16"], "shifted")
    assert weights.sum() == 8.0


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("n_keys", [2, 2**12, 2**16])
@pytest.mark.parametrize("softmax", SOFTMAXES)
@pytest.mark.parametrize("number_format", [HALF, SINGLE, DOUBLE])
def test_errors_of_weights_lie_below_their_bound(
    number_format, softmax, n_keys, spread
):
    """Of equal scores, whose sum in float16 stands still at 2048, and of others."""
    scores = spread * np.random.default_rng(61).standard_normal((1, n_keys))
    exact = softmax_in(scores, DOUBLE, "shifted_wide")
    error = weight_error(softmax_in(scores, number_format, softmax), exact).item()
    assert error <= most_weight_error(number_format, n_keys, softmax)
    stands_still = number_format is HALF and n_keys == 2**16 and softmax == "shifted"
    if not stands_still:
        return
    assert error > 1.0
    if not spread:
        assert error == 0.5 * (2**16 / 2048 - 1)
