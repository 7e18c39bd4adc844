"""Prints text safely: without control characters, in any terminal's encoding."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from montecarlo.errors import UnfinishedError
from montecarlo.plain_text import printable


def print_lines(text: object, stream: TextIO | None = None) -> None:
    """Print a text as `printable` has it; by default on standard output.

    Raises
    ------
    UnfinishedError
        As for `printing`.
    """
    write_out(f"{printable(text)}\n", stream or sys.stdout)


def write_out(text: str, stream: TextIO) -> None:
    """Write a trusted text unchanged and flush; raises as `printing`."""
    with printing(stream):
        stream.write(text)
        stream.flush()


@contextmanager
def printing(stream: TextIO) -> Iterator[None]:
    """Translate errors of writing to a stream, which then goes to the null device.

    A reader that has ended, such as ``head``, and errors of standard error are ignored:
    nobody is left to read a message.

    Raises
    ------
    UnfinishedError
        If standard output is closed, or a file on a full disk.
    """
    try:
        yield
    except BrokenPipeError:
        print_nowhere(stream)
    except OSError as error:
        print_nowhere(stream)
        if stream is not sys.stderr:
            raise UnfinishedError(
                f"standard output must be writable, got: {error.strerror or error}"
            ) from None


def print_nowhere(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that later writes do not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def prepare_streams() -> None:
    """Make this process's streams escape characters that their encoding lacks.

    Streams that the caller closed are reopened on the null device, or the next opened
    file would get their number: standard output such that writing to it fails.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _occupy(number, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _occupy(number: int, flags: int) -> None:
    """Open the null device under a number, if that is free."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, flags)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
