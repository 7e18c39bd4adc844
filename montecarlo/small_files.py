"""Reads and writes files that a user names, whole; what is read has a limit."""

import errno
import os
import stat
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from montecarlo.errors import InputError, UnfinishedError, reading

#: Bytes of a TOML file at most: twice the largest one of the package.
MOST_WRITTEN = 2**18


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


def write_file(name: str, path: Path, content: bytes) -> None:
    """Write a file that a user names, whole or not at all, where its links lead.

    Raises
    ------
    InputError
        If its folder is not there, or it is no regular file.
    UnfinishedError
        If it cannot be written all the same, as on a full disk.
    """
    with reading(name, path):
        target = Path(os.path.realpath(path))
        if target.exists():
            require_regular(name, target)
    if not target.parent.is_dir():
        raise InputError(f"{name} must be in a folder that is there, got {str(path)!r}")
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
    """Parse a TOML file.

    Raises
    ------
    InputError
        If it is no TOML, or too long.

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
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} must be TOML, got none: {error}") from None
