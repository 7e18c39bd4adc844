"""``python -m montecarlo measure``: one number, with its interval and exact value.

Exit status: 0 measured; 2 usage or input; 3 the run could not finish; 4 measured, but
not to the wanted error; 70 a bug; 130 interrupted, with the estimate so far.
"""

import argparse
from collections.abc import Sequence

from montecarlo.cli.exits import DONE, complain, importing, run
from montecarlo.cli.options import (
    FIRST,
    OTHER,
    SAMPLING,
    Parser,
    option,
    require_defaults,
)
from montecarlo.errors import InputError
from montecarlo.printing import print_lines


def build_parser() -> argparse.ArgumentParser:
    """Build the parser: an option for every column that identifies a row."""
    parser = Parser(
        "measure", "Estimate one quantity at one design point, to a wanted precision."
    )
    parser.add(
        FIRST,
        {
            "--quantity": option(
                "what to measure: python -m montecarlo --list quantities", "NAME"
            ),
            "--d-k": option("length of a query (default: 64)", "N", default="64"),
            "--keys": option("keys of a row; left out for quantities of pairs", "N"),
            "--divisor": option(
                "none (default), sqrt, 13.5, 'd_k^0.6', 'sqrt(d_k*ln(n))', or the "
                "ratio of two, none/sqrt",
                "NAME",
                default="none",
            ),
            "--distribution": option(
                "distribution of q and k (default: gaussian)",
                "NAME",
                default="gaussian",
            ),
            "--row": option("a row_id of a report, measured again, alone", "ID"),
            "--from": option(
                "read that report from here (default: output)", default="output"
            ),
            "--json": {},
        },
    )
    parser.add(
        "which row",
        {
            "--distribution-q": option("distribution of q, where it differs", "NAME"),
            "--distribution-k": option("distribution of k, where it differs", "NAME"),
            "--dependence": option(
                "none (default), planted(0.5), ...", "NAME", default="none"
            ),
            "--initialisation": option(
                "init(kind=...,...), or nothing", "NAME", default=""
            ),
            "--summary": option(
                "mean (default), median, q99, q0.1, ..., spread", "NAME"
            ),
            "--number-format": option(
                "what weights are kept in, as float16 (default: float64)",
                "NAME",
                default="float64",
            ),
            "--softmax": option(
                "shifted (default) or naive", "NAME", default="shifted"
            ),
        },
    )
    parser.add(
        SAMPLING,
        {
            "--relative-error": option(
                "wanted standard error, as a part of the estimate (default: 0.01)", "X"
            ),
            "--absolute-error": option("wanted standard error, instead", "X"),
            "--most": option(
                "replicates at most (default: 131072, and what a minute samples)", "N"
            ),
            "--seed": {"default": "1"},
            "--jobs": {"help": "workers (default: 1)", "default": "1"},
            "--replicates": option(
                "only sample the replicates A to B - 1, as a report does; for "
                "looking into one that failed",
                "A:B",
            ),
        },
    )
    parser.add(OTHER, {"--help": {}})
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
        raise InputError(f"--from must stand with --row, got {arguments.source!r}")
    if arguments.distribution_q is not None and arguments.distribution_k is not None:
        require_defaults(
            arguments, parser, ["distribution"], "--distribution-q and --distribution-k"
        )


def work(arguments: argparse.Namespace, typed: Sequence[str]) -> int:
    """Measure what was asked for, and print it."""
    with importing("measure"):
        from montecarlo.cli.points import answer, answer_row, format_answer
        from montecarlo.cli.replay import replay
        from montecarlo.estimation.engine import OVERFLOW

    _require_acting(build_parser(), arguments, OVERFLOW)
    if arguments.replicates is not None:
        print_lines(replay(arguments))
        return DONE
    found = (answer if arguments.row is None else answer_row)(arguments)
    print_lines(format_answer(found, typed, as_json=arguments.json))
    if found.told:
        complain("measure", found.told, found.status)
    return found.status


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv, "interrupted")
