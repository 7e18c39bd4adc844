"""``python -m montecarlo report``: sample Q and K, judge the texts, write the report.

Exit status: 0 the report was written, whatever the verdicts; 1 it was, and an outcome
named by ``--fail-on`` occurred; 2 usage or input, found before sampling; 3 the run
could not finish; 70 a bug; 130 interrupted.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from montecarlo.cli.command_line import ReportOptions
from montecarlo.cli.exits import DONE, FAILING
from montecarlo.cli.outcomes import outcomes_of, read_fail_on
from montecarlo.cli.studies import write_or_render
from montecarlo.printing import print_lines
from montecarlo.report.content.findings import Findings
from montecarlo.report.running import report_maker


def work(options: ReportOptions, argv: Sequence[str]) -> int:
    """Write the report, print a summary, and return the exit status.

    ``argv`` are the arguments as typed, for timing.json and for the printed command
    that makes the same report.  The status is 1 if the results have an outcome that
    ``--fail-on`` names, otherwise 0.
    """
    fail_on = read_fail_on(options.fail_on or ())
    results, written = write_or_render(
        options,
        argv,
        report_maker(options.format),
        only=options.only,
        whole=options.format is None,
    )
    if not options.quiet:
        again = command_again(options, argv, results.run)
        print_lines("\n".join([*summary_lines(results, written), f"again: {again}"]))
    return FAILING if fail_on & outcomes_of(results.record) else DONE


def summary_lines(results: Findings, written: Sequence[Path]) -> list[str]:
    """Return the lines to print: page to open, verdict counts, failed self-checks.

    Such as ``open output/index.html (files written: 40)`` or ``claims: 12 holds``.
    """
    pages = [path for path in written if path.suffix in {".html", ".md"}]
    first = next((path for path in pages if path.name == "index.html"), pages[0])
    counts = ", ".join(f"{n} {verdict}" for verdict, n in results.counts)
    lines = [f"open {first} (files written: {len(written)})", f"claims: {counts}"]
    if refuted := results.record.failed_self_checks():
        lines.append(f"self-checks refuted: {', '.join(refuted)}")
    return lines


def command_again(
    options: ReportOptions, argv: Sequence[str], run: Mapping[str, Any]
) -> str:
    """Return the command that writes the same report again, with an explicit seed.

    Such as ``python -m montecarlo report --seed 1``: it repeats ``argv``, the arguments
    as typed.  With ``--from`` or ``--config`` no seed is added.  ``run`` is the content
    of run.json.
    """
    words = [*argv]
    if options.seed is None and not (options.source or options.config):
        words += ["--seed", str(run["seed"])]
    return shlex.join(["python", "-m", "montecarlo", "report", *words])
