"""``python -m montecarlo report``: sample Q and K, judge the texts, write the report.

Exit status: 0 the report was written, whatever the verdicts; 1 it was, and an outcome
that ``--fail-on`` names came out; 2 usage or input, found before sampling; 3 the run
could not finish; 70 a bug; 130 interrupted.
"""

from collections.abc import Sequence
from dataclasses import fields
from functools import partial

from montecarlo.cli.command_line import ReportOptions
from montecarlo.cli.exits import DONE, FAILING, importing, run
from montecarlo.cli.options import Parser, require_defaults
from montecarlo.names import PROJECT
from montecarlo.printing import print_lines


def build_parser(command: str = "report") -> Parser:
    """Build the parser; without a command's name, that of the program's own --list."""
    return Parser(
        command,
        "Sample Q and K, judge what five texts claim about dividing attention scores "
        "by sqrt(d_k), and write the report in several languages.",
        options=ReportOptions,
    )


def work(options: ReportOptions, typed: Sequence[str], command: str = "report") -> int:
    """Write the report, or print what there is."""
    parser = build_parser(command)
    for name, beside in (("version", set()), ("kind", {"lang"})):
        if getattr(options, name):
            others = {one.name for one in fields(options)} - {name} - beside
            require_defaults(options, parser, others, f"--{parser.spelled(name)}")
    if options.version:
        from importlib.metadata import version

        print_lines(f"montecarlo {version(PROJECT)}")
        return DONE
    with importing(command):
        from montecarlo.cli.listing import print_list
        from montecarlo.cli.outcomes import (
            outcomes_of,
            print_details,
            print_outcome,
            read_fail_on,
        )
        from montecarlo.cli.studies import write_or_render
        from montecarlo.report.running import report_maker

    if options.kind is not None:
        print_list(options.kind, options.lang)
        return DONE
    fail_on = read_fail_on(options.fail_on or ())
    make = report_maker(options.format)
    whole = options.format is None
    results, written = write_or_render(
        options, parser, typed, make, only=options.only, whole=whole
    )
    if options.verbose:
        print_details(results.record, written)
    if not options.quiet:
        print_outcome(results, written)
    return FAILING if fail_on & outcomes_of(results.record) else DONE


def main(argv: Sequence[str] | None = None, command: str = "report") -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(command), partial(work, command=command), argv)
