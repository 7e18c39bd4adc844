"""Distributions of SciPy's by name: standardised, with their moments, and no code."""

import math

import numpy as np
import pytest
import scipy.stats
from scipy.stats._distr_params import distcont

from montecarlo import grid, judge
from montecarlo.errors import InputError
from montecarlo.sampling.design_points import parse_point
from montecarlo.sampling.distributions import OF_SCIPY, parse_distribution
from montecarlo.theory.references import reference

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


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("scipy.gama(a=2)", "Did you mean 'gamma'"),
        ("scipy.poisson(mu=2)", "distribution after 'scipy.' must be one of"),
        ("scipy.stats.gamma(a=2)", "distribution must be one of"),
        ("scipy.gamma", "must have the parameters a, besides mean and std, got none"),
        ("scipy.norm(loc=2)", "must have the parameters none, besides"),
        ("scipy.gamma(a=-1)", "must have a finite variance, got a=-1"),
        ("scipy.t(df=2)", "must have a finite variance, got df=2"),
        ("scipy.gamma(a=2,a=3)", "must give each parameter once"),
        ("scipy.gamma(a=2,std=0)", "must have 1e-6 <= std <= 1e6"),
        ("scipy.gamma(a=__import__('os'))", "distribution must be one of"),
        ("scipy.__doc__", "distribution after 'scipy.' must be one of"),
    ],
)
def test_refused(typed, message):
    """What is no distribution with a variance is, in one line; nothing is executed."""
    with pytest.raises(InputError) as error:
        parse_distribution(typed)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_theory_knows_its_moments():
    """Variance and kurtosis of q·k, as of others: a Gamma has the kurtosis 3 + 6/a."""
    point = parse_point("scipy.gamma(a=2)", "scipy.gamma(a=2)", 9)
    found = reference("score_excess_kurtosis", point, "none", "value")
    assert found.value == pytest.approx((36.0 - 3.0) / 9.0, rel=1e-12)


def test_processes_draw_the_same():
    """Workers find it by its name."""
    wanted = {"d_k": [4], "n_keys": [8], "quantity": "entropy", "most": 64}
    one = grid("scipy.laplace_asymmetric(kappa=2)", **wanted)
    assert grid("scipy.laplace_asymmetric(kappa=2)", **wanted, jobs=2).equals(one)


CLAIM = """
[[claim]]
id = "skewed-too"
topic = "variance"
statement = "The variance is $d_k$, of skewed entries as well."
[[claim.interpretation]]
id = "one"
label = "It is."
[[claim.interpretation.check]]
quantity = "score_variance"
summary = "value"
relation = "equals"
expected = {expected}
tolerance = 0.05
[claim.interpretation.check.domain]
d_k = [16, 16]
distributions = ["scipy.gamma(a=2.0)", "gaussian * scipy.laplace_asymmetric(kappa=2.0)"]
"""


@pytest.mark.parametrize(("expected", "verdict"), [(16, "supported"), (18, "refuted")])
def test_a_file_names_it(expected, verdict):
    """A claim in TOML is judged for it, without a line of Python."""
    found = judge(CLAIM.format(expected=f"{expected}.0"))
    assert found["not_judged"] == []
    (claim,) = found["claims"]
    assert claim["verdict"] == verdict
    (check,) = claim["interpretations"][0]["checks"]
    assert len(check["cases"]) == 2
