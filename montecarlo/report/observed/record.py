"""What an observation leaves on disk: tidy tables, and a record of what it says."""

import math
from pathlib import Path
from typing import Any

import pandas as pd

from montecarlo.estimation.estimates import POINTWISE
from montecarlo.model.diagnosis import Diagnosis
from montecarlo.model.head_quantities import FEWEST, HeadEstimate
from montecarlo.model.head_sums import MOST_ROWS
from montecarlo.model.heads import describe, tidy_applied
from montecarlo.model.observing import Observation, tidy
from montecarlo.model.row_values import SPECTRAL_ROWS
from montecarlo.model.steps import FACTOR, FROZEN, HOT, TREND, Steps
from montecarlo.model.telling import Finding, JudgedScales
from montecarlo.study.folder import write_json

TABLE, RECORD = "observation.csv", "observation.json"
#: Where weights or outputs were given.
SCALES, ROW = "applied-scale.csv", "applied-row.csv"
#: Where several steps of training were given.
STEPS = "steps.csv"
Record = dict[str, Any]


def write_observation(
    observation: Observation,
    judged: JudgedScales,
    row: pd.DataFrame,
    folder: Path,
    steps: Steps | None = None,
) -> None:
    """Write tables and record into an existing folder.

    ``row`` is from `montecarlo.model.rows.sample_row`; ``steps`` are those of
    training, if there are any.
    """
    tables = {TABLE: tidy(observation)}
    if judged.applied.heads:
        tables |= {SCALES: tidy_applied(judged.applied), ROW: row}
    if steps is not None:
        tables[STEPS] = steps.frame
    for name, table in tables.items():
        table.to_csv(folder / name, index=False, lineterminator="\n")
    record = record_observation(observation) | {"applied": record_applied(judged)}
    write_json(folder / RECORD, record | {"steps": record_steps(steps)})


def record_steps(steps: Steps | None) -> Record | None:
    """Return what is said of steps of training, as data."""
    if steps is None:
        return None
    warnings = {name: list(map(list, heads)) for name, heads in steps.warnings.items()}
    borders = {"hot": HOT, "frozen": FROZEN, "trend": TREND, "factor": FACTOR}
    return {"warnings": warnings, **borders}


def record_observation(observation: Observation) -> Record:
    """Return what an observation says, as data."""
    model = observation.model
    heads = [
        {"layer": view.head.layer, "head": view.head.head, **_diagnosis(view.diagnosis)}
        for view in observation.heads
    ]
    return {
        "d_k": model.d_k,
        "layers": list(model.layers),
        "heads_per_layer": len(model.head_labels),
        "key_heads_per_layer": len(model.key_heads),
        "n_sequences": observation.n_sequences,
        "intervals": observation.n_sequences >= FEWEST,
        "most_keys": model.most_tokens,
        "most_rows": MOST_ROWS,
        "spectral_rows": SPECTRAL_ROWS,
        "causal": model.causal,
        "divisor": observation.divisor,
        "seed": observation.seed,
        "heads": heads,
        "dead": [list(head) for head in observation.dead],
    }


def record_applied(judged: JudgedScales) -> Record:
    """Return what is said of the applied scale, as data: heads, and what is alike."""
    return {
        "expected": judged.expected.typed,
        "expected_divisor": judged.expected.value,
        "source": judged.applied.heads[0].source if judged.applied.heads else None,
        "rtol": judged.rtol,
        "answer": judged.answer,
        "heads": [_plain(describe(one)) for one in judged.applied.heads],
        "findings": [_finding(one) for one in judged.findings],
    }


def _finding(found: Finding) -> Record:
    told = found.first.outcome == "scale"
    return {
        "places": found.places,
        "outcome": found.first.outcome,
        "answer": found.answer,
        "divisor": found.divisor if told else None,
        "half_width": found.half_width if told else None,
        "within": [usual.name for usual in found.within],
        "nearest": [usual.name for usual in found.first.usual],
        "ratio": _finite(found.ratio),
        "hints": list(found.hints),
        "form": found.first.form,
        "parameter": _plain(describe(found.first))["parameter"],
        "mask": found.first.mask,
        "window": found.first.window,
        "sums": found.first.sums,
        "row_sum": _finite(found.first.row_sum),
    }


def _plain(values: dict[str, object]) -> Record:
    return {
        name: _finite(value) if isinstance(value, float) else value
        for name, value in values.items()
    }


def _diagnosis(diagnosis: Diagnosis) -> Record:
    return {
        "state": diagnosis.state,
        "assumptions": [
            {
                "name": fault.name,
                "verdict": str(fault.verdict),
                "factor": fault.factor.value,
                **_ends(fault.factor, POINTWISE),
            }
            for fault in diagnosis.faults
        ],
    }


def _ends(estimate: HeadEstimate, error_rate: float) -> Record:
    low, high = estimate.interval(error_rate)
    return {"low": _finite(low), "high": _finite(high)}


def _finite(value: float) -> float | None:
    """JSON has no infinity and no NaN."""
    return value if math.isfinite(value) else None
