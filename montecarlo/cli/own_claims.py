"""From the arguments of ``python -m montecarlo judge`` to verdicts and a report."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec
import pandas as pd

from montecarlo.calibration.card import Counted, count_rate, read_card
from montecarlo.claims.outcomes import CaseOutcome, ClaimOutcome, InterpretationOutcome
from montecarlo.claims.record import ClaimsRecord
from montecarlo.claims.verdicts import Verdict
from montecarlo.cli.exits import DONE, FAILING, NOT_REACHED
from montecarlo.errors import InputError
from montecarlo.execution.executors import make_executor
from montecarlo.names import (
    look_up_all,
    parse_decimal,
    parse_folder,
    parse_jobs,
    parse_seed,
)
from montecarlo.printing import print_lines
from montecarlo.report.command import write_report
from montecarlo.report.failing import FAIL_ON
from montecarlo.report.language.own_words import read_own_claims
from montecarlo.report.options import Target, choose_languages, configure
from montecarlo.study.own_claims import find_unjudged, most_seconds, own_study
from montecarlo.study.running import run_study

#: What ``--fail-on`` names by default.
DEFAULT = ("refuted", "inconclusive", "self-check")
#: From this length on, a run of powers of two is printed by its ends.
SHORTENED = 4
#: Seconds from which on the cost is told before sampling.
LONG = 120.0


def answer(arguments: argparse.Namespace, typed: Sequence[str]) -> tuple[str, int]:
    """Judge a file; returns what to print and the exit status."""
    outcomes = {name: name for name in (*[v.value for v in Verdict], *FAIL_ON)}
    fail_on = set(look_up_all("fail-on", arguments.fail_on or DEFAULT, outcomes))
    error_rate = parse_decimal("error-rate", arguments.error_rate)
    if not 0.0 < error_rate < 0.5:
        raise InputError(f"error-rate must lie between 0 and 0.5, got {error_rate!r}")
    seed, jobs = parse_seed(arguments.seed), parse_jobs(arguments.jobs)
    executor = arguments.executor
    configure({"seed": seed, "jobs": jobs, "executor": executor})
    folder = None
    if arguments.output is not None:
        folder = parse_folder("output", arguments.output)
    catalogue, content = read_own_claims(Path(arguments.file))
    study = own_study(
        catalogue, preset=arguments.preset, seed=seed, error_rate=error_rate
    )
    if (seconds := most_seconds(study)) > LONG:
        limit = f"up to about {seconds:.0f} s on one core"
        print_lines(f"judge: the ranges of these claims take {limit}", sys.stderr)
    open_ends = list(find_unjudged(study))
    for line in open_ends:
        print_lines(f"judge: {line}", sys.stderr)
    if folder is not None:
        languages = choose_languages(arguments.lang or ("all",))
        target = Target(folder, languages, typed, jobs, executor)
        written, _ = write_report(study, target, own_file=content)
        measurements: pd.DataFrame = written.measurements
        judged: ClaimsRecord = written.claims
    elif arguments.lang is not None:
        raise InputError(f"--lang must stand with --output, got {arguments.lang[0]!r}")
    else:
        with make_executor(jobs, executor) as workers:
            results = run_study(study, workers)
        measurements, judged = results.measurements, results.claims
    failing = any(one.verdict in fail_on for one in judged.claims)
    if failed := judged.failed_self_checks():
        print_lines(f"judge: self-checks refuted: {', '.join(failed)}", sys.stderr)
        failing = failing or "self-check" in fail_on
    status = FAILING if failing else NOT_REACHED if open_ends else DONE
    simultaneous_error, card = judged.simultaneous_error, read_card()
    worth = None if card is None else count_rate(card, simultaneous_error)
    if arguments.json:
        record = {
            "error_rate": error_rate,
            "simultaneous_error": simultaneous_error,
            "error_rate_counted": None if worth is None else asdict(worth),
            "seed": seed,
            "claims": msgspec.to_builtins(judged.claims),
        }
        return json.dumps(record), status
    d_k = dict(zip(measurements["row_id"], map(int, measurements["d_k"]), strict=True))
    lines = [line for claim in judged.claims for line in _lines(claim, d_k)]
    lines += [f"{one.verdict:<14} {one.id} (self-check)" for one in judged.self_checks]
    lines += _error_rate(error_rate, worth)
    if folder is not None:
        lines.append(str(folder / "index.html"))
    return "\n".join(lines), status


def _error_rate(nominal: float, worth: Counted | None) -> list[str]:
    """Tell the nominal error rate, and what such rates were found to be worth."""
    lines = [f"error rate     nominal {100.0 * nominal:.3g} % for the whole file"]
    if worth is None:
        return lines
    pairs = zip(worth.times, worth.nominal, strict=True)
    times = ", ".join(f"{times:.2f} times at {rate:g}" for times, rate in pairs)
    too_small = worth.simultaneous_error < min(worth.nominal)
    how = "extrapolated, since too rare to be counted," if too_small else "found"
    lines.append(
        f"  {'counted':<14} one interval on one side misses at worst {times}; {how} by "
        f"a {worth.model}: {worth.extrapolated:.2f} times at "
        f"{worth.simultaneous_error:g}, "
        "its rate here"
    )
    if worth.not_counted:
        lines.append(f"  {'not counted':<14} {', '.join(worth.not_counted)}")
    return lines


def _lines(claim: ClaimOutcome, d_k: Mapping[str, int]) -> list[str]:
    """Return a claim as a line, and two lines for each interpretation."""
    lines = [f"{claim.verdict:<14} {claim.id}"]
    for one in claim.interpretations:
        outcomes = Counter(case.outcome for case in one.cases)
        counts = ", ".join(f"{n} {name}" for name, n in sorted(outcomes.items()))
        text = f"  {one.verdict:<14} {one.id}: {counts or 'none'}"
        lines.append("; ".join([text, *_name_cases(one, d_k)]))
        lines += [f"  {'':<14} {line}" for line in _tell_worst(one)]
    return lines


def _name_cases(one: InterpretationOutcome, d_k: Mapping[str, int]) -> list[str]:
    """Name an interpretation's cases: distributions if several, d_k and n."""
    cases = [case for check in one.checks for case in check.cases]
    distributions = dict.fromkeys(case.context or case.distribution for case in cases)
    sizes = {d_k[row] for case in cases for row in case.rows}
    n_keys = {case.n_keys for case in cases if case.n_keys is not None}
    return [
        *[", ".join(distributions)] * (len(distributions) > 1),
        *[f"d_k = {_list_sizes(sizes)}"] * bool(sizes),
        *[f"n = {_list_sizes(n_keys)}"] * bool(n_keys),
    ]


def _list_sizes(sizes: Iterable[int]) -> str:
    """List sizes; runs of powers of two by their ends.

    Examples
    --------
    >>> _list_sizes([3, 4, 8, 16, 32, 40])
    '3, 4 to 32 (4 powers of two), 40'
    """
    runs: list[list[int]] = []
    for size in sorted(sizes):
        is_power = size & (size - 1) == 0
        if runs and is_power and 2 * runs[-1][-1] == size:  # then it is one as well
            runs[-1].append(size)
        else:
            runs.append([size])
    return ", ".join(
        f"{run[0]} to {run[-1]} ({len(run)} powers of two)"
        if len(run) >= SHORTENED
        else ", ".join(map(str, run))
        for run in runs
    )


def _tell_worst(one: InterpretationOutcome) -> list[str]:
    """Return a line for the smallest case of the worst outcome that was measured."""
    cases = [case for check in one.checks for case in check.cases]
    for outcome in ("refuted", "inconclusive", "supported"):
        found = [c for c in cases if c.outcome == outcome and c.estimate is not None]
        if found:
            return [_case_and_numbers(min(found, key=_size))]
    return []


def _size(case: CaseOutcome) -> tuple[int, int]:
    return (case.d_k_range or (0, 0))[1], case.n_keys or 0


def _case_and_numbers(case: CaseOutcome) -> str:
    low, high = case.d_k_range or (0, 0)
    place = [case.context or case.distribution]
    place += [f"d_k = {low}" if low == high else f"d_k = {low} to {high}"]
    place += [] if case.n_keys is None else [f"n = {case.n_keys}"]
    error = "" if case.std_error is None else f" ± {case.std_error:.2g}"
    least, most = case.region_low, case.region_high
    if least is None:
        region = f"at most {most:.4g}"
    elif most is None:
        region = f"at least {least:.4g}"
    else:
        region = f"{least:.4g} to {most:.4g}"
    return f"{', '.join(place)}: {case.estimate:.4g}{error}, claimed {region}"
