"""Verdicts: truth tables, borders, and properties that every rule must have."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from montecarlo.claims.verdicts import (
    MOST_BUDGETS,
    UNREACHED,
    Outcome,
    Reason,
    Ruling,
    Verdict,
    decide,
    decide_exactly,
    join_cases,
    join_checks,
    join_conditions,
    join_parts,
    join_texts,
    replicates_needed,
)
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval, t_quantile

S, R, I, NA = Outcome  # noqa: E741 - in their order
H, P, V, F, O, _ = Verdict  # noqa: E741
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("interval", "region", "verdict"),
    [
        ((1.1, 1.9), (1.0, 2.0), S),
        ((1.0, 2.0), (1.0, 2.0), S),  # both ends belong to the region
        ((2.0, 3.0), (1.0, 2.0), I),
        ((2.1, 3.0), (1.0, 2.0), R),
        ((0.0, 0.9), (1.0, 2.0), R),
        ((0.0, 1.0), (1.0, 2.0), I),
        ((0.0, 3.0), (1.0, 2.0), I),
        ((0.0, 1.5), (1.0, 2.0), I),
        ((1.5, 1.5), (1.5, 1.5), S),
        ((5.0, INF), (1.0, INF), S),
        ((5.0, INF), (1.0, 2.0), R),
        ((0.0, INF), (1.0, INF), I),
        ((NAN, NAN), (1.0, INF), I),
        ((NAN, 0.0), (1.0, 2.0), I),
        ((INF, INF), (0.0, 2.0), R),
    ],
)
def test_decide(interval, region, verdict):
    """Inside supports, outside refutes, across or unknown decides nothing."""
    assert decide(Interval(*interval), region) == verdict


NUMBERS = st.floats(-100.0, 100.0)
PAIRS = st.tuples(NUMBERS, NUMBERS).map(sorted).map(tuple)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(interval=PAIRS, region=PAIRS, truth=st.floats(0, 1))
def test_decisions_are_right_where_the_interval_covers(interval, region, truth):
    """Where the interval holds the truth, what is supported lies in the region and
    what is refuted does not: so an error rate of intervals is one of verdicts.
    """
    low, high = interval
    value = min(high, low + truth * (high - low))
    verdict = decide(Interval(*interval), region)

    inside = region[0] <= value <= region[1]
    assert verdict != S or inside
    assert verdict != R or not inside


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([S], S),
        ([S, S], S),
        ([S, R], R),
        ([S, I], I),
        ([R, I], R),
        ([S, NA], NA),
        ([NA, R], R),
        ([NA, I], I),
        ([NA, NA], NA),
    ],
)
def test_checks_of_a_place(outcomes, verdict):
    """Each check has to hold: one that fails refutes, one that is open leaves open."""
    for order in itertools.permutations(outcomes):
        assert join_checks(order) == verdict


#: Outcomes of cases, then the verdict by each quantifier.
QUANTIFIERS = ("always", "can", "usually")
TABLE = [
    ([], O, O, O),
    ([NA], O, O, O),
    ([S], H, H, H),
    ([S, S, NA], H, H, H),
    ([R, R, NA], F, F, F),
    ([S, R], F, H, F),  # one counterexample; one case is enough; half is not more
    ([S, R, R], F, H, F),
    ([S, S, R], F, H, H),
    ([S, I], O, H, O),
    ([R, I], F, O, F),  # nothing that is still open can save it
    ([S, R, I], F, H, O),
    ([R, R, I], F, O, F),
    ([I, NA], O, O, O),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: ".".join(row[0]) or "none")
def test_cases_join_as_a_sentence_is_said(row):
    """Each quantifier joins its cases as the sentence needs, in any order."""
    outcomes, *verdicts = row
    for order in itertools.permutations(outcomes):
        for quantifier, verdict in zip(QUANTIFIERS, verdicts, strict=True):
            assert join_cases(quantifier, order) == verdict, quantifier
        assert join_cases("limit", order) == join_cases("always", order)


@pytest.mark.parametrize(
    ("quantifier", "outcomes", "verdict"),
    [
        ("can", [R], O),
        ("can", [R, I], O),
        ("can", [R, S], H),  # one case is one case
        ("usually", [S], O),
        ("usually", [R], O),
        ("always", [R], F),  # a counterexample is one wherever it is found
        ("always", [S], H),
    ],
)
def test_a_corner_of_a_scope(quantifier, outcomes, verdict):
    """Cases that do not reach the whole scope refute no existence and tell no share."""
    assert join_cases(quantifier, outcomes, reached=False) == verdict


@pytest.mark.parametrize(
    ("verdicts", "joined"),
    [([H], H), ([H, H], H), ([F, F], F), ([H, F], P), ([H, O], O), ([H, F, O], P)],
)
def test_a_premise_that_is_omitted(verdicts, joined):
    """Where it decides, what is said is partly so; what is open stays open."""
    for order in itertools.permutations(verdicts):
        assert join_conditions(order) == joined


def ruling(verdict, reason=Reason.MEASURED):
    """Return a ruling whose reason does not matter."""
    return Ruling(verdict, reason)


@pytest.mark.parametrize(
    ("verdicts", "parts", "texts"),
    [
        ([], O, O),
        ([H], H, H),
        ([F, F], F, F),
        ([H, F], P, P),
        ([H, V], P, P),  # half of it holds
        ([V, F], F, P),  # nothing in it holds; but texts differ
        ([V, V], V, V),
        ([H, O], O, O),
        ([V, O], O, O),
        ([F, O], O, O),  # it fails, or it holds partly
        ([P, V], P, P),
        ([H, F, O], P, P),
    ],
)
def test_parts_and_texts_of_a_claim(verdicts, parts, texts):
    """Partly where a part holds and another does not, or where texts differ."""
    for order in itertools.permutations(map(ruling, verdicts)):
        assert join_parts(order).verdict == parts
        assert join_texts(order).verdict == texts


def test_reasons_of_what_is_joined():
    """A ruling keeps its reason where all have it."""
    theory, measured = ruling(H, Reason.THEORY), ruling(H)
    assert join_parts([theory, theory]) == theory
    assert join_parts([theory, measured]) == join_texts([measured, theory]) == measured
    assert join_parts([]) == join_texts([]) == UNREACHED
    halves, differ = ruling(P, Reason.HALF), ruling(P, Reason.TEXTS)
    assert join_parts([theory, ruling(F)]) == halves
    assert join_texts([theory, ruling(F)]) == differ
    assert join_texts([halves, halves]) == halves
    assert join_texts([halves, ruling(P, Reason.DEPENDS)]) == differ


ALPHA, BUDGET = 1e-4, 1024


def test_too_close_to_call():
    """More than a hundred budgets, no distance, or no error give no number."""
    half = t_quantile(ALPHA, 100) * 0.1
    limit = half * math.sqrt(100 / (MOST_BUDGETS * BUDGET))
    for factor, known in ((1.01, True), (0.99, False)):
        estimate = Estimate(2.0 + factor * limit, 0.1, 100)
        found = replicates_needed(estimate, (1.0, 2.0), ALPHA, BUDGET)
        assert (found is not None) is known
    for estimate in (Estimate(2.0, 0.1, 100), Estimate(2.5, NAN, 1)):
        assert replicates_needed(estimate, (1.0, 2.0), ALPHA, BUDGET) is None


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    value=st.floats(-3.0, 3.0),
    error=st.floats(1e-3, 1.0),
    n=st.integers(8, 5000),
    skewness=st.floats(-0.3, 0.3),
    scale=st.sampled_from([0.0, 1.0]),
)
def test_what_is_undecided_needs_more(value, error, n, skewness, scale):
    """Never fewer replicates than there are, nor as many; and with that many the
    interval that decides, shrunk by the root of their ratio, decides.
    """
    region = (-1.0, 1.0 if scale else INF)
    estimate = Estimate(value, error, n, skewness * math.sqrt(n))
    low, high = estimate.interval(ALPHA)
    needed = replicates_needed(estimate, region, ALPHA, 10**9)
    if decide(Interval(low, high), region) != I or needed is None:
        return
    assert needed > n
    part = math.sqrt(n / needed) * (1.0 - 1e-9)
    then = Interval(value - (value - low) * part, value + (high - value) * part)
    assert decide(then, region) != I


def test_no_number_of_replicates_divides_a_bin():
    """An end of a region in the bin of the estimate is never decided; one beyond it is,
    by as many as bring the rest of the interval down.
    """

    def needed(region, low=0.90, high=1.10):
        estimate = Estimate(
            1.001,
            0.04,
            100,
            bounds=lambda _: Interval(low, high),
            smallest_interval=Interval(1.0, 1.004),
        )
        return replicates_needed(estimate, region, 1e-3, 10**6)

    assert needed((1.002, math.inf)) is None
    assert needed((0.5, 1.003)) is None
    assert needed((1.0, 2.0)) is None  # the lower edge is an end of the bin
    assert needed((0.95, math.inf)) == 100 * 2**2  # 0.1 beyond the bin, and 0.05 away
    assert needed((0.5, 1.028)) == math.ceil(100 * 4.0**2)
    assert needed((1.054, 2.0), low=0.99) == math.ceil(100 * (0.096 / 0.05) ** 2)


@pytest.mark.parametrize(
    ("exact", "outcome"),
    [
        (0.5, S),
        (1.0, S),
        (1.0 + 1e-9, I),
        (1.0 - 1e-9, I),
        (1.001, R),
    ],
)
def test_exact_values_decide_but_next_to_an_end(exact, outcome):
    """Where their numerical error may lie between the two, nothing is decided."""
    assert decide_exactly(exact, (0.0, 1.0)) == outcome
