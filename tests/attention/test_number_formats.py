"""Number formats: rounding bit by bit, sums that stop growing, overflow, errors.

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
    FLOAT8,
    FLOAT8_SOFTMAX,
    MOST_STEPS,
    NUMBER_FORMATS,
    SOFTMAXES,
    combinations,
    most_weight_error,
    overflows,
    rising_order,
    softmax_in,
    weight_error,
    weight_lost,
)
from montecarlo.attention.quantities import FORMAT_QUANTITIES, FormatRows

HALF, BRAIN, SINGLE, DOUBLE = (
    NUMBER_FORMATS[name] for name in ("float16", "bfloat16", "float32", "float64")
)
#: Half the distance of 1 from the next number, and the smallest number above 0.
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
TINY = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149}
#: Every bfloat16 number of either sign, in the order of its pattern.
PATTERNS = np.arange(2**16, dtype=np.uint32)
with np.errstate(invalid="ignore"):  # some NaNs signal
    BRAIN_NUMBERS = (PATTERNS << np.uint32(16)).view(np.float32).astype(np.float64)
    HALF_NUMBERS = PATTERNS.astype(np.uint16).view(np.float16).astype(np.float64)


@pytest.mark.parametrize(
    ("number_format", "numbers"),
    [(BRAIN, BRAIN_NUMBERS), (HALF, HALF_NUMBERS)],
    ids=["bfloat16", "float16"],
)
def test_numbers_of_the_format_stay(number_format, numbers):
    """All 2**16 numbers of a format, infinities and NaNs too, round to themselves."""
    assert np.array_equal(number_format.round(numbers), numbers, equal_nan=True)
    signs = np.signbit(number_format.round(np.array([0.0, -0.0])))
    assert signs.tolist() == [False, True]


@pytest.mark.parametrize("sign", [0, 2**15])
@pytest.mark.parametrize(
    ("number_format", "numbers", "infinite", "largest"),
    [
        (BRAIN, BRAIN_NUMBERS, 0x7F80, 2.0**128),
        (HALF, HALF_NUMBERS, 0x7C00, 2.0**16),
    ],
    ids=["bfloat16", "float16"],
)
def test_between_neighbours(number_format, numbers, infinite, largest, sign):
    """The nearer one, the even one at a tie; beyond the largest, infinity."""
    below = numbers[sign : sign + infinite]
    above = numbers[sign + 1 : sign + infinite + 1].copy()
    place = np.where(np.isinf(above), np.copysign(largest, above), above)
    step, middle = place - below, 0.5 * (below + place)
    even = np.arange(infinite) % 2 == 0

    tie = np.where(even, below, above)
    assert np.array_equal(number_format.round(middle), tie)
    assert np.array_equal(number_format.round(middle - step / 64.0), below)
    assert np.array_equal(number_format.round(middle + step / 64.0), above)


def test_bfloat16_is_rounded_once():
    """What lies above a tie by less than float32 sees is rounded up all the same."""
    assert BRAIN.round(np.array([1.0 + 2.0**-8 + 2.0**-30])) == [1.0 + 2.0**-7]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(allow_nan=True, allow_infinity=True))
def test_native_formats_are_numpys(value):
    """float16, float32 and float64 are rounded as NumPy rounds them."""
    values = np.array([value])
    for number_format in (HALF, SINGLE, DOUBLE):
        with np.errstate(all="ignore"):
            expected = values.astype(number_format.native).astype(np.float64)
        found = number_format.round(values)
        assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("number_format", NUMBER_FORMATS.values(), ids=NUMBER_FORMATS)
def test_logarithm_of_the_largest_number(number_format):
    """An exponential is finite up to `log_largest`, and infinite a little beyond."""
    limit = number_format.log_largest
    with np.errstate(over="ignore"):
        inside, outside = np.exp(np.array([limit - 1e-9, limit + 0.01]))

    assert np.isfinite(number_format.round(np.array([inside]))).all()
    assert np.isinf(number_format.round(np.array([outside]))).all()


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


@pytest.mark.parametrize("name", NUMBER_FORMATS)
def test_wide_sums_do_not(name):
    """Added up in float64 the sum is right, and so is it in the longer formats."""
    for softmax in ("naive_wide", "shifted_wide"):
        weights = softmax_in(np.zeros((1, MOST_STEPS)), NUMBER_FORMATS[name], softmax)
        assert set(weights.ravel().tolist()) == {1.0 / MOST_STEPS}
    if name in ("float32", "float64"):
        weights = softmax_in(np.zeros((1, MOST_STEPS)), NUMBER_FORMATS[name], "naive")
        assert set(weights.ravel().tolist()) == {1.0 / MOST_STEPS}


@pytest.mark.parametrize("number_format", NUMBER_FORMATS.values(), ids=NUMBER_FORMATS)
def test_overflowing_exponential(number_format):
    """One score beyond the range is enough without the shift, and nothing with it."""
    for score in (number_format.log_largest + 1.0, number_format.log_largest - 1.0):
        scores = np.array([[0.0, score, 1.0], [0.0, 1.0, 2.0]])
        beyond = float(score > number_format.log_largest)
        for softmax in SOFTMAXES:
            lost = overflows(softmax_in(scores, number_format, softmax))
            naive = softmax.startswith("naive")
            assert lost.tolist() == [beyond if naive else 0.0, 0.0]


def test_overflowing_sum():
    """Exponentials that fit may have a sum that does not: all weights are 0."""
    scores = np.full((1, 8), 11.0)  # exp 11 = 59874 fits float16, twice it does not
    for softmax in ("naive", "naive_wide"):
        weights = softmax_in(scores, HALF, softmax)
        assert (weights == 0.0).all()
        assert overflows(weights) == 1.0
        assert overflows(softmax_in(scores, BRAIN, softmax)) == 0.0
    assert overflows(softmax_in(scores, HALF, "shifted")) == 0.0


def test_long_rows_overflow_a_wide_float16_sum():
    """65,520 equal terms do; in the format they stop before."""
    for n_keys, lost in ((65_519, 0.0), (65_520, 1.0)):
        scores = np.zeros((1, n_keys))
        assert overflows(softmax_in(scores, HALF, "shifted_wide")) == lost
        assert overflows(softmax_in(scores, HALF, "shifted")) == 0.0


SCORES = st.lists(st.floats(-6e4, 6e4), min_size=1, max_size=40).map(
    lambda row: np.array([row])
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(scores=SCORES)
def test_shifted_never_overflows(scores):
    """With the largest score subtracted nothing overflows, and weights are shares."""
    for number_format in NUMBER_FORMATS.values():
        for softmax in ("shifted", "shifted_wide"):
            weights = softmax_in(scores, number_format, softmax)
            assert overflows(weights) == 0.0
            assert weights.min() >= 0.0
            assert weights.max() <= 1.0
            assert np.array_equal(number_format.round(weights), weights)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    row=st.lists(st.floats(-30.0, 30.0), min_size=1, max_size=30),
    name=st.sampled_from(sorted(UNIT)),
)
def test_error_is_within_its_bound(row, name):
    """Weights differ from those of 40-digit arithmetic by what rounding may do."""
    with mpmath.workdps(40):
        terms = [mpmath.exp(mpmath.mpf(x)) for x in row]
        total = mpmath.fsum(terms)
        exact = np.array([[float(term / total) for term in terms]])
    scores = np.array([row])
    size = np.abs(scores).max() + np.ptp(scores) + 1.0
    u = UNIT[name]
    lost = len(row) * TINY[name]  # exponentials and weights below the smallest number
    found = weight_error(
        softmax_in(scores, NUMBER_FORMATS[name], "shifted_wide"), exact
    )

    assert found <= math.expm1(u * size) + 2.0 * u + 2.0 * lost


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("row", "overflow", "zero", "distinct", "error", "lost"),
    [
        ([0.5, 0.25, 0.25, 0.0], 0.0, 0.25, 0.75, 0.0, 0.0),
        ([0.5, 0.25, 0.0, 0.0], 0.0, 0.5, 0.75, 0.125, 0.25),
        ([0.25, 0.25, 0.25, 0.25], 0.0, 0.0, 0.25, 0.25, 0.0),
        ([0.0, 0.0, 0.0, 0.0], 1.0, 1.0, 0.25, 1.0, 1.0),
        ([NAN, 0.0, 0.0, 0.0], 1.0, 0.75, 0.25, 1.0, 1.0),
        ([INF, 0.25, 0.25, 0.0], 1.0, 0.25, 0.5, 1.0, 1.0),
        ([0.0, 0.0, 0.0, 1.0], 0.0, 0.75, 0.5, 1.0, 0.0),
        ([1.0, 1.0, 1.0, 1.0], 0.0, 0.0, 0.25, 1.5, -3.0),
    ],
)
def test_quantities_of_a_row(row, overflow, zero, distinct, error, lost):  # noqa: PLR0917 - each by hand
    """Overflow, zeros, different weights, error and lost weight, done by hand."""
    weights, exact = np.array([row]), np.array([[0.5, 0.25, 0.25, 0.0]])
    scores = np.array([[0.0, -7e4, 1.0, 2.0]])
    order = rising_order(np.where(np.isfinite(weights), weights, 0.0))
    rows = FormatRows(weights, exact, scores, order, HALF)
    values = {
        name: quantity.evaluate(rows).tolist()
        for name, quantity in FORMAT_QUANTITIES.items()
    }
    assert values == {
        "format_overflow": [overflow],
        "format_zero_share": [zero],
        "format_distinct_share": [distinct],
        "format_error": [error],
        "format_weight_lost": [lost],
        "format_score_overflow": [1.0],
    }


@pytest.mark.parametrize(
    ("score", "lost"), [(65519.9, 0.0), (-65520.0, 1.0), (65520.0, 1.0)]
)
def test_a_score_overflows_where_it_is_rounded_to_infinity(score, lost):
    """Half a step beyond the largest number, on either side."""
    none = np.zeros((1, 2))
    scores = np.array([[0.0, score]])
    rows = FormatRows(none, none, scores, rising_order(scores), HALF)
    assert FORMAT_QUANTITIES["format_score_overflow"].evaluate(rows) == [lost]


def test_combinations():
    """Every format in every way, but for long sums that are emulated step by step."""
    few = {(f.name, way) for f, way in combinations(MOST_STEPS)}
    many = {(f.name, way) for f, way in combinations(MOST_STEPS + 1)}

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
    assert weight_lost(weights) == pytest.approx(1.0 - cast.sum(axis=1), abs=1e-12)


def test_a_sum_that_stands_still_makes_weights_too_large():
    """Of 2048 equal exponentials bfloat16 adds up 256: more than all is too much."""
    weights = softmax_in(np.zeros((1, 2048)), NUMBER_FORMATS["bfloat16"], "shifted")
    (lost,) = weight_lost(weights)
    assert lost == -7.0
    assert FORMAT_QUANTITIES["format_weight_lost"].within[0] <= lost


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
