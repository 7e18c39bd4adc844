"""Reads and writes files that a user names, whole; what is read has a limit."""

import errno
import os
import re
import stat
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from montecarlo.errors import InputError, UnfinishedError, reading

#: Bytes of a TOML file at most: twice the largest one of the package.
MOST_WRITTEN = 2**18
#: Parts of a key such as ``grid.blocks.d_k`` at most.  `tomllib` keeps every prefix of
#: a key: its memory grows with the square of their number.
MOST_PARTS = 8
#: A dot after a part of a key, which is bare or in quotes.
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_PART}){{{MOST_PARTS}}}(?=[\w\"'-])", re.ASCII)


def require_regular(name: str, path: Path) -> None:
    """Refuse anything but a regular file before it is opened: a pipe has no end.

    Raises
    ------
    InputError
        With ``name`` for the file.
    """
    with reading(name, path):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise InputError(f"{name} must be a regular file, got {str(path)!r}")


def require_writable(name: str, path: Path) -> None:
    """Refuse a path that `write_file` could not write, before there is anything to.

    Raises
    ------
    InputError
        With ``name`` for the file.
    """
    with reading(name, path):
        try:
            target = path.resolve()
        except RuntimeError as error:  # links that lead to each other
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
        is_usable = target.parent.is_dir() and os.access(target.parent, os.W_OK)
        if target.exists():
            require_regular(name, target)
    if not is_usable:
        raise InputError(
            f"{name} must be a file in a folder that is there and can be written, got "
            f"{str(path)!r}"
        )


def write_file(name: str, path: Path, content: bytes) -> None:
    """Write a file that a user names, whole or not at all, where its links lead.

    Raises
    ------
    InputError
        As for `require_writable`.
    UnfinishedError
        If it cannot be written all the same, as on a full disk.
    """
    require_writable(name, path)
    target = path.resolve()
    part = target.with_name(f".montecarlo-{os.getpid()}")
    try:
        part.write_bytes(content)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UnfinishedError(
            f"{name} must be a file that can be written, got {str(path)!r}: "
            f"{error.strerror or error}"
        ) from None


def read_small(name: str, path: Path, most: int = MOST_WRITTEN) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes.

    ``name`` is what error messages call it.

    Examples
    --------
    >>> read_small("text", Path("/dev/zero"), 10)
    Traceback (most recent call last):
        ...
    montecarlo.errors.InputError: text must be a regular file, got '/dev/zero'
    """
    require_regular(name, path)
    with reading(name, path), path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(
            f"{name} must have at most {most} bytes, got more: {str(path)!r}"
        )
    return content


def read_package_toml(file: str) -> dict[str, Any]:
    """Read a TOML file of the package, named as in ``"study/presets.toml"``."""
    return tomllib.loads(files("montecarlo").joinpath(file).read_text("utf-8"))


def parse_toml(name: str, content: bytes | str) -> dict[str, Any]:
    """Parse a TOML file, in at most a few hundred megabytes and a second.

    Raises
    ------
    InputError
        If it is no TOML, too long, or holds a key of too many parts, even within a
        string: only parsing could tell the difference.

    Examples
    --------
    >>> parse_toml("config", "a.b = 1")
    {'a': {'b': 1}}
    """
    if len(content) > MOST_WRITTEN:
        raise InputError(
            f"{name} must have at most {MOST_WRITTEN} bytes, got {len(content)}"
        )
    try:
        text = content if isinstance(content, str) else content.decode()
        found = _LONG_KEY.search(text)
        data = {} if found else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} must be TOML, got none: {error}") from None
    if found:
        raise InputError(
            f"{name} must have at most {MOST_PARTS} parts in a key, got more: "
            f"{found[0]!r}"
        )
    return data
