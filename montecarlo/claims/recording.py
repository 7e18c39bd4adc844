"""What a study writes of itself: its tables, and what its bytes depend on."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from montecarlo.claims.record import CLAIMS_FILE
from montecarlo.claims.running import Study, StudyResults
from montecarlo.study.fingerprint import code_digest, made_with
from montecarlo.study.folder import write_json


def write_results(results: StudyResults, folder: Path) -> dict[str, Any]:
    """Write the tables and claims.json, and return the record for run.json.

    Parameters
    ----------
    results : StudyResults
    folder : Path
        An existing folder.

    Returns
    -------
    dict
        Seed, grid, configuration, versions and replicates; nothing of how it ran.
    """
    for name, table in (
        ("measurements.csv", results.measurements),
        ("curves.csv", results.curves),
    ):
        table.to_csv(folder / name, index=False, lineterminator="\n")
    write_json(folder / CLAIMS_FILE, msgspec.to_builtins(results.claims))
    study = results.study
    return {
        **configuration(study),
        "replicates": results.replicates,
        "time_limit_reached": results.time_limit_reached,
    }


def configuration(study: Study) -> dict[str, Any]:
    """Return what a study is, for run.json: what its bytes depend on."""
    return {
        "seed": study.seed,
        "preset": study.preset,
        "error_rate": study.error_rate,
        "claims": [claim.id for claim in study.catalogue.claim],
        "grid": msgspec.to_builtins(study.grid),
        **made_with(),
    }


def recipe(study: Study) -> dict[str, Any]:
    """Return what tells the batches of a study from those of another.

    Its configuration, what its checks ask for, and the code that draws: the version of
    a checkout stays the same while its code changes.
    """
    checks = msgspec.json.encode(list(study.catalogue.checks()))
    return {
        **configuration(study),
        "checks": hashlib.sha256(checks).hexdigest(),
        "whole_grid": study.whole_grid,
        "batch": study.batch,
        "replicates": study.replicates,
        "code": code_digest(),
    }
