"""Outcomes of checks on heads, joined to verdicts on what texts say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from montecarlo.claims.verdicts import Verdict, all_of, interpretation_verdict
from montecarlo.observation.claims_here import CheckHere


@dataclass(frozen=True, slots=True)
class InterpretationHere:
    """An interpretation of a claim, judged on all heads of a model.

    Attributes
    ----------
    claim, interpretation : str
    verdict : Verdict
        Of all heads together.
    counts : mapping
        How many heads have each outcome.
    """

    claim: str
    interpretation: str
    verdict: Verdict
    counts: Mapping[str, int]


def judge_interpretations(
    checks: Sequence[CheckHere],
    outcomes: Sequence[Sequence[Verdict]],
    broken: Sequence[bool],
) -> list[InterpretationHere]:
    """Join the outcomes of checks on heads to verdicts on interpretations.

    Parameters
    ----------
    checks : sequence of CheckHere
    outcomes : sequence of sequence of Verdict
        For each head, one outcome a check.
    broken : sequence of bool
        For each head, whether what texts assume of its entries fails.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for number, one in enumerate(checks):
        places.setdefault((one.claim, one.interpretation), []).append(number)
    judged = []
    for (claim, interpretation), numbers in places.items():
        heads = [all_of(head[number] for number in numbers) for head in outcomes]
        counts = {str(v): heads.count(v) for v in Verdict if v in heads}
        verdict = _join(checks[numbers[0]], heads, broken)
        judged.append(InterpretationHere(claim, interpretation, verdict, counts))
    return judged


def _join(
    check: CheckHere, heads: Sequence[Verdict], broken: Sequence[bool]
) -> Verdict:
    """Join heads: what is said of every head fails by one, if no head supports it.

    What is said under a premise is not refuted by heads that do not meet it.
    """
    votes = set(heads)
    verdict = interpretation_verdict(check.quantifier, heads, check.share)
    fails = Verdict.REFUTED in votes and Verdict.SUPPORTED not in votes
    if fails and check.quantifier != "can":
        verdict = Verdict.REFUTED
    failing = verdict in (Verdict.REFUTED, Verdict.CONDITIONAL)
    against = [no for no, v in zip(broken, heads, strict=True) if v == Verdict.REFUTED]
    if check.premises and failing and all(against):
        return Verdict.PREMISE_NOT_MET
    return verdict
