"""Ranges of a user's claims are looked at over the whole of them, on no grid as well.

What `judge` finds is held against every point of a denser grid, sampled alone at
another seed and joined by hand.
"""

import math
import re
from itertools import pairwise, product

import msgspec
import numpy as np
import pytest

from montecarlo.claims import own_claims
from montecarlo.claims.catalogue import parse_catalogue
from montecarlo.claims.own_claims import fill_range, fitting_grid, study_of_claims
from montecarlo.claims.running import Study, points_of_study, run_study
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.study.executors import make_executor
from montecarlo.study.measurement import measure
from montecarlo.study.presets import PRESETS

#: Budgets of these tests.  Where a verdict is conditional there are points ten standard
#: errors beyond the region's end on either side, else all are.
FIRST, MOST = 32, 128
#: Standard errors beyond which a point of the dense grid is decided.
CLEAR = 6.0

FROBENIUS = {"quantity": "jacobian_frobenius", "divisor": "none"}
#: Check, ranges of d_k and n (none: pairs), and whether ends alone mislead.
CASES = {
    "hump-in-d-k": (
        {**FROBENIUS, "relation": "at_most", "high": 0.15},
        *((1, 1024), (100, 100), True),
    ),
    "hump-in-n": (
        {**FROBENIUS, "relation": "at_most", "high": 0.26},
        *((11, 11), (3, 3001), True),
    ),
    "slope": (
        {"quantity": "weight_max", "divisor": "none"}
        | {"relation": "slope_between", "low": 0.2},
        *((3, 101), (45, 45), False),
    ),
    "two-ranges": (
        {**FROBENIUS, "relation": "at_least", "low": 0.03},
        *((3, 61), (45, 111), False),
    ),
    "wrong-throughout": (
        {"quantity": "jacobian_trace", "divisor": "sqrt"}
        | {"relation": "at_most", "high": 0.3},
        *((33, 130), (45, 450), False),
    ),
    "pairs": (
        {"quantity": "score_variance", "summary": "value", "divisor": "none"}
        | {"relation": "equals"}
        | {"expected": {"times": 1.0, "d_k_power": 1.0}, "tolerance": 0.05},
        *((3, 301), None, False),
    ),
}


def claim(check, name="mine", **domain):
    """Return a claim of one check."""
    interpretation = {"id": "r", "check": [{**check, "domain": domain}]}
    words = {"topic": "gradients", "statement": "So it is.", "source": []}
    return {"id": name, **words, "interpretation": [interpretation]}


def catalogue_of(*claims):
    """Return a user's catalogue."""
    return parse_catalogue({"claim": list(claims)}, "claims.toml", own=True)


def catalogue_for(case):
    """Return a catalogue of one case."""
    check, d_k, n_keys, _ = CASES[case]
    domain = {"d_k": list(d_k), "distributions": ["gaussian"]}
    domain |= {"n_keys": list(n_keys)} if n_keys else {}
    return catalogue_of(claim(check, **domain))


def judged(catalogue):
    """Judge a catalogue with small budgets; returns how its interpretation came out."""
    budgets = {"first": FIRST, "most": MOST, "first_large": 16, "most_large": 64}
    quick = msgspec.structs.replace(PRESETS["quick"], **budgets)
    study = Study(catalogue, fitting_grid(catalogue, quick), whole_grid=False)
    with make_executor(1) as executor:
        return run_study(study, executor).claims.claims[0].interpretations[0]


def dense(low, high):
    """Return sizes from one end to the other, each at most 1.6 times the one before."""
    count = 1 + math.ceil(math.log(high / low) / math.log(1.6))
    return sorted({round(size) for size in np.geomspace(low, high, count)})


def verdict_of_points(case):
    """Sample every point of a dense grid alone, and join them by hand."""
    check, d_k, n_keys, _ = CASES[case]
    named = {k: check[k] for k in ("quantity", "divisor", "summary") if k in check}
    points = [(d, n) for n in dense(*n_keys or (1, 1)) for d in dense(*d_k)]
    replicates = max(16, 400 // len(points))
    named |= {"seed": 77, "first": replicates, "most": replicates}
    found = {
        (d, n): measure(d_k=d, n_keys=n if n_keys else None, **named) for d, n in points
    }
    if check["relation"] == "slope_between":
        sizes, values = np.log([[d, p.estimate] for (d, _), p in found.items()]).T
        return "holds" if np.polyfit(sizes, values, 1)[0] > check["low"] else "no"
    outcomes = set()
    for (d, _), point in found.items():
        low, high = check.get("low", -math.inf), check.get("high", math.inf)
        if check["relation"] == "equals":
            low, high = d * (1.0 - check["tolerance"]), d * (1.0 + check["tolerance"])
        inside = min(point.estimate - low, high - point.estimate)
        if abs(inside) > CLEAR * point.std_error:
            outcomes.add("supported" if inside > 0.0 else "refuted")
    return "fails" if "refuted" in outcomes else "holds"


#: These take seconds.
DEAR = {"hump-in-n", "two-ranges", "wrong-throughout"}
RANGED = [pytest.param(x, marks=[pytest.mark.slow] * (x in DEAR)) for x in CASES]


@pytest.mark.parametrize("case", RANGED)
def test_verdict_is_that_of_a_dense_grid(case):
    """Sizes that no grid has, odd ones: the verdict is that of all points together."""
    assert judged(catalogue_for(case)).verdict == verdict_of_points(case)


@pytest.mark.parametrize("case", [name for name in CASES if CASES[name][-1]])
def test_ends_alone_would_mislead(case, monkeypatch):
    """Planted: a judge that looks at the ends only is found out by these cases."""
    monkeypatch.setattr(own_claims, "fill_range", lambda low, high: (low, high))
    assert judged(catalogue_for(case)).verdict != verdict_of_points(case)


# --- Which places ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high"), [(1, 1024), (100, 1000), (65, 127), (3, 5), (2, 2**20), (64, 128)]
)
def test_range_has_both_ends_and_places_between(low, high):
    """No two neighbours are farther apart than a factor of two, and some lie inside."""
    sizes = fill_range(low, high)
    assert (sizes[0], sizes[-1]) == (low, high)
    assert sizes[1:-1]
    assert all(a < b <= 2 * a for a, b in pairwise(sizes))
    assert len(sizes) <= 3 + math.log2(high / low)


def places_of(catalogue, preset="quick"):
    """Return what cases are of: distribution, d_k and n."""
    points = points_of_study(study_of_claims(catalogue, preset=preset))
    return {(c.distribution_k.name, c.d_k, c.n_keys) for c in points}


@pytest.mark.parametrize("relation", ["at_most", "slope_between"])
@pytest.mark.parametrize("n_keys", [(128, 128), (100, 1000)])
def test_every_distribution_has_places_over_both_ranges(relation, n_keys):
    """Where none is named, each of the table; a preset has the budgets alone."""
    check = {**FROBENIUS, "relation": relation, "high": 0.15}
    catalogue = catalogue_of(claim(check, d_k=[3, 1000], n_keys=list(n_keys)))
    every = set(product(DISTRIBUTIONS, fill_range(3, 1000), fill_range(*n_keys)))
    assert places_of(catalogue, "quick") == places_of(catalogue, "full") == every


def test_what_is_of_gaussian_keys_is_looked_at_there():
    """A domain that names no distribution has those that the quantity is of."""
    check = {"quantity": "entropy_identity", "relation": "at_most", "high": 0.1}
    found = places_of(catalogue_of(claim(check, d_k=[16, 16], n_keys=[8, 8])))
    assert found == {("gaussian", 16, 8)}


def test_series_reach_the_ends_whatever_others_ask_for():
    """What another claim samples inside a range does not make a shorter series."""
    check = {**FROBENIUS, "relation": "slope_between", "high": 0.0}
    other = {**FROBENIUS, "relation": "at_most", "high": 0.5}
    catalogue = catalogue_of(
        claim(check, "a", d_k=[3, 1000], n_keys=[100, 1000]),
        claim(other, "b", d_k=[40, 50], n_keys=[777, 777], distributions=["laplace"]),
    )
    found = places_of(catalogue)
    series = {(distribution, n) for distribution, _, n in found}
    assert ("laplace", 777) in series
    for distribution, n in series:
        sizes = {d for other, d, m in found if (other, m) == (distribution, n)}
        assert {3, 1000} <= sizes, (distribution, n)


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ({"d_k": [1, 2**24]}, "Expected `int` <= 1048576, at `interpretation[0].check"),
        ({"n_keys": [1, 64]}, "Expected `int` >= 2, at `interpretation[0].check"),
        ({"n_keys": [8, 2**21]}, "check[0].domain.n_keys[1]"),
        ({"dependence": ["pairs(0.5)"]}, "domain: dependence pairs(rho) must have no"),
    ],
)
def test_what_cannot_be_sampled_is_refused(domain, message):
    """In one line: claim, field, requirement, what came."""
    check = {**FROBENIUS, "relation": "at_most", "high": 0.15}
    ranges = {"d_k": [16, 64], "n_keys": [16, 64]} | domain
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        study_of_claims(catalogue_of(claim(check, **ranges)))
    assert "claim 'mine'" in str(caught.value)
