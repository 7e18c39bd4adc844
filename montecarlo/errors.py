"""What is expected to go wrong, each of one line; anything else is a bug of ours.

What libraries raise is translated where it is expected: where a user's file is opened,
a text decoded, a folder written.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class InputError(ValueError):
    """Usage or input that cannot be worked with: name, requirement, what came."""


class UnfinishedError(RuntimeError):
    """A run that could not start or finish: for want of a disk, memory, a worker."""


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
