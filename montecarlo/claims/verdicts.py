"""Verdicts: from intervals and regions up to interpretations and claims.

A check is decided by equivalence: supported where the simultaneous interval lies inside
the region that matters, refuted where it lies outside, undecided across an end.
"""

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum

from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import Interval, t_quantile

#: An undecided case that would need more than this many budgets is too close to call.
MOST_BUDGETS = 100


class Verdict(StrEnum):
    """How a case, an interpretation or a claim came out."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    CONDITIONAL = "conditional"
    INCONCLUSIVE = "inconclusive"
    PREMISE_NOT_MET = "premise_not_met"
    NOT_APPLICABLE = "not_applicable"
    DOCUMENTED = "documented"
    CONTRADICTED_BY_RECORD = "contradicted_by_record"
    NOT_MEASURED = "not_measured"


DECIDED = frozenset({Verdict.SUPPORTED, Verdict.REFUTED, Verdict.CONDITIONAL})


def decide(interval: Interval, region: tuple[float, float]) -> Verdict:
    """Compare an interval with the region that matters, both ends included."""
    if math.isnan(interval.low) or math.isnan(interval.high):
        return Verdict.INCONCLUSIVE
    if region[0] <= interval.low and interval.high <= region[1]:
        return Verdict.SUPPORTED
    if interval.high < region[0] or region[1] < interval.low:
        return Verdict.REFUTED
    return Verdict.INCONCLUSIVE


def all_of(outcomes: Iterable[Verdict]) -> Verdict:
    """Join the checks of one place: each of them has to hold there."""
    found = set(outcomes)
    for verdict in (
        Verdict.REFUTED,
        Verdict.INCONCLUSIVE,
        Verdict.NOT_APPLICABLE,
        Verdict.SUPPORTED,
    ):
        if verdict in found:
            return verdict
    return Verdict.NOT_MEASURED


def interpretation_verdict(
    quantifier: str,
    outcomes: Sequence[Verdict],
    share: float = 0.5,
    *,
    complete: bool = False,
) -> Verdict:
    """Join the cases of one interpretation, as it is said.

    Parameters
    ----------
    quantifier : {"always", "usually", "can", "limit"}
        ``can`` asks for one case, ``usually`` for a share of them, ``always`` and
        ``limit`` (whose cases are numbers of keys) for all.
    outcomes : sequence of Verdict
        One per case; those that are not applicable do not vote.
    share : float
        What part ``usually`` asks for, each case of the same weight.
    complete : bool
        Whether nothing more can be had on these cases: then one that is against it
        refutes what is said of all, if none is for it, though others stay open.
    """
    votes = [v for v in outcomes if v != Verdict.NOT_APPLICABLE]
    if not outcomes:
        return Verdict.NOT_MEASURED
    if not votes:
        return Verdict.NOT_APPLICABLE
    if quantifier == "can" and Verdict.SUPPORTED in votes:
        return Verdict.SUPPORTED
    if complete and set(votes) == {Verdict.REFUTED, Verdict.INCONCLUSIVE}:
        return Verdict.INCONCLUSIVE if quantifier == "can" else Verdict.REFUTED
    if quantifier == "usually":
        return _usual(votes, share)
    return _agree(set(votes))


def _usual(votes: Sequence[Verdict], share: float) -> Verdict:
    """Compare the share of places that are for it with what is asked.

    Where some are for it, but too few, it depends on the place; open ones count for
    neither side.
    """
    wanted = share * len(votes)
    supported, refuted = (votes.count(v) for v in (Verdict.SUPPORTED, Verdict.REFUTED))
    if supported >= wanted:
        return Verdict.SUPPORTED
    if len(votes) - refuted >= wanted:
        return Verdict.INCONCLUSIVE
    if supported:
        return Verdict.CONDITIONAL
    return Verdict.REFUTED if refuted == len(votes) else Verdict.INCONCLUSIVE


def claim_verdict(interpretations: Sequence[Verdict]) -> Verdict:
    """Join a claim's interpretations: what they agree on, else conditional.

    One that the grid has no place for leaves the claim open, unless others differ.
    """
    votes = set(interpretations) - {Verdict.NOT_APPLICABLE}
    if votes <= {Verdict.NOT_MEASURED}:
        return Verdict.NOT_MEASURED if votes else Verdict.NOT_APPLICABLE
    if Verdict.NOT_MEASURED in votes:
        votes = votes - {Verdict.NOT_MEASURED} | {Verdict.INCONCLUSIVE}
    return _agree(votes)


def _agree(votes: set[Verdict]) -> Verdict:
    """Return what all agree on; conditional where decided ones differ."""
    if len(votes) == 1:
        return next(iter(votes))
    decided = votes & DECIDED
    if len(decided) > 1 or Verdict.CONDITIONAL in decided:
        return Verdict.CONDITIONAL
    return Verdict.INCONCLUSIVE


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
        the edge; or where there is no standard error.

    Notes
    -----
    What is in the way is the side of the interval that decides which reaches across an
    end of the region: it shrinks with the root of the number of replicates.  Where few
    replicates make all of the variance that side has no end; then at least twice as
    many are needed, and no fewer than a symmetric interval would take.
    """
    value, n = estimate.value, estimate.n_replicates
    low, high = estimate.ends(error_rate)  # a range that cuts it does not shrink
    symmetric = t_quantile(error_rate, n) * estimate.std_error
    if not math.isfinite(symmetric):
        return None
    least, most = region
    if least <= estimate.within[0]:  # which nothing can cross
        least = -math.inf
    if most >= estimate.within[1]:
        most = math.inf
    below, above = (value - low, value - least), (high - value, most - value)
    if value > most:  # out of the region, only one side is in the way
        above, below = (0.0, math.inf), (value - low, value - most)
    elif value < least:
        above, below = (high - value, least - value), (0.0, math.inf)
    ratios = [0.0]
    for reach, distance in (below, above):
        if distance == 0.0:
            return None
        if math.isfinite(distance):
            unknown = max(symmetric, math.sqrt(2.0) * distance)
            ratios.append((reach if math.isfinite(reach) else unknown) / distance)
    ratio = max(ratios)
    needed = max(n + 1, math.ceil(n * ratio**2))
    return needed if needed <= MOST_BUDGETS * budget else None
