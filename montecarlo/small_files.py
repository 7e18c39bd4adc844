"""A small file that a user names: read whole, and never more than it may have."""

from importlib.resources.abc import Traversable
from pathlib import Path

from montecarlo.errors import InputError, reading

#: Bytes of a file that somebody writes by hand.
MOST_WRITTEN = 2**20


def read_small(name: str, path: Path | Traversable, most: int = MOST_WRITTEN) -> bytes:
    """Read a file whole; one without an end is read to its limit.

    Messages call it by the name; it may have so many bytes at most.

    Examples
    --------
    >>> read_small("text", Path("/dev/zero"), 10)
    Traceback (most recent call last):
        ...
    montecarlo.errors.InputError: text must have at most 10 bytes, got more: '/dev/zero'
    """
    with reading(name, path), path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(
            f"{name} must have at most {most} bytes, got more: {str(path)!r}"
        )
    return bytes(content)
