"""From the arguments of ``python -m montecarlo.judge`` to verdicts and its lines."""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from montecarlo.claims.verdicts import Verdict
from montecarlo.estimation.executors import available_cores, make_executor
from montecarlo.names import decimal_number, look_up, whole_number
from montecarlo.own_claims import judge_file


def answer(arguments: argparse.Namespace) -> tuple[str, bool]:
    """Judge a file; returns what to print and whether a verdict is failing.

    Raises
    ------
    ValueError
        One line: name, requirement, what came.
    """
    verdicts = {verdict.value: verdict for verdict in Verdict}
    named = [name.strip() for name in arguments.fail_on.split(",") if name.strip()]
    fail_on = {look_up("fail-on", name, verdicts).value for name in named}
    error_rate = decimal_number("error-rate", arguments.error_rate)
    if not 0.0 < error_rate < 0.5:
        raise ValueError(f"error-rate must lie between 0 and 0.5, got {error_rate!r}")
    seed = whole_number("seed", arguments.seed)
    jobs = available_cores()
    if arguments.jobs is not None:
        jobs = whole_number("jobs", arguments.jobs)
    with make_executor(jobs) as executor:
        results = judge_file(
            Path(arguments.file),
            executor,
            preset=arguments.preset,
            seed=seed,
            error_rate=error_rate,
        )
    claims = results.claims["claims"]
    failing = any(claim["verdict"] in fail_on for claim in claims)
    if arguments.json:
        record = {"error_rate": error_rate, "seed": seed, "claims": claims}
        return json.dumps(record, ensure_ascii=False), failing
    return "\n".join(line for claim in claims for line in _lines(claim)), failing


def _lines(claim: dict[str, Any]) -> list[str]:
    """Return a claim as a line, and a line for each reading."""
    lines = [f"{claim['verdict']:<14} {claim['id']}"]
    for reading in claim["readings"]:
        outcomes = Counter(place["outcome"] for place in reading["places"])
        counts = ", ".join(f"{n} {name}" for name, n in sorted(outcomes.items()))
        lines.append(f"  {reading['verdict']:<14} {reading['id']}: {counts or 'none'}")
    return lines
