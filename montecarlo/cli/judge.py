"""``python -m montecarlo judge FILE.toml ...``: judge claims of one's own.

Exit status: 0 all was judged and no outcome is one named by ``--fail-on``; 1 one is; 2
usage or input; 3 the run could not finish; 4 something that a claim speaks of could not
be judged; 70 a bug; 130 interrupted.
"""

from collections.abc import Sequence

from montecarlo.cli.command_line import JudgeOptions
from montecarlo.cli.exits import importing, run
from montecarlo.cli.options import Parser
from montecarlo.printing import print_lines


def build_parser() -> Parser:
    """Build the parser."""
    return Parser(
        "judge",
        "Judge claims of your own by measurement, for use in CI and, with --output, "
        "for readers in several languages.",
        "FILE.toml [FILE.toml ...] ",
        options=JudgeOptions,
    )


def work(options: JudgeOptions, typed: Sequence[str]) -> int:
    """Judge the files, and print what came out."""
    with importing("judge"):
        from montecarlo.cli.own_claims import answer

    lines, status = answer(options, typed)
    print_lines(lines)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv)
