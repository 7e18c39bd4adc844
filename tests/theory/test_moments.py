"""Closed forms of q·k against enumeration and quadrature."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special

from montecarlo.sampling.distributions import DISTRIBUTIONS, parse_distribution
from montecarlo.theory import moments

#: Relative; enumeration and closed form differ by rounding only.
CLOSE = 1e-12


def enumerate_scores(name_q: str, name_k: str, d_k: int):
    """All pairs of q and k of two-valued distributions, each equally likely."""
    ends = [
        (distribution.mean - distribution.std, distribution.mean + distribution.std)
        for distribution in (parse_distribution(name_q), parse_distribution(name_k))
    ]
    q, k = (np.array(list(itertools.product(e, repeat=d_k))) for e in ends)
    return q @ k.T


@pytest.mark.parametrize("d_k", [1, 2, 5])
@pytest.mark.parametrize(
    ("name_q", "name_k"),
    [
        ("rademacher", "rademacher"),
        ("rademacher(mean=0.5)", "rademacher(std=2.0)"),
        ("rademacher(mean=0.5,std=3.0)", "rademacher(mean=-1.5,std=0.25)"),
    ],
)
def test_means_and_variances_equal_those_of_all_pairs(name_q, name_k, d_k):
    """Mean and both variances are those of the enumerated scores."""
    scores = enumerate_scores(name_q, name_k, d_k)
    distributions = parse_distribution(name_q), parse_distribution(name_k)
    mean = scores.mean()
    spread = scores.var(axis=1).mean()
    assert math.isclose(moments.score_mean(*distributions, d_k), mean, abs_tol=CLOSE)
    variance = moments.score_variance(*distributions, d_k)
    assert math.isclose(variance, scores.var(), rel_tol=CLOSE)
    assert math.isclose(
        moments.score_row_variance(*distributions, d_k), spread, rel_tol=CLOSE
    )
    entries = math.prod(distribution.std**2 for distribution in distributions)
    assert math.isclose(
        moments.score_variance_ratio(*distributions),
        variance / (d_k * entries),
        rel_tol=CLOSE,
    )


@pytest.mark.parametrize("d_k", [1, 2, 3, 6])
def test_rademacher_scores_have_the_enumerated_kurtosis_and_size(d_k):
    """Excess kurtosis and E|q·k| are those of the enumerated scores."""
    scores = enumerate_scores("rademacher", "rademacher", d_k)
    distribution = DISTRIBUTIONS["rademacher"]
    kurtosis = (scores**4).mean() / (scores**2).mean() ** 2 - 3.0
    found = moments.score_excess_kurtosis(distribution, distribution, d_k)
    assert math.isclose(found, kurtosis, rel_tol=CLOSE)
    found = moments.score_abs(distribution, distribution, d_k)
    assert math.isclose(found, np.abs(scores).mean(), rel_tol=CLOSE)


@pytest.mark.parametrize("d_k", [1, 2, 3, 8, 31])
def test_gaussian_scores_have_the_size_and_kurtosis_of_the_variance_gamma_distribution(
    d_k,
):
    """E|q·k| and the excess kurtosis agree with quadrature of the density
    x^((d-1)/2) K_((d-1)/2)(x)/(sqrt(pi) 2^((d-1)/2) Γ(d/2)) of |x| (theory.md 6.1).
    """
    order = (d_k - 1) / 2
    log_norm = math.lgamma(d_k / 2) + order * math.log(2.0) + 0.5 * math.log(math.pi)

    def moment(power: int) -> float:
        def integrand(x: float) -> float:
            size = math.exp((order + power) * math.log(x) - x - log_norm)
            return 2.0 * size * float(special.kve(order, x))

        return integrate.quad(integrand, 0.0, np.inf, epsabs=0, epsrel=1e-11)[0]

    distribution = DISTRIBUTIONS["gaussian"]
    assert math.isclose(
        moments.score_abs(distribution, distribution, d_k), moment(1), rel_tol=1e-8
    )
    kurtosis = moment(4) / moment(2) ** 2 - 3.0
    found = moments.score_excess_kurtosis(distribution, distribution, d_k)
    assert math.isclose(found, kurtosis, rel_tol=1e-6)


def test_what_has_no_closed_form_is_none():
    """Infinite kurtosis, means other than 0 and other distributions give None."""
    gaussian, shifted = (
        DISTRIBUTIONS["gaussian"],
        parse_distribution("gaussian(mean=1.0)"),
    )
    assert (
        moments.score_excess_kurtosis(DISTRIBUTIONS["student_t3"], gaussian, 4) is None
    )
    assert moments.score_excess_kurtosis(gaussian, shifted, 4) is None
    assert moments.score_abs(gaussian, shifted, 4) is None
    assert moments.score_abs(gaussian, DISTRIBUTIONS["uniform"], 4) is None


@pytest.mark.parametrize("turned", [1, -1])
def test_size_of_a_score_does_not_care_which_side_is_rademacher(turned):
    """q·k of one Gaussian and one Rademacher vector is N(0, d) either way."""
    sides = DISTRIBUTIONS["gaussian"], parse_distribution("rademacher(std=2.0)")
    expected = 2.0 * math.sqrt(2.0 * 7 / math.pi)
    found = moments.score_abs(*sides[::turned], 7)
    assert math.isclose(found, expected, rel_tol=CLOSE)
