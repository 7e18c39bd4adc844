"""Every kind of evidence answers the judge's three questions, in the same way."""

import inspect

import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.evidence import Evidence, Found
from montecarlo.claims.judging import Judge
from montecarlo.claims.outcomes import Located
from montecarlo.claims.recorded import FACTS, RECORDED, Recorded
from montecarlo.claims.running import exact_value
from montecarlo.claims.simulation import Simulation
from montecarlo.estimation.estimates import Estimate
from montecarlo.sampling.design_points import parse_point

CATALOGUE = read_catalogue()
MEMBERS = [name for name in vars(Evidence) if not name.startswith("_")]


class Known:
    """Summaries of a point of which every estimate is the same."""

    def __init__(self, point):
        self.point = point

    def estimate(self, key):
        """Return the estimate of a row."""
        del key
        return Estimate(1.0, 0.1, 64)


def simulated():
    """A simulation of two points, and the checks that can be looked at there."""
    points = [parse_point("gaussian", "gaussian", d, 128) for d in (64, 256)]
    points += [parse_point("gaussian", "gaussian", d) for d in (64, 256)]
    budgets = dict.fromkeys(points, 128)
    evidence = Simulation(budgets, ("none", "sqrt", "linear"), exact_value, Known)
    return evidence, [check for check in CATALOGUE.checks() if evidence.cases(check)]


def known():
    """Facts, and the checks that ask for them."""
    meanings = (one for some in FACTS.values() for one in some)
    checks = [check for one in meanings for check in one.check]
    return Recorded(CATALOGUE, Simulation({}, (), exact_value)), checks


KINDS = {"simulation": simulated, "facts": known}


@pytest.fixture(params=KINDS)
def kind(request):
    """Evidence of a kind, and the checks that it can be asked."""
    return KINDS[request.param]()


def test_it_answers_what_the_judge_asks(kind):
    """The same questions, with the same arguments."""
    assert MEMBERS == ["reaches", "cases", "find"]
    evidence, checks = kind
    assert {type(evidence.reaches(check)) for check in checks} == {bool}
    for name in MEMBERS:
        asked = inspect.signature(getattr(Evidence, name)).parameters
        answered = inspect.signature(getattr(type(evidence), name)).parameters
        assert list(answered) == list(asked), name


def test_each_case_is_found(kind):
    """Cases come in one order, each once, each with a region and what was found."""
    evidence, checks = kind
    assert len(checks) > 3
    for check in checks:
        cases = evidence.cases(check)
        assert len(cases) == len(set(cases)) > 0
        assert evidence.cases(check) == cases
        assert {type(case) for case in cases} == {Located}
        for case in cases:
            found = evidence.find(check, case)
            assert isinstance(found, Found)
            assert found.region[0] <= found.region[1]


def test_the_judge_decides_on_it(kind):
    """Each case comes out somehow, where it was; no record can be sampled further."""
    evidence, checks = kind
    judge = Judge(evidence, 1e-4)
    for check in checks:
        outcome = judge.judge_check(check)
        assert outcome.asked == check
        assert len(outcome.cases) == len(evidence.cases(check))
        for case, where in zip(outcome.cases, evidence.cases(check), strict=True):
            fields = Located.__struct_fields__
            assert [getattr(case, n) for n in fields] == [
                getattr(where, n) for n in fields
            ]
            assert case.replicates_needed is None or check.quantity not in RECORDED


def test_what_was_not_sampled_cannot_be_found():
    """A simulation has cases before it is sampled, and nothing in them."""
    evidence, checks = simulated()
    before = Simulation(evidence.budgets, evidence.divisors, exact_value)
    for check in checks:
        cases = before.cases(check)
        assert cases == evidence.cases(check)
        with pytest.raises(LookupError, match="held against"):
            before.find(check, cases[0])
