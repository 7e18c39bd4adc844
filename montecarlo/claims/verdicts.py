"""Outcomes of checks, and verdicts on propositions and claims.

A check is decided in each case (design point) by an equivalence test: supported if the
simultaneous interval lies inside the equivalence region, refuted if it lies outside,
undecided if it crosses an end.  Outcomes of cases combine into a verdict by the
quantifier of the sentence, which is part of the catalogue.
"""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval, t_quantile

#: An undecided case is too close to decide if it needs more than this many times its
#: budget of replicates.
MOST_BUDGETS = 100

#: Bound on the numerical error of an exact value, relative to the larger of its
#: absolute value and 1.
NUMERICAL = 2e-6

#: In how many cases a proposition holds according to its sentence: in all, in most of a
#: published list, in at least one, or in the limit of large d_k.
Quantifier = Literal["always", "usually", "can", "limit"]


class Outcome(StrEnum):
    """Outcome of a check, in one case or in all of its cases."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_APPLICABLE = "not_applicable"


class Verdict(StrEnum):
    """Verdict on a claim, or on one interpretation of it."""

    HOLDS = "holds"
    PARTLY = "partly"
    VAGUE = "vague"
    FAILS = "fails"
    OPEN = "open"
    ASSUMED = "assumed"


class Reason(StrEnum):
    """Reason for a verdict."""

    #: of holds and fails: the evidence
    MEASURED = "measured"
    THEORY = "theory"
    SOURCE = "source"
    #: of partly: holds approximately, not exactly; depends on a premise that the
    #: sentence omits; only one of several interpretations holds; texts differ
    NEARLY = "nearly"
    DEPENDS = "depends"
    HALF = "half"
    TEXTS = "texts"
    #: of vague: a word without a measure in its text, or "usually" without a list
    WORD = "word"
    LIST = "list"
    #: of open: cases are undecided; cases of the scope were not sampled
    SAMPLE = "sample"
    REACH = "reach"
    #: of assumed: the text states a premise
    PREMISE = "premise"


class Ruling(Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict with its reason."""

    verdict: Verdict
    reason: Reason


#: The ruling where samples do not reach the scope of a proposition.
UNREACHED = Ruling(Verdict.OPEN, Reason.REACH)
#: Outcomes that are a decision.
DECIDED = frozenset({Outcome.SUPPORTED, Outcome.REFUTED})


def decide(interval: Interval, region: tuple[float, float]) -> Outcome:
    """Return the outcome of a check, from a confidence interval of its quantity.

    ========== ======================================================================
    supported  the interval lies inside the equivalence region (low, high), ends
               included
    refuted    it lies outside
    undecided  it crosses an end of the region, or an end of the interval is NaN
    ========== ======================================================================
    """
    if math.isnan(interval.low) or math.isnan(interval.high):
        return Outcome.UNDECIDED
    if region[0] <= interval.low and interval.high <= region[1]:
        return Outcome.SUPPORTED
    if interval.high < region[0] or region[1] < interval.low:
        return Outcome.REFUTED
    return Outcome.UNDECIDED


def decide_exactly(exact: float, region: tuple[float, float]) -> Outcome:
    """Return the outcome of a check, from the exact value of its quantity.

    It is supported if the value lies in the equivalence region (low, high), ends
    included, and refuted otherwise.  It is undecided if the value differs from an end
    of the region, but by no more than its numerical error.
    """
    slack = NUMERICAL * max(1.0, abs(exact))
    if any(0.0 < abs(exact - end) <= slack for end in region):
        return Outcome.UNDECIDED
    return decide(Interval(exact, exact), region)


def join_checks(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the joint outcome of several checks of one case, all of which must hold.

    It is refuted if any is refuted; else undecided if any is undecided; else not
    applicable if any is not applicable; else supported.  Without outcomes it is
    supported.
    """
    occurring = set(outcomes)
    ranked = (Outcome.REFUTED, Outcome.UNDECIDED, Outcome.NOT_APPLICABLE)
    return next((one for one in ranked if one in occurring), Outcome.SUPPORTED)


def join_cases(
    quantifier: Quantifier, outcomes: Iterable[Outcome], *, reached: bool = True
) -> Verdict:
    """Return the verdict on a proposition: ``holds``, ``fails`` or ``open``.

    Parameters
    ----------
    quantifier : str
        ``always`` and ``limit`` (whose cases are numbers of keys): hold if every case
        is supported, fail if any is refuted.  ``can``: holds if any case is supported,
        fails if all are refuted.  ``usually``: holds if more than half are supported,
        otherwise fails if half or more are refuted.  In all other cases, and if there
        are no cases, the verdict is ``open``.
    outcomes : iterable of Outcome
        One for each case.  Cases that are not applicable are left out.
    reached : bool
        Whether the cases cover the whole scope.  If not, ``can`` never fails, and
        ``usually`` is open.  It does not affect ``always`` and ``limit``.
    """
    applicable = [one for one in outcomes if one != Outcome.NOT_APPLICABLE]
    n_cases = len(applicable)
    supported = applicable.count(Outcome.SUPPORTED)
    refuted = applicable.count(Outcome.REFUTED)
    if quantifier == "usually":
        holds = reached and 2 * supported > n_cases
        fails = reached and 2 * refuted >= n_cases
    elif quantifier == "can":
        holds, fails = supported > 0, reached and refuted == n_cases
    else:
        holds, fails = supported == n_cases, refuted > 0
    if not n_cases or not (holds or fails):
        return Verdict.OPEN
    return Verdict.HOLDS if holds else Verdict.FAILS


def join_conditions(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the joint verdict on a proposition whose sentence omits a premise.

    ``verdicts`` has one for each value of the premise, such as each distribution.  The
    joint verdict is ``partly`` if the proposition holds for one value and fails for
    another.  Otherwise it is the common verdict if all are equal, and ``open`` if not.
    """
    occurring = set(verdicts)
    if {Verdict.HOLDS, Verdict.FAILS} <= occurring:
        return Verdict.PARTLY
    return Verdict.OPEN if len(occurring) != 1 else occurring.pop()


def join_parts(rulings: Iterable[Ruling]) -> Ruling:
    """Return the joint verdict on the interpretations that one text states.

    If all rulings are equal, it is that one.  If there are none, it is ``open``.  If
    they differ, it is the first of these that applies:

    - ``holds`` with the reason ``measured``, if all hold and only reasons differ;
    - ``partly`` if one is ``holds`` or ``partly``, and one is neither ``holds`` nor
      ``open``;
    - the first of ``open``, ``fails`` and ``vague`` that occurs.
    """
    distinct = [*dict.fromkeys(rulings)]
    verdicts = {one.verdict for one in distinct}
    if len(distinct) < 2:
        return distinct[0] if distinct else UNREACHED
    if verdicts == {Verdict.HOLDS}:
        return Ruling(Verdict.HOLDS, Reason.MEASURED)
    some_hold = verdicts & {Verdict.HOLDS, Verdict.PARTLY}
    if some_hold and verdicts - {Verdict.HOLDS, Verdict.OPEN}:
        return Ruling(Verdict.PARTLY, Reason.HALF)
    ranked = (Verdict.OPEN, Verdict.FAILS, Verdict.VAGUE)
    return next(one for verdict in ranked for one in distinct if one.verdict == verdict)


def join_texts(rulings: Iterable[Ruling]) -> Ruling:
    """Return the joint verdict on a claim that several texts state.

    If all rulings are equal, it is that ruling.  Otherwise it is the first of these
    that applies:

    - ``partly`` if verdicts other than ``open`` differ, or if there are some and all
      are ``partly``;
    - ``open`` if any is open, or there is none;
    - the common verdict, if only reasons differ.
    """
    distinct = [*dict.fromkeys(rulings)]
    decided = {one.verdict for one in distinct} - {Verdict.OPEN}
    if len(decided) > 1 or (decided == {Verdict.PARTLY} and len(distinct) > 1):
        return Ruling(Verdict.PARTLY, Reason.TEXTS)
    return join_parts(distinct)


def replicates_needed(
    estimate: Estimate, region: tuple[float, float], error_rate: float, budget: int
) -> int | None:
    """Return about how many replicates in total would decide an undecided case.

    Parameters
    ----------
    estimate : Estimate
    region : (float, float)
        Equivalence region.
    error_rate : float
        One-sided error rate of the simultaneous interval.
    budget : int
        Maximal number of replicates.

    Returns
    -------
    int or None
        Larger than the number of replicates of the estimate.  None if it exceeds
        `MOST_BUDGETS` times the budget, if there is no standard error, or if an end of
        the region lies in the same bin of a histogram as the estimate, so that no
        number of replicates decides.

    Notes
    -----
    A side of the interval that reaches across an end of the region shrinks with the
    square root of the number of replicates.  If few replicates contribute all of the
    variance, that side is unbounded.  At least twice as many replicates are then
    needed, and at least as many as for a symmetric interval.
    """
    n = estimate.n_replicates
    left, right = estimate.smallest_interval or (estimate.value, estimate.value)
    # without the clipping to the quantity's range, which does not shrink
    low, high = estimate.ends(error_rate)
    symmetric = t_quantile(error_rate, n) * estimate.std_error
    if not math.isfinite(symmetric):
        return None
    # an end of the region at the end of the quantity's range is no end
    least = region[0] if region[0] > estimate.within[0] else -math.inf
    most = region[1] if region[1] < estimate.within[1] else math.inf
    if left > most:  # outside the region only the nearer side of the interval counts
        sides = [(left - low, left - most)]
    elif right < least:
        sides = [(high - right, least - right)]
    else:
        sides = [(left - low, left - least), (high - right, most - right)]
    ratio = 0.0
    for reach, distance in sides:
        if distance <= 0.0:
            return None
        if math.isfinite(distance):
            unknown = max(symmetric, math.sqrt(2.0) * distance)
            ratio = max(ratio, (reach if math.isfinite(reach) else unknown) / distance)
    needed = max(n + 1, math.ceil(n * ratio**2))
    return needed if needed <= MOST_BUDGETS * budget else None
