"""How the claims come out on a trained model, beside the verdicts of the report.

The data are small and committed: the example observes the model, and
``docs/make_observed_model.py`` keeps what it says of the claims.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.observation.claims_here import label_here

TRAINED_FILE = "trained_model.json"


@dataclass(frozen=True, slots=True)
class TrainedReading:
    """A reading on the model: its verdict, and in how many heads it holds."""

    label: str | None
    verdict: str
    holds: int


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """What the table of claims shows of a trained model.

    Attributes
    ----------
    d_k, n_heads, n_sequences : int
    readings : mapping
        Claim to its readings that one model can decide.
    """

    d_k: int
    n_heads: int
    n_sequences: int
    readings: Mapping[str, Sequence[TrainedReading]]


def read_trained() -> TrainedModel:
    """Read what was observed, with the labels of the catalogue of today."""
    path = files("montecarlo.report").joinpath(TRAINED_FILE)
    record = json.loads(path.read_text(encoding="utf-8"))
    readings = {}
    for claim in read_catalogue().claim:
        known = {reading.id for reading in claim.reading}
        readings[claim.id] = [
            TrainedReading(
                label_here(claim, one["reading"]),
                one["verdict"],
                one["heads"].get("supported", 0),
            )
            for one in record["readings"]
            if one["claim"] == claim.id and one["reading"] in known
        ]
    return TrainedModel(
        record["d_k"], record["n_heads"], record["n_sequences"], readings
    )
