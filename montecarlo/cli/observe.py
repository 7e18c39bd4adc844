"""``python -m montecarlo observe FILE [FILE ...]``: queries and keys of your own model.

Exit status: 0 no head is in a state named by ``--fail-on``, and all divide by what
``--expect`` says; 1 one is, or does not; 2 usage or input; 3 the run could not finish;
4 what ``--expect`` asks cannot be told; 70 a bug; 130 interrupted.
"""

import argparse
from collections.abc import Sequence

from montecarlo.cli.exits import DONE, FAILING, NOT_REACHED, importing, run
from montecarlo.cli.options import FIRST, NAMES, OTHER, SAMPLING, Parser, option

#: As `montecarlo.model.answers` has it, which help does not wait for.
RTOL = "0.01"


def build_parser() -> argparse.ArgumentParser:
    """Build the parser."""
    parser = Parser(
        "observe",
        "Take queries and keys from a model: what are scores divided by, does that "
        "fit, head by head, and if not, which assumption of the texts fails?",
        "FILE [FILE ...] ",
        "Several .npz are further sequences; .npy are q and k, then weights, or v and "
        "outputs.  Files are memory-mapped, or unpacked a piece at a time; nothing is "
        "unpickled.  Entries are float16, bfloat16, float32 or float64.",
    )
    parser.add(
        FIRST,
        {
            "files": option(
                ".npz, .npy or .safetensors with q, k and what tells the applied "
                "scale: weights, or v and outputs",
                "FILE",
                nargs="+",
            ),
            "--expect": option(
                "end with status 1 if scores are divided by something else, 4 if that "
                "cannot be told: config, sqrt, another by its name, a number",
                "C",
            ),
            "--config": option(
                "a config.json of transformers, for --expect config",
                "FILE",
            ),
            "--causal": option("a query sees no later keys", action="store_true"),
            "--output": option(
                "folder to write (default: observed)", default="observed"
            ),
            "--figure": option(
                "write the one figure to a file of its own as well: .svg, .pdf or .png",
                "FILE",
            ),
            "--json": {"help": "print the applied scales as one JSON object"},
        },
    )
    parser.add(
        "how the arrays lie",
        {
            "--axes": option(
                "of the arrays' axes, in their order (sequence,layer,head,token,d); "
                "token and d have to be there; weights have keys last, and no d",
                **NAMES,
            ),
            "--names": option(
                "of arrays in .npz: of q and of k, weights=NAME, v=NAME, outputs=NAME; "
                "of tensors in .safetensors: {side} stands for q, query, k, key, "
                "weights, v, value or outputs; {layer}, {head}, {sequence} are counted "
                "({side})",
                "PATTERN",
            ),
        },
    )
    parser.add(
        "what is judged",
        {
            "--rtol": option(
                "how far off what is expected may be, as a part (default: 0.01)",
                "R",
                default=RTOL,
            ),
            "--divisor": option(
                "what tables divide by (default: what is told, else sqrt)", "C"
            ),
            "--fail-on": option(
                "end with status 1 if a head is saturated, peaked, balanced or flat"
            ),
        },
    )
    parser.add(
        SAMPLING, {"--seed": option("of keys drawn anew (default: 1)", default="1")}
    )
    parser.add(OTHER, {"--quiet": {}, "--help": {}})
    return parser


def work(arguments: argparse.Namespace, typed: Sequence[str]) -> int:
    """Observe the files, and write what was found."""
    with importing("observe"):
        from montecarlo.model.answers import NO, UNTOLD
        from montecarlo.report.observation import ObserveOptions, observe_files

    failing, answer = observe_files(ObserveOptions(**vars(arguments)), typed)
    if failing or answer == NO:
        return FAILING
    return NOT_REACHED if answer == UNTOLD else DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv)
