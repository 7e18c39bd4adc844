"""``python -m montecarlo.judge FILE.toml``: judge claims of one's own.

Exit status: 0 no claim has a verdict named by ``--fail-on``; 1 one has; 2 usage or
input; 3 the run could not finish; 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

from montecarlo.exits import DONE, FAILED, FAILING, INPUT_ERROR, INTERRUPTED, complain


def build_parser() -> argparse.ArgumentParser:
    """Build the parser."""
    parser = argparse.ArgumentParser(
        prog="python -m montecarlo.judge",
        usage="%(prog)s FILE.toml [options]",
        description="Judge claims of your own by measurement, for use in CI.",
    )
    add = parser.add_argument
    add("file", metavar="FILE.toml", help="claims, in the format of the catalogue")
    add("--fail-on", metavar="VERDICTS", default="refuted,inconclusive")
    add("--preset", metavar="NAME", default="quick", help="grid and budgets (quick)")
    add("--seed", metavar="N", default="1")
    add("--error-rate", metavar="X", default="0.01", help="of the whole file (0.01)")
    add("--jobs", metavar="N", help="workers (default: one per core)")
    add("--json", action="store_true", help="print one JSON object")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    arguments = build_parser().parse_args(argv)
    from montecarlo.own_claims_query import answer

    try:
        lines, failing = answer(arguments)
    except ValueError as error:
        return complain("judge", error, INPUT_ERROR)
    except (OSError, RuntimeError, MemoryError) as error:
        return complain("judge", error, FAILED)
    except KeyboardInterrupt:
        return complain("judge", "interrupted", INTERRUPTED)
    print(lines)
    return FAILING if failing else DONE


if __name__ == "__main__":
    sys.exit(main())
