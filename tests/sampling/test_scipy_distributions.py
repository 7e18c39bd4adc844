"""Distributions of SciPy's by name: standardised, with their moments, and no code."""

import math

import numpy as np
import pytest
import scipy.stats
from scipy.stats._distr_params import distcont

from montecarlo.sampling.distributions import OF_SCIPY, parse_distribution

#: Parameters that SciPy's own tests use, by name; others for those of heavy tails,
#: which have no fourth moment there.
USED = {name: values for name, values in distcont if isinstance(name, str)}
HEAVY = {
    "f": (5.0, 14.0),
    "fisk": (9.0,),
    "genpareto": (0.1,),
    "invgamma": (9.0,),
    "lomax": (9.0,),
    "nct": (14.0, 0.25),
    "pareto": (9.0,),
    "t": (9.0,),
}


def named(name):
    """The name with parameters in the order of their names."""
    shapes = (getattr(scipy.stats, name).shapes or "").replace(",", " ").split()
    values = HEAVY.get(name, USED[name])
    given = sorted(zip(shapes, map(float, values), strict=True))
    told = ",".join(f"{key}={value!r}" for key, value in given)
    return f"scipy.{name}({told})" if told else f"scipy.{name}"


@pytest.mark.parametrize("name", OF_SCIPY)
def test_each_is_standardised(name):
    """Draws have mean 0, variance 1 and, of light tails, the kurtosis that it has."""
    one = parse_distribution(named(name))
    assert one.name == named(name)
    drawn = one.sample(np.random.default_rng(7), (512, 512)).astype(np.float64)
    assert abs(drawn.mean()) < 7.0 / 512
    error = math.sqrt((one.kurtosis - 1.0) / drawn.size)
    assert abs((drawn**2).mean() - 1.0) < 7.0 * error
    assert one.moments > 4.0
    if one.kurtosis < 20.0:
        blocks = (drawn**4).mean(axis=1)
        error = blocks.std(ddof=1) / math.sqrt(len(blocks))
        assert abs(blocks.mean() - one.kurtosis) < 8.0 * error


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_tails_have_the_moments_that_are_said(name):
    """The tail falls like a power: of the order that is said, at probabilities 1e-9 and
    1e-12.
    """
    family, values = getattr(scipy.stats, name), HEAVY[name]
    ends = family.isf(1e-9, *values), family.isf(1e-12, *values)
    order = math.log(1e3) / math.log(ends[1] / ends[0])
    assert parse_distribution(named(name)).moments == pytest.approx(order, rel=0.15)


def test_lists_are_the_same():
    """Those of heavy tails are tested as such."""
    light = {name for name in OF_SCIPY if parse_distribution(named(name)).moments > 99}
    assert set(OF_SCIPY) - light == set(HEAVY)


def test_names_are_canonical():
    """Parameters sorted, then mean and standard deviation; blanks do not matter."""
    one = parse_distribution("scipy.beta( b=3, std=2, a=0.5 )")
    assert one.name == "scipy.beta(a=0.5,b=3.0,std=2.0)"
    assert (one.family, one.std) == ("scipy.beta(a=0.5,b=3.0)", 2.0)
    assert parse_distribution(one.name) == one
    assert parse_distribution("scipy.t(df=3)").kurtosis == math.inf
