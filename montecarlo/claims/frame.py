"""What a catalogue says of its claims, in the shape of their records."""

import json
from typing import Any

import msgspec

from montecarlo.claims.checks import Check
from montecarlo.claims.records import said_check
from montecarlo.claims.schema import Catalogue, Claim, Interpretation


def catalogue_frame(catalogue: Catalogue) -> Any:  # noqa: ANN401 - plain data
    """Return what every record of a catalogue's outcomes has, wherever it came from.

    Parameters
    ----------
    catalogue : Catalogue

    Returns
    -------
    dict
        As `montecarlo.claims.records` makes it, as JSON has it, but for verdicts,
        places and numbers.
    """
    frame = {
        "claims": [_claim(claim) for claim in catalogue.claim],
        "passages": [
            {"id": passage.id, "checks": _checks(passage.sentence.check)}
            for passage in catalogue.passage
        ],
        "self_checks": [
            {"id": one.id, "checks": _checks(one.check)} for one in catalogue.self_check
        ],
        "models": catalogue.model,
        "records": catalogue.record,
    }
    return json.loads(msgspec.json.encode(frame))


def _claim(claim: Claim) -> dict[str, object]:
    voting = claim.admitted()
    right, concedes = claim.right, claim.concedes
    return {
        "id": claim.id,
        "kind": claim.kind,
        "topic": claim.topic,
        "sources": claim.source,
        "interpretations": [
            _interpretation(one, votes=one.id in voting) for one in claim.interpretation
        ],
        "findings": [{"checks": _checks(one.check)} for one in claim.finding],
        "right": None if right is None else {"checks": _checks(right.check)},
        "concedes": None if concedes is None else {"checks": _checks(concedes.check)},
    }


def _interpretation(
    interpretation: Interpretation, *, votes: bool
) -> dict[str, object]:
    return {
        "id": interpretation.id,
        "quantifier": interpretation.quantifier,
        "form": interpretation.form,
        "share": interpretation.share,
        "checks": _checks(interpretation.check),
        "votes": votes,
    }


def _checks(checks: tuple[Check, ...]) -> list[dict[str, object]]:
    return [said_check(check) for check in checks]
