"""Exit statuses of every command, and the one line that a command complains with."""

import sys

DONE = 0
#: An outcome named by ``--fail-on``, and only that.
FAILING = 1
#: Usage or input, found before sampling.
INPUT_ERROR = 2
#: The run could not start or finish.
FAILED = 3
INTERRUPTED = 130


def complain(command: str, error: object, status: int) -> int:
    """Print one line on standard error, and return the status."""
    line = " ".join(str(error).split())
    print(f"montecarlo.{command}: {line}", file=sys.stderr)
    return status
