"""Every sentence of the catalogue: bound to what it asserts, and gone if that shifts.

No draws: places are those of the standard preset, and what came out there is made up:
first so that all holds, then with one check two tolerances away.
"""

import math
from dataclasses import dataclass
from functools import cache

import msgspec
import pytest

from montecarlo.attention.divisors import DIVISORS
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import region_of
from montecarlo.claims.judging import Judge, judge_sentence
from montecarlo.claims.outcomes import InterpretationOutcome, decide_case
from montecarlo.claims.recorded import RECORDED
from montecarlo.claims.running import exact_value
from montecarlo.claims.simulation import Evidence, exact_of_case, is_applicable
from montecarlo.claims.verdicts import Reason, Verdict
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval
from montecarlo.study.presets import PRESETS
from montecarlo.theory.limits import limit_of

CATALOGUE = read_catalogue()
#: What a limit is not.
OTHER = {"zero": "constant", "constant": "infinity", "infinity": "zero"}
#: Claims whose sentences rest on a definition or a record, and on nothing measured.
NOT_MEASURED = {
    "head-dimensions": "record",
    "product-shape": "definition",
    "input-dimension": "record",
    "scores-need-range": "definition",
    "introduced-2017": "record",
    "record": "record",
    "wrong-shape": "definition",
    "wrong-dimension": "record",
    "wrong-range": "definition",
}


def walk():
    """Yield all that a page may say: owner, place, sentence, interpretations by id."""
    for claim in CATALOGUE.claim:
        interpretations = {
            interpretation.id: interpretation for interpretation in claim.interpretation
        }
        for sentence, place in claim.sentences():
            yield claim.id, place, sentence, interpretations
    for passage in CATALOGUE.passage:
        yield passage.id, passage.place, passage.sentence, {}


ALL = list(walk())
MEASURED = [one for one in ALL if one[2].check]


def all_of(parameter):
    """Parametrise a test with sentences, and the interpretations of their claims."""
    ids = [f"{owner}, {place}" for owner, place, _, _ in parameter]
    names, values = ("sentence", "interpretations"), [one[2:] for one in parameter]
    return pytest.mark.parametrize(names, values, ids=ids)


def is_bound(owner, sentence):
    """Tell whether a sentence rests on something that came out, or is listed."""
    if sentence.basis != "measured":
        return NOT_MEASURED.get(owner) == sentence.basis and not sentence.check
    return bool(sentence.check or sentence.interpretations)


def test_each_is_bound():
    """No sentence without its evidence: checks, interpretations, or a listed reason."""
    for owner, _, sentence, interpretations in ALL:
        assert is_bound(owner, sentence), owner
        assert set(sentence.interpretations) <= set(interpretations), owner


# --- Where each is looked at ----------------------------------------------------------


exact = cache(exact_value)
POINTS = dict.fromkeys(PRESETS["standard"].points(), 0)


@cache
def cases(check):
    """The cases of a check, with their points and regions; those on record have no
    points but themselves.
    """
    evidence = Evidence(POINTS, tuple(DIVISORS), exact)
    if check.quantity in RECORDED:
        there = evidence.cases(check)
        return {case: ((case,), region_of(check, case.d_k, None)) for case in there}
    found = {}
    for case in evidence.cases(check):
        points = evidence.points_by_case(check)[case]
        known = exact_of_case(check, points, exact)
        found[case] = points, region_of(check, case.d_k, case.n_keys, known)
    return found


# --- What it takes to be said ---------------------------------------------------------


def inside(region):
    """Return a value within a region, and how far two tolerances are."""
    low, high = region
    if math.isfinite(low) and math.isfinite(high):
        return 0.5 * (low + high), high - low or 1.0
    end = low if math.isfinite(low) else high
    step = 0.1 * abs(end) or 0.1
    return (end + step, -2.0 * step) if math.isfinite(low) else (end - step, 2.0 * step)


@dataclass(frozen=True)
class MadeUp:
    """Evidence of a study: within its regions, or so far away.

    With ``theory``, the sample tells nothing and the value is known exactly.
    """

    moved: float = 0.0
    theory: bool = False

    def cases(self, check):
        """Return the cases of the grid."""
        return list(cases(check))

    def decide(self, check, where, rate, *, by_theory=True):
        """Return an estimate that lies clear of its region's ends."""
        points, region = cases(check)[where]
        ends = points[0].d_k, points[-1].d_k
        if check.quantity not in RECORDED and not is_applicable(check, points):
            return decide_case(check, where, region, None, rate)
        if check.relation == "tends_to":
            limit = limit_of(check.quantity, check.summary, where.n_keys)
            if self.moved:
                limit = msgspec.structs.replace(limit, tends_to=OTHER[limit.tends_to])
            estimate = Estimate(-0.5, 0.01, 64)
            known = {"limit": limit, "d_k_range": ends}
            return decide_case(check, where, region, estimate, rate, **known)
        value, step = inside(region)
        value += self.moved * step
        half = 0.01 * abs(step) if not self.theory else 10.0 * abs(step)
        interval = Interval(value - half, value + half)
        estimate = Estimate(value, half / 8.0, 64, bounds=lambda _: interval)
        known = {"exact": value if self.theory else None, "d_k_range": ends}
        known |= {"by_theory": by_theory}
        return decide_case(check, where, region, estimate, rate, **known)


def outcome_of(check, moved=0.0, *, theory=False):
    """Return how a check would come out on what is made up."""
    # every interval of what is made up is what it is, whatever the error rate
    return Judge(MadeUp(moved, theory), lambda _: 0.01).judge_check(check)


def interpretations_of(sentence, interpretations):
    """Return interpretations as a sentence asserts them, where there are cases."""
    made = []
    for name, entry in interpretations.items():
        checks = tuple(map(outcome_of, entry.check))
        verdict = Verdict.OPEN
        if name in sentence.interpretations and all(one.cases for one in checks):
            verdict = Verdict(sentence.interpretations[name])
        made.append(
            InterpretationOutcome(
                id=entry.id,
                quantifier=entry.quantifier,
                form=entry.form,
                votes=not entry.beyond,
                verdict=verdict,
                reason=Reason.MEASURED,
                checks=checks,
            )
        )
    return made


def holds(sentence, interpretations, judge_check):
    """Tell whether a sentence is said, with its interpretations as it asserts them."""
    verdict = sentence.verdict and Verdict(sentence.verdict)
    return judge_sentence(
        sentence, judge_check, interpretations_of(sentence, interpretations), verdict
    ).holds


@all_of(MEASURED)
def test_it_is_said_where_all_came_out_so(sentence, interpretations):
    """With every place in its region; each check has places."""
    assert all(cases(check) for check in sentence.check)
    assert holds(sentence, interpretations, outcome_of)


@all_of(MEASURED)
@pytest.mark.parametrize("theory", [False, True], ids=["sampled", "exact"])
def test_it_goes_where_one_result_shifts(sentence, interpretations, theory):
    """Two tolerances away it is gone: by the sample, or by theory alone."""
    for shifted in dict.fromkeys(sentence.check):
        both = math.isfinite(sum(next(iter(cases(shifted).values()))[1]))
        for moved in (1.0, -1.0) if both else (1.0,):

            def judge_check(check, shifted=shifted, moved=moved):
                if check != shifted:
                    return outcome_of(check)
                return outcome_of(check, moved, theory=theory)

            assert not holds(sentence, interpretations, judge_check), shifted


@all_of([one for one in ALL if one[2].interpretations])
def test_it_goes_where_a_interpretation_differs(sentence, interpretations):
    """Each interpretation that it speaks of has to have the verdict that it says."""
    for name, verdict in sentence.interpretations.items():
        other = Verdict.HOLDS if verdict == Verdict.FAILS else Verdict.FAILS
        changed = msgspec.structs.replace(
            sentence, interpretations={**sentence.interpretations, name: other}
        )
        made = interpretations_of(changed, interpretations)
        found = judge_sentence(sentence, outcome_of, made, None)
        assert not found.holds


# --- Where each is said ---------------------------------------------------------------


def test_limits_are_asked_of_theory():
    """What is said of the limit is checked by theory, and nothing else is."""
    for claim in CATALOGUE.claim:
        for interpretation in claim.interpretation:
            relations = {check.relation for check in interpretation.check}
            limit = interpretation.quantifier == "limit"
            assert (relations == {"tends_to"}) is limit, (claim.id, interpretation.id)
