"""Verdicts: from intervals and regions up to interpretations and claims.

A case is decided by equivalence: supported where the simultaneous interval lies inside
the region that matters, refuted where it lies outside, undecided across an end.  How
cases join depends on the logic of the sentence, which the catalogue states.
"""

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Literal

from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval, t_quantile

#: An undecided case that would need more than this many budgets is too close to call.
MOST_BUDGETS = 100

#: Errors of exact values are smaller than this part of them, and of 1.
NUMERICAL = 2e-6

#: What a sentence needs of its cases.  ``equality`` is one of distributions, ``degree``
#: a word that its text sets no border for.
Logic = Literal["always", "can", "usually", "generic", "limit", "equality", "degree"]


class Verdict(StrEnum):
    """How a case, an interpretation or a claim came out, as a page counts them.

    A case is supported, refuted, undecided or not applicable.
    """

    SUPPORTED = "supported"
    APPROXIMATE = "approximate"
    DEPENDS = "depends"
    REFUTED = "refuted"
    TALLY = "tally"
    DEGREE = "degree"
    UNDECIDED = "undecided"
    DOCUMENTED = "documented"
    CONTRADICTED_BY_RECORD = "contradicted_by_record"
    PREMISE = "premise"
    NOT_APPLICABLE = "not_applicable"
    NOT_MEASURED = "not_measured"


#: Those of a case that was decided.
DECIDED = frozenset({Verdict.SUPPORTED, Verdict.REFUTED})


def decide(interval: Interval, region: tuple[float, float]) -> Verdict:
    """Compare an interval with the region that matters, both ends included."""
    if math.isnan(interval.low) or math.isnan(interval.high):
        return Verdict.UNDECIDED
    if region[0] <= interval.low and interval.high <= region[1]:
        return Verdict.SUPPORTED
    if interval.high < region[0] or region[1] < interval.low:
        return Verdict.REFUTED
    return Verdict.UNDECIDED


def decide_exactly(exact: float, region: tuple[float, float]) -> Verdict:
    """Compare an exact value with the region that matters, both ends included.

    Undecided next to an end, where its numerical error may lie between the two.
    """
    slack = NUMERICAL * max(1.0, abs(exact))
    if any(0.0 < abs(exact - end) <= slack for end in region):
        return Verdict.UNDECIDED
    return decide(Interval(exact, exact), region)


def all_of(outcomes: Iterable[Verdict]) -> Verdict:
    """Join the checks of one case: each of them has to hold there."""
    found = set(outcomes)
    for verdict in (
        Verdict.REFUTED,
        Verdict.UNDECIDED,
        Verdict.NOT_APPLICABLE,
        Verdict.SUPPORTED,
    ):
        if verdict in found:
            return verdict
    return Verdict.NOT_MEASURED


def interpretation_verdict(
    logic: Logic,
    outcomes: Sequence[Verdict],
    *,
    share: float = 0.5,
    reached: bool = True,
) -> Verdict:
    """Join the cases of one interpretation by the logic of its sentence.

    Parameters
    ----------
    logic : str
        ``always`` and ``limit`` (whose cases are numbers of keys): one case against it
        refutes.  ``can``: one case supports.  ``usually``: a share of the cases, each
        of the same weight.  ``generic`` depends where cases differ.  ``equality`` is
        an approximation where all cases are within tolerance.  ``degree``: no verdict
        but the number.
    outcomes : sequence of Verdict
        One per case; those that are not applicable do not vote.
    share : float
        What part of the cases ``usually`` asks for.
    reached : bool
        Whether the cases reach the whole scope.  If not, that none of them is for it
        does not refute what is said of one, nor can a share be told.
    """
    found = [v for v in outcomes if v != Verdict.NOT_APPLICABLE]
    if not found:
        return Verdict.NOT_APPLICABLE if outcomes else Verdict.NOT_MEASURED
    supported, undecided = (
        found.count(Verdict.SUPPORTED),
        found.count(Verdict.UNDECIDED),
    )
    refuted = len(found) - supported - undecided
    if not reached and (logic == "usually" or (logic == "can" and not supported)):
        return Verdict.NOT_MEASURED
    if logic == "degree":
        return Verdict.DEGREE
    if logic == "generic" and supported and refuted:
        return Verdict.DEPENDS
    # how many cases must support it; a generic sentence waits for all of them
    wanted = {"can": 1.0, "usually": share * len(found)}.get(logic, len(found))
    if supported >= wanted:
        return Verdict.APPROXIMATE if logic == "equality" else Verdict.SUPPORTED
    open_still = supported + undecided >= wanted or (logic == "generic" and undecided)
    return Verdict.UNDECIDED if open_still else Verdict.REFUTED


def join_verdicts(verdicts: Iterable[Verdict]) -> Verdict:
    """Join propositions: what all of them came out as, else a tally of them.

    Those that are not applicable do not count.
    """
    found = set(verdicts)
    found = found - {Verdict.NOT_APPLICABLE} or found
    if len(found) > 1:
        return Verdict.TALLY
    return next(iter(found), Verdict.NOT_MEASURED)


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
    left, right = estimate.finest or (estimate.value, estimate.value)
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
