"""From the arguments of ``python -m montecarlo judge`` to verdicts and a report."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from montecarlo.calibration.card import Counted, count_rate, read_card
from montecarlo.claims.outcomes import CaseOutcome, ClaimOutcome, InterpretationOutcome
from montecarlo.claims.own_claims import (
    find_unjudged,
    most_seconds,
    own_study,
    say_case,
)
from montecarlo.claims.record import ClaimsRecord
from montecarlo.claims.running import Study, run_study
from montecarlo.cli.exits import DONE, FAILING, NOT_REACHED
from montecarlo.errors import InputError
from montecarlo.names import (
    look_up_all,
    parse_decimal,
    parse_folder,
    parse_jobs,
    parse_seed,
    require_error_rate,
)
from montecarlo.printing import print_lines
from montecarlo.report.command import write_report
from montecarlo.report.failing import FAIL_ON
from montecarlo.report.language.own_words import read_own_claims
from montecarlo.report.options import Target, choose_languages, configure
from montecarlo.study.executors import make_executor

#: What ``--fail-on`` names by default.
DEFAULT = ("refuted", "undecided", "self-check")
#: From this length on, a run of powers of two is printed by its ends.
SHORTENED = 4
#: Seconds from which on the cost is told before sampling.
LONG = 120.0


def answer(arguments: argparse.Namespace, typed: Sequence[str]) -> tuple[str, int]:
    """Judge each file by itself; returns what to print and the exit status.

    All files are read before anything is sampled.
    """
    outcomes = {name: name for name in FAIL_ON}
    fail_on = set(look_up_all("fail-on", arguments.fail_on or DEFAULT, outcomes))
    error_rate = require_error_rate(
        "error-rate", parse_decimal("error-rate", arguments.error_rate)
    )
    seed, jobs = parse_seed(arguments.seed), parse_jobs(arguments.jobs)
    configure({"seed": seed, "jobs": jobs, "executor": arguments.executor})
    folder = None
    if arguments.output is not None:
        folder = parse_folder("output", arguments.output)
    elif arguments.lang is not None:
        raise InputError(f"--lang must stand with --output, got {arguments.lang[0]!r}")
    files = [Path(name) for name in arguments.file]
    several = len(files) > 1
    asked = []
    for file in files:
        catalogue, content = read_own_claims(file)
        study = own_study(
            catalogue, preset=arguments.preset, seed=seed, error_rate=error_rate
        )
        target = None
        if folder is not None:
            languages = choose_languages(arguments.lang or ("all",))
            own = folder / file.stem if several else folder
            target = Target(own, languages, typed, jobs, arguments.executor)
        asked.append((file, study, target, content))
    if folder is not None and len({file.stem for file in files}) < len(files):
        raise InputError("files must have different names for --output")
    blocks, records, statuses = [], [], []
    for file, study, target, content in asked:
        judged, measurements, open_ends = _judge(study, target, content, arguments)
        status = _status(judged, fail_on, open_ends)
        statuses.append(status)
        named = {"file": str(file)} if several else {}
        records.append(named | _record(study, judged))
        text = "\n".join(_tell(study, judged, measurements, target))
        blocks.append(f"{file}\n{text}" if several else text)
    worst = max(statuses, key=(DONE, NOT_REACHED, FAILING).index)
    if arguments.json:
        return json.dumps({"files": records} if several else records[0]), worst
    return "\n\n".join(blocks), worst


def _judge(
    study: Study,
    target: Target | None,
    content: bytes,
    arguments: argparse.Namespace,
) -> tuple[ClaimsRecord, pd.DataFrame, list[str]]:
    """Sample and judge one file, and write its report; tells what is left open."""
    if (seconds := most_seconds(study)) > LONG:
        limit = f"up to about {seconds:.0f} s on one core"
        print_lines(f"judge: the ranges of these claims take {limit}", sys.stderr)
    open_ends = list(find_unjudged(study))
    for line in open_ends:
        print_lines(f"judge: {line}", sys.stderr)
    if target is not None:
        written, _ = write_report(study, target, own_file=content)
        return written.claims, written.measurements, open_ends
    jobs = parse_jobs(arguments.jobs)
    with make_executor(jobs, arguments.executor) as workers:
        results = run_study(study, workers)
    return results.claims, results.measurements, open_ends


def _status(
    judged: ClaimsRecord, fail_on: Collection[str], open_ends: Sequence[str]
) -> int:
    """Return the exit status of one file."""
    failing = any(one.verdicts & {*fail_on} for one in judged.claims)
    if failed := judged.failed_self_checks():
        print_lines(f"judge: self-checks refuted: {', '.join(failed)}", sys.stderr)
        failing = failing or "self-check" in fail_on
    if failing:
        return FAILING
    return NOT_REACHED if open_ends else DONE


def _worth(judged: ClaimsRecord) -> Counted | None:
    card = read_card()
    return None if card is None else count_rate(card, judged.simultaneous_error)


def _record(study: Study, judged: ClaimsRecord) -> dict[str, Any]:
    """Return what one file comes to, for JSON."""
    worth = _worth(judged)
    return {
        "error_rate": study.error_rate,
        "simultaneous_error": judged.simultaneous_error,
        "error_rate_counted": None if worth is None else asdict(worth),
        "seed": study.seed,
        "claims": msgspec.to_builtins(judged.claims),
    }


def _tell(
    study: Study,
    judged: ClaimsRecord,
    measurements: pd.DataFrame,
    target: Target | None,
) -> list[str]:
    """Return what one file comes to, in lines; verdicts are what stays in sight."""
    lines = [] if target is None else [str(target.output / "index.html")]
    d_k = dict(zip(measurements["row_id"], map(int, measurements["d_k"]), strict=True))
    lines += [line for claim in judged.claims for line in _lines(claim, d_k)]
    lines += [f"{one.verdict:<14} {one.id} (self-check)" for one in judged.self_checks]
    return [*lines, *_error_rate(study.error_rate, _worth(judged))]


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
    for outcome in ("refuted", "undecided", "supported"):
        found = [c for c in cases if c.outcome == outcome and c.estimate is not None]
        if found:
            one_case = min(found, key=_size)
            where, measured, claimed = say_case(one_case)
            exact = "" if one_case.exact is None else f", exact {one_case.exact:.6g}"
            return [f"{where}: {measured}{exact}, claimed {claimed}"]
    return []


def _size(case: CaseOutcome) -> tuple[int, int]:
    return (case.d_k_range or (0, 0))[1], case.n_keys or 0
