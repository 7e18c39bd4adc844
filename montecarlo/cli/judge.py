"""``python -m montecarlo judge FILE.toml ...``: judge claims of one's own.

Exit status: 0 all was judged and no verdict is one named by ``--fail-on``; 1 one is; 2
usage or input; 3 the run could not finish; 4 something that a claim speaks of could not
be judged; 70 a bug; 130 interrupted.
"""

import argparse
from collections.abc import Sequence

from montecarlo.cli.exits import importing, run
from montecarlo.cli.options import FIRST, OTHER, SAMPLING, Parser, option
from montecarlo.printing import print_lines


def build_parser() -> argparse.ArgumentParser:
    """Build the parser."""
    parser = Parser(
        "judge",
        "Judge claims of your own by measurement, for use in CI and, with --output, "
        "for readers in several languages.",
        "FILE.toml [FILE.toml ...] ",
    )
    parser.add(
        FIRST,
        {
            "file": option(
                "claims, in the format of docs/own-claim.toml; each of several files "
                "has an error rate, and a folder in DIR, of its own",
                "FILE.toml",
                nargs="+",
            ),
            "--fail-on": option(
                "end with status 1 if one of these verdicts comes out, or "
                "self-check, a check of the simulator itself is refuted; none: "
                "never (default: refuted,undecided,self-check)"
            ),
            "--output": option("folder to write pages and data to (default: none)"),
            "--lang": {},
            "--json": {},
        },
    )
    parser.add(
        SAMPLING,
        {
            "--preset": option(
                "grid and budgets: quick (default), standard or full", default="quick"
            ),
            "--seed": {"default": "1"},
            "--error-rate": option(
                "of the whole file (default: 0.01)", "X", default="0.01"
            ),
            "--jobs": {},
            "--executor": {},
        },
    )
    parser.add(OTHER, {"--help": {}})
    return parser


def work(arguments: argparse.Namespace, typed: Sequence[str]) -> int:
    """Judge the file, and print what came out."""
    with importing("judge"):
        from montecarlo.cli.own_claims import answer

    lines, status = answer(arguments, typed)
    print_lines(lines)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv)
