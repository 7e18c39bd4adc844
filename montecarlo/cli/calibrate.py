"""``python -m montecarlo calibrate``: judge the judge, and write its report card.

Exit status: 0 the card was written, whatever it says; 2 usage or input; 3 the run could
not finish; 70 a bug; 130 interrupted: what was drawn is kept in the work folder.
"""

import argparse
from collections.abc import Sequence

from montecarlo.cli.exits import DONE, importing, run
from montecarlo.cli.options import FIRST, OTHER, SAMPLING, Parser, option
from montecarlo.printing import print_lines


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; values stay as typed."""
    parser = Parser(
        "calibrate",
        "Count how often the judge's intervals miss, on banks of real replicates and "
        "on whole studies, and write the report card that the pages show.  Takes an "
        "hour or two; --short a minute.",
    )
    parser.add(
        FIRST,
        {
            "--short": option(
                "a small card, to see that all works", action="store_true"
            ),
            "--work": option(
                "folder for draws, which are kept (default: calibration)",
                "DIR",
                default="calibration",
            ),
            "--output": option(
                "folder to write the card to (default: the one of the package; "
                "with --short, in --work)"
            ),
        },
    )
    parser.add(SAMPLING, {"--seed": {"default": "1"}, "--jobs": {}})
    parser.add(OTHER, {"--help": {}})
    return parser


def work(arguments: argparse.Namespace, _typed: Sequence[str]) -> int:
    """Make the card."""
    with importing("calibrate"):
        from montecarlo.calibration.pipeline import make_card

    for line in make_card(arguments):
        print_lines(line)
    return DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv, "interrupted, the work is kept")
