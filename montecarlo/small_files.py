"""A small file that a user names: read whole, and never more than it may have."""

from importlib.resources.abc import Traversable
from pathlib import Path

#: Bytes of a file that somebody writes by hand.
MOST_WRITTEN = 2**20


def read_small(name: str, path: Path | Traversable, most: int = MOST_WRITTEN) -> bytes:
    """Read a file whole; one without an end is read to its limit.

    Parameters
    ----------
    name : str
        What messages call it.
    path : Path or Traversable
    most : int
        Bytes.

    Raises
    ------
    ValueError
        If it has more.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> read_small("config", Path("/dev/zero"), 10)
    Traceback (most recent call last):
        ...
    ValueError: config must have at most 10 bytes, got more: '/dev/zero'
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(
            f"{name} must have at most {most} bytes, got more: {str(path)!r}"
        )
    return bytes(content)
