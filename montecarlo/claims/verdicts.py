"""Outcomes of checks, and verdicts on propositions and claims.

A case is decided by equivalence: supported where the simultaneous interval lies inside
the region that matters, refuted where it lies outside, undecided across an end.  How
cases join into a verdict follows from how the sentence is said, which is data.
"""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval, t_quantile

#: An undecided case that would need more than this many budgets is too close to call.
MOST_BUDGETS = 100

#: Errors of exact values are smaller than this part of them, and of 1.
NUMERICAL = 2e-6

#: What a sentence says of its cases: that it is so in all of them, in most of a list
#: that others published, in at least one, or in the limit.
Quantifier = Literal["always", "usually", "can", "limit"]


class Outcome(StrEnum):
    """How a check came out, in one case or in all."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_APPLICABLE = "not_applicable"


class Verdict(StrEnum):
    """How a claim came out, or one proposition of it."""

    HOLDS = "holds"
    PARTLY = "partly"
    VAGUE = "vague"
    FAILS = "fails"
    OPEN = "open"
    ASSUMED = "assumed"


class Reason(StrEnum):
    """Why a verdict is what it is."""

    #: holds, fails: by measurement, by theory or algebra, by a source
    MEASURED = "measured"
    THEORY = "theory"
    SOURCE = "source"
    #: partly: an equality that is not exact; it depends on a premise that the sentence
    #: omits; so is one part of what is said, and not another; its texts differ
    NEARLY = "nearly"
    DEPENDS = "depends"
    HALF = "half"
    TEXTS = "texts"
    #: vague: a word without a measure in its text; "usually", without a published list
    WORD = "word"
    LIST = "list"
    #: open: the sample does not tell; it does not reach
    SAMPLE = "sample"
    REACH = "reach"
    #: assumed
    PREMISE = "premise"


class Ruling(Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict with its reason."""

    verdict: Verdict
    reason: Reason


UNREACHED = Ruling(Verdict.OPEN, Reason.REACH)
#: Those of a case that was decided.
DECIDED = frozenset({Outcome.SUPPORTED, Outcome.REFUTED})


def decide(interval: Interval, region: tuple[float, float]) -> Outcome:
    """Compare an interval with the region that matters, both ends included."""
    if math.isnan(interval.low) or math.isnan(interval.high):
        return Outcome.UNDECIDED
    if region[0] <= interval.low and interval.high <= region[1]:
        return Outcome.SUPPORTED
    if interval.high < region[0] or region[1] < interval.low:
        return Outcome.REFUTED
    return Outcome.UNDECIDED


def decide_exactly(exact: float, region: tuple[float, float]) -> Outcome:
    """Compare an exact value with the region that matters, both ends included.

    Undecided next to an end, where its numerical error may lie between the two.
    """
    slack = NUMERICAL * max(1.0, abs(exact))
    if any(0.0 < abs(exact - end) <= slack for end in region):
        return Outcome.UNDECIDED
    return decide(Interval(exact, exact), region)


def all_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Join the checks of one case: each of them has to hold there."""
    found = set(outcomes)
    ranked = (Outcome.REFUTED, Outcome.UNDECIDED, Outcome.NOT_APPLICABLE)
    return next((one for one in ranked if one in found), Outcome.SUPPORTED)


def join_cases(
    quantifier: Quantifier, outcomes: Iterable[Outcome], *, reached: bool = True
) -> Verdict:
    """Return whether a proposition holds, fails or is open, from its cases.

    Parameters
    ----------
    quantifier : str
        ``always`` and ``limit``, whose cases are numbers of keys: one case against it,
        and it fails.  ``can``: it holds by one case.  ``usually``: by more than half.
    outcomes : iterable of Outcome
        One for each case; those that are not applicable do not count.
    reached : bool
        Whether the cases reach the whole scope.  If not, that none of them is for it
        does not refute what can be, nor is a share known.
    """
    found = [one for one in outcomes if one != Outcome.NOT_APPLICABLE]
    supported = found.count(Outcome.SUPPORTED)
    refuted = found.count(Outcome.REFUTED)
    if quantifier == "usually":
        holds, fails = 2 * supported > len(found), 2 * refuted >= len(found)
        holds, fails = reached and holds, reached and fails
    elif quantifier == "can":
        holds, fails = supported > 0, reached and refuted == len(found)
    else:
        holds, fails = supported == len(found), refuted > 0
    if not found or not (holds or fails):
        return Verdict.OPEN
    return Verdict.HOLDS if holds else Verdict.FAILS


def join_conditions(verdicts: Iterable[Verdict]) -> Verdict:
    """Join the values of a premise that a sentence omits: partly, where it decides."""
    found = set(verdicts)
    if {Verdict.HOLDS, Verdict.FAILS} <= found:
        return Verdict.PARTLY
    return Verdict.OPEN if len(found) != 1 else found.pop()


def join_parts(rulings: Iterable[Ruling]) -> Ruling:
    """Join the propositions that one text puts into a claim.

    It is partly so where one of them holds and another does not; where none holds, it
    fails if one of them fails.
    """
    found = [*dict.fromkeys(rulings)]
    verdicts = {one.verdict for one in found}
    if len(found) < 2:
        return found[0] if found else UNREACHED
    if verdicts == {Verdict.HOLDS}:
        return Ruling(Verdict.HOLDS, Reason.MEASURED)
    is_so = verdicts & {Verdict.HOLDS, Verdict.PARTLY}
    if is_so and verdicts - {Verdict.HOLDS, Verdict.OPEN}:
        return Ruling(Verdict.PARTLY, Reason.HALF)
    ranked = (Verdict.OPEN, Verdict.FAILS, Verdict.VAGUE)
    worst = next(one for one in ranked if one in verdicts)
    return next(one for one in found if one.verdict == worst)


def join_texts(rulings: Iterable[Ruling]) -> Ruling:
    """Join what texts say: partly so where they came out differently."""
    found = [*dict.fromkeys(rulings)]
    decided = {one.verdict for one in found} - {Verdict.OPEN}
    if len(decided) > 1 or (decided == {Verdict.PARTLY} and len(found) > 1):
        return Ruling(Verdict.PARTLY, Reason.TEXTS)
    return join_parts(found)


def replicates_needed(
    estimate: Estimate, region: tuple[float, float], error_rate: float, budget: int
) -> int | None:
    """Return about how many replicates in all would decide an undecided case.

    Parameters
    ----------
    estimate : Estimate
    region : (float, float)
    error_rate : float
        One-sided, of the simultaneous interval.
    budget : int
        Replicates at most.

    Returns
    -------
    int or None
        More than there are.  None where it is more than a hundred budgets: too close to
        the edge; where there is no standard error; or where no number would, since an
        end of the region lies in the bin of a histogram that the estimate lies in.

    Notes
    -----
    What is in the way is the side of the interval that decides which reaches across an
    end of the region: it shrinks with the root of the number of replicates.  Where few
    replicates make all of the variance that side has no end; then at least twice as
    many are needed, and no fewer than a symmetric interval would take.
    """
    n = estimate.n_replicates
    left, right = estimate.smallest_interval or (estimate.value, estimate.value)
    low, high = estimate.ends(error_rate)  # a range that cuts it does not shrink
    symmetric = t_quantile(error_rate, n) * estimate.std_error
    if not math.isfinite(symmetric):
        return None
    least, most = region
    if least <= estimate.within[0]:  # which nothing can cross
        least = -math.inf
    if most >= estimate.within[1]:
        most = math.inf
    if left > most:  # out of the region, only one side is in the way
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
