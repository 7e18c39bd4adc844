"""From the arguments of ``python -m montecarlo.judge`` to verdicts and a report."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from montecarlo.claims.verdicts import Verdict
from montecarlo.estimation.executors import make_executor
from montecarlo.names import decimal_number, look_up, whole_number
from montecarlo.own_claims import own_study
from montecarlo.report.command import Target, write_report
from montecarlo.report.options import choose_languages, configured
from montecarlo.report.own_words import read_own_claims
from montecarlo.study import run_study


def answer(arguments: argparse.Namespace, typed: Sequence[str]) -> tuple[str, bool]:
    """Judge a file; returns what to print and whether a verdict is failing.

    Parameters
    ----------
    arguments : argparse.Namespace
    typed : sequence of str
        The command line, for timing.json.

    Raises
    ------
    ValueError
        One line: name, requirement, what came.
    OSError, RuntimeError
        If the run could not finish; a previous report is as it was.
    """
    verdicts = {verdict.value: verdict for verdict in Verdict}
    named = [name.strip() for name in arguments.fail_on.split(",") if name.strip()]
    named = [] if named == ["none"] else named
    fail_on = {look_up("fail-on", name, verdicts).value for name in named}
    error_rate = decimal_number("error-rate", arguments.error_rate)
    if not 0.0 < error_rate < 0.5:
        raise ValueError(f"error-rate must lie between 0 and 0.5, got {error_rate!r}")
    seed = whole_number("seed", arguments.seed)
    jobs = None if arguments.jobs is None else whole_number("jobs", arguments.jobs)
    executor = arguments.executor
    configured({"seed": seed, "jobs": jobs, "executor": executor})
    catalogue, content = read_own_claims(Path(arguments.file))
    study = own_study(
        catalogue, preset=arguments.preset, seed=seed, error_rate=error_rate
    )
    if arguments.report is not None:
        languages = choose_languages(arguments.lang or ("all",))
        folder = Path(arguments.report)
        target = Target(folder, languages, typed, jobs, quiet=False, executor=executor)
        results, _ = write_report(study, target, own_file=content)
        claims = results.claims["claims"]
    elif arguments.lang is not None:
        raise ValueError(f"--lang must stand with --report, got {arguments.lang[0]!r}")
    else:
        with make_executor(jobs, executor) as workers:
            claims = run_study(study, workers).claims["claims"]
    failing = any(claim["verdict"] in fail_on for claim in claims)
    if arguments.json:
        record = {"error_rate": error_rate, "seed": seed, "claims": claims}
        return json.dumps(record, ensure_ascii=False), failing
    lines = [line for claim in claims for line in _lines(claim)]
    if arguments.report is not None:
        lines.append(str(Path(arguments.report) / "index.html"))
    return "\n".join(lines), failing


def _lines(claim: dict[str, Any]) -> list[str]:
    """Return a claim as a line, and a line for each reading."""
    lines = [f"{claim['verdict']:<14} {claim['id']}"]
    for reading in claim["readings"]:
        outcomes = Counter(place["outcome"] for place in reading["places"])
        counts = ", ".join(f"{n} {name}" for name, n in sorted(outcomes.items()))
        lines.append(f"  {reading['verdict']:<14} {reading['id']}: {counts or 'none'}")
        lines += [f"  {'':<14} {line}" for line in _telling(reading)]
    return lines


def _telling(reading: dict[str, Any]) -> list[str]:
    """Return a line for the smallest place of the worst outcome that was measured."""
    cells = [cell for check in reading["checks"] for cell in check["cells"]]
    for outcome in ("refuted", "inconclusive", "supported"):
        found = [
            cell
            for cell in cells
            if cell["outcome"] == outcome and cell["estimate"] is not None
        ]
        if found:
            cell = min(found, key=lambda c: (c["d_k_range"][1], c["n_keys"] or 0))
            return [_place_and_numbers(cell)]
    return []


def _place_and_numbers(cell: dict[str, Any]) -> str:
    low, high = cell["d_k_range"]
    place = [cell["context"] or cell["law"]]
    place += [f"d_k = {low}" if low == high else f"d_k = {low} to {high}"]
    place += [] if cell["n_keys"] is None else [f"n = {cell['n_keys']}"]
    error = "" if cell["std_error"] is None else f" ± {cell['std_error']:.2g}"
    least, most = cell["window_low"], cell["window_high"]
    if least is None:
        window = f"at most {most:.4g}"
    elif most is None:
        window = f"at least {least:.4g}"
    else:
        window = f"{least:.4g} to {most:.4g}"
    return f"{', '.join(place)}: {cell['estimate']:.4g}{error}, claimed {window}"
