"""Distributions have the moments they declare, and draws follow the distributions.

A declared moment is compared with the integral of SciPy's density.  Draws are compared
with SciPy's density function by the Dvoretzky-Kiefer-Wolfowitz bound, which holds
for every distribution and n: P(sup|F_n - F| > ε) ≤ 2 exp(-2nε²).  Where the eighth
moment exists and is tame, mean and variance are tested by normal theory as well, which
is sharper.

FALSE_ALARM is the rate of one check; there are fewer than 120, so this file fails by
chance less than once in 10⁵ seeds.
"""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from montecarlo.sampling.distributions import (
    DISTRIBUTIONS,
    parse_distribution,
)

FALSE_ALARM = 1e-7
N_DRAWS = 1_000_000
#: Two-sided normal quantile of FALSE_ALARM: 5.33.
Z_LIMIT = float(-scipy.stats.norm.ppf(FALSE_ALARM / 2.0))
#: The largest distance of density functions that chance may make.
DISTANCE_LIMIT = math.sqrt(math.log(2.0 / FALSE_ALARM) / (2.0 * N_DRAWS))
#: A variance that is off by this factor must be seen.
PLANTED_VARIANCE = 1.1

STANDARD = {
    "gaussian": scipy.stats.norm(),
    "uniform": scipy.stats.uniform(-math.sqrt(3.0), 2.0 * math.sqrt(3.0)),
    "laplace": scipy.stats.laplace(scale=math.sqrt(0.5)),
    "logistic": scipy.stats.logistic(scale=math.sqrt(3.0) / math.pi),
    "student_t10": scipy.stats.t(10, scale=math.sqrt(0.8)),
    "student_t5": scipy.stats.t(5, scale=math.sqrt(0.6)),
    "student_t3": scipy.stats.t(3, scale=math.sqrt(1.0 / 3.0)),
}
#: The farthest entry there is, from the least and the largest uniform, by inverting the
#: distribution function: 24 bits, 53 of the logistic, 32 and a half of Student's t.
FARTHEST = {
    "gaussian": math.sqrt(2.0 * 24.0 * math.log(2.0)),
    "uniform": math.sqrt(3.0),
    "laplace": 24.0 * math.log(2.0) / math.sqrt(2.0),
    "rademacher": 1.0,
    "logistic": 54.0 * math.log(2.0) * math.sqrt(3.0) / math.pi,
    **{
        f"student_t{nu}": math.sqrt((nu - 2.0) * math.expm1(66.0 / nu * math.log(2.0)))
        for nu in (10, 5, 3)
    },
}


@pytest.fixture(scope="module")
def draws():
    """A million draws of each distribution."""
    return {
        name: distribution.sample(np.random.default_rng((31, i)), (N_DRAWS,)).astype(
            np.float64
        )
        for i, (name, distribution) in enumerate(DISTRIBUTIONS.items())
    }


def integral(density, function):
    """Expectation of a function by quadrature."""
    low, high = density.support()
    halves = ((low, 0.0), (0.0, high))
    return sum(
        scipy.integrate.quad(
            lambda x: function(x) * density.pdf(x), *half, epsabs=0, epsrel=1e-10
        )[0]
        for half in halves
    )


def distance(sample, density):
    """Largest distance between a sample's density function and the distribution's."""
    return scipy.stats.ks_1samp(sample, density.cdf, mode="asymp").statistic


def z_score(sample, expected, variance):
    """Distance of a sample mean from its expectation, in exact standard errors."""
    return (sample.mean() - expected) / math.sqrt(variance / len(sample))


def test_every_distribution_is_tested():
    """A new distribution needs a density to be held against."""
    assert set(DISTRIBUTIONS) == {*STANDARD, "rademacher"}


@pytest.mark.parametrize("name", STANDARD)
def test_declared_moments(name):
    """Mean 0, variance 1 and kurtosis are those of the density."""
    distribution, density = DISTRIBUTIONS[name], STANDARD[name]

    assert integral(density, lambda x: x**2) == pytest.approx(1.0, rel=1e-7)
    assert density.pdf(0.3) == pytest.approx(density.pdf(-0.3))  # so mean 0
    if distribution.moments > 4.0:
        fourth = integral(density, lambda x: x**4)
        assert distribution.kurtosis == pytest.approx(fourth, rel=1e-6)
    else:
        assert not math.isfinite(density.moment(4))


@pytest.mark.parametrize("name", STANDARD)
def test_declared_highest_moment(name):
    """The highest finite moment is given by the power with which a density falls."""
    distribution, density = DISTRIBUTIONS[name], STANDARD[name]

    if math.isinf(distribution.moments):
        assert density.pdf(1e4) == 0.0
    else:  # density ~ x^-(1 + moments)
        fall = density.logpdf(1e4) - density.logpdf(1e5)
        assert fall / math.log(10.0) - 1.0 == pytest.approx(
            distribution.moments, rel=1e-3
        )


@pytest.mark.parametrize("name", STANDARD)
def test_draws_follow_the_distribution(draws, name):
    """The draws' density function is the distribution's, to what chance may do."""
    assert distance(draws[name], STANDARD[name]) < DISTANCE_LIMIT


@pytest.mark.parametrize("name", STANDARD)
def test_planted_variance_is_seen(draws, name):
    """The test of draws can fail: with a variance of 1.1 it does."""
    planted = draws[name] * math.sqrt(PLANTED_VARIANCE)

    assert distance(planted, STANDARD[name]) > DISTANCE_LIMIT


def standard_t(freedom):
    """Student's t of variance 1."""
    return scipy.stats.t(freedom, scale=math.sqrt((freedom - 2.0) / freedom))


def standard_power(shape):
    """The distribution of density exp(-|x|**shape), of variance 1."""
    scale = math.exp(0.5 * (math.lgamma(1.0 / shape) - math.lgamma(3.0 / shape)))
    return scipy.stats.gennorm(shape, scale=scale)


#: Distributions of variance 1 that are nearly those of the table.
NEIGHBOURS = [
    ("gaussian", standard_power(1.95)),
    ("gaussian", standard_power(2.05)),
    ("gaussian", standard_t(100)),
    ("laplace", standard_power(0.98)),
    ("laplace", standard_power(1.02)),
    ("logistic", standard_t(9)),
    ("student_t10", standard_t(9)),
    ("student_t10", standard_t(11)),
    ("student_t5", standard_t(4.5)),
    ("student_t5", standard_t(5.5)),
    ("student_t3", standard_t(2.9)),
    ("student_t3", standard_t(3.1)),
]


def moments_of_ratio(ratio, density):
    """Mean and standard error of a ratio over as many draws of a density."""
    x, step = np.linspace(-60.0, 60.0, 240_001, retstep=True)
    density, values = np.exp(density.logpdf(x)), ratio(x)
    mean = (density * values).sum() * step
    square = (density * values**2).sum() * step
    return mean, math.sqrt((square - mean**2) / N_DRAWS)


@pytest.mark.parametrize(("name", "neighbour"), NEIGHBOURS)
def test_draws_are_not_those_of_a_neighbour(draws, name, neighbour):
    """The likelihood ratio, the sharpest test there is of one distribution against
    another, speaks for the distribution as much as it should; draws of the neighbour
    would not.
    """

    def ratio(x):
        return STANDARD[name].logpdf(x) - neighbour.logpdf(x)

    mean, error = moments_of_ratio(ratio, STANDARD[name])
    least = mean - Z_LIMIT * error
    assert ratio(draws[name]).mean() > least
    mean, error = moments_of_ratio(ratio, neighbour)
    assert mean + 4.0 * error < least


def test_rademacher(draws):
    """Rademacher draws are 1 or -1, each half of the time."""
    sample = draws["rademacher"]

    assert set(np.unique(sample)) == {-1.0, 1.0}
    assert abs(z_score(sample, 0.0, 1.0)) < Z_LIMIT


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_neighbours_are_uncorrelated(draws, name):
    """Draws next to each other, and half the array apart, do not know each other.

    Half the array apart are the two values of one Box-Muller pair.  Signs and ranks
    around the middle are bounded, so that the normal limit holds for every
    distribution.
    """
    half = N_DRAWS // 2
    sign = np.sign(draws[name])
    size = np.sign(np.abs(draws[name]) - np.median(np.abs(draws[name])))
    for values in (sign, size):
        for one, other in ((values[:half], values[half:]), (values[:-1], values[1:])):
            assert abs(z_score(one * other, 0.0, 1.0)) < Z_LIMIT


class ExtremeUniforms:
    """A stand-in for a Generator whose uniforms are all the same extreme one."""

    def __init__(self, largest):
        self.largest = largest

    def random(self, size, dtype=np.float64):
        """Return 0, or the largest uniform below 1 that NumPy draws in this type."""
        below_one = 1.0 - (2.0**-24 if dtype == np.float32 else 2.0**-53)
        return np.full(size, below_one if self.largest else 0.0, dtype=dtype)

    @property
    def bit_generator(self):
        """Itself, for words from which uniforms are made."""
        return self

    def random_raw(self, size):
        """Return words of 64 zeros, or of 64 ones."""
        return np.full(size, 2**64 - 1 if self.largest else 0, dtype=np.uint64)


@pytest.mark.parametrize("name", FARTHEST)
def test_no_tail_is_cut_short(name):
    """The least and the largest uniform that can be drawn give the farthest entry."""
    draw = DISTRIBUTIONS[name].draw
    drawn = np.array([draw(ExtremeUniforms(large), (4,)) for large in (False, True)])

    assert np.abs(drawn).max() == pytest.approx(FARTHEST[name], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", STANDARD)
def test_moments_of_many_draws(name):
    """Of ten million entries half are positive, one in 10,000 lies beyond its quantile,
    and mean powers of the size are exact: those of which the fourth moment is finite,
    so that none hangs on a few entries.  A spread off by a hundredth is seen.
    """
    n_draws, distribution = 10**7, DISTRIBUTIONS[name]
    powers = [r for r in (0.5, 1, 2, 4) if 4 * r < distribution.moments]
    tail = 1e-4
    far = STANDARD[name].isf(0.5 * tail)
    sums, rng = np.zeros(2 + len(powers)), np.random.default_rng(35)
    for _ in range(10):
        x = distribution.draw(rng, (n_draws // 10,)).astype(np.float64)
        size = np.abs(x)
        sums += [
            (x > 0.0).sum(),
            (size > far).sum(),
            *((size**r).sum() for r in powers),
        ]
    exact = [(0.5, 0.25), (tail, tail * (1.0 - tail))]
    means = [integral(STANDARD[name], lambda x, r=r: abs(x) ** r) for r in powers]
    for r, mean in zip(powers, means, strict=True):
        square = integral(STANDARD[name], lambda x, r=r: abs(x) ** (2 * r))
        exact.append((mean, square - mean**2))
    for found, (mean, variance) in zip(sums / n_draws, exact, strict=True):
        error = math.sqrt(variance / n_draws)
        assert abs(found - mean) < Z_LIMIT * error
    wrong = 1.01 ** powers[-1] * sums[-1] / n_draws
    assert abs(wrong - means[-1]) > Z_LIMIT * error


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_shifted_and_rescaled_distribution(name):
    """``(mean=a,std=b)`` is a + b times it, from the same draws."""
    distribution = parse_distribution(f"{name}(mean=0.5,std=2.0)")
    drawn, base = (
        which.sample(np.random.default_rng(34), (1000,))
        for which in (distribution, DISTRIBUTIONS[name])
    )

    assert drawn.dtype == np.float32
    assert drawn == pytest.approx(0.5 + 2.0 * base, rel=1e-6, abs=1e-6)
    assert (distribution.mean, distribution.std) == (0.5, 2.0)
    assert (distribution.kurtosis, distribution.moments) == (
        DISTRIBUTIONS[name].kurtosis,
        DISTRIBUTIONS[name].moments,
    )


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("gaussian", "gaussian"),
        ("gaussian(std=1)", "gaussian"),
        ("gaussian(mean=0,std=1.0)", "gaussian"),
        ("gaussian(mean=-0.0)", "gaussian"),
        ("gaussian(std=2)", "gaussian(std=2.0)"),
        ("gaussian( std = 2, mean = 0.5 )", "gaussian(mean=0.5,std=2.0)"),
        ("gaussian(std=2.0,mean=0.5)", "gaussian(mean=0.5,std=2.0)"),
        ("student_t5(mean=-1e-3)", "student_t5(mean=-0.001)"),
        ("laplace(std=1e5)", "laplace(std=100000.0)"),
    ],
)
def test_canonical_names(written, canonical):
    """Parameters are sorted, defaults dropped, floats written as ``repr`` does."""
    assert parse_distribution(written).name == canonical
