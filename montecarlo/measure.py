"""``python -m montecarlo.measure``: one number, with its interval and exact value.

Exit status: 0 measured; 2 usage or input; 3 the run could not finish; 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

from montecarlo.exits import DONE, concluded


def build_parser() -> argparse.ArgumentParser:
    """Build the parser: an option for every column that identifies a row."""
    parser = argparse.ArgumentParser(
        prog="python -m montecarlo.measure",
        usage="%(prog)s [options]",
        description="Estimate one quantity in one condition, to a wanted precision.",
    )
    add = parser.add_argument
    add("--law", metavar="LAW", default="gaussian", help="law of q and k (gaussian)")
    add("--law-q", metavar="LAW", help="law of q, where it differs")
    add("--law-k", metavar="LAW", help="law of k, where it differs")
    add("--d-k", metavar="N", default="64", help="length of a query (64)")
    add("--keys", metavar="N", help="keys of a row; left out for quantities of pairs")
    add("--dependence", metavar="NAME", default="none", help="none, planted(0.5), ...")
    add("--setup", metavar="NAME", default="", help="init(kind=...,...), or nothing")
    add("--divisor", metavar="NAME", default="none", help="none, sqrt, none/sqrt, ...")
    add("--quantity", metavar="NAME", help="what to measure")
    add("--summary", metavar="NAME", help="mean, median, q10, q90, spread or value")
    add("--number-format", metavar="NAME", default="float64")
    add("--softmax", metavar="NAME", default="shifted")
    add("--seed", metavar="N", default="1")
    add("--relative-error", metavar="X", default="0.01", help="wanted (0.01)")
    add("--most", metavar="N", help="replicates at most")
    add("--row", metavar="ID", help="a row of a report, measured again, alone")
    add("--from", dest="source", metavar="DIR", default="output", help="that report")
    add(
        "--replicates",
        metavar="A:B",
        help="only sample the replicates A to B - 1, as a report does; for looking "
        "into one that failed",
    )
    add("--json", action="store_true", help="print one JSON object")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    arguments = build_parser().parse_args(argv)
    from montecarlo.point_query import answer, answer_row, format_point
    from montecarlo.replay import replay

    def work() -> int:
        if arguments.replicates is not None:
            print(replay(arguments))
            return DONE
        ask = answer if arguments.row is None else answer_row
        point, seconds = ask(arguments)
        print(format_point(point, seconds, as_json=arguments.json))
        return DONE

    return concluded("measure", work, "interrupted")


if __name__ == "__main__":
    sys.exit(main())
