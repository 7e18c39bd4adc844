"""How a command ends: its status, and the one line that it complains with."""

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
#: An outcome named by ``--fail-on``.
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
#: Ended by SIGTERM, as an interruption is.
TERMINATED = 143
#: What is expected to end a run; anything else is a bug.
EXPECTED: dict[type[BaseException], int] = {
    InputError: INPUT_ERROR,
    UnfinishedError: FAILED,
    NotReachedError: NOT_REACHED,
    MemoryError: FAILED,
    BrokenPipeError: FAILED,  # who reads what is printed has ended
    KeyboardInterrupt: INTERRUPTED,
}
#: Whether SIGTERM came in the command that runs.
_terminated = threading.Event()
#: What is said of an interruption that says nothing itself.
NOTHING_WRITTEN = "interrupted, nothing was written"

#: A command's work: its options and what was typed to the exit status.
Work = Callable[[Any, Sequence[str]], int]


def complain(command: str, told: object, status: int) -> int:
    """Print one line on standard error, and return the status."""
    line = " ".join(str(told).split())
    print_lines(f"{f'montecarlo {command}'.rstrip()}: {line}", sys.stderr)
    return status


def complain_of(command: str, error: BaseException) -> int:
    """Print what ended a command, one of `EXPECTED`, and return its status."""
    status = next(EXPECTED[kind] for kind in EXPECTED if isinstance(error, kind))
    if status == INTERRUPTED:
        return complain(command, str(error) or NOTHING_WRITTEN, status)
    return complain(command, f"error: {str(error) or 'out of memory'}", status)


def run(command: str, argv: Sequence[str] | None = None) -> int:
    """Run a command, a module of `montecarlo.cli`; returns the exit status.

    ``argv`` None stands for the process's arguments, and a command without a name for
    the program's ``--list``.
    """

    def work(options: Any, typed: Sequence[str]) -> int:  # noqa: ANN401 - the command's
        with importing(command):
            module = import_module(f"montecarlo.cli.{command or 'listing'}")
        status: int = module.work(options, typed)
        return status

    typed = sys.argv[1:] if argv is None else argv
    return run_work(build_parser(command), work, typed)


def run_work(parser: Parser, work: Work, typed: Sequence[str]) -> int:
    """Do a command's work with the options that were typed; returns the exit status."""
    _terminated.clear()
    prepare_streams()
    os.environ.pop("MPLBACKEND", None)  # figures need none, and a wrong one is an error
    with _handling(signal.SIGTERM, signal.SIG_DFL, _terminate):
        try:
            return work(parser.read(typed), typed)
        except tuple(EXPECTED) as error:
            status = complain_of(parser.command, error)
            ended = status == INTERRUPTED and _terminated.is_set()
            return TERMINATED if ended else status
        except Exception as error:  # noqa: BLE001 - whatever it is, it is ours to mend
            if isinstance(error, OSError) and is_file_limit(error):
                return complain(parser.command, f"error: {reason_of(error)}", FAILED)
            print_lines("".join(traceback.format_exception(error)).rstrip(), sys.stderr)
            again = shlex.join([*parser.prog.split(), *typed])
            told = f"please report the lines above, with: {again}"
            return complain(parser.command, f"a bug of montecarlo: {told}", BUG)


def _terminate(*_: object) -> None:
    """Let SIGTERM do what Ctrl-C does; a second one changes nothing."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _terminated.set()
    raise KeyboardInterrupt


@contextmanager
def importing(command: str) -> Iterator[None]:
    """End the process at once on Ctrl-C or SIGTERM, for the second that imports take.

    There is nothing to undo yet, and an exception may be swallowed by what is imported.
    """

    def leave(number: int, _: object) -> None:
        status = TERMINATED if number == signal.SIGTERM else INTERRUPTED
        os._exit(complain(command, NOTHING_WRITTEN, status))

    with (
        _handling(signal.SIGINT, signal.default_int_handler, leave),
        _handling(signal.SIGTERM, _terminate, leave),
    ):
        yield


@contextmanager
def _handling(
    number: int, usual: object, handler: Callable[[int, Any], None]
) -> Iterator[None]:
    """Handle a signal, if it is handled as usual, for a block.

    Only the main thread may, and otherwise it was somebody's wish that it be ignored.
    """
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(number)
    if not in_main or before is not usual:
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
