"""``python -m montecarlo.judge FILE.toml``: judge claims of one's own.

Exit status: 0 all was judged and no verdict is one named by ``--fail-on``; 1 one is; 2
usage or input; 3 the run could not finish; 4 something that a claim speaks of could not
be judged; 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

from montecarlo.arguments import require_values
from montecarlo.exits import concluded, importing
from montecarlo.printing import Parser, print_lines


def build_parser() -> argparse.ArgumentParser:
    """Build the parser."""
    parser = Parser(
        prog="python -m montecarlo.judge",
        usage="%(prog)s FILE.toml [options]",
        description="Judge claims of your own by measurement, for use in CI and, with "
        "--report, for readers in several languages.",
    )
    add = parser.add_argument
    add(
        "file",
        metavar="FILE.toml",
        help="claims, in the format of the catalogue; texts in one or several "
        "languages (docs/own-claim.toml)",
    )
    add(
        "--fail-on",
        metavar="VERDICTS",
        default="refuted,inconclusive,self-check",
        help="verdicts that end in status 1, and self-check: a check of the simulator "
        "itself is refuted (refuted,inconclusive,self-check); none: nothing does",
    )
    add("--preset", metavar="NAME", default="quick", help="grid and budgets (quick)")
    add("--seed", metavar="N", default="1", help="of all random numbers (1)")
    add("--error-rate", metavar="X", default="0.01", help="of the whole file (0.01)")
    add("--jobs", metavar="N", help="workers (default: one per core)")
    add(
        "--executor",
        metavar="NAME",
        help="threads, processes, dask or tls://HOST:PORT (docs/cluster.md)",
    )
    add("--json", action="store_true", help="print one JSON object")
    add("--report", metavar="DIR", help="write pages and data to this folder as well")
    add(
        "--lang",
        action="append",
        metavar="CODE",
        help="a language of the report, or all (default); repeatable",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    arguments = build_parser().parse_args(argv)

    typed = list(sys.argv[1:] if argv is None else argv)

    def work() -> int:
        require_values(arguments)
        with importing("judge"):
            from montecarlo.own_claims_query import answer

        lines, status = answer(arguments, typed)
        print_lines(lines)
        return status

    return concluded("judge", work)


if __name__ == "__main__":
    sys.exit(main())
