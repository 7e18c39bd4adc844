"""``python -m montecarlo.observe FILE [FILE ...]``: queries and keys of your own model.

Exit status: 0 no head is in a state named by ``--fail-on``; 1 one is; 2 usage or input;
3 the run could not finish; 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

from montecarlo.arguments import require_values
from montecarlo.exits import DONE, FAILING, concluded, importing
from montecarlo.printing import Parser


def build_parser() -> argparse.ArgumentParser:
    """Build the parser."""
    parser = Parser(
        prog="python -m montecarlo.observe",
        usage="%(prog)s FILE [FILE ...] [options]",
        description="Take queries and keys from a model: does the divisor fit, head by "
        "head, and if not, which assumption of the texts fails?",
        epilog="Files are memory-mapped, or unpacked a piece at a time; nothing is "
        "unpickled.  Entries are float16, bfloat16, float32 or float64.",
    )
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        metavar="FILE",
        help=".npz with arrays q and k, several for further sequences; two .npy, q and "
        "then k; or .safetensors that hold queries and keys (not weights)",
    )
    add(
        "--axes",
        metavar="NAMES",
        help="of the arrays' axes, in their order, with commas (sequence,layer,head,"
        "token,d); token and d have to be there",
    )
    add(
        "--names",
        metavar="PATTERN",
        help="of tensors in .safetensors: {side} stands for q, query, k or key; "
        "{layer}, {head}, {sequence} are counted ({side})",
    )
    add("--causal", action="store_true", help="a query sees no later keys")
    add(
        "--divisor",
        default="sqrt",
        metavar="C",
        help="of the model: none, sqrt, 2sqrt, linear, or a number (sqrt)",
    )
    add("--seed", default="1", metavar="N", help="of keys drawn from elsewhere (1)")
    add("--output", default="observed", metavar="DIR", help="folder (observed)")
    add(
        "--lang",
        action="append",
        metavar="CODE",
        help="a language of the pages, or all (default); repeatable",
    )
    add(
        "--fail-on",
        default="none",
        metavar="STATES",
        help="exit with 1 if a head is saturated, peaked, balanced or flat (none)",
    )
    add("--quiet", action="store_true", help="print nothing but errors")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    arguments = build_parser().parse_args(argv)

    typed = list(sys.argv[1:] if argv is None else argv)

    def work() -> int:
        require_values(arguments)
        with importing("observe"):
            from montecarlo.report.observed.command import observe_files

        return FAILING if observe_files(arguments, typed) else DONE

    return concluded("observe", work)


if __name__ == "__main__":
    sys.exit(main())
