"""The table of references: what it covers, and that it agrees with simulation."""

import dataclasses
import math
from functools import cache

import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.design_points import parse_point
from montecarlo.theory import largest_weight_share
from montecarlo.theory.references import (
    REFERENCES,
    Reference,
    reference,
)
from montecarlo.theory.row_integrals import ROW_NAMES
from tests.samples import every_column, sample_all, summarise

#: Standard errors of a mean of 150 replicates: Student's t with 149 degrees of freedom
#: is beyond 6.5 with probability 1e-9, and about 150 numbers are looked at: 2e-7.
FAR = 6.5
REPLICATES = 150


def standardised_gaps(point, divisors, n_keys=None):
    """Simulated mean minus reference in standard errors, by divisor and quantity;
    with ``n_keys`` the reference is one for another number of keys.
    """
    batch = sample_all(point, 11, 0, REPLICATES, divisors)
    other = dataclasses.replace(point, n_keys=n_keys or point.n_keys)
    gaps = {}
    columns = every_column(point, divisors).means
    for column, (divisor, name) in zip(batch.means.T, columns, strict=True):
        exact = reference(name, other, divisor, "mean")
        if exact is not None:
            error = column.std(ddof=1) / math.sqrt(REPLICATES)
            if name.startswith("saturated"):
                rows = REPLICATES * point.shape[0]
                share = exact.value
                if not 32 <= share * rows <= rows - 32:
                    continue  # few rows are not normal
                error = max(error, math.sqrt(share * (1.0 - share) / rows))
            # Below 1e-6 of the value float32 draws have no say.
            error = math.hypot(error, exact.error, 1e-6 * exact.value)
            gaps[divisor, name] = (column.mean() - exact.value) / error
    return gaps


POINTS = (
    parse_point("gaussian", "gaussian", 1, 16),
    parse_point("gaussian", "gaussian", 64, 16),
    parse_point("gaussian(std=2.0)", "gaussian(mean=1.0)", 4, 16),
    parse_point("rademacher", "gaussian", 16, 32),
    parse_point("rademacher", "rademacher", 3, 16),
)


@pytest.mark.parametrize("point", POINTS, ids=lambda c: c.name)
def test_simulation_agrees(point):
    """Means lie within noise of references; not of those for twice the keys."""
    divisors = ("none", "sqrt", "linear")
    gaps = standardised_gaps(point, divisors)
    assert {name for _, name in gaps} >= {*ROW_NAMES, "element_gradient"}
    gaussian_keys = point.distribution_k.name == "gaussian"
    assert (("sqrt", "score_max") in gaps) is gaussian_keys
    assert max(map(abs, gaps.values())) <= FAR
    wrong = standardised_gaps(point, divisors, 2 * point.n_keys)
    assert max(map(abs, wrong.values())) > 3.0 * FAR


#: Each divisor of the program a second time.
DEFINITIONS = {
    "none": lambda d_k: 1.0,
    "sqrt": math.sqrt,
    "2sqrt": lambda d_k: math.sqrt(4 * d_k),
    "linear": float,
}


@pytest.mark.parametrize("d_k", [1, 3, 64, 4096])
def test_divisors_are_the_definitions(d_k):
    """Each divisor of the program has its number here, found independently."""
    assert set(DEFINITIONS) == set(DIVISORS)
    for name, value in DEFINITIONS.items():
        assert math.isclose(DIVISORS[name].value(d_k), value(d_k), rel_tol=1e-15)


@pytest.mark.parametrize(
    ("name", "least"),
    [("saturated", 0.9), ("saturated_99", 0.99), ("saturated_999", 0.999)],
)
def test_saturated_rows_are_those_of_their_threshold(name, least):
    """Three names stand for three weights."""
    point = parse_point("gaussian", "gaussian", 64, 16)
    share = largest_weight_share(least, 16, d_k=64, divisor="none")
    assert reference(name, point, "none", "mean").value == share.value


def test_rows_depend_on_the_product_of_the_spreads():
    """N(0, 4) queries with N(0, 1/4) keys are the same as standard ones."""
    rescaled = parse_point("gaussian(std=2.0)", "gaussian(std=0.5)", 8, 32)
    standard = parse_point("gaussian", "gaussian", 8, 32)
    for name in ROW_NAMES:
        found = reference(name, rescaled, "sqrt", "mean")
        assert found == reference(name, standard, "sqrt", "mean")


@pytest.mark.parametrize(
    ("distribution_q", "distribution_k", "n_keys", "divisor", "summary"),
    [
        ("gaussian", "gaussian", 9, "sqrt", "median"),
        ("gaussian", "gaussian", None, "sqrt", "mean"),
        ("uniform", "gaussian", 8, "sqrt", "mean"),
        ("gaussian", "rademacher", 8, "sqrt", "mean"),
        ("gaussian(mean=1.0)", "gaussian", 8, "sqrt", "mean"),
        ("rademacher(mean=1.0)", "rademacher", 8, "sqrt", "mean"),
        ("gaussian(std=1000000.0)", "gaussian", 8, "sqrt", "mean"),
        ("gaussian", "gaussian", 2**22, "sqrt", "mean"),
    ],
)
def test_no_row_reference_where_none_is_known(
    distribution_q, distribution_k, n_keys, divisor, summary
):
    """Other distributions, quantiles beyond the table, and pairs."""
    point = parse_point(distribution_q, distribution_k, 4, n_keys)
    for name in ROW_NAMES:
        assert reference(name, point, divisor, summary) is None


def test_a_ratio_is_that_of_two_expectations():
    """The variance by two divisors, by hand; rows, by their own references."""
    point = parse_point("gaussian", "gaussian", 16, 8)
    found = reference("score_row_variance", point, "none/sqrt", "mean")
    assert math.isclose(found.value, 16.0, rel_tol=1e-14)
    over, under = (
        reference("jacobian_trace", point, one, "mean") for one in ("13.5", "ln(n)")
    )
    found = reference("jacobian_trace", point, "13.5/ln(n)", "mean")
    assert math.isclose(found.value, over.value / under.value, rel_tol=1e-14)
    both = (over.error + found.value * under.error) / under.value
    assert found.error >= both * (1.0 - 1e-12)
    identity = reference("entropy_identity", point, "none/sqrt", "mean")
    assert identity is None  # 0 over 0


INITIALISATION = "init(kind=he_normal,norm=layer,shape=full,width=32)"
#: Pairs of independent entries, of matching ones, and behind a projection.
PAIRS = (
    parse_point("gaussian", "gaussian", 2),
    parse_point("gaussian(std=2.0)", "gaussian(std=0.5)", 16),
    parse_point("gaussian", "gaussian", 16, None, "pairs(1.0)"),
    parse_point("gaussian(std=2.0)", "gaussian(std=2.0)", 4, None, "pairs(0.5)"),
    parse_point("laplace", "laplace", 16, None, "pairs(0.25)"),
    parse_point("rademacher", "rademacher", 16, None, "pairs(0.5)"),
    parse_point("gaussian", "gaussian", 16, None, "none", INITIALISATION),
)


@cache
def summaries_of(point):
    """Estimates of a point, sampled once."""
    divisors = ("none", "sqrt")
    batch = sample_all(point, 12, 0, REPLICATES, divisors)
    return summarise(point, batch, divisors)


def gap_to(point, quantity, scale=1.0):
    """Distance of an estimate of pairs from a multiple of its reference, in errors."""
    found = summaries_of(point).estimate(RowKey("none", quantity, "value"))
    exact = reference(quantity, point, "none", "value")
    if exact is None:
        return None
    return (found.value - scale * exact.value) / math.hypot(
        found.std_error, exact.error, 1e-6 * exact.value
    )


@pytest.mark.parametrize("point", PAIRS, ids=lambda c: c.name)
def test_simulated_pairs_agree(point):
    """With dependence and projections; a variance a third larger does not."""
    gaps = {
        name: gap
        for name in ("entry_variance_q", "entry_variance_k", "score_variance")
        if (gap := gap_to(point, name)) is not None
    }
    assert set(gaps) >= {"entry_variance_q", "score_variance"}
    assert max(map(abs, gaps.values())) <= FAR, gaps
    assert abs(gap_to(point, "score_variance", 4.0 / 3.0)) > FAR


@pytest.mark.parametrize(
    "point",
    [
        parse_point("gaussian", "gaussian", 16, 32, "planted(0.5)"),
        parse_point("gaussian", "gaussian", 16, 32, "none", INITIALISATION),
        parse_point("gaussian", "gaussian", 16, None, "pairs(0.5)"),
        parse_point("gaussian", "gaussian", 16, None, "none", INITIALISATION),
    ],
    ids=lambda c: c.name,
)
def test_only_variances_are_known_of_what_breaks_the_premise(point):
    """Theory of independent entries says nothing of dependent ones and projections."""
    known = {
        name
        for name in REFERENCES
        for summary in ("mean", "value")
        if reference(name, point, "sqrt", summary) is not None
    }
    variances = {"entry_variance_q", "entry_variance_k"}
    rows = point.n_keys is not None and not point.initialisation
    assert known == (variances if rows else {*variances, "score_variance"})


def test_entropy_identity_is_zero_for_standard_gaussian_keys():
    """Any distribution of q; with another spread of the keys the quantity is not 0."""
    name = "entropy_identity"
    for distribution_q in ("gaussian", "student_t3", "uniform(mean=1.0)"):
        point = parse_point(distribution_q, "gaussian", 4, 8)
        assert reference(name, point, "sqrt", "mean") == Reference(0.0, 0.0)
    for distribution_k in ("gaussian(std=2.0)", "gaussian(mean=1.0)", "uniform"):
        point = parse_point("gaussian", distribution_k, 4, 8)
        assert reference(name, point, "sqrt", "mean") is None


def test_matching_pairs_without_a_known_variance():
    """Other spreads on both sides, a mean, or no fourth moment: no value."""
    for distribution_q, distribution_k in (
        ("gaussian(std=2.0)", "gaussian"),
        ("laplace(mean=1.0)", "laplace(mean=1.0)"),
        ("student_t3", "student_t3"),
    ):
        point = parse_point(distribution_q, distribution_k, 16, None, "pairs(0.5)")
        assert reference("score_variance", point, "none", "value") is None
