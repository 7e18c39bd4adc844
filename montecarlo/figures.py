"""``python -m montecarlo.figures``: figures for documents, with captions beside them.

Exit status: 0 drawn; 2 usage or input, found before sampling; 3 the run could not
finish; 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

from montecarlo.arguments import require_values
from montecarlo.exits import DONE, concluded, importing
from montecarlo.printing import Parser


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; values stay as typed, and are validated later."""
    parser = Parser(
        prog="python -m montecarlo.figures",
        usage="%(prog)s [options]",
        description="Draw the report's figures for documents, with captions, legends "
        "and alternative texts in several languages in captions.<lang>.md.",
    )
    add = parser.add_argument
    add(
        "--only",
        dest="figures",
        action="append",
        metavar="ID",
        help="one figure; repeatable",
    )
    add("--list", action="store_true", help="print the figures, and stop")
    add("--format", metavar="NAMES", help="svg (default), pdf, png; commas between")
    add("--dpi", metavar="N", help="pixels an inch of PNG files (default 200)")
    add(
        "--theme",
        metavar="NAME",
        help="light, dark or print; left out, an SVG suits itself to its page",
    )
    add("--decimal", metavar="NAME", help="decimal sign: point (default) or comma")
    add(
        "--output",
        metavar="DIR",
        default="figures",
        help="folder to write (default: figures)",
    )
    add("--from", dest="source", metavar="DIR", help="draw these results")
    add("--lang", action="append", metavar="CODE", help="of captions; repeatable")
    add("--seed", metavar="N", help="seed of all random numbers (default 1)")
    add("--preset", metavar="NAME", help="quick, standard (default) or full")
    add("--jobs", metavar="N", help="workers (default: one per core)")
    add("--config", metavar="FILE", help="a TOML file; flags override it")
    add("--quiet", action="store_true", help="print nothing but errors")
    add(
        "--fresh",
        action="store_true",
        help="start anew, whatever an interrupted run left in the folder",
    )
    parser.set_defaults(
        only=None, executor=None, max_seconds=None, replicates_from=None
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    arguments = build_parser().parse_args(argv)

    typed = list(sys.argv[1:] if argv is None else argv)

    def work() -> int:
        require_values(arguments)
        with importing("figures"):
            from montecarlo.report.command import run_report
            from montecarlo.report.documentation import (
                figure_maker,
                print_figures,
                print_paths,
                read_wanted,
            )
            from montecarlo.report.rerendering import render_again

        if arguments.list:
            print_figures()
            return DONE
        make = figure_maker(read_wanted(arguments))
        draw = run_report if arguments.source is None else render_again
        draw(arguments, typed, make, print_paths)
        return DONE

    return concluded("figures", work)


if __name__ == "__main__":
    sys.exit(main())
