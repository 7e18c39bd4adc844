"""``python -m montecarlo figures``: figures for documents, with captions beside them.

Exit status: 0 drawn; 2 usage or input, found before sampling; 3 the run could not
finish; 4 there are no data for a figure of ``--only``, and the others are drawn; 70 a
bug; 130 interrupted.
"""

import argparse
from collections.abc import Sequence

from montecarlo.cli.exits import DONE, NOT_REACHED, complain, importing, run
from montecarlo.cli.options import (
    FIRST,
    NAMES,
    OTHER,
    SAMPLING,
    Parser,
    option,
    require_defaults,
)
from montecarlo.names import parse_folder


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; values stay as typed, and are validated later."""
    parser = Parser(
        "figures",
        "Draw the report's figures for documents, with captions, legends and "
        "alternative texts in several languages in captions.<lang>.md.",
    )
    parser.add(
        FIRST,
        {
            "--from": option("draw these results, and sample nothing"),
            "--only": option("these figures", dest="figures", **NAMES),
            "--format": option("svg (default), pdf, png", **NAMES),
            "--lang": option("languages of captions, with commas, or all (default)"),
            "--output": option("folder to write (default: figures)", default="figures"),
            "--list": option(
                "print what figures there are, and stop", action="store_true"
            ),
        },
    )
    parser.add(
        "how they look",
        {
            "--dpi": option("pixels an inch of PNG files (default: 200)", "N"),
            "--theme": option(
                "light, dark or print; left out, an SVG suits itself to its page",
                "NAME",
            ),
            "--decimal": option("decimal sign: point (default) or comma", "NAME"),
        },
    )
    sampling = ("--preset", "--seed", "--jobs", "--config", "--fresh")
    parser.add(SAMPLING, {flag: {} for flag in sampling})
    parser.add(OTHER, {"--quiet": {}, "--help": {}})
    parser.set_defaults(
        only=None, executor=None, max_seconds=None, replicates_from=None
    )
    return parser


def work(arguments: argparse.Namespace, typed: Sequence[str]) -> int:
    """Draw the figures, or print which there are."""
    with importing("figures"):
        from montecarlo.report.command import run_report
        from montecarlo.report.documentation import figure_maker, print_paths, undrawn
        from montecarlo.report.figures import FIGURES
        from montecarlo.report.language.catalogues import SOURCE, read_language
        from montecarlo.report.listing import print_list
        from montecarlo.report.rerendering import render_again

    if arguments.list:
        every = set(vars(arguments)) - {"list"}
        require_defaults(arguments, build_parser(), every, "--list")
        print_list("figures", read_language(SOURCE))
        return DONE
    make = figure_maker(arguments)
    draw = run_report if arguments.source is None else render_again
    draw(arguments, typed, make, print_paths)
    folder = parse_folder("output", arguments.output)
    asked = arguments.figures or FIGURES
    if not (lacking := undrawn(folder, asked)):
        return DONE
    told = f"results must have data for all figures, got none for {', '.join(lacking)}"
    if arguments.figures:
        return complain("figures", told, NOT_REACHED)
    return DONE if arguments.quiet else complain("figures", told, DONE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv)
