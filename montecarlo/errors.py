"""What is expected to go wrong, each of one line; anything else is a bug of ours.

What libraries raise is translated where it is expected: where a user's file is opened,
a text decoded, a folder written.
"""

import re
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Characters of one thing that came which a message shows, from its ends, and of a
#: whole message: the longest list of names that there are has half of these.
MOST_QUOTED, MOST_MESSAGE = 120, 4000
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = MOST_QUOTED
#: What is between quotes of a kind.  Each is spelt out: early releases of Python 3.11
#: go wrong where a group that is kept whole refers to one before it.
_BETWEEN = "|".join(rf"{q}(?:[^{q}\\]|\\.)*+{q}" for q in "'\"`")
#: What a message quotes, as `repr` and libraries do, or a word that is too long.  An
#: apostrophe within a word begins no quotation.
_QUOTED = re.compile(
    rf"""(?<![\w'"`])b?(?:{_BETWEEN})|\S{{{MOST_QUOTED + 1},}}""", re.DOTALL
)


def show(value: object) -> str:
    """Return what came for a message: its `repr` on one line, cut where it is long.

    Examples
    --------
    >>> show([1, 2, "x"]), len(show("9" * 1000))
    ("[1, 2, 'x']", 120)
    """
    return _cut(" ".join(_SHORT.repr(value).split()), MOST_QUOTED)


def _cut(text: str, most: int) -> str:
    """Cut the middle out of a text that has more characters."""
    if len(text) <= most:
        return text
    last = most // 3
    return f"{text[: most - last - 3]}...{text[-last:]}"


class _ShortenedError(Exception):
    """An error whose message is cut: the middle of what it quotes, where that is long.

    Also what libraries quote, and the whole.
    """

    def __init__(self, message: object = "") -> None:
        text = _QUOTED.sub(lambda found: _cut(found[0], MOST_QUOTED), str(message))
        super().__init__(_cut(text, MOST_MESSAGE))


class InputError(_ShortenedError, ValueError):
    """Usage or input that cannot be worked with: name, requirement, what came."""


class UnfinishedError(_ShortenedError, RuntimeError):
    """A run that could not start or finish: for want of a disk, memory, a worker."""


class NotReachedError(_ShortenedError, RuntimeError):
    """What was asked for was not reached: there are no data for it."""


@contextmanager
def reading(name: str, path: object) -> Iterator[None]:
    """Translate what opening and reading a user's file raises.

    Raises
    ------
    InputError
        If it cannot be read, or its name is none.
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
    """Translate what the disk says while a folder is written.

    Raises
    ------
    UnfinishedError
        If the disk refuses; what names a file elsewhere is left as it is.
    """
    try:
        yield
    except OSError as error:
        named = error.filename
        if isinstance(named, str | Path) and not _is_within(Path(named), folder):
            raise
        reason = error.strerror or str(error)
        raise UnfinishedError(
            f"{str(folder)!r} must be a folder that can be written, got: {reason}"
        ) from error


def _is_within(path: Path, folder: Path) -> bool:
    return path.absolute().is_relative_to(folder.absolute())
