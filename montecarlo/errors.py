"""Errors that are expected: each is told in one line; any other error is a bug.

Errors of libraries are translated where they are expected: where a user's file is
opened, a text decoded, a folder written.
"""

import errno
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from montecarlo.plain_text import on_one_line

#: Characters of a quoted input that a message shows, from its start and its end, and
#: of a whole message.
MOST_QUOTED, MOST_MESSAGE = 120, 2000
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = MOST_QUOTED


def show(value: object) -> str:
    """Return the `repr` of an input for a message, on one line and cut if long.

    Examples
    --------
    >>> show([1, 2, "x"]), len(show("9" * 1000))
    ("[1, 2, 'x']", 120)
    """
    return _cut(" ".join(_SHORT.repr(value).split()), MOST_QUOTED)


def _cut(text: str, most: int) -> str:
    """Cut the middle out of a text that has more than so many characters."""
    if len(text) <= most:
        return text
    last = most // 3
    return f"{text[: most - last - 3]}...{text[-last:]}"


class _ShortenedError(Exception):
    """An error with a message of one line, bounded."""

    def __init__(self, message: object = "") -> None:
        text = str(message).encode(errors="backslashreplace").decode()  # names of files
        super().__init__(on_one_line(_cut(text, MOST_MESSAGE)))


class InputError(_ShortenedError, ValueError):
    """Wrong usage or input.  Messages: name, requirement, what was given."""


class UnfinishedError(_ShortenedError, RuntimeError):
    """A run that could not start or finish: no disk space, memory or worker left."""


class NotReachedError(_ShortenedError, RuntimeError):
    """The requested result was not reached: there are no data for it."""


@contextmanager
def reading(name: str, path: object) -> Iterator[None]:
    """Translate errors of opening and reading a user's file.

    Raises
    ------
    InputError
        If the file cannot be read, or no file can have such a name.
    """
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{name} must be a readable file, got {str(path)!r}: {reason}"
        ) from error


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Translate errors of the disk while a folder is written.

    Raises
    ------
    UnfinishedError
        If writing in the folder fails; errors about files elsewhere pass unchanged.
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


def lacks_files(error: OSError) -> bool:
    """Tell whether this process, or the machine, may open no more files."""
    return error.errno in {errno.EMFILE, errno.ENFILE}


def reason_of(error: OSError) -> str:
    """Say what the system says, and what helps where that is not plain."""
    reason = error.strerror or str(error)
    return f"{reason} (ulimit -n raises the limit)" if lacks_files(error) else reason
