"""Exit statuses of commands, and their one-line messages on standard error."""

import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from montecarlo.cli.command_line import build_parser
from montecarlo.cli.options import Parser
from montecarlo.errors import (
    InputError,
    NotReachedError,
    UnfinishedError,
    is_file_limit,
    reason_of,
)
from montecarlo.printing import prepare_streams, print_lines

DONE = 0
#: An outcome named by ``--fail-on`` occurred.
FAILING = 1
#: Invalid usage or input, found before sampling.
INPUT_ERROR = 2
#: The run could not start or finish.
FAILED = 3
#: Part of the requested result could not be obtained.
NOT_REACHED = 4
#: A bug of this program, printed with its traceback.
BUG = 70
INTERRUPTED = 130
#: Interrupted by SIGTERM.
TERMINATED = 143
#: Exceptions that may end a run -> exit status; any other exception is a bug.
EXPECTED: dict[type[BaseException], int] = {
    InputError: INPUT_ERROR,
    UnfinishedError: FAILED,
    NotReachedError: NOT_REACHED,
    MemoryError: FAILED,
    BrokenPipeError: FAILED,  # the reader of standard output has ended
    KeyboardInterrupt: INTERRUPTED,
}
#: Whether the running command has received SIGTERM.
_terminated = threading.Event()
#: Message of an interruption without one.
NOTHING_WRITTEN = "interrupted, nothing was written"

#: Function that does a command's work: (options, arguments) -> exit status.
Work = Callable[[Any, Sequence[str]], int]


def print_message(command: str, message: object, status: int) -> int:
    """Print a message of a command on standard error; return ``status``.

    The message becomes one line, after the name of the command.  ``command`` is what
    follows ``montecarlo``, such as ``judge``, or empty.
    """
    line = " ".join(str(message).split())
    print_lines(f"{f'montecarlo {command}'.rstrip()}: {line}", sys.stderr)
    return status


def print_error(command: str, error: BaseException, again: str = "") -> int:
    """Print the exception that ended a command; return the exit status for it.

    The exception is of a class in `EXPECTED`.  ``again`` is the whole command: if the
    message of an interruption says that something is kept, it goes on from there, but
    for ``--fresh``, which would delete it.
    """
    status = next(EXPECTED[kind] for kind in EXPECTED if isinstance(error, kind))
    if status == INTERRUPTED:
        kept = f"{error}: {again.replace(' --fresh', '')}"
        return print_message(command, kept if str(error) else NOTHING_WRITTEN, status)
    return print_message(command, f"error: {str(error) or 'out of memory'}", status)


def run(command: str, argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    With ``--help`` SystemExit is raised instead, as by argparse.

    Parameters
    ----------
    command : str
        Name of the command; empty for ``--list``.
    argv : sequence of str, optional
        Arguments of the command; by default those of the process.
    """

    def work(options: Any, argv: Sequence[str]) -> int:  # noqa: ANN401 - the command's
        """Call ``work`` of the command's module; return the exit status.

        The empty ``command`` has the module `listing`.
        """
        with importing(command):
            module = import_module(f"montecarlo.cli.{command or 'listing'}")
        status: int = module.work(options, argv)
        return status

    argv = sys.argv[1:] if argv is None else argv
    return run_work(build_parser(command), work, argv)


def run_work(parser: Parser, work: Work, argv: Sequence[str]) -> int:
    """Parse a command's arguments, do its work, and return the exit status.

    ``work`` is called with the options and ``argv``, the arguments as typed.  Expected
    errors are printed in one line; their status is that in `EXPECTED`.  Any other
    exception is printed with its traceback and the request to report it; the status is
    `BUG`.  With ``--help`` SystemExit is raised instead, as by argparse.
    """
    _terminated.clear()
    prepare_streams()
    os.environ.pop("MPLBACKEND", None)  # unused, and an error if invalid
    again = shlex.join([*parser.prog.split(), *argv])
    with _handling(signal.SIGTERM, signal.SIG_DFL, _terminate):
        try:
            return work(parser.read(argv), argv)
        except tuple(EXPECTED) as error:
            status = print_error(parser.command, error, again)
            ended = status == INTERRUPTED and _terminated.is_set()
            return TERMINATED if ended else status
        except Exception as error:  # noqa: BLE001 - any other exception is a bug
            if isinstance(error, OSError) and is_file_limit(error):
                message = f"error: {reason_of(error)}"
                return print_message(parser.command, message, FAILED)
            print_lines("".join(traceback.format_exception(error)).rstrip(), sys.stderr)
            request = f"please report the lines above, with: {again}"
            return print_message(parser.command, f"a bug of montecarlo: {request}", BUG)


def _terminate(*_: object) -> None:
    """Raise `KeyboardInterrupt` on SIGTERM, and ignore further SIGTERMs."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _terminated.set()
    raise KeyboardInterrupt


@contextmanager
def importing(command: str) -> Iterator[None]:
    """End the process at once on Ctrl-C or SIGTERM, within a with block of imports.

    Nothing has to be undone during imports, and imported code might catch an exception
    instead of ending.  ``command`` is named in the message.
    """

    def leave(number: int, _: object) -> None:
        """Print that the command has written nothing, and end the process.

        The exit status depends on ``number``, that of the signal.
        """
        status = TERMINATED if number == signal.SIGTERM else INTERRUPTED
        os._exit(print_message(command, NOTHING_WRITTEN, status))

    with (
        _handling(signal.SIGINT, signal.default_int_handler, leave),
        _handling(signal.SIGTERM, _terminate, leave),
    ):
        yield


@contextmanager
def _handling(
    number: int, usual: object, handler: Callable[[int, Any], None]
) -> Iterator[None]:
    """Set a signal handler within a with block, if the current handler is ``usual``.

    ``number`` is that of the signal.  Another handler was set deliberately, such as to
    ignore the signal, and stays.  Only the main thread can set handlers: in others
    nothing is done.
    """
    before = signal.getsignal(number)
    if threading.current_thread() is not threading.main_thread() or before is not usual:
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
