"""Exceptions for expected errors, each with a one-line message.

Commands print the message without a traceback; any other exception is a bug.  Errors of
Python and its libraries are translated to these where they are expected: in reading a
user's file, decoding text or writing a folder.
"""

import errno
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from montecarlo.plain_text import on_one_line

#: Largest number of characters of a quoted input in a message, and of a message.
MOST_QUOTED, MOST_MESSAGE = 120, 2000
_TRUNCATING = reprlib.Repr()
_TRUNCATING.maxstring = _TRUNCATING.maxother = _TRUNCATING.maxlong = MOST_QUOTED


def show(value: object) -> str:
    """Return the `repr` of a user's input for a message: one line, truncated.

    Examples
    --------
    >>> show([1, 2, "x"]), len(show("9" * 1000))
    ("[1, 2, 'x']", 120)
    """
    return _truncate(" ".join(_TRUNCATING.repr(value).split()), MOST_QUOTED)


def _truncate(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters, its middle replaced by "..."."""
    if len(text) <= most:
        return text
    last = most // 3
    return f"{text[: most - last - 3]}...{text[-last:]}"


class _OneLineError(Exception):
    """Base of exceptions whose message is one line.

    It has at most `MOST_MESSAGE` characters.
    """

    def __init__(self, message: object = "") -> None:
        text = str(message).encode(errors="backslashreplace").decode()  # file names
        super().__init__(on_one_line(_truncate(text, MOST_MESSAGE)))


class InputError(_OneLineError, ValueError):
    """Invalid usage or input.

    A message states the name of the input, the requirement and the given value.
    """


class UnfinishedError(_OneLineError, RuntimeError):
    """A run could not start or finish, for lack of disk space, memory or workers."""


class NotReachedError(_OneLineError, RuntimeError):
    """The requested result could not be obtained, since data for it are missing."""


@contextmanager
def reading(name: str, path: object) -> Iterator[None]:
    """Raise an `InputError` for any error of reading a user's file in a with block.

    Parameters
    ----------
    name : str
        What messages call the file.
    path : object
        Path of the file, for messages.

    Raises
    ------
    InputError
        If the file cannot be read, or the path is invalid.
    """
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: an invalid path
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{name} must be a readable file, got {str(path)!r}: {reason}"
        ) from error


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise an `UnfinishedError` for any error of writing to a folder in a with block.

    Raises
    ------
    UnfinishedError
        If writing to the folder fails.  Errors about files elsewhere are raised as they
        are.
    """
    try:
        yield
    except OSError as error:
        named = error.filename
        path = Path(named if isinstance(named, str | Path) else folder).absolute()
        if not path.is_relative_to(folder.absolute()):
            raise
        raise UnfinishedError(
            f"{str(folder)!r} must be a folder that can be written, got: "
            f"{reason_of(error)}"
        ) from error


def is_file_limit(error: OSError) -> bool:
    """Return whether an error of the system means that too many files are open.

    The limit may be that of this process or of the system.
    """
    return error.errno in {errno.EMFILE, errno.ENFILE}


def reason_of(error: OSError) -> str:
    """Return the message of an error of the system, to end a sentence.

    If too many files are open, the message advises what to do.
    """
    reason = error.strerror or str(error)
    return f"{reason} (ulimit -n raises the limit)" if is_file_limit(error) else reason
