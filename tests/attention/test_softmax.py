"""Softmax and its gradients keep the relative precision of the scores, also where a
weight is nearly 1 and J vanishes.

Bounds.  With u = 2**-53: a gap is rounded twice by subtractions and once by the
division, so an exponential has a relative error of at most 3u|gap| + 4u (the last for
exp itself).  A sum of n positive terms adds nu.  `weight_error` is that, twice: for a
weight's numerator and denominator.  J = Σ p_i p_j (e_i - e_j)(e_i - e_j)ᵀ over pairs
i < j: a sum of positive matrices.  If each weight has a relative error of at most δ, J
lies between (1 - δ)² J and (1 + δ)² J, so its trace, norms and eigenvalues have a
relative error of at most 2δ whatever the row: the problem is well conditioned and only
a formula can spoil it.
"""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from montecarlo.attention.divisors import DIVISORS as DIVISORS_BY_NAME
from montecarlo.attention.gradients import (
    differences_to_largest,
    gradient_query,
    jacobian_frobenius,
    jacobian_frobenius_squared,
    jacobian_spectral,
    jacobian_times,
    jacobian_trace,
)
from montecarlo.attention.softmax import (
    entropy,
    inverse_participation,
    log_partition,
    measure_gaps,
    softmax_rows,
    weight_max,
)

UNIT = 2.0**-53
#: Roundings of the formulas of J themselves, in units of δ: each has fewer operations
#: on rounded sums than this, and none of them cancels.
OPERATIONS = 8.0
#: What the secular iteration of the spectral norm promises.
ITERATED = 1e-9

#: Rows whose second weight, and whose Jacobian, go from moderate to 1e-30 of the
#: largest; n from 2 to 24.
PEAKED = [
    np.roll(
        -3.5 - np.concatenate([[0.0], gap + np.linspace(0.0, 0.25 * gap + 1.0, n - 1)]),
        n // 2,
    )
    for n, gap in [
        (2, 0.0),
        (2, 69.5),
        (3, 5.0),
        (4, 14.0),
        (6, 30.0),
        (6, 37.0),
        (24, 45.0),
        (12, 58.0),
        (6, 69.5),
    ]
]
ROWS = st.sampled_from(PEAKED) | st.lists(
    st.floats(-80.0, 80.0, allow_subnormal=False), min_size=2, max_size=6
).map(np.array)
DIVISORS = st.sampled_from([1.0, math.sqrt(2.0), 8.0])

MEASURED = {
    "complement": lambda rows: rows.sums.s1 / rows.sums.z,
    "weight_max": lambda rows: weight_max(rows.sums),
    "entropy": lambda rows: entropy(rows.sums),
    "effective_keys": lambda rows: np.exp(entropy(rows.sums)),
    "inverse_participation": lambda rows: inverse_participation(rows.sums),
    "trace": lambda rows: jacobian_trace(rows.sums),
    "frobenius_squared": lambda rows: jacobian_frobenius_squared(rows.sums),
    "frobenius": lambda rows: jacobian_frobenius(rows.sums),
    "spectral": jacobian_spectral,
}
OF_WEIGHTS = list(MEASURED)[:5]


def rows_of(scores, divisor=1.0):
    """Softmax of scores as the package computes it."""
    return softmax_rows(measure_gaps(np.atleast_2d(scores)), divisor)


def product_of(rows, vector):
    """J v over the second largest weight, as the package computes it."""
    return jacobian_times(rows, differences_to_largest(vector, rows.gaps))


def query_gradient(rows, product, keys):
    """‖KᵀJv‖/divisor of rows."""
    return gradient_query(rows.sums, product, keys)


def weight_error(scores, divisor=1.0):
    """Relative error δ that double precision allows for a weight."""
    gap = np.ptp(scores) / divisor
    return 2.0 * UNIT * (3.0 * gap + 4.0 + len(scores))


def precision(name, scores, divisor=1.0):
    """Relative error that double precision allows for a quantity.

    Exponentials enter one of weights at most six times (Σp²: twice above, twice below
    the line; entropy: three times, one of them as a rounded gap).
    """
    if name in OF_WEIGHTS:
        return 3.0 * weight_error(scores, divisor)
    allowed = (2.0 + OPERATIONS) * weight_error(scores, divisor)
    if name == "frobenius_squared":
        return 2.0 * allowed
    return allowed + ITERATED if name == "spectral" else allowed


def exact_weights(scores, divisor=1.0):
    """Weights of a row; call within 60-digit arithmetic."""
    terms = [mpmath.exp(mpmath.mpf(s) / mpmath.mpf(divisor)) for s in scores]
    total = mpmath.fsum(terms)
    return [term / total for term in terms]


def exact_quantities(scores, divisor=1.0):
    """Quantities from the weights, and from J in full, in 60-digit arithmetic."""
    with mpmath.workdps(60):
        p = exact_weights(scores, divisor)
        h = -mpmath.fsum(w * mpmath.log(w) for w in p)
        jacobian = mpmath.diag(p) - mpmath.matrix(p) * mpmath.matrix(p).T
        squared = mpmath.fsum(entry**2 for entry in jacobian)
        return {
            "complement": mpmath.fsum(sorted(p)[:-1]),
            "weight_max": max(p),
            "entropy": h,
            "effective_keys": mpmath.exp(h),
            "inverse_participation": mpmath.fsum(w * w for w in p),
            "trace": mpmath.fsum(jacobian[i, i] for i in range(jacobian.rows)),
            "frobenius_squared": squared,
            "frobenius": mpmath.sqrt(squared),
            "spectral": max(mpmath.eigsy(jacobian, eigvals_only=True)),
        }


def exact_product(scores, vector, divisor=1.0):
    """J v in long arithmetic, and how far from it each entry may end.

    J v is made of differences u to the largest key's value: a term of entry i has at
    most the size p_i(|u_i| + Σ p|u|).
    """
    with mpmath.workdps(160):  # v - p·v cancels as far as a gap of 160 goes
        p, v = exact_weights(scores, divisor), [mpmath.mpf(x) for x in vector]
        mean = mpmath.fdot(p, v)
        product = [w * (x - mean) for w, x in zip(p, v, strict=True)]
        u = [abs(x - v[np.argmax(scores)]) for x in v]
        size = mpmath.fdot(p, u)
        allowed = (2.0 + OPERATIONS) * weight_error(scores, divisor)
        bound = [allowed * w * (x + size) for w, x in zip(p, u, strict=True)]
    return product, bound


def error_of(measured, exact):
    """Absolute error against a 60-digit number."""
    with mpmath.workdps(60):
        return abs(mpmath.mpf(float(measured)) - exact)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(scores=ROWS, divisor=DIVISORS)
def test_relative_precision_of_any_row(scores, divisor):
    """Each quantity keeps its relative precision, down to 1e-30, whatever the row:
    peaked, ties, near ties, any divisor.
    """
    rows, exact = rows_of(scores, divisor), exact_quantities(scores, divisor)

    for name, measure in MEASURED.items():
        error = error_of(measure(rows)[0], exact[name])
        assert error <= precision(name, scores, divisor) * exact[name], name


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
    allowed += math.log(len(scores)) * precision("complement", scores, divisor)
    assert error <= allowed


@settings(max_examples=50, deadline=None, derandomize=True)
@given(scores=ROWS, divisor=DIVISORS, seed=st.integers(0, 2**32 - 1))
def test_jacobian_times_is_precise_entry_by_entry(scores, divisor, seed):
    """Every entry of J v is right to the rounding of the terms it is a sum of."""
    vector = np.random.default_rng(seed).normal(size=(1, len(scores)))
    exact, bound = exact_product(scores, vector[0], divisor)
    rows = rows_of(scores, divisor)
    product = (product_of(rows, vector) * rows.sums.unit[:, np.newaxis])[0]

    for measured, expected, allowed in zip(product, exact, bound, strict=True):
        assert error_of(measured, expected) <= allowed


@pytest.mark.parametrize("power", [20, 60, 100, 140])
def test_norms_reach_below_the_grid_of_quantiles(power):
    """Norms of J are right far below 1e-60, where the grid of quantiles begins."""
    gap = power * math.log(10.0)
    rows = rows_of(np.array([0.0, -gap, -gap]))
    vector = np.array([[0.0, 1.0, -0.5]])
    tiny = 10.0**-power  # p of the others

    # J is, but for terms of order tiny², [[2, -1, -1], [-1, 1, 0], [-1, 0, 1]] tiny.
    close = {"rel": 1e-9, "abs": 0.0}
    assert jacobian_trace(rows.sums)[0] == pytest.approx(4.0 * tiny, **close)
    assert jacobian_frobenius(rows.sums)[0] == pytest.approx(
        math.sqrt(10) * tiny, **close
    )
    assert jacobian_spectral(rows)[0] == pytest.approx(3.0 * tiny, **close)
    product = product_of(rows, vector)
    expected = math.sqrt(0.5**2 + 1.0 + 0.5**2) * tiny
    keys = np.eye(3, dtype=np.float32)
    assert query_gradient(rows, product, keys)[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("size", [1.0, 1e295])
def test_one_hot_row(size):
    """Where every other weight is 0, so is each gradient; no overflow, no warning."""
    rows = rows_of(size * np.array([0.0, 5e4, -3e4]))
    product = product_of(rows, np.array([[1.0, -2.0, 0.5]]))

    found = {name: measure(rows)[0] for name, measure in MEASURED.items()}
    ones = {"weight_max", "effective_keys", "inverse_participation"}
    assert found == {name: float(name in ones) for name in MEASURED}
    assert query_gradient(rows, product, np.ones((3, 2), dtype=np.float32))[0] == 0.0


#: d_k, n_keys: near uniform rows, peaked ones and one-hot ones.
PLACES = [(1, 8), (16, 32), (64, 512), (1024, 32), (1024, 512), (4096, 128)]


@pytest.mark.parametrize(("d_k", "n_keys"), PLACES)
@pytest.mark.parametrize("divisor", ["none", "sqrt", "2sqrt", "linear"])
def test_float32_keeps_its_relative_precision(d_k, n_keys, divisor):
    """From float32 scores every quantity is that of float64, to float32's precision,
    also where 1 - p_max and J are as small as 1e-60.
    """
    rng = np.random.default_rng(d_k)
    scores = (math.sqrt(d_k) * rng.normal(size=(64, n_keys))).astype(np.float32)
    keys = rng.normal(size=(n_keys, 8)).astype(np.float32)
    vector = rng.normal(size=(1, n_keys)).astype(np.float32)
    single, double = (
        rows_of(x, DIVISORS_BY_NAME[divisor].value(d_k))
        for x in (scores, scores.astype(np.float64))
    )

    # three roundings of a gap of at most 17, below which terms do not count; sums
    allowed = 2.0**-24 * (4.0 * 3.0 * 17.0 + n_keys)
    for name, measure in MEASURED.items():
        assert measure(single) == pytest.approx(measure(double), rel=allowed, abs=0), (
            name
        )
    products = [product_of(single, vector), product_of(double, vector.astype(float))]
    assert products[0].dtype == np.float32
    ours, exact = (
        query_gradient(*pair, keys)
        for pair in zip((single, double), products, strict=True)
    )
    # differences of v may cancel where one other key counts
    assert np.median(np.abs(ours / exact - 1.0)) < allowed
    assert ours == pytest.approx(exact, rel=100.0 * allowed, abs=0)


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
