"""``python -m montecarlo.calibrate``: judge the judge, and write its report card.

Exit status: 0 the card was written, whatever it says; 2 usage or input; 3 the run could
not finish; 130 interrupted: what was drawn is kept in the work folder.
"""

import argparse
import sys
from collections.abc import Sequence

from montecarlo.arguments import require_values
from montecarlo.exits import DONE, concluded, importing
from montecarlo.printing import Parser, print_lines


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; values stay as typed."""
    parser = Parser(
        prog="python -m montecarlo.calibrate",
        usage="%(prog)s [options]",
        description="Count how often the judge's intervals miss, on banks of real "
        "replicates and on whole studies, and write the report card that the pages "
        "show.  Takes an hour or two; --short a minute.",
    )
    add = parser.add_argument
    add("--short", action="store_true", help="a small card, to see that all works")
    add("--jobs", metavar="N", help="workers (default: one per core)")
    add("--seed", metavar="N", default="1", help="of the banks and studies (1)")
    add("--work", metavar="DIR", default="calibration", help="kept draws (calibration)")
    add(
        "--output",
        metavar="DIR",
        help="the card (default: the one of the package; with --short, in --work)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    arguments = build_parser().parse_args(argv)

    def work() -> int:
        require_values(arguments)
        with importing("calibrate"):
            from montecarlo.calibration.making import make_card

        for line in make_card(arguments):
            print_lines(line)
        return DONE

    return concluded("calibrate", work, "interrupted, the work is kept")


if __name__ == "__main__":
    sys.exit(main())
