"""Exact values of normalised queries and keys: quadrature, algebra and simulation."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import integrate, special

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.distributions import OWN, distribution
from montecarlo.study.measurement import measure
from montecarlo.theory import cosine_scores
from montecarlo.theory.cosine_scores import expect_cosines, expected_largest_cosine
from montecarlo.theory.normalised import NORMALISED
from montecarlo.theory.references import reference
from montecarlo.theory.row_integrals import ROW_NAMES
from tests.theory.test_references import FAR, standardised_gaps
from tests.theory.thirty_digits_of_cosines import NAMES, by_powers, leading_weight

with Path(__file__).with_name("cosine_rows.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
#: What a value is promised to be good to, relatively; printed digits are to 1e-14.
PROMISED, DIGITS = 1e-9, 1e-14


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(list(row.values())[:3]))
def test_thirty_points_in_thirty_digits(row):
    """Each within what is promised, and within the error that is told with it."""
    found = expect_cosines(int(row["d_k"]), int(row["n_keys"]), float(row["scale"]))
    told = dict(
        zip(ROW_NAMES, zip(found.values, found.errors, strict=True), strict=True)
    )
    for name in NAMES:
        expected, (value, error) = float(row[name]), told[name]
        assert abs(value - expected) <= PROMISED * expected, name
        assert abs(value - expected) <= error + DIGITS * expected, name
    trace, participation = told["jacobian_trace"], told["inverse_participation"]
    assert trace[0] == pytest.approx(1.0 - participation[0], rel=1e-11)


def test_there_are_thirty():
    """None was dropped."""
    assert len(ROWS) == 30


@pytest.mark.slow
@pytest.mark.parametrize("place", [(8, 64, 10), (64, 128, 8)])
def test_printed_digits_are_those_of_the_quadrature(place):
    """The quadrature, walked again, gives what is printed."""
    (row,) = (
        row
        for row in ROWS
        if tuple(float(row[x]) for x in ("d_k", "n_keys", "scale")) == place
    )
    with mpmath.workdps(30):
        found = by_powers(*place[:2], mpmath.mpf(place[2]))
        found["weight_max"] = leading_weight(*place[:2], place[2])
    for name, value in found.items():
        assert float(value) == pytest.approx(float(row[name]), rel=1e-13)


@pytest.mark.parametrize("d_k", [2, 3, 4, 7, 64, 1000])
def test_one_cosine(d_k):
    """Moments, distribution and the largest of three, by an adaptive quadrature."""
    power = 0.5 * (d_k - 3)

    def mean(function, low=-1.0, high=1.0):
        if d_k == 2:  # singular at both ends: over the angle
            return integrate.quad(
                lambda a: function(math.sin(a)) / math.pi,
                math.asin(low),
                math.asin(high),
                epsabs=1e-13,
            )[0]
        mass = special.beta(0.5 * (d_k - 1), 0.5)
        edge = min(1.0, 12.0 / math.sqrt(d_k))
        return integrate.quad(
            lambda x: function(x) * (1.0 - x * x) ** power / mass,
            max(low, -edge),
            min(high, edge),
            epsabs=1e-13,
        )[0]

    assert cosine_scores.cosine_abs(d_k) == pytest.approx(mean(abs), rel=1e-8)
    fourth = mean(lambda x: x**4) / mean(lambda x: x**2) ** 2
    found = cosine_scores.cosine_excess_kurtosis(d_k)
    assert found == pytest.approx(fourth - 3.0, abs=1e-8)
    below = mean(lambda x: 1.0, high=0.5 / math.sqrt(d_k))
    gap = below - 0.5 * math.erfc(-0.5 / math.sqrt(2.0))
    assert cosine_scores.cosine_gap(0.5, d_k) == pytest.approx(gap, abs=1e-8)
    largest = mean(lambda x: 3.0 * x * cosine_scores.cosine_distribution(x, d_k) ** 2)
    assert expected_largest_cosine(d_k, 3).value == pytest.approx(largest, abs=1e-8)


POINTS = (
    parse_point("gaussian", "gaussian", 1, 4, normalisation="l2(gain=2)"),
    parse_point("gaussian", "gaussian", 2, 16, normalisation="l2(gain=10)"),
    parse_point("gaussian(std=3.0)", "gaussian", 5, 33, normalisation="rms"),
    parse_point("laplace(mean=1.0)", "gaussian", 16, 32, normalisation="rms(gain=2)"),
    parse_point("rademacher", "rademacher", 3, 16, normalisation="l2(gain=4)"),
)


@pytest.mark.parametrize("point", POINTS, ids=lambda c: c.name)
def test_simulation_agrees(point):
    """Means lie within noise of references; not of those for twice the keys, or
    another gain.
    """
    divisors = ("none", "sqrt", "linear")
    gaps = standardised_gaps(point, divisors)
    assert {name for _, name in gaps} >= {*ROW_NAMES, "element_gradient"}
    assert max(map(abs, gaps.values())) <= FAR
    wrong = standardised_gaps(point, divisors, 2 * point.n_keys)
    assert max(map(abs, wrong.values())) > 3.0 * FAR


def test_another_gain_is_told_apart():
    """References of a gain of 1.1 are far from what a gain of 1 gives."""
    names = {"quantity": "entropy", "divisor": "sqrt", "first": 256, "most": 256}
    one = measure("gaussian", "gaussian", 16, 64, normalisation="rms", **names)
    other = measure(
        "gaussian", "gaussian", 16, 64, normalisation="rms(gain=1.1)", **names
    )
    assert abs(one.estimate - one.reference) < FAR * one.std_error
    assert abs(one.estimate - other.reference) > 10 * FAR * one.std_error


def known(point):
    """Names of what has a reference."""
    return {
        name
        for name in QUANTITIES
        for summary in ("mean", "value")
        if reference(name, point, "sqrt", summary) is not None
    }


#: What follows from symmetric entries alone.
SECOND = {
    "score_mean",
    "score_variance",
    "score_std",
    "score_variance_ratio",
}


def test_what_is_known():
    """All of Gaussian entries; of others what symmetry gives; of the rest nothing."""
    rows = {*ROW_NAMES, "element_gradient", "score_max", "score_row_variance"}
    whole = parse_point("gaussian", "gaussian", 16, 8, normalisation="l2")
    pairs = replace(whole, n_keys=None)
    of_pairs = {*SECOND, "score_excess_kurtosis", "score_abs", "score_distribution_gap"}
    assert known(whole) >= rows
    assert known(pairs) == of_pairs
    assert {*rows, *of_pairs} == set(NORMALISED)
    for q, k, expected in (
        ("uniform", "student_t3", SECOND),
        ("uniform(mean=1.0)", "laplace", SECOND - {"score_variance_ratio"}),
        ("uniform(mean=1.0)", "laplace(mean=1.0)", set()),
        ("laplace", "gaussian", of_pairs),
        ("rademacher", "rademacher", of_pairs - {"score_distribution_gap"}),
    ):
        assert known(parse_point(q, k, 16, normalisation="rms")) == expected, (q, k)
    assert not known(
        parse_point("gaussian", "gaussian", 16, None, "pairs(0.5)", "", "rms")
    )


def test_nothing_is_known_of_ones_own():
    """It need not be symmetric: of an exponential the cosine has another variance."""
    one = distribution(
        "exponential_here",
        np.random.Generator.standard_exponential,
        mean=1.0,
        kurtosis=9.0,
    )
    try:
        assert not known(parse_point(one.name, one.name, 16, normalisation="l2"))
    finally:
        del OWN[one.name]


def test_the_scale_cancels():
    """Entries of another spread are normalised alike; l2 with gain d_k is rms."""
    of = {
        (q, name): reference(
            "entropy",
            parse_point(q, "gaussian", 16, 8, normalisation=name),
            "sqrt",
            "mean",
        ).value
        for q in ("gaussian", "gaussian(std=4.0)")
        for name in ("rms", "l2(gain=16)")
    }
    assert len(set(of.values())) == 1
