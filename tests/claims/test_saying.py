"""What may be said: only what came out so at every point, and agrees with theory."""

import math

import pytest
from msgspec.structs import asdict

from montecarlo.claims.checks import Check
from montecarlo.claims.judging import (
    check_holds,
    contradicts_theory,
    judge_sentence,
)
from montecarlo.claims.outcomes import (
    Case,
    CheckOutcome,
    InterpretationOutcome,
)
from montecarlo.claims.schema import Sentence, Value
from montecarlo.claims.verdicts import Outcome, Reason, Verdict

S, R, I, NA = Outcome  # noqa: E741 - in their order
CHECK = Check("entropy", "between", low=1.0, high=2.0)
REGION = (1.0, 2.0)


def case(
    verdict=S, d_k=64, value=1.5, exact=None, *, limit=None, distribution="gaussian"
):
    """How a check came out at one d_k; of 128 keys."""
    return Case(
        distribution=distribution,
        n_keys=128,
        d_k=d_k,
        estimate=None if verdict == NA else value,
        std_error=None if verdict == NA else 0.01,
        region_low=REGION[0],
        region_high=REGION[1],
        exact=exact,
        limit=limit,
        outcome=verdict,
    )


def outcome_of(check, *cases):
    """How a check came out, with these cases."""
    return CheckOutcome(**asdict(check), cases=cases)


def said(sentence, *cases, interpretations=(), verdict=None):
    """Judge a sentence of one check, with these cases."""
    return judge_sentence(
        sentence, lambda check: outcome_of(check, *cases), interpretations, verdict
    )


def interpretation(verdict, *cases):
    """An interpretation with this verdict, and a check with these cases."""
    checks = (outcome_of(CHECK, *cases),)
    return InterpretationOutcome(
        id="r",
        quantifier="always",
        form="statement",
        votes=True,
        verdict=verdict,
        reason=Reason.MEASURED,
        checks=checks,
    )


PLAIN = Sentence("x", check=(CHECK,))


@pytest.mark.parametrize(
    ("verdicts", "holds"),
    [
        ([S], True),
        ([S, S, S], True),
        ([S, NA], True),  # what has too few moments cannot be judged
        ([S, R], False),
        ([S, I], False),
        ([S, S, R], False),
        ([I], False),
        ([R], False),
        ([NA], False),  # nothing was judged
        ([NA, NA], False),
        ([], False),  # the grid has no such place
    ],
)
def test_every_point_has_to_be_so(verdicts, holds):
    """One point against it, or open, or none at all, and it is not said."""
    cases = [case(verdict, 2**i) for i, verdict in enumerate(verdicts)]
    assert said(PLAIN, *cases).holds is holds
    assert check_holds(outcome_of(CHECK, *cases)) is holds


@pytest.mark.parametrize(
    ("verdict", "exact", "holds"),
    [
        (S, 1.5, True),
        (I, 1.5, True),  # theory need not wait for the sample
        (I, 1.0, True),  # both ends belong to the region
        (I, 2.0, True),
        (I, math.nextafter(2.0, 3.0), False),
        (I, 0.5, False),
        (S, 0.5, False),  # the sample does not overrule theory
        (R, 1.5, False),  # nor theory the sample: one of them is wrong
        (R, 0.5, False),
    ],
)
def test_theory_decides(verdict, exact, holds):
    """A known value has to lie in the region, and the sample must not disagree."""
    assert said(PLAIN, case(S, 16), case(verdict, 64, exact=exact)).holds is holds


def test_every_check_has_to_hold():
    """A sentence that asserts two things is not said where one of them fails."""
    other = Check("weight_max", "at_most", high=1.0)
    both = Sentence("x", check=(CHECK, other))
    for verdicts in ((S, S), (S, R), (R, S), (S, I)):
        by_check = dict(zip((CHECK, other), verdicts, strict=True))
        found = judge_sentence(both, lambda c, v=by_check: outcome_of(c, case(v[c])))
        assert found.holds is (verdicts == (S, S))
        assert [outcome.check for outcome in found.checks] == [CHECK, other]


@pytest.mark.parametrize("found", Verdict)
@pytest.mark.parametrize("asserted", Verdict)
def test_interpretations_and_verdicts_have_to_be_as_asserted(asserted, found):
    """What a sentence says of an interpretation, or goes with, is what came out."""
    agrees = asserted == found
    of_interpretation = Sentence("x", interpretations={"r": asserted})
    outcome = said(of_interpretation, interpretations=[interpretation(found, case())])
    assert outcome.holds is agrees
    of_claim = Sentence("x", verdict=asserted, basis="definition")
    assert said(of_claim, verdict=found).holds is agrees


@pytest.mark.parametrize(
    ("verdict", "exact", "against"),
    [(S, 1.5, False), (S, 0.5, True), (R, 0.5, False), (R, 1.5, True), (I, 0.5, False)],
)
def test_interpretations_against_theory_are_not_spoken_of(verdict, exact, against):
    """One decided against the exact value says nothing."""
    one = case(verdict, exact=exact)
    assert contradicts_theory(one) is against
    sentence = Sentence("x", interpretations={"r": Verdict.HOLDS})
    assert (
        said(sentence, interpretations=[interpretation(Verdict.HOLDS, one)]).holds
        is not against
    )


THREE = (
    case(d_k=64, value=1.2, exact=1.25),
    case(d_k=128, value=1.8, distribution="laplace"),
    case(d_k=256, value=1.4),
)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (Value(d_k=64), 1.2),
        (Value(distribution="laplace"), 1.8),
        (Value(n_keys=128, d_k=256), 1.4),
        (Value(pick="lowest"), 1.2),
        (Value(pick="highest"), 1.8),
        (Value(d_k=64, of="known"), 1.25),
        (Value(d_k=128, of="known"), 1.8),
        (Value(of="d_k", pick="lowest"), 64.0),
        (Value(of="d_k", pick="highest"), 256.0),
        (Value(of="d_k", pick="highest", distribution="others"), 128.0),
        (Value(of="n_keys", d_k=64), 128.0),
        (Value(count="all", distribution="gaussian"), 2.0),
        (Value(count="distributions"), 2.0),
        (Value(count="distributions", distribution="others"), 1.0),
        (Value(of="d_k"), None),
        (Value(d_k=512), None),  # no such place
        (Value(n_keys=8), None),
        (Value(distribution="uniform"), None),
        (Value(), None),  # three, where one is meant
    ],
)
def test_numbers_are_those_of_cases(value, number):
    """Of one place, or the extreme of several; none missing."""
    outcome = said(Sentence("%(a)s", check=(CHECK,), value={"a": value}), *THREE)
    assert outcome.holds is (number is not None)
    assert {n: x.value for n, x in outcome.numbers.items()} == (
        {} if number is None else {"a": number}
    )


@pytest.mark.parametrize(
    ("count", "number"),
    [("supported", 2.0), ("all", 4.0)],
)
def test_counts_are_of_places(count, number):
    """Places of an interpretation that came out so, but for those not judged."""
    verdicts = (S, R, I, S, NA)
    cases = [case(verdict, 2**i) for i, verdict in enumerate(verdicts)]
    value = {"a": Value(interpretation="r", count=count)}
    sentence = Sentence("%(a)s", interpretations={"r": Verdict.FAILS}, value=value)
    outcome = said(sentence, interpretations=[interpretation(Verdict.FAILS, *cases)])
    assert outcome.numbers["a"].value == number
    assert outcome.numbers["a"].row == ""
