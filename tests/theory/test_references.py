"""The table of references: what it covers, and that it agrees with simulation."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.sampling.conditions import Condition
from montecarlo.sampling.replicates import mean_columns, sample
from montecarlo.theory import references
from montecarlo.theory.references import (
    REFERENCES,
    Reference,
    divisor_value,
    reference,
)
from montecarlo.theory.row_integrals import ROW_NAMES

#: Standard errors of a mean of 150 replicates: Student's t with 149 degrees of freedom
#: is beyond 6.5 with probability 1e-9, and about 150 numbers are looked at: 2e-7.
FAR = 6.5
REPLICATES = 150


def standardised_gaps(condition, divisors, n_keys=None):
    """Simulated mean minus reference in standard errors, by divisor and quantity;
    with ``n_keys`` the reference is one for another number of keys.
    """
    batch = sample(condition, 11, 0, REPLICATES, divisors)
    other = Condition(
        condition.law_q, condition.law_k, condition.d_k, n_keys or condition.n_keys
    )
    gaps = {}
    columns = mean_columns(condition, divisors)
    for column, (divisor, name) in zip(batch.means.T, columns, strict=True):
        exact = reference(name, other, divisor, "mean")
        if exact is not None:
            error = column.std(ddof=1) / math.sqrt(REPLICATES)
            # Below 1e-6 of the value float32 draws have no say.
            error = math.hypot(error, exact.error, 1e-6 * exact.value)
            gaps[divisor, name] = (column.mean() - exact.value) / error
    return gaps


CONDITIONS = (
    Condition("gaussian", "gaussian", 1, 16),
    Condition("gaussian", "gaussian", 64, 16),
    Condition("gaussian(std=2.0)", "gaussian(mean=1.0)", 4, 16),
    Condition("rademacher", "gaussian", 16, 32),
    Condition("rademacher", "rademacher", 3, 16),
)


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda c: c.name)
def test_simulation_agrees(condition):
    """Means over replicates lie within their noise of the references; those for
    twice the keys do not.
    """
    divisors = ("none", "sqrt", "linear")
    gaps = standardised_gaps(condition, divisors)
    assert {name for _, name in gaps} >= set(ROW_NAMES)
    assert max(map(abs, gaps.values())) <= FAR
    wrong = standardised_gaps(condition, divisors, 2 * condition.n_keys)
    assert max(map(abs, wrong.values())) > 3.0 * FAR


def test_quantities_of_the_table_exist():
    """Every reference is for a quantity that is measured."""
    assert set(REFERENCES) <= set(QUANTITIES)


@pytest.mark.parametrize("d_k", [1, 3, 64, 4096])
def test_divisors_are_the_definitions(d_k):
    """Each divisor of the program has its number here, found independently."""
    expected = {
        "none": 1.0,
        "sqrt": math.sqrt(d_k),
        "2sqrt": math.sqrt(4 * d_k),
        "linear": d_k,
    }
    assert set(expected) == set(references.POWERS) == set(DIVISORS)
    for name, value in expected.items():
        assert math.isclose(divisor_value(name, d_k), value, rel_tol=1e-15)


def test_theory_never_asks_attention():
    """No module of theory imports what it is to check."""
    folder = Path(references.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in getattr(node, "names", [])]
            names.append(getattr(node, "module", None) or "")
            assert not any(
                str(name).startswith("montecarlo.attention") for name in names
            )


def test_pairs_scale_with_the_divisor():
    """Mean, spread and size fall with the divisor, the variance with its square."""
    condition = Condition("gaussian(mean=0.5)", "gaussian(mean=2.0)", 16)
    value = {
        (name, divisor): reference(name, condition, divisor, "value").value
        for name in (
            "score_mean",
            "score_variance",
            "score_std",
            "score_variance_ratio",
        )
        for divisor in ("none", "sqrt", "linear")
    }
    assert value["score_mean", "none"] == 16.0
    assert value["score_mean", "sqrt"] == 4.0
    assert value["score_variance", "none"] == 16 * (1 + 0.25 + 4)
    assert value["score_variance", "linear"] == (1 + 0.25 + 4) / 16
    assert math.isclose(value["score_std", "sqrt"], math.sqrt(5.25))
    assert value["score_variance_ratio", "linear"] == 5.25
    centred = Condition("gaussian", "gaussian", 16)
    size = reference("score_abs", centred, "linear", "value")
    raw = reference("score_abs", centred, "none", "value")
    assert math.isclose(16 * size.value, raw.value)
    assert 0.0 < size.error < 1e-10


def test_entries_have_their_own_variance():
    """The two sides are not mixed up."""
    condition = Condition("uniform(std=2.0)", "laplace(std=3.0)", 4)
    found = [
        reference(f"entry_variance_{side}", condition, "none", "value").value
        for side in "qk"
    ]
    assert found == [4.0, 9.0]


def test_row_variance_leaves_out_the_mean_of_the_keys():
    """(σ_q² + m_q²) σ_k² d/c²: a mean of the keys does not count, one of q does."""
    condition = Condition("gaussian(mean=0.5)", "uniform(mean=3.0,std=2.0)", 16, 8)
    found = reference("score_row_variance", condition, "sqrt", "mean")
    assert math.isclose(found.value, 1.25 * 4.0)


def test_rows_depend_on_the_product_of_the_spreads():
    """N(0, 4) queries with N(0, 1/4) keys are the same as standard ones."""
    rescaled = Condition("gaussian(std=2.0)", "gaussian(std=0.5)", 8, 32)
    standard = Condition("gaussian", "gaussian", 8, 32)
    for name in ROW_NAMES:
        found = reference(name, rescaled, "sqrt", "mean")
        assert found == reference(name, standard, "sqrt", "mean")


def test_entropy_identity_is_zero_for_standard_gaussian_keys():
    """Any law of q; with another spread of the keys the quantity is not 0."""
    name = "entropy_identity"
    for law_q in ("gaussian", "student_t3", "uniform(mean=1.0)"):
        condition = Condition(law_q, "gaussian", 4, 8)
        assert reference(name, condition, "sqrt", "mean") == Reference(0.0, 0.0)
    for law_k in ("gaussian(std=2.0)", "gaussian(mean=1.0)", "uniform"):
        condition = Condition("gaussian", law_k, 4, 8)
        assert reference(name, condition, "sqrt", "mean") is None


@pytest.mark.parametrize(
    ("law_q", "law_k", "n_keys", "divisor", "summary"),
    [
        ("gaussian", "gaussian", 8, "sqrt", "median"),
        ("gaussian", "gaussian", 8, "none/sqrt", "mean"),
        ("gaussian", "gaussian", None, "sqrt", "mean"),
        ("uniform", "gaussian", 8, "sqrt", "mean"),
        ("gaussian", "rademacher", 8, "sqrt", "mean"),
        ("gaussian(mean=1.0)", "gaussian", 8, "sqrt", "mean"),
        ("rademacher(mean=1.0)", "rademacher", 8, "sqrt", "mean"),
        ("gaussian(std=1000000.0)", "gaussian", 8, "sqrt", "mean"),
        ("gaussian", "gaussian", 2**22, "sqrt", "mean"),
    ],
)
def test_no_row_reference_where_none_is_known(law_q, law_k, n_keys, divisor, summary):
    """Other laws, quantiles, ratios of divisors and pairs have no value over rows."""
    condition = Condition(law_q, law_k, 4, n_keys)
    for name in ROW_NAMES:
        assert reference(name, condition, divisor, summary) is None


def test_no_reference_for_what_theory_does_not_know():
    """Quantities outside the table and unknown kurtoses give None."""
    condition = Condition("gaussian", "gaussian", 4, 8)
    assert reference("gradient_query", condition, "sqrt", "mean") is None
    assert reference("score_variance", condition, "none/sqrt", "value") is None
    heavy = Condition("student_t3", "gaussian", 4)
    assert reference("score_excess_kurtosis", heavy, "none", "value") is None
    assert reference("score_variance", heavy, "none", "value") is not None


def test_references_are_plain_floats():
    """Values go to tables: no NumPy scalars, and each with an error of at least 0."""
    condition = Condition("rademacher", "rademacher", 4, 8)
    for name in REFERENCES:
        found = reference(name, condition, "sqrt", "mean")
        if found is not None:
            assert type(found.value) is type(found.error) is float
            assert found.error >= 0.0
            assert np.isfinite(found.value)
