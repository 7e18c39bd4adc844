"""``python -m montecarlo judge FILE.toml ...``: judge claims of one's own.

Exit status: 0 all was judged, and no outcome is named by ``--fail-on``; 1 one is; 2
usage or input; 3 the run could not finish; 4 part of a claim could not be judged; 70 a
bug; 130 interrupted.
"""

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from montecarlo.claims.outcomes import ClaimOutcome, ClaimsRecord, InterpretationOutcome
from montecarlo.claims.own_claims import (
    describe_case,
    explain_unjudged,
    study_of_claims,
    worst_case_seconds,
)
from montecarlo.claims.running import Study, judge_by_theory, run_study
from montecarlo.claims.verdicts import Outcome, Verdict
from montecarlo.cli.command_line import OF_JUDGE, JudgeOptions
from montecarlo.cli.exits import DONE, FAILING, NOT_REACHED, print_message
from montecarlo.cli.options import require_defaults
from montecarlo.cli.outcomes import outcomes_of, read_fail_on
from montecarlo.errors import InputError, reading
from montecarlo.names import MOST_REPLICATES
from montecarlo.printing import print_lines
from montecarlo.report.language.own_words import OWN_FILE, read_own_claims
from montecarlo.study.executors import check_executor, make_executor
from montecarlo.study.progress import progress_bar

#: Options that have no effect without sampling.
OF_SAMPLING = ("output", "seed", "error_rate", "jobs", "executor", "scheduler", "most")
#: Largest number of sizes that are listed individually.
MOST_SIZES = 4
#: Seconds of sampling up to which no workers are started, which takes about one second,
#: and no progress bar is shown.
SHORT = 5.0


def work(options: JudgeOptions, argv: Sequence[str]) -> int:
    """Judge each file separately, print the results, and return the exit status.

    All files are read before anything is sampled.  ``argv`` are the arguments as typed,
    for timing.json and for the printed command with more replicates.  The status is the
    most serious of any file: 1 for an outcome that ``--fail-on`` names, else 4 if a
    check could not be judged or, with ``--exact``, a case is undecided, else 0.
    """
    fail_on = read_fail_on(options.fail_on or OF_JUDGE.split(","))
    studies = _read_files(options)
    several = len(studies) > 1
    blocks, records, statuses = [], [], []
    for file, (study, content) in studies.items():
        folder = _output_folder(file, options)
        not_judged = list(explain_unjudged(study))
        record = _judge_file(study, content, folder, options, argv)
        if options.exact:
            not_judged += _name_undecided(record)
        if failed := record.failed_self_checks():
            print_message("judge", f"self-checks refuted: {', '.join(failed)}", DONE)
        for line in not_judged:
            print_message("judge", line, DONE)
        # cases that cannot be judged have a status of their own
        outcomes = outcomes_of(record, unreached=not not_judged)
        outcomes -= {Verdict.OPEN.value} if options.exact else set()
        reached = NOT_REACHED if not_judged else DONE
        statuses.append(FAILING if fail_on & outcomes else reached)
        name = {"file": str(file)} if several else {}
        records.append(name | _json_record(study, record))
        lines = [str(file)] if several else []
        if folder is not None:
            lines.append(str(folder / "index.html"))
        lines += _result_lines(study, record, argv, exact=options.exact)
        blocks.append("\n".join(lines))
    if options.json:
        print_lines(json.dumps({"files": records} if several else records[0]))
    else:
        print_lines("\n\n".join(blocks))
    return max(statuses, key=(DONE, NOT_REACHED, FAILING).index)


def _read_files(options: JudgeOptions) -> dict[Path, tuple[Study, bytes]]:
    """Return (study of its claims, content) of each file, by its path.

    Raises
    ------
    InputError
        If options or a file are invalid.  With ``--output``, also if files have the
        same name.
    """
    check_executor(options.executor, options.jobs, options.scheduler)
    if options.exact:
        require_defaults(options, OF_SAMPLING, "--exact")
    if options.output is None and options.lang is not None:
        raise InputError(f"--lang must stand with --output, got {options.lang[0]!r}")
    studies = {}
    for file in options.file:
        with reading("file", file):
            is_folder = file.is_dir()
        if is_folder:
            then = f"judge {file / OWN_FILE}, if it has one, or report --from {file}"
            raise InputError(f"file must have claims, got a folder; for it type {then}")
        catalogue, content = read_own_claims(file)
        study = study_of_claims(
            catalogue,
            preset=options.preset,
            seed=1 if options.seed is None else options.seed,
            error_rate=options.error_rate,
            most=options.most,
        )
        studies[file] = study, content
    folders = {_output_folder(file, options) for file in studies}
    if options.output is not None and len(folders) < len(options.file):
        raise InputError("files must have different names for --output")
    return studies


def _output_folder(file: Path, options: JudgeOptions) -> Path | None:
    """Return the folder for the report of a file; None without ``--output``.

    It is that of ``--output`` for a single file.  Each of several files has a subfolder
    with its name.
    """
    if options.output is None or len(options.file) == 1:
        return options.output
    return options.output / file.stem


def _judge_file(
    study: Study,
    content: bytes,
    folder: Path | None,
    options: JudgeOptions,
    argv: Sequence[str],
) -> ClaimsRecord:
    """Judge the claims of one file; return the content of claims.json.

    With ``--output``, a report is written to ``folder``, with a copy of ``content``,
    the file.  ``argv`` are the arguments as typed, for timing.json.
    """
    if options.exact:
        return judge_by_theory(study)
    is_short = worst_case_seconds(study) < SHORT
    jobs = 1 if is_short and options.executor is None else None
    workers = options.jobs or jobs, options.executor, options.scheduler
    if folder is None:
        with (
            make_executor(*workers) as executor,
            progress_bar(len(study.grid.divisors), quiet=is_short) as advance,
        ):
            return run_study(study, executor, advance).claims
    # imports Matplotlib and Jinja, for pages alone
    from montecarlo.report.render.contents import page_rows
    from montecarlo.report.running import Target, choose_languages, write_report

    target = Target(folder, choose_languages(options.lang or ("all",)), argv, *workers)
    study = replace(study, pages=page_rows)
    written, _ = write_report(study, target, own_file=content)
    return written.record


def _json_record(study: Study, record: ClaimsRecord) -> dict[str, Any]:
    """Return the results for one file as a dict that JSON can represent.

    Its keys are ``error_rate``, ``simultaneous_error``, ``seed`` and ``claims``.
    """
    return {
        "error_rate": study.error_rate,
        "simultaneous_error": record.simultaneous_error,
        "seed": study.seed,
        "claims": msgspec.to_builtins(record.claims),
    }


def _name_undecided(record: ClaimsRecord) -> Iterator[str]:
    """Yield a message for each check with a case that exact values do not decide.

    Such as ``claim 'a', interpretation 'mean': theory does not decide entropy at ...``.
    """
    for claim in record.claims:
        for one in claim.interpretations:
            for check in one.checks:
                undecided = [c for c in check.cases if c.outcome == Outcome.UNDECIDED]
                if undecided:
                    where, more = describe_case(undecided[0])[0], len(undecided) - 1
                    yield (
                        f"claim {claim.id!r}, interpretation {one.id!r}: theory does "
                        f"not decide {check.quantity} at {where}"
                        f"{f', and in {more} more cases' if more else ''}"
                    )


def _result_lines(
    study: Study, record: ClaimsRecord, argv: Sequence[str], *, exact: bool
) -> Iterator[str]:
    """Yield the printed lines for a file: its claims, the error rate, undecided cases.

    With ``exact``, the lines of the claims are followed only by one that says that
    nothing was sampled.  ``argv`` are the arguments as typed, for a command that is
    suggested.
    """
    for claim in record.claims:
        yield from _claim_lines(claim)
    if exact:
        yield "judged by exact values alone, nothing was sampled"
        return
    yield f"error rate     nominal {100.0 * study.error_rate:.3g} % for the whole file"
    yield from _undecided_lines(record, argv)


def _undecided_lines(record: ClaimsRecord, argv: Sequence[str]) -> Iterator[str]:
    """Yield lines on how many cases are undecided, and what would decide them.

    The last line is a command, made of ``argv``, the arguments as typed: it samples
    enough replicates for the cases that can be decided.  If none can be decided, there
    is a single line, which says so.  If no case is undecided, there are no lines.
    """
    undecided = [
        case
        for check in record.judged_checks()
        for case in check.cases
        if case.outcome == Outcome.UNDECIDED
    ]
    needed = [one.replicates_needed for one in undecided if one.replicates_needed]
    if not undecided:
        return
    count = f"undecided      {len(undecided)} of the cases"
    if not needed:
        yield f"{count}, too close to a bound for any feasible number of replicates"
        return
    most = min(MOST_REPLICATES, 2 ** math.ceil(math.log2(1.1 * max(needed))))
    which = "them" if len(needed) == len(undecided) else f"{len(needed)} of them"
    yield f"{count}; about {max(needed)} replicates would decide {which}"
    words = re.sub(r"--most[ =]\d+ ?", "", shlex.join(argv)).strip()
    yield f"next           python -m montecarlo judge --most {most} {words}"


def _claim_lines(claim: ClaimOutcome) -> Iterator[str]:
    """Yield the printed lines for a claim: its verdict, then its interpretations.

    Such as ``holds          variance``.  For each interpretation one or two indented
    lines follow, such as ``holds          mean: 12 supported; d_k = 64, 256``.
    """
    yield f"{claim.verdict:<14} {claim.id}"
    for one in claim.interpretations:
        outcomes = Counter(case.outcome for case in one.cases)
        counts = ", ".join(f"{n} {name}" for name, n in sorted(outcomes.items()))
        text = f"  {one.verdict:<14} {one.id}: {counts or 'none'}"
        yield "; ".join([text, *_case_ranges(one)])
        if worst := _worst_case(one):
            yield f"  {'':<14} {worst}"


def _case_ranges(interpretation: InterpretationOutcome) -> Iterator[str]:
    """Yield where an interpretation was judged as text, such as ``d_k = 64, 256``.

    In this order: names of distributions or conditions, if there are several; values of
    d_k; numbers of keys, such as ``n = 128``.
    """
    cases = [case for check in interpretation.checks for case in check.cases]
    conditions = dict.fromkeys(case.context or case.distribution for case in cases)
    if len(conditions) > 1:
        yield ", ".join(conditions)
    for name, sizes in (
        ("d_k", {size for case in cases for size in case.d_k_range or ()}),
        ("n", {case.n_keys for case in cases if case.n_keys is not None}),
    ):
        if sizes:
            yield f"{name} = {_list_sizes(sizes)}"


def _list_sizes(sizes: Iterable[int]) -> str:
    """Return sizes as text: a list of up to `MOST_SIZES`, otherwise a range.

    Such as ``16, 64``, or ``16 to 4096 (9 sizes)``.
    """
    ordered = sorted(sizes)
    if len(ordered) <= MOST_SIZES:
        return ", ".join(map(str, ordered))
    return f"{ordered[0]} to {ordered[-1]} ({len(ordered)} sizes)"


def _worst_case(interpretation: InterpretationOutcome) -> str:
    """Return a line about the case with the worst outcome.

    Such as ``gaussian, d_k = 64: 1.001 ± 0.003, claimed 0.95 to 1.05``.  Refuted is
    worst, then undecided, then supported.  Of several cases, the one with the smallest
    d_k, then the fewest keys.  An empty string if no case has a number.
    """
    ranks = {Outcome.REFUTED: 0, Outcome.UNDECIDED: 1, Outcome.SUPPORTED: 2}
    candidates = [
        case
        for check in interpretation.checks
        for case in check.cases
        if case.outcome in ranks and (case.estimate, case.exact) != (None, None)
    ]
    if not candidates:
        return ""
    case = min(
        candidates,
        key=lambda c: (ranks[c.outcome], c.d_k_range or (0,), c.n_keys or 0),
    )
    where, measured, claimed = describe_case(case)
    numbers = [] if case.estimate is None else [measured]
    numbers += [] if case.exact is None else [f"exact {case.exact:.6g}"]
    numbers += ["which decides"] * (len(numbers) == 2 and case.by_theory)
    return f"{where}: {', '.join([*numbers, f'claimed {claimed}'])}"
