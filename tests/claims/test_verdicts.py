"""Verdicts: truth tables, borders, and properties that every rule must have."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from montecarlo.claims.verdicts import (
    MOST_BUDGETS,
    Verdict,
    all_of,
    decide,
    decide_exactly,
    interpretation_verdict,
    join_verdicts,
    replicates_needed,
)
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval, t_quantile

S, R, I = Verdict.SUPPORTED, Verdict.REFUTED, Verdict.UNDECIDED  # noqa: E741
NA, NM = Verdict.NOT_APPLICABLE, Verdict.NOT_MEASURED
A, D, P, T = Verdict.APPROXIMATE, Verdict.DEGREE, Verdict.DEPENDS, Verdict.TALLY
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
        ([], NM),
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
        assert all_of(order) == verdict


#: Outcomes of cases, then the verdict by each logic; the share of `usually` is a half.
LOGICS = ("always", "can", "usually", "generic", "equality", "degree")
TABLE = [
    ([], NM, NM, NM, NM, NM, NM),
    ([NA], NA, NA, NA, NA, NA, NA),
    ([S], S, S, S, S, A, D),
    ([S, S, NA], S, S, S, S, A, D),
    ([R, R, NA], R, R, R, R, R, D),
    ([S, R], R, S, S, P, R, D),  # one counterexample refutes; one case is enough
    ([S, R, R], R, S, R, P, R, D),
    ([S, I], I, S, S, I, I, D),
    ([R, I], R, I, I, I, R, D),  # nothing that is still open can save it
    ([S, R, I], R, S, I, P, R, D),
    ([R, R, I], R, I, R, I, R, D),
    ([I, NA], I, I, I, I, I, D),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: ".".join(row[0]) or "none")
def test_logic_of_a_sentence(row):
    """Each logic joins its cases as the sentence needs, in any order."""
    outcomes, *verdicts = row
    for order in itertools.permutations(outcomes):
        for logic, verdict in zip(LOGICS, verdicts, strict=True):
            assert interpretation_verdict(logic, order) == verdict, logic
        limit = interpretation_verdict("limit", order)
        assert limit == interpretation_verdict("always", order)


@pytest.mark.parametrize(
    ("logic", "outcomes", "verdict"),
    [
        ("can", [R], NM),
        ("can", [R, I], NM),
        ("can", [R, S], S),  # one case is one case
        ("usually", [S], NM),
        ("usually", [R], NM),
        ("always", [R], R),  # a counterexample is one wherever it is found
        ("always", [S], S),
    ],
)
def test_a_corner_of_a_scope(logic, outcomes, verdict):
    """Cases that do not reach the whole scope refute no existence and tell no share."""
    assert interpretation_verdict(logic, outcomes, reached=False) == verdict


#: Outcomes of cases, the share that is asked for, and the verdict.
USUALLY = [
    ([S], 1.0, S),
    ([S, R], 0.5, S),  # half is enough where half is asked for
    ([S, R], 0.51, R),
    ([R, R, NA], 0.01, R),
    ([S, R, NA], 0.5, S),  # what is not applicable does not count
    ([S, I, R], 0.5, I),
    ([I, R, R], 0.5, R),
    ([I, I, R, R], 0.5, I),
    ([S, S, S, R], 0.75, S),
    ([S, S, S, R], 0.76, R),
]


@pytest.mark.parametrize(("outcomes", "share", "verdict"), USUALLY)
def test_share_of_cases(outcomes, share, verdict):
    """What is said usually holds in a share of the cases, each of the same weight."""
    for order in itertools.permutations(outcomes):
        assert interpretation_verdict("usually", order, share=share) == verdict


@pytest.mark.parametrize(
    ("propositions", "verdict"),
    [
        ([], NM),
        ([S], S),
        ([R, R], R),
        ([S, R], T),
        ([S, I], T),  # decided texts are not called open for one that is
        ([S, D], T),
        ([D, D], D),
        ([S, NM], T),
        ([S, NA], S),
        ([NA, NA], NA),
    ],
)
def test_propositions_of_a_claim(propositions, verdict):
    """Texts that say different things have no common verdict."""
    for order in itertools.permutations(propositions):
        assert join_verdicts(order) == verdict


OUTCOMES = st.lists(st.sampled_from([S, R, I, NA]), min_size=1, max_size=6)
QUANTIFIERS = st.sampled_from(["always", "usually", "can", "limit"])
SHARES = st.floats(0.01, 1.0)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(outcomes=OUTCOMES, quantifier=QUANTIFIERS, share=SHARES)
def test_deciding_an_open_case_never_swaps_the_verdict(outcomes, quantifier, share):
    """Deciding an open case never turns support into refutation or the reverse."""
    before = interpretation_verdict(quantifier, outcomes, share=share)
    for verdict in (S, R):
        decided = [verdict if outcome == I else outcome for outcome in outcomes]
        after = interpretation_verdict(quantifier, decided, share=share)
        assert {before, after} != {S, R}


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
            finest=Interval(1.0, 1.004),
        )
        return replicates_needed(estimate, region, 1e-3, 10**6)

    assert needed((1.002, math.inf)) is None
    assert needed((0.5, 1.003)) is None
    assert needed((1.0, 2.0)) is None  # the lower edge is an end of the bin
    assert needed((0.95, math.inf)) == 100 * 2**2  # 0.1 beyond the bin, and 0.05 away
    assert needed((0.5, 1.028)) == math.ceil(100 * 4.0**2)
    assert needed((1.054, 2.0), low=0.99) == math.ceil(100 * (0.096 / 0.05) ** 2)


@pytest.mark.parametrize(
    ("exact", "verdict"),
    [
        (0.5, Verdict.SUPPORTED),
        (1.0, Verdict.SUPPORTED),
        (1.0 + 1e-9, Verdict.UNDECIDED),
        (1.0 - 1e-9, Verdict.UNDECIDED),
        (1.001, Verdict.REFUTED),
    ],
)
def test_exact_values_decide_but_next_to_an_end(exact, verdict):
    """Where their numerical error may lie between the two, nothing is decided."""
    assert decide_exactly(exact, (0.0, 1.0)) == verdict
