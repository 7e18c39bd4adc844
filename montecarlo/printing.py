"""Prints text without control characters, to streams of any encoding."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from montecarlo.errors import UnfinishedError
from montecarlo.plain_text import printable


def print_lines(text: object, stream: TextIO | None = None) -> None:
    """Print a text, escaped by `printable`, and a line feed.

    ``stream`` is standard output by default.

    Raises
    ------
    UnfinishedError
        If the stream cannot be written.  Broken pipes, and errors of standard error,
        are ignored.
    """
    write_out(f"{printable(text)}\n", stream or sys.stdout)


def write_out(text: str, stream: TextIO) -> None:
    """Write a trusted text to a stream without escaping, and flush the stream.

    Raises
    ------
    UnfinishedError
        As for `print_lines`.
    """
    with printing(stream):
        stream.write(text)
        stream.flush()


@contextmanager
def printing(stream: TextIO) -> Iterator[None]:
    """Raise an `UnfinishedError` for errors of writing to a stream in a with block.

    After an error the stream is redirected to the null device.  Broken pipes, such as
    from ``head``, and errors of standard error are ignored.

    Raises
    ------
    UnfinishedError
        If another stream cannot be written, as it is closed or the disk is full.
    """
    try:
        yield
    except BrokenPipeError:
        redirect_to_null(stream)
    except OSError as error:
        redirect_to_null(stream)
        if stream is not sys.stderr:
            raise UnfinishedError(
                f"standard output must be writable, got: {error.strerror or error}"
            ) from None


def redirect_to_null(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that later writes do not fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def prepare_streams() -> None:
    """Make standard input, output and error safe to print to at the start of a run.

    Characters that the encoding lacks are written as backslash escapes.  Streams that
    the caller closed are reopened on the null device, so that no file opened later gets
    file descriptor 0, 1 or 2.  Standard output is reopened read-only, so that writing
    to it still fails.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _open_null_device(number, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _open_null_device(number: int, flags: int) -> None:
    """Open the null device as file descriptor ``number``, if that is not in use."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, flags)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
