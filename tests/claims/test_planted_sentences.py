"""Sentences that pages once said, and that were false: none of them can be said now.

Each is bound to the check that it asserts, as a finding of a claim of its own, and
judged on a small study.  It must be refused because a place is decided against it, by
the sample or by theory, and not for want of replicates; the true sentences beside it
must be said.  Unless theory knows the value, everything is at least fourteen standard
errors from the nearest bound, at an error rate of one in a million.

Some of them are no checks: "a half is negative" (no quantity counts signs), "less than
half" of what is 9 % (true, if little; so is "more than a tenth", which is taken here as
it is heard: between one tenth and two), and "for every distribution" where two have too
few moments: a check of these alone is never said, and among others they are not judged,
which is why findings speak of the cases judged.  A range that was seen at its ends
alone is the matter of `tests/claims/test_own_ranges.py`.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from montecarlo.claims.checks import Check, Domain, Level
from montecarlo.claims.running import Study, run_study
from montecarlo.claims.schema import Catalogue, Claim, Interpretation, Sentence
from montecarlo.study.presets import Block, Grid

FUSED = "init(kind=xavier_uniform,norm=layer,shape=fused,width=512)"
HE = "init(kind=he_normal,norm=layer,shape=full,width=512)"
EIGHTH = "gaussian(std=4.0) * gaussian(std=2.0)"


def at(d_k, n_keys=128, distributions=("gaussian",), **more):
    """Return a domain of Gaussian entries; one size, or a range of them."""
    ranges = [(x, x) if isinstance(x, int) else x for x in (d_k, n_keys)]
    return Domain(*ranges, distributions=distributions, **more)


def share(quantity, low, high, domain, **more):
    """Return a check of a mean between two numbers."""
    more = {"divisor": "none", "low": low, "high": high} | more
    return Check(quantity, "between", domain=domain, **more)


def most(quantity, high, domain, **more):
    """Return a check of a mean that is at most a number."""
    more = {"divisor": "none"} | more
    return Check(quantity, "at_most", high=high, domain=domain, **more)


def equals(quantity, expected, domain, **more):
    """Return a check of a value, to 5 % if no tolerance is given."""
    more = {"divisor": "none", "domain": domain, "tolerance": 0.05} | more
    return Check(quantity, "equals", expected=expected, **more)


def limit(quantity, to):
    """Return a check of what becomes of a mean as d_k grows."""
    domain = at((16, 1024))
    return Check(quantity, "tends_to", divisor="none", to=to, domain=domain)


OVERFLOW = {"number_format": "float16", "softmax": "naive"}
SINGLE = OVERFLOW | {"number_format": "float32"}
SHORT = {"number_format": "bfloat16", "divisor": "linear"}
SCALED = {"summary": "value", "divisor": "sqrt"}
ONE_PERCENT = 0.01
TENTH = Level(0.1, 0.0, 1.0)
#: What was said, where it was said, and the check that it asserts.
PLANTED = {
    "1: no mean goes to 0, of the trace": limit("jacobian_trace", "constant"),
    "1: no mean goes to 0, of ‖J‖_F": limit("jacobian_frobenius", "constant"),
    "1: no mean goes to 0, of ‖J‖_2": limit("jacobian_spectral", "constant"),
    "1: the query's mean square goes to 0 too": limit("gradient_query_squared", "zero"),
    "1: the query's mean goes to 0": limit("gradient_query", "zero"),
    "2: attention does not freeze in the mean": most("weight_max", 0.9, at(1024)),
    "3: the Jacobian cannot be ten times": most(
        "jacobian_frobenius", 10.0, at(64, (128, 16384)), divisor="none/sqrt"
    ),
    "4: only eight values for all keys": most(
        "format_distinct_share", 8 / 128, at(1024), softmax="shifted_wide", **SHORT
    ),
    "5: one row in a hundred, where it is all of them": share(
        "format_overflow", 0.005, 0.05, at(1024), **OVERFLOW
    ),
    "5: more than a tenth, where it is two thirds": share(
        "saturated", 0.1, 0.2, at(256)
    ),
    "6: half precision fails from 64 on only": most(
        "format_overflow", ONE_PERCENT, at(16), **OVERFLOW
    ),
    "6: half precision does not overflow": most(
        "format_overflow", ONE_PERCENT, at(64), **OVERFLOW
    ),
    "6: nor do scores of hundreds in single precision": most(
        "format_overflow", ONE_PERCENT, at(4096), **SINGLE
    ),
    "7: relative precision is kept": most(
        "format_error", 0.0065, at(1024), softmax="shifted", **SHORT
    ),
    "8: the same number of keys at every dimension": equals(
        "effective_keys", 79.1, at((1, 1024)), divisor="sqrt", tolerance=0.02
    ),
    "8: at most the root of n everywhere": most(
        "effective_keys", Level(1.0, 0.0, 0.5), at((8, 1024))
    ),
    "8: an eighth of the root leaves a tenth of the keys at most": most(
        "effective_keys", TENTH, at(64, 8, distributions=(EIGHTH,)), divisor="sqrt"
    ),
    "9: the trace falls like the root of 2 ln n": equals(
        "jacobian_trace", math.sqrt(2.0 * math.log(128) / 1024), at(1024)
    ),
    "10: a planted key's weight falls with d_k, divided by it": Check(
        "planted_weight",
        "slope_between",
        divisor="linear",
        high=-0.1,
        domain=at((64, 1024), dependence=("planted(0.5)",)),
    ),
    "10: scaled scores have variance 1 at the start of training": equals(
        "score_variance", 1.0, at(64, initialisation=(FUSED, HE)), **SCALED
    ),
}
#: What is so, as a control: the study has the power to say something.
TRUE = {
    "means of the Jacobian go to 0": limit("jacobian_trace", "zero"),
    "the query's mean tends to a constant": limit("gradient_query", "constant"),
    "rows freeze in the mean": Check(
        "weight_max", "at_least", divisor="none", low=0.9, domain=at(1024)
    ),
    "it is ten times in long rows": Check(
        "jacobian_frobenius",
        "at_least",
        divisor="none/sqrt",
        low=10.0,
        domain=at(64, 16384),
    ),
    "two thirds of the rows": share("saturated", 0.5, 0.75, at(256)),
    "more than a tenth of eight keys": Check(
        "effective_keys",
        "at_least",
        divisor="sqrt",
        low=TENTH,
        domain=at(64, 8, distributions=(EIGHTH,)),
    ),
    "a fifth as many values as keys": share(
        "format_distinct_share", 0.1, 0.3, at(1024), softmax="shifted_wide", **SHORT
    ),
    "a quarter of the variance": equals(
        "score_variance", 0.25, at(64, initialisation=(FUSED,)), **SCALED
    ),
}
GRID = Grid(
    d_k=(),
    n_keys=(),
    distributions=(),
    first=64,
    most=64,
    first_large=32,
    most_large=32,
    blocks=(
        Block((16, 64, 256, 1024), (128,), pairs=False, formats=True),
        Block((4096,), (128,), pairs=False, formats=True, replicates=8),
        Block((1, 8), (128,), pairs=False),
        Block((64,), (16384,), pairs=False, replicates=16),
        Block(
            (64,),
            (8,),
            distribution_q="gaussian(std=4.0)",
            distribution_k="gaussian(std=2.0)",
        ),
        Block((64, 256, 1024), (128,), pairs=False, dependence="planted(0.5)"),
        Block((64,), initialisation=FUSED),
        Block((64,), initialisation=HE),
    ),
)


@pytest.fixture(scope="module")
def said():
    """What a small study says of each sentence, by its name."""
    anything = Interpretation(
        "r", (Check("score_mean", "at_least", "value", low=-1e30),)
    )
    sentences = {**PLANTED, **TRUE}
    claims = tuple(
        Claim(
            f"c{number}",
            "gradients",
            "s",
            (),
            (Sentence("x", check=(check,)),),
            (anything,),
        )
        for number, check in enumerate(sentences.values())
    )
    study = Study(Catalogue(claim=claims), GRID, 1, 1e-6, whole_grid=False)
    with ThreadPoolExecutor(1) as executor:
        judged = run_study(study, executor).claims.claims
    found = [claim.findings[0] for claim in judged]
    return dict(zip(sentences, found, strict=True))


def outside(case):
    """Tell whether the exact value of a case lies outside its region."""
    low, high = case.region
    return case.exact is not None and not low <= case.exact <= high


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_false_is_refused(said, name):
    """It is not said, since a place is decided against it, or theory is against it."""
    assert said[name].holds is False
    cases = said[name].checks[0].cases
    against = [case.outcome == "refuted" or outside(case) for case in cases]
    assert any(against)


@pytest.mark.parametrize("name", TRUE)
def test_what_is_so_is_said(said, name):
    """The same study says what is true: it is not silent about everything."""
    assert said[name].holds is True
