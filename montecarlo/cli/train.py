"""``python -m montecarlo train``: train layers by divisor, and write the record.

Exit status: 0 the record was written, or came out again; 1 with ``--short``, it did
not; 2 usage or input; 3 the run could not finish; 70 a bug; 130 interrupted: seeds that
were finished are kept in the work folder.
"""

import argparse
from collections.abc import Sequence

from montecarlo.cli.exits import DONE, FAILING, importing, run
from montecarlo.cli.options import (
    FIRST,
    OTHER,
    SAMPLING,
    Parser,
    option,
    require_defaults,
)
from montecarlo.printing import print_lines


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; values stay as typed."""
    parser = Parser(
        "train",
        "Train one layer of attention with each divisor, optimiser and rate of "
        "learning, and write the record that the pages show.  Takes an hour; --short "
        "two minutes.  Its seeds are fixed.",
    )
    parser.add(
        FIRST,
        {
            "--short": option(
                "two seeds, compared with the record: status 1 if they differ",
                action="store_true",
            ),
            "--language": option(
                "the language model instead, which needs the [training] extra and half "
                "an hour",
                action="store_true",
            ),
            "--work": option(
                "folder for finished seeds, which are kept (default: training)",
                "DIR",
                default="training",
            ),
            "--output": option(
                "folder to write the record to (default: the one of the package)"
            ),
        },
    )
    parser.add(SAMPLING, {"--jobs": {}})
    parser.add(OTHER, {"--help": {}})
    return parser


def work(arguments: argparse.Namespace, _typed: Sequence[str]) -> int:
    """Make the record, or a part of it again."""
    if arguments.short:
        require_defaults(
            arguments, build_parser(), ("language", "work", "output"), "--short"
        )
    if arguments.language:
        with importing("train"):
            from montecarlo.training.language import require_extra

            require_extra()
            from montecarlo.training.language_recording import make_language

        for line in make_language(arguments):
            print_lines(line)
        return DONE
    with importing("train"):
        from montecarlo.training.recording import make_record
        from montecarlo.training.reproducing import reproduce

    if arguments.short:
        lines, same = reproduce(arguments)
        print_lines("\n".join(lines))
        return DONE if same else FAILING
    for line in make_record(arguments):
        print_lines(line)
    return DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv, "interrupted, finished seeds are kept")
