"""``python -m montecarlo report``: sample Q and K, judge the texts, write the report.

Exit status: 0 the report was written, whatever the verdicts; 1 it was, and an outcome
that ``--fail-on`` names came out; 2 usage or input, found before sampling; 3 the run
could not finish; 70 a bug; 130 interrupted.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from montecarlo.cli.command_line import ReportOptions
from montecarlo.cli.exits import DONE, FAILING
from montecarlo.cli.outcomes import outcomes_of, read_fail_on
from montecarlo.cli.studies import OUTPUT, write_or_render
from montecarlo.printing import print_lines
from montecarlo.report.content.findings import Findings
from montecarlo.report.render.contents import canonical_command
from montecarlo.report.running import report_maker


def work(options: ReportOptions, typed: Sequence[str]) -> int:
    """Write the report, and print what came out."""
    fail_on = read_fail_on(options.fail_on or ())
    results, written = write_or_render(
        options,
        typed,
        report_maker(options.format),
        only=options.only,
        whole=options.format is None,
    )
    if not options.quiet:
        print_lines("\n".join(tell_outcome(results, written)))
    return FAILING if fail_on & outcomes_of(results.record) else DONE


def tell_outcome(results: Findings, written: Sequence[Path]) -> list[str]:
    """Say what to open, how many claims came out how, and how to make it again."""
    first = next((path for path in written if path.name == "index.html"), written[0])
    counts = ", ".join(f"{n} {verdict}" for verdict, n in results.counts)
    told = [f"open {first} (files written: {len(written)})", f"claims: {counts}"]
    if refuted := results.record.failed_self_checks():
        told.append(f"self-checks refuted: {', '.join(refuted)}")
    again = canonical_command(results.run)
    output = written[-1].parent  # of run.json
    if output != Path(OUTPUT):
        again = again.removesuffix(f" --output {OUTPUT}")
        again += f" --output {shlex.quote(str(output))}"
    return [*told, f"again: {again}"]
