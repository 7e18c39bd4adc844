"""``python -m montecarlo judge FILE.toml ...``: judge claims of one's own.

Exit status: 0 all was judged and no outcome is one named by ``--fail-on``; 1 one is; 2
usage or input; 3 the run could not finish; 4 something that a claim speaks of could not
be judged; 70 a bug; 130 interrupted.
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
    name_unjudged,
    study_of_claims,
    worst_case_seconds,
)
from montecarlo.claims.running import Study, judge_by_theory, run_study
from montecarlo.claims.verdicts import Outcome, Verdict
from montecarlo.cli.command_line import OF_JUDGE, JudgeOptions
from montecarlo.cli.exits import DONE, FAILING, NOT_REACHED, complain
from montecarlo.cli.options import require_defaults
from montecarlo.cli.outcomes import outcomes_of, read_fail_on
from montecarlo.errors import InputError
from montecarlo.names import MOST_REPLICATES
from montecarlo.printing import print_lines
from montecarlo.report.language.own_words import read_own_claims
from montecarlo.study.executors import check_executor, make_executor
from montecarlo.study.progress import progress_bar

#: Options that do not act where nothing is sampled.
OF_SAMPLING = (
    *("output", "seed", "error_rate", "jobs", "executor", "scheduler"),
    "most",
)
#: Sizes that are listed; of more, the ends and how many there are.
MOST_SIZES = 4
#: Seconds of sampling up to which this process samples alone, without a bar: others
#: take about one to start.
SHORT = 5.0


def work(options: JudgeOptions, typed: Sequence[str]) -> int:
    """Judge each file by itself, and print what came out.

    All files are read before anything is sampled.
    """
    fail_on = read_fail_on(options.fail_on or OF_JUDGE.split(","))
    studies = _read(options)
    several = len(studies) > 1
    blocks, records, statuses = [], [], []
    for file, (study, content) in studies.items():
        folder = _folder_of(file, options)
        open_ends = list(name_unjudged(study))
        judged = _judge(study, content, folder, options, typed)
        if options.exact:
            open_ends += _find_undecided(judged)
        if failed := judged.failed_self_checks():
            complain("judge", f"self-checks refuted: {', '.join(failed)}", DONE)
        for line in open_ends:
            complain("judge", line, DONE)
        # what cannot be judged has a status of its own
        found = outcomes_of(judged, unreached=not open_ends)
        found -= {Verdict.OPEN.value} if options.exact else set()
        unreached = NOT_REACHED if open_ends else DONE
        statuses.append(FAILING if fail_on & found else unreached)
        named = {"file": str(file)} if several else {}
        records.append(named | _record(study, judged))
        lines = [str(file)] if several else []
        if folder is not None:
            lines.append(str(folder / "index.html"))
        lines += _tell(study, judged, typed, exact=options.exact)
        blocks.append("\n".join(lines))
    if options.json:
        print_lines(json.dumps({"files": records} if several else records[0]))
    else:
        print_lines("\n\n".join(blocks))
    return max(statuses, key=(DONE, NOT_REACHED, FAILING).index)


def _read(options: JudgeOptions) -> dict[Path, tuple[Study, bytes]]:
    """Read all files; refuse what cannot be judged or written."""
    check_executor(options.executor, options.jobs, options.scheduler)
    if options.exact:
        require_defaults(options, OF_SAMPLING, "--exact")
    if options.output is None and options.lang is not None:
        raise InputError(f"--lang must stand with --output, got {options.lang[0]!r}")
    studies = {}
    for file in options.file:
        catalogue, content = read_own_claims(file)
        study = study_of_claims(
            catalogue,
            preset=options.preset,
            seed=1 if options.seed is None else options.seed,
            error_rate=options.error_rate,
            most=options.most,
        )
        studies[file] = study, content
    folders = {_folder_of(file, options) for file in studies}
    if options.output is not None and len(folders) < len(options.file):
        raise InputError("files must have different names for --output")
    return studies


def _folder_of(file: Path, options: JudgeOptions) -> Path | None:
    """Return where the report of a file goes: of several, each has a folder."""
    if options.output is None or len(options.file) == 1:
        return options.output
    return options.output / file.stem


def _judge(
    study: Study,
    content: bytes,
    folder: Path | None,
    options: JudgeOptions,
    typed: Sequence[str],
) -> ClaimsRecord:
    """Sample and judge one file, and write its report where one is asked for."""
    if options.exact:
        return judge_by_theory(study)
    is_short = worst_case_seconds(study) < SHORT
    alone = 1 if is_short and options.executor is None else None
    workers = options.jobs or alone, options.executor, options.scheduler
    if folder is None:
        with (
            make_executor(*workers) as executor,
            progress_bar(len(study.grid.divisors), quiet=is_short) as advance,
        ):
            return run_study(study, executor, advance).claims
    # Matplotlib and Jinja, for pages alone
    from montecarlo.report.render.contents import page_rows
    from montecarlo.report.running import Target, choose_languages, write_report

    languages = choose_languages(options.lang or ("all",))
    target = Target(folder, languages, typed, *workers)
    study = replace(study, pages=page_rows)
    written, _ = write_report(study, target, own_file=content)
    return written.record


def _record(study: Study, judged: ClaimsRecord) -> dict[str, Any]:
    """Return what one file comes to, for JSON."""
    return {
        "error_rate": study.error_rate,
        "simultaneous_error": judged.simultaneous_error,
        "seed": study.seed,
        "claims": msgspec.to_builtins(judged.claims),
    }


def _find_undecided(judged: ClaimsRecord) -> Iterator[str]:
    """Yield the checks that theory does not decide: whose, of what, and where."""
    for claim in judged.claims:
        for one in claim.interpretations:
            for check in one.checks:
                open_cases = [c for c in check.cases if c.outcome == Outcome.UNDECIDED]
                if open_cases:
                    (where, *_), more = (
                        describe_case(open_cases[0]),
                        len(open_cases) - 1,
                    )
                    yield (
                        f"claim {claim.id!r}, interpretation {one.id!r}: theory does "
                        f"not decide {check.quantity} at {where}"
                        f"{f', and in {more} more cases' if more else ''}"
                    )


def _tell(
    study: Study, judged: ClaimsRecord, typed: Sequence[str], *, exact: bool
) -> Iterator[str]:
    """Yield what one file comes to, in lines; verdicts are what stays in sight."""
    for claim in judged.claims:
        yield from _tell_claim(claim)
    if exact:
        yield "by theory alone, nothing was sampled"
        return
    nominal = 100.0 * study.error_rate
    yield f"error rate     nominal {nominal:.3g} % for the whole file"
    yield from _tell_next(judged, typed)


def _tell_next(judged: ClaimsRecord, typed: Sequence[str]) -> Iterator[str]:
    """Yield how many replicates would decide what is undecided, and what to type."""
    undecided = [
        case
        for claim in judged.claims
        for one in claim.interpretations
        for check in one.checks
        for case in check.cases
        if case.outcome == Outcome.UNDECIDED
    ]
    needed = [one.replicates_needed for one in undecided if one.replicates_needed]
    if not undecided:
        return
    told = f"undecided      {len(undecided)} of the cases"
    if not needed:
        yield f"{told}, too close to a bound for any number of replicates at hand"
        return
    most = min(MOST_REPLICATES, 2 ** math.ceil(math.log2(1.1 * max(needed))))
    which = "them" if len(needed) == len(undecided) else f"{len(needed)} of them"
    yield f"{told}; about {max(needed)} replicates would decide {which}"
    words = re.sub(r"--most[ =]\d+ ?", "", shlex.join(typed)).strip()
    yield f"next           python -m montecarlo judge --most {most} {words}"


def _tell_claim(claim: ClaimOutcome) -> Iterator[str]:
    """Yield a claim as a line, and two lines for each interpretation."""
    yield f"{claim.verdict:<14} {claim.id}"
    for one in claim.interpretations:
        outcomes = Counter(case.outcome for case in one.cases)
        counts = ", ".join(f"{n} {name}" for name, n in sorted(outcomes.items()))
        text = f"  {one.verdict:<14} {one.id}: {counts or 'none'}"
        yield "; ".join([text, *_name_cases(one)])
        if worst := _tell_worst(one):
            yield f"  {'':<14} {worst}"


def _name_cases(one: InterpretationOutcome) -> Iterator[str]:
    """Name an interpretation's cases: distributions if several, d_k and n."""
    cases = [case for check in one.checks for case in check.cases]
    distributions = dict.fromkeys(case.context or case.distribution for case in cases)
    if len(distributions) > 1:
        yield ", ".join(distributions)
    for name, sizes in (
        ("d_k", {size for case in cases for size in case.d_k_range or ()}),
        ("n", {case.n_keys for case in cases if case.n_keys is not None}),
    ):
        if sizes:
            yield f"{name} = {_list_sizes(sizes)}"


def _list_sizes(sizes: Iterable[int]) -> str:
    """List a few sizes; of many, the ends and how many they are."""
    ordered = sorted(sizes)
    if len(ordered) <= MOST_SIZES:
        return ", ".join(map(str, ordered))
    return f"{ordered[0]} to {ordered[-1]} ({len(ordered)} sizes)"


def _tell_worst(one: InterpretationOutcome) -> str:
    """Return the smallest case of the worst outcome that was measured."""
    cases = [case for check in one.checks for case in check.cases]
    for outcome in ("refuted", "undecided", "supported"):
        found = [
            case
            for case in cases
            if case.outcome == outcome and (case.estimate, case.exact) != (None, None)
        ]
        if found:
            case = min(found, key=lambda c: (c.d_k_range or (0,), c.n_keys or 0))
            where, measured, claimed = describe_case(case)
            told = [] if case.estimate is None else [measured]
            told += [] if case.exact is None else [f"exact {case.exact:.6g}"]
            told += ["which decides"] * (case.by_theory and case.estimate is not None)
            return f"{where}: {', '.join([*told, f'claimed {claimed}'])}"
    return ""
