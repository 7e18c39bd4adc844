"""How a command ends: its status, and the one line that it complains with."""

import argparse
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from montecarlo.cli.options import require_values
from montecarlo.errors import InputError, UnfinishedError
from montecarlo.printing import print_lines, spell_out

DONE = 0
#: An outcome named by ``--fail-on``, or a record that does not come out again.
FAILING = 1
#: Usage or input, found before sampling.
INPUT_ERROR = 2
#: The run could not start or finish.
FAILED = 3
#: What was asked was not reached: nothing was judged.
NOT_REACHED = 4
#: A mistake of ours, with its traceback.
BUG = 70
INTERRUPTED = 130
#: What is expected to end a run; anything else is a bug.
EXPECTED: dict[type[BaseException], int] = {
    InputError: INPUT_ERROR,
    UnfinishedError: FAILED,
    MemoryError: FAILED,
    BrokenPipeError: FAILED,  # who reads what is printed has ended
    KeyboardInterrupt: INTERRUPTED,
}
#: What is said of an interruption that says nothing itself.
NOTHING_WRITTEN = "interrupted, nothing was written"

#: A command's work: arguments as parsed and as typed to the exit status.
Work = Callable[[argparse.Namespace, Sequence[str]], int]


def complain(command: str, error: object, status: int) -> int:
    """Print one line on standard error, and return the status."""
    line = " ".join(str(error).split())
    print_lines(f"{f'montecarlo {command}'.rstrip()}: {line}", sys.stderr)
    return status


def run(
    parser: argparse.ArgumentParser,
    work: Work,
    argv: Sequence[str] | None,
    interrupted: str = NOTHING_WRITTEN,
) -> int:
    """Do a command's work; returns the exit status.

    Only what is expected becomes one line.  The parser knows the command's name,
    ``argv`` None stands for the process's arguments, and ``interrupted`` for what an
    interruption does not say itself.
    """
    command = parser.prog.split()[-1]
    typed = list(sys.argv[1:] if argv is None else argv)
    spell_out()
    arguments = parser.parse_args(typed)
    try:
        require_values(arguments)
        return work(arguments, typed)
    except tuple(EXPECTED) as error:
        status = next(EXPECTED[kind] for kind in EXPECTED if isinstance(error, kind))
        silent = interrupted if status == INTERRUPTED else "out of memory"
        return complain(command, str(error) or silent, status)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is ours to mend
        print_lines("".join(traceback.format_exception(error)).rstrip(), sys.stderr)
        again = shlex.join([*parser.prog.split(), *typed])
        report = f"a bug of montecarlo: please report the lines above, with: {again}"
        return complain(command, report, BUG)


@contextmanager
def importing(command: str) -> Iterator[None]:
    """End the process at once on Ctrl-C, for the second that imports take.

    There is nothing to undo yet, and an exception may be swallowed by what is imported.
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
