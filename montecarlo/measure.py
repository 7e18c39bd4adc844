"""``python -m montecarlo.measure``: one number, with its interval and exact value.

Exit status: 0 measured; 2 usage or input; 3 the run could not finish; 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

from montecarlo.arguments import require_defaults, require_values
from montecarlo.exits import DONE, concluded, importing
from montecarlo.printing import Parser, print_lines


def build_parser() -> argparse.ArgumentParser:
    """Build the parser: an option for every column that identifies a row."""
    parser = Parser(
        prog="python -m montecarlo.measure",
        usage="%(prog)s [options]",
        description="Estimate one quantity in one point, to a wanted precision.",
    )
    add = parser.add_argument
    add(
        "--distribution",
        metavar="DISTRIBUTION",
        default="gaussian",
        help="distribution of q and k (gaussian)",
    )
    add(
        "--distribution-q",
        metavar="DISTRIBUTION",
        help="distribution of q, where it differs",
    )
    add(
        "--distribution-k",
        metavar="DISTRIBUTION",
        help="distribution of k, where it differs",
    )
    add("--d-k", metavar="N", default="64", help="length of a query (64)")
    add("--keys", metavar="N", help="keys of a row; left out for quantities of pairs")
    add("--dependence", metavar="NAME", default="none", help="none, planted(0.5), ...")
    add(
        "--initialisation",
        metavar="NAME",
        default="",
        help="init(kind=...,...), or nothing",
    )
    add(
        "--divisor",
        metavar="NAME",
        default="none",
        help="none (default), sqrt, none/sqrt, ...",
    )
    add(
        "--quantity",
        metavar="NAME",
        help="what to measure: python -m montecarlo.report --list quantities",
    )
    add("--summary", metavar="NAME", help="mean, median, q10, q90, spread or value")
    add(
        "--number-format",
        metavar="NAME",
        default="float64",
        help="float16, bfloat16, float32 or float64 (the default)",
    )
    add("--softmax", metavar="NAME", default="shifted", help="shifted (default), naive")
    add("--seed", metavar="N", default="1", help="of all random numbers (1)")
    add("--relative-error", metavar="X", default="0.01", help="wanted (0.01)")
    add("--most", metavar="N", help="replicates at most (131072)")
    add("--row", metavar="ID", help="a row_id of a report, measured again, alone")
    add(
        "--from",
        dest="source",
        metavar="DIR",
        default="output",
        help="that report (output)",
    )
    add(
        "--replicates",
        metavar="A:B",
        help="only sample the replicates A to B - 1, as a report does; for looking "
        "into one that failed",
    )
    add("--json", action="store_true", help="print one JSON object")
    return parser


#: Options that act beside ``--row``: all else is said by the report.
BESIDE_ROW = {"row", "source", "json"}
#: Options that act beside ``--replicates``: which point, and its draws.  Overflow
#: probabilities are of one format and d_k, for Gaussian entries.
OF_TAIL = {"replicates", "quantity", "number_format", "d_k", "seed"}
OF_POINT = OF_TAIL | {
    "distribution",
    "distribution_q",
    "distribution_k",
    "keys",
    "dependence",
    "initialisation",
    "row",
}


def _require_acting(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, tail: str
) -> None:
    """Refuse options that something else would silently take the place of."""
    every = set(vars(arguments))
    if arguments.replicates is not None:
        acting = OF_TAIL if arguments.quantity == tail else OF_POINT
        require_defaults(arguments, parser, every - acting, "--replicates")
    elif arguments.row is not None:
        require_defaults(arguments, parser, every - BESIDE_ROW, "--row")
    elif arguments.source != parser.get_default("source"):
        raise ValueError(f"--from must stand with --row, got {arguments.source!r}")
    if arguments.distribution_q is not None and arguments.distribution_k is not None:
        require_defaults(
            arguments, parser, ["distribution"], "--distribution-q and --distribution-k"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = build_parser()
    arguments = parser.parse_args(argv)

    def work() -> int:
        require_values(arguments)
        with importing("measure"):
            from montecarlo.estimation.failures import OVERFLOW
            from montecarlo.point_query import answer, answer_row, format_point
            from montecarlo.replay import replay

        _require_acting(parser, arguments, OVERFLOW)
        if arguments.replicates is not None:
            print_lines(replay(arguments))
            return DONE
        ask = answer if arguments.row is None else answer_row
        point, seconds = ask(arguments)
        print_lines(format_point(point, seconds, as_json=arguments.json))
        return DONE

    return concluded("measure", work, "interrupted")


if __name__ == "__main__":
    sys.exit(main())
