"""How the claims come out on a trained model, beside the verdicts of the report.

The data are small and committed: the example observes the model, and
``docs/make_observed_model.py`` keeps what it says of the claims.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from montecarlo.claims.schema import Catalogue
from montecarlo.observation.evidence import label_here

TRAINED_FILE = "trained_model.json"


@dataclass(frozen=True, slots=True)
class TrainedInterpretation:
    """An interpretation on the model: its verdict, and in how many heads it holds."""

    label: str | None
    verdict: str
    holds: int


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """What the table of claims shows of a trained model.

    Attributes
    ----------
    d_k, n_heads, n_sequences : int
    interpretations : mapping
        Claim to its interpretations that one model can decide.
    """

    d_k: int
    n_heads: int
    n_sequences: int
    interpretations: Mapping[str, Sequence[TrainedInterpretation]]


def view_trained(catalogue: Catalogue) -> TrainedModel:
    """Return what was observed, with the labels of a catalogue."""
    path = Path(__file__).with_name(TRAINED_FILE)
    record = json.loads(path.read_text(encoding="utf-8"))
    interpretations = {}
    for claim in catalogue.claim:
        interpretations[claim.id] = [
            TrainedInterpretation(
                label_here(claim, one["interpretation"]),
                one["verdict"],
                one["heads"].get("supported", 0),
            )
            for one in record["interpretations"]
            if one["claim"] == claim.id and one["interpretation"] in claim.admitted()
        ]
    return TrainedModel(
        record["d_k"], record["n_heads"], record["n_sequences"], interpretations
    )
