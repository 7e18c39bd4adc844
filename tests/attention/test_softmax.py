"""Softmax keeps the relative precision of the scores, also where a weight is nearly 1.

Bounds.  With u = 2**-53: a gap is rounded twice by subtractions and once by the
division, so an exponential has a relative error of at most 3u|gap| + 4u (the last for
exp itself).  A sum of n positive terms adds nu.  `precision` is that, times the number
of times the exponentials enter.
"""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from montecarlo.attention.divisors import DIVISORS as DIVISORS_BY_NAME
from montecarlo.attention.softmax import (
    FAR,
    effective_keys,
    entropy,
    inverse_participation,
    log_partition,
    matching_gaps,
    matching_is_largest,
    matching_weight,
    measure_gaps,
    softmax_rows,
    weight_max,
    weights_by_rank,
)

UNIT = 2.0**-53
#: Exponentials enter a quantity at most this many times (Σp²: twice above, twice
#: below the line; entropy: three times, one of them as a rounded gap).
DEGREE = 6

#: Rows whose second weight is 1e-0 ... 1e-30 of the largest, where 1 - p_max is lost
#: to naive formulas.
PEAKED = [
    np.roll(37.25 - np.array([0.0, gap, gap + 0.375, 2.0 * gap + 1.1]), shift)
    for shift, gap in enumerate([0.0, 0.3, 4.0, 11.0, 23.0, 37.5, 52.0, 69.0])
]
ROWS = st.lists(
    st.floats(-80.0, 80.0, allow_subnormal=False), min_size=2, max_size=8
).map(np.array)
DIVISORS = st.sampled_from([1.0, math.sqrt(2.0), 8.0])


def rows_of(scores, divisor=1.0):
    """Softmax of scores as the package computes it."""
    return softmax_rows(measure_gaps(np.atleast_2d(scores)), divisor)


def exact_weights(scores, divisor=1.0):
    """Weights of a row in 60-digit arithmetic."""
    with mpmath.workdps(60):
        terms = [mpmath.exp(mpmath.mpf(s) / mpmath.mpf(divisor)) for s in scores]
        total = mpmath.fsum(terms)
        return [term / total for term in terms]


def exact_quantities(scores, divisor=1.0):
    """Quantities of a row in 60-digit arithmetic."""
    with mpmath.workdps(60):
        p = exact_weights(scores, divisor)
        h = -mpmath.fsum(w * mpmath.log(w) for w in p)
        return {
            "complement": mpmath.fsum(sorted(p)[:-1]),
            "weight_max": max(p),
            "entropy": h,
            "effective_keys": mpmath.exp(h),
            "inverse_participation": mpmath.fsum(w * w for w in p),
        }


MEASURED = {
    "complement": lambda rows: rows.sums.s1 / rows.sums.z,
    "weight_max": lambda rows: weight_max(rows.sums),
    "entropy": lambda rows: entropy(rows.sums),
    "effective_keys": lambda rows: effective_keys(rows.sums),
    "inverse_participation": lambda rows: inverse_participation(rows.sums),
}


def precision(scores, divisor=1.0):
    """Relative error that double precision allows for a row."""
    gap = np.ptp(scores) / divisor
    return DEGREE * UNIT * (3.0 * gap + 4.0 + len(scores))


def relative_error(measured, exact):
    """Relative error against a 60-digit number."""
    with mpmath.workdps(60):
        return float(abs((mpmath.mpf(float(measured)) - exact) / exact))


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("scores", PEAKED)
def test_relative_precision(scores, name):
    """Each quantity keeps its relative precision down to 1 - p_max = 1e-30."""
    measured = MEASURED[name](rows_of(scores))[0]

    assert relative_error(measured, exact_quantities(scores)[name]) <= precision(scores)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scores=ROWS, divisor=DIVISORS)
def test_relative_precision_of_any_row(scores, divisor):
    """Relative precision does not depend on the row: ties, near ties, any divisor."""
    rows, exact = rows_of(scores, divisor), exact_quantities(scores, divisor)

    for name, measure in MEASURED.items():
        error = relative_error(measure(rows)[0], exact[name])
        assert error <= precision(scores, divisor), name


@pytest.mark.parametrize("name", ["complement", "entropy"])
def test_naive_formulas_fail(name):
    """The test above can fail: textbook formulas miss its bound at a peaked row."""
    scores = PEAKED[-1]
    p = np.exp(scores - scores.max())
    p /= p.sum()
    naive = {"complement": 1.0 - p.max(), "entropy": -(p * np.log(p)).sum()}[name]

    error = relative_error(naive, exact_quantities(scores)[name])
    assert error > 1e9 * precision(scores)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scores=ROWS, divisor=DIVISORS)
def test_log_partition(scores, divisor):
    """Ln Z is right to the rounding of its two terms."""
    with mpmath.workdps(60):
        terms = [mpmath.exp(mpmath.mpf(s) / mpmath.mpf(divisor)) for s in scores]
        exact = mpmath.log(mpmath.fsum(terms))
        error = abs(log_partition(rows_of(scores, divisor).sums)[0] - exact)
    # 2u of the largest score (division, sum), the rest's precision for ln(1 + s1).
    allowed = 2.0 * UNIT * np.abs(scores).max() / divisor
    allowed += math.log(len(scores)) * precision(scores, divisor)
    assert error <= allowed


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scores=ROWS, divisor=DIVISORS)
def test_weights_by_rank(scores, divisor):
    """Weights by rank are the exact weights, sorted, and sum to 1."""
    weights = weights_by_rank(rows_of(scores, divisor))[0]
    exact = sorted(exact_weights(scores, divisor), reverse=True)

    assert abs(weights.sum() - 1.0) <= 2 * len(scores) * UNIT
    for weight, expected in zip(weights, exact, strict=True):
        assert relative_error(weight, expected) <= precision(scores, divisor)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scores=ROWS, shift=st.integers(-(2**20), 2**20), seed=st.integers(0, 999))
def test_order_and_shift_do_not_matter(scores, shift, seed):
    """Shuffling the keys or adding a constant to the scores changes no quantity."""
    scores = np.round(scores * 2.0**20) / 2.0**20  # so that the shift is exact
    moved = np.random.default_rng(seed).permutation(scores) + shift

    for name, measure in MEASURED.items():
        before, after = measure(rows_of(scores))[0], measure(rows_of(moved))[0]
        assert abs(after - before) <= 2 * precision(scores) * abs(before), name


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scores=ROWS, divisor=DIVISORS)
def test_bounds(scores, divisor):
    """Entropy, effective keys, Σp² and the largest weight stay within their bounds."""
    rows, n = rows_of(scores, divisor), len(scores)
    slack = 1.0 + precision(scores, divisor)

    assert 0.0 <= entropy(rows.sums)[0] <= math.log(n) * slack
    assert 1.0 <= effective_keys(rows.sums)[0] <= n * slack
    assert 1.0 / (n * slack) <= inverse_participation(rows.sums)[0] <= slack
    assert 1.0 / (n * slack) <= weight_max(rows.sums)[0] <= 1.0


@pytest.mark.parametrize("n", [2, 3, 7, 64, 1000])
def test_uniform_row(n):
    """Equal scores give n equal weights, whatever the score is."""
    rows = rows_of(np.full(n, -12.5))

    assert weight_max(rows.sums)[0] == 1.0 / n
    assert weights_by_rank(rows)[0] == pytest.approx(np.full(n, 1.0 / n), rel=2 * UNIT)
    assert entropy(rows.sums)[0] == pytest.approx(math.log(n), rel=4 * UNIT)
    assert inverse_participation(rows.sums)[0] == pytest.approx(1.0 / n, rel=8 * UNIT)


@pytest.mark.parametrize("size", [2e3, 1e5, 1e300])
def test_huge_scores(size):
    """Huge scores give a one-hot row: no overflow, no warning, no NaN."""
    rows = rows_of(size * np.array([0.5, 1.0, -1.0, 0.25]))

    assert weight_max(rows.sums)[0] == 1.0
    assert entropy(rows.sums)[0] == 0.0
    assert effective_keys(rows.sums)[0] == 1.0
    assert log_partition(rows.sums)[0] == size
    assert weights_by_rank(rows)[0].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_huge_scores_overflow_without_the_split():
    """The test above can fail: plain exponentials of its scores overflow."""
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        np.exp(2e3 * np.array([0.5, 1.0, -1.0, 0.25]))


def test_leading_axes_are_rows_of_their_own():
    """Rows do not see each other: an array of rows gives what each row gives alone."""
    scores = np.random.default_rng(4).normal(scale=9.0, size=(3, 5, 7))
    together = rows_of(scores)

    log = lambda rows: log_partition(rows.sums)  # noqa: E731
    for measure in (*MEASURED.values(), log, weights_by_rank):
        alone = [[measure(rows_of(row))[0] for row in block] for block in scores]
        assert np.array_equal(measure(together), np.array(alone))


def test_gaps_locate_the_largest():
    """Gaps are measured from the second largest score, which is below the largest by
    the second gap; the largest is too far away to count.
    """
    scores = np.array([[1.5, 4.0, 4.0], [2.0, -1.0, 0.5]])
    gaps = measure_gaps(scores)

    assert gaps.largest.tolist() == [4.0, 2.0]
    assert gaps.where.tolist() == [1, 0]
    assert gaps.second.tolist() == [0.0, -1.5]
    assert gaps.rest.tolist() == [[-2.5, FAR, 0.0], [FAR, -1.5, 0.0]]
    assert gaps.variance == pytest.approx(scores.var(axis=-1, ddof=1), rel=1e-15)


def test_scores_stay_as_they_were():
    """Splitting the largest off leaves the scores that came in untouched."""
    scores = np.array([[1.5, 4.0, 4.0], [2.0, -1.0, 0.5]])
    before = scores.copy()
    measure_gaps(scores)

    assert np.array_equal(scores, before)


#: d_k, n_keys: near uniform rows, peaked ones and one-hot ones.
PLACES = [(1, 8), (16, 32), (64, 512), (1024, 32), (1024, 512), (4096, 128)]


@pytest.mark.parametrize(("d_k", "n_keys"), PLACES)
@pytest.mark.parametrize("divisor", DIVISORS_BY_NAME)
def test_float32_keeps_its_relative_precision(d_k, n_keys, divisor):
    """From float32 scores every quantity is that of float64, to float32's precision,
    also where 1 - p_max is as small as 1e-60.
    """
    rng = np.random.default_rng(d_k)
    scores = (math.sqrt(d_k) * rng.normal(size=(256, n_keys))).astype(np.float32)
    value = DIVISORS_BY_NAME[divisor].value(d_k)
    single, double = (
        softmax_rows(measure_gaps(x), value) for x in (scores, scores.astype(float))
    )

    # A gap is rounded three times, in units that are 1e-7 of it, and terms of a gap
    # beyond 17 are below float32's last place of their sum.
    allowed = 2.0**-24 * (4.0 * 3.0 * 17.0 + n_keys)
    for name, measure in MEASURED.items():
        assert measure(single) == pytest.approx(measure(double), rel=allowed, abs=0.0)
        assert measure(single).dtype == np.float64, name
    assert single.e.dtype == np.float32
    assert single.gaps.variance == pytest.approx(double.gaps.variance, rel=allowed)


@pytest.mark.parametrize("spread", [1.0, 8.0, 64.0])
def test_no_power_of_an_exponential_is_subnormal(spread):
    """In float32 what is too small for its sum is 0, so that no cube is slow; nothing
    that counts is lost.
    """
    rng = np.random.default_rng(3)
    scores = (spread * rng.normal(size=(64, 512))).astype(np.float32)
    rows = softmax_rows(measure_gaps(scores), 1.0)
    exact = softmax_rows(measure_gaps(scores.astype(float)), 1.0)

    cubes = rows.e.astype(float) ** 3
    assert ((cubes == 0.0) | (cubes >= np.finfo(np.float32).tiny)).all()
    # three roundings of a gap g, each 2**-24 of it, of an exponential: g exp(-g) < 0.4
    assert np.abs(rows.e - exact.e).max() <= 2.0**-24 * (3.0 * 0.4 + 4.0)


def test_what_is_negligible_does_not_depend_on_other_rows():
    """A row's exponentials are the same bytes alone and beside rows that reach far,
    also where they are about as small as those that are left out.
    """
    far = np.array([[0.0, 0.0, -500.0]], dtype=np.float32)
    for gap in np.linspace(-31.0, -28.0, 301):
        row = np.array([[0.0, 0.0, gap]], dtype=np.float32)
        alone = softmax_rows(measure_gaps(row), 1.0)
        beside = softmax_rows(measure_gaps(np.concatenate([row, far])), 1.0)
        assert np.array_equal(beside.e[:1], alone.e)


def test_float32_needs_the_second_largest():
    """The test above can fail: exponentials below the largest underflow in float32."""
    scores = np.array([[0.0, -120.0, -121.0]], dtype=np.float32)
    sums = softmax_rows(measure_gaps(scores), 1.0).sums

    expected = math.exp(-120.0) + math.exp(-121.0)
    assert sums.s1 == pytest.approx(expected, rel=1e-6, abs=0.0)
    assert np.exp(scores).sum() == 1.0
    assert np.exp(scores)[0, 1] == 0.0


def test_matching_weights_are_those_of_the_own_key():
    """Query i's weight of key i is on the diagonal of the weights, also if largest."""
    scores = np.random.default_rng(6).normal(scale=2.0, size=(2, 5, 7))
    scores[0, 1, 1] = 9.0
    rows = rows_of(scores, 1.5)
    p = np.exp(scores / 1.5)
    p /= p.sum(axis=-1, keepdims=True)

    own = matching_weight(rows.sums, matching_gaps(scores, rows.gaps))
    assert own == pytest.approx(np.diagonal(p, axis1=1, axis2=2), rel=1e-13)
    assert matching_is_largest(rows.gaps.where)[0, 1] == 1.0
