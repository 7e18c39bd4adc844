"""Reads and writes whole files at paths from the user; reading has a size limit.

In all functions ``name`` is what error messages call the file.
"""

import os
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from montecarlo.errors import InputError, UnfinishedError, reading

#: Largest size of a TOML file in bytes: twice that of the largest one in the package.
MOST_TOML_BYTES = 2**18


def require_regular(name: str, path: Path) -> None:
    """Raise `InputError` unless a path is that of an existing regular file.

    Called before opening, since reading a pipe or a device may never end.  ``name`` is
    what the message calls the file.
    """
    with reading(name, path):
        path.stat()  # raises if there is none
        if not path.is_file():
            raise InputError(f"{name} must be a regular file, got {str(path)!r}")


def write_file(name: str, path: Path, content: bytes) -> None:
    """Write bytes to a file atomically; a symbolic link is followed.

    ``name`` is what messages call the path.

    Raises
    ------
    InputError
        If the folder does not exist, or the path exists and is not a regular file.
    UnfinishedError
        If writing fails, such as on a full disk.
    """
    with reading(name, path):
        target = Path(os.path.realpath(path))
        if target.exists():
            require_regular(name, target)
    if not target.parent.is_dir():
        raise InputError(f"{name} must be in an existing folder, got {str(path)!r}")
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


def read_small(name: str, path: Path, most: int = MOST_TOML_BYTES) -> bytes:
    """Return the bytes of a regular file of at most ``most`` bytes.

    ``name`` is what messages call the file.

    Raises
    ------
    InputError
        If it is larger, not a regular file, or not readable.

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
    """Return the data of a TOML file of the package, such as "study/presets.toml"."""
    return tomllib.loads(files("montecarlo").joinpath(file).read_text("utf-8"))


def parse_toml(name: str, content: bytes | str) -> dict[str, Any]:
    """Return the data of a TOML file from its content, as a dict.

    Raises
    ------
    InputError
        If it is not valid TOML, or longer than `MOST_TOML_BYTES`; messages call it
        ``name``.

    Examples
    --------
    >>> parse_toml("config", "a.b = 1")
    {'a': {'b': 1}}
    """
    if len(content) > MOST_TOML_BYTES:
        raise InputError(
            f"{name} must have at most {MOST_TOML_BYTES} bytes, got {len(content)}"
        )
    try:
        return tomllib.loads(content if isinstance(content, str) else content.decode())
    except (ValueError, RecursionError) as error:
        reason = str(error).replace("Cannot overwrite a value", "a key stands twice")
        raise InputError(f"{name} must be TOML, got: {reason}") from None
