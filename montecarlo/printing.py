"""What is printed: no control characters of others, and in any terminal's encoding.

A member of an archive, a tensor, a key or a file may be called anything: escapes that
colour, that rename the window, that turn the direction of writing.
"""

import codecs
import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from montecarlo.errors import UnfinishedError

#: Control, format, surrogate, private and unassigned characters; ends of lines and
#: paragraphs.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
#: What an encoding without these gets in their place.
_SPELLED = {"±": "+-", "×": "*", "–": "-", "−": "-"}
_HANDLER = "montecarlo.spelled"


def printable(text: object) -> str:
    r"""Return a text whose characters can all be seen; lines stay lines.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        repr(one)[1:-1] if unicodedata.category(one) in _UNSEEN and one != "\n" else one
        for one in str(text)
    )


def print_lines(text: object, stream: TextIO | None = None) -> None:
    """Print a text as `printable` has it; by default on standard output.

    Raises
    ------
    UnfinishedError
        As for `printing`.
    """
    write_out(f"{printable(text)}\n", stream or sys.stdout)


def write_out(text: str, stream: TextIO) -> None:
    """Write a text of our own as it is, at once; raises as `printing`."""
    with printing(stream):
        stream.write(text)
        stream.flush()


@contextmanager
def printing(stream: TextIO) -> Iterator[None]:
    """Translate what a stream refuses, which then leads nowhere.

    Where who reads it has ended, as ``head`` does, or standard error is not to be had,
    there is nobody left to tell.

    Raises
    ------
    UnfinishedError
        If the disk of standard output is full, or it is closed.
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
    """Let a stream lead nowhere from now on, so that what remains is done as well."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def prepare_streams() -> None:
    """Let streams of this process spell what their encoding lacks, and not fail.

    What was closed by who started it is opened, or the next file that is written would
    be taken for it: standard output so that writing to it fails.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _occupy(number, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    codecs.register_error(_HANDLER, _spell)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)


def _occupy(number: int, flags: int) -> None:
    """Open the null device under a number, if that is free."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, flags)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    found = "".join(_SPELLED.get(one, ascii(one)[1:-1]) for one in lacking)
    return found, error.end
