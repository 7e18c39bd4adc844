"""What `judge` does: from files of claims to verdicts, lines and pages."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from montecarlo.claims.outcomes import ClaimOutcome, ClaimsRecord, InterpretationOutcome
from montecarlo.claims.own_claims import (
    find_unjudged,
    most_seconds,
    own_study,
    say_case,
)
from montecarlo.claims.running import Study, run_study
from montecarlo.cli.command_line import OF_JUDGE, JudgeOptions
from montecarlo.cli.exits import DONE, FAILING, NOT_REACHED
from montecarlo.cli.outcomes import outcomes_of, read_fail_on
from montecarlo.errors import InputError
from montecarlo.printing import print_lines
from montecarlo.report.language.own_words import read_own_claims
from montecarlo.report.render.contents import page_rows
from montecarlo.report.running import Target, choose_languages, write_report
from montecarlo.study.executors import check_executor, make_executor

#: From this length on, a run of powers of two is printed by its ends.
SHORTENED = 4
#: Seconds from which on the cost is told before sampling.
LONG = 120.0


class Asked(NamedTuple):
    """A file of claims, read: what it takes to judge it, and where its report goes."""

    file: Path
    content: bytes
    study: Study
    target: Target | None


def answer(options: JudgeOptions, typed: Sequence[str]) -> tuple[str, int]:
    """Judge each file by itself; returns what to print and the exit status.

    All files are read before anything is sampled.
    """
    fail_on = read_fail_on(options.fail_on or OF_JUDGE.split(","))
    asked = _read(options, typed)
    several = len(asked) > 1
    blocks, records, statuses = [], [], []
    for one in asked:
        if (seconds := most_seconds(one.study)) > LONG:
            limit = f"up to about {seconds:.0f} s on one core"
            print_lines(f"judge: the ranges of these claims take {limit}", sys.stderr)
        open_ends = list(find_unjudged(one.study))
        for line in open_ends:
            print_lines(f"judge: {line}", sys.stderr)
        judged, measurements = _judge(one, options)
        if failed := judged.failed_self_checks():
            print_lines(f"judge: self-checks refuted: {', '.join(failed)}", sys.stderr)
        # what cannot be judged has a status of its own
        found = outcomes_of(judged, unreached=not open_ends)
        unreached = NOT_REACHED if open_ends else DONE
        statuses.append(FAILING if fail_on & found else unreached)
        named = {"file": str(one.file)} if several else {}
        records.append(named | _record(one.study, judged))
        text = "\n".join(_tell(one, judged, measurements))
        blocks.append(f"{one.file}\n{text}" if several else text)
    worst = max(statuses, key=(DONE, NOT_REACHED, FAILING).index)
    if options.json:
        return json.dumps({"files": records} if several else records[0]), worst
    return "\n\n".join(blocks), worst


def _read(options: JudgeOptions, typed: Sequence[str]) -> list[Asked]:
    """Read all files; refuse what cannot be judged or written."""
    workers = options.jobs, options.executor, options.scheduler
    check_executor(options.executor, options.jobs, options.scheduler)
    if options.output is None and options.lang is not None:
        raise InputError(f"--lang must stand with --output, got {options.lang[0]!r}")
    languages = choose_languages(options.lang or ("all",))
    several, output = len(options.file) > 1, options.output
    asked = []
    for file in options.file:
        catalogue, content = read_own_claims(file)
        study = own_study(
            catalogue,
            preset=options.preset,
            seed=options.seed,
            error_rate=options.error_rate,
        )
        target = None
        if output is not None:
            folder = output / file.stem if several else output
            target = Target(folder, languages, typed, *workers)
            study = replace(study, pages=page_rows)
        asked.append(Asked(file, content, study, target))
    if output is not None and len({file.stem for file in options.file}) < len(asked):
        raise InputError("files must have different names for --output")
    return asked


def _judge(asked: Asked, options: JudgeOptions) -> tuple[ClaimsRecord, pd.DataFrame]:
    """Sample and judge one file, and write its report where one is asked for."""
    if asked.target is not None:
        written, _ = write_report(asked.study, asked.target, own_file=asked.content)
        return written.record, written.measurements
    workers = make_executor(options.jobs, options.executor, options.scheduler)
    with workers:
        results = run_study(asked.study, workers)
    return results.claims, results.measurements


def _record(study: Study, judged: ClaimsRecord) -> dict[str, Any]:
    """Return what one file comes to, for JSON."""
    return {
        "error_rate": study.error_rate,
        "simultaneous_error": judged.simultaneous_error,
        "seed": study.seed,
        "claims": msgspec.to_builtins(judged.claims),
    }


def _tell(asked: Asked, judged: ClaimsRecord, measurements: pd.DataFrame) -> list[str]:
    """Return what one file comes to, in lines; verdicts are what stays in sight."""
    lines = [] if asked.target is None else [str(asked.target.output / "index.html")]
    d_k = dict(zip(measurements["row_id"], map(int, measurements["d_k"]), strict=True))
    lines += [line for claim in judged.claims for line in _lines(claim, d_k)]
    nominal = 100.0 * asked.study.error_rate
    return [*lines, f"error rate     nominal {nominal:.3g} % for the whole file"]


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
            one_case = min(found, key=lambda c: (c.d_k_range or (0,), c.n_keys or 0))
            where, measured, claimed = say_case(one_case)
            exact = "" if one_case.exact is None else f", exact {one_case.exact:.6g}"
            exact += ", which decides" if one_case.by_theory else ""
            return [f"{where}: {measured}{exact}, claimed {claimed}"]
    return []
