"""Exit statuses of every command, and the one line that a command complains with."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from montecarlo.printing import print_lines, spell_out

DONE = 0
#: An outcome named by ``--fail-on``, and only that.
FAILING = 1
#: Usage or input, found before sampling.
INPUT_ERROR = 2
#: The run could not start or finish.
FAILED = 3
#: What was asked was not reached: nothing was judged.
NOT_REACHED = 4
INTERRUPTED = 130
#: What is said of an interruption that says nothing itself.
NOTHING_WRITTEN = "interrupted, nothing was written"


def complain(command: str, error: object, status: int) -> int:
    """Print one line on standard error, and return the status."""
    line = " ".join(str(error).split())
    print_lines(f"montecarlo.{command}: {line}", sys.stderr)
    return status


def concluded(
    command: str,
    work: Callable[[], int],
    interrupted: str = NOTHING_WRITTEN,
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
    spell_out()
    try:
        return work()
    except ValueError as error:
        return complain(command, error, INPUT_ERROR)
    except MemoryError as error:
        return complain(command, str(error) or "out of memory", FAILED)
    except (OSError, RuntimeError) as error:
        return complain(command, error, FAILED)
    except KeyboardInterrupt as stopped:
        return complain(command, str(stopped) or interrupted, INTERRUPTED)


@contextmanager
def importing(command: str) -> Iterator[None]:
    """End the process at once on Ctrl-C, for the second that imports take.

    There is nothing to undo yet, and an exception may be swallowed by what is imported.

    Parameters
    ----------
    command : str
        Its name, for the line.
    """

    def leave(*_: object) -> None:
        os._exit(complain(command, NOTHING_WRITTEN, INTERRUPTED))

    handler = signal.default_int_handler
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not handler:
        yield  # others have no signals, or it was somebody's wish that they be ignored
        return
    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
