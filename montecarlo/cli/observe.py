"""``python -m montecarlo observe FILE [FILE ...]``: queries and keys of your own model.

Exit status: 0 no head is in a state named by ``--fail-on``, and all divide by what
``--expect`` says; 1 one is, or does not; 2 usage or input; 3 the run could not finish;
4 what ``--expect`` asks cannot be told; 70 a bug; 130 interrupted.
"""

from collections.abc import Sequence

from montecarlo.cli.command_line import ObserveOptions
from montecarlo.cli.exits import DONE, FAILING, NOT_REACHED, importing, run
from montecarlo.cli.options import Parser


def build_parser() -> Parser:
    """Build the parser."""
    return Parser(
        "observe",
        "Take queries and keys from a model: what are scores divided by, does that "
        "fit, head by head, and if not, which assumption of the texts fails?",
        "FILE [FILE ...] ",
        "Several .npz are further sequences; .npy are q and k, then weights, or v and "
        "outputs.  Files are memory-mapped, or unpacked a piece at a time; nothing is "
        "unpickled.  Entries are float16, bfloat16, float32 or float64.",
        options=ObserveOptions,
    )


def work(options: ObserveOptions, typed: Sequence[str]) -> int:
    """Observe the files, and write what was found."""
    with importing("observe"):
        from montecarlo.cli.observation import observe_files
        from montecarlo.model.answers import NO, UNTOLD

    failing, answer = observe_files(options, typed)
    if failing or answer == NO:
        return FAILING
    return NOT_REACHED if answer == UNTOLD else DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv)
