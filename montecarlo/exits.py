"""Exit statuses of every command, and the one line that a command complains with."""

import sys
from collections.abc import Callable

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


def concluded(
    command: str,
    work: Callable[[], int],
    interrupted: str = "interrupted, nothing was written",
) -> int:
    """Do a command's work; what it raises becomes one line and a status.

    Parameters
    ----------
    command : str
        Its name, for the line.
    work : callable
        Returns the exit status.
    interrupted : str
        What is said of an interruption that says nothing itself.
    """
    try:
        return work()
    except ValueError as error:
        return complain(command, error, INPUT_ERROR)
    except (OSError, RuntimeError, MemoryError) as error:
        return complain(command, error, FAILED)
    except KeyboardInterrupt as stopped:
        return complain(command, str(stopped) or interrupted, INTERRUPTED)
