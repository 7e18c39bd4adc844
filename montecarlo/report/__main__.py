"""``python -m montecarlo.report``: sample Q and K, judge the texts, write the report.

Exit status: 0 the report was written, whatever the verdicts; 1 it was, and a check of
the simulator itself is refuted, with ``--fail-on self-check``; 2 usage or input, found
before sampling; 3 the run could not finish; 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

from montecarlo.arguments import require_values
from montecarlo.exits import DONE, FAILING, concluded, importing
from montecarlo.printing import Parser


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; values stay as typed, `read_options` validates them."""
    parser = Parser(
        prog="python -m montecarlo.report",
        usage="%(prog)s [options]",
        description="Sample Q and K, judge what five texts claim about dividing "
        "attention scores by sqrt(d_k), and write the report in several languages.",
    )
    add = parser.add_argument
    add(
        "--lang", action="append", metavar="CODE", help="a language, or all; repeatable"
    )
    add("--seed", metavar="N", help="seed of all random numbers (default 1)")
    add("--preset", metavar="NAME", help="quick, standard (default) or full")
    add("--jobs", metavar="N", help="workers (default: one per core)")
    add(
        "--executor",
        metavar="NAME",
        help="threads, processes, dask or tls://HOST:PORT (docs/cluster.md)",
    )
    add("--output", metavar="DIR", help="folder to write (default: output)")
    add("--only", action="append", metavar="CLAIM", help="one claim; repeatable")
    add(
        "--list",
        metavar="KIND",
        help="print distributions, claims, figures, languages, quantities or presets",
    )
    add(
        "--format",
        action="append",
        metavar="NAME",
        help="html (default), markdown, fragment or json; repeatable",
    )
    add(
        "--text",
        action="append",
        metavar="KEY=FILE",
        help="an author's file (UTF-8), whose sentences its erratum quotes; repeatable",
    )
    add(
        "--from",
        dest="source",
        metavar="DIR",
        help="render these results again, into the folder of --output",
    )
    add(
        "--max-seconds",
        metavar="N",
        help="end sampling after so long; what is undecided then is inconclusive",
    )
    add(
        "--replicates-from",
        metavar="FILE",
        help="a run.json: sample as many replicates as that run did, for equal bytes",
    )
    add(
        "--fail-on",
        metavar="NAME",
        help="self-check: status 1 if a check of the simulator itself is refuted",
    )
    add(
        "--fresh",
        action="store_true",
        help="start anew, whatever an interrupted run left in the folder",
    )
    add(
        "--config",
        metavar="FILE",
        help="a TOML file with seed, preset, lang, only, output, jobs, executor, "
        "error_rate, grid; flags override it",
    )
    add("--quiet", action="store_true", help="print nothing but errors")
    add("--version", action="store_true", help="print the version, and stop")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; by default those of the process.

    Returns
    -------
    int
        The exit status.
    """
    arguments = build_parser().parse_args(argv)
    if arguments.version:
        from importlib.metadata import version

        print(f"montecarlo {version('montecarlo')}")
        return DONE

    typed = list(sys.argv[1:] if argv is None else argv)

    def work() -> int:
        require_values(arguments)
        with importing("report"):
            from montecarlo.report.command import (
                list_kind,
                report_maker,
                run_report,
            )
            from montecarlo.report.failing import failing_outcome
            from montecarlo.report.rerendering import render_again

        if arguments.list is not None:
            list_kind(arguments.list)
            return DONE
        is_failing = failing_outcome(arguments.fail_on)
        make = report_maker(arguments.format, arguments.text)
        write = run_report if arguments.source is None else render_again
        findings = write(arguments, typed, make)
        return FAILING if is_failing(findings) else DONE

    return concluded("report", work)


if __name__ == "__main__":
    sys.exit(main())
