"""The folders of a long command: what it has done is kept in one, and read again."""

import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from montecarlo.errors import InputError, UnfinishedError, writing


@contextmanager
def work_folders(
    work: Path, output: Path, files: Collection[str], earlier: str
) -> Iterator[None]:
    """Make two folders, refused before hours of work, for a block that writes there.

    Parameters
    ----------
    work : Path
        What is done is kept here.
    output : Path
    files : collection of str
        All that may be in the output folder.
    earlier : str
        What those are.

    Raises
    ------
    InputError
        If one is no folder that can be written, or the output has other files.
    UnfinishedError
        If a worker dies in the block, or the disk refuses.
    """
    for name, folder in (("work", work), ("output", output)):
        with _usable(name, folder):
            if any(p.exists() and not p.is_dir() for p in (folder, *folder.parents)):
                raise InputError(f"{name} must be a folder, got {str(folder)!r}")
    for name, folder in (("work", work), ("output", output)):
        with _usable(name, folder):
            folder.mkdir(parents=True, exist_ok=True)
            there = {path.name for path in folder.iterdir()}
            with TemporaryFile(dir=folder):
                pass
        if name == "output" and (foreign := there.difference(files)):
            raise InputError(
                f"{name} must be empty or hold {earlier}, got {str(folder)!r} with "
                f"{min(foreign)!r}"
            )
    try:
        with writing(output), writing(work):
            yield
    except BrokenExecutor as error:
        raise UnfinishedError(
            f"a worker died ({error}); what was done is kept in {str(work)!r}, and "
            "the same command goes on from there"
        ) from error


@contextmanager
def _usable(name: str, folder: Path) -> Iterator[None]:
    """Translate what the system says of a folder that was named."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{name} must be a folder that can be written, got {str(folder)!r}: "
            f"{error.strerror or error}"
        ) from None


def save_whole(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays into a file that is there whole or not at all."""
    part = path.with_suffix(".part.npz")
    np.savez(part, **arrays)  # type: ignore[arg-type]
    part.replace(path)


def read_whole(path: Path, names: Iterable[str]) -> list[NDArray[Any]]:
    """Read arrays of a file that `save_whole` wrote.

    Raises
    ------
    InputError
        If it is not as it was written.
    """
    try:
        with path.open("rb") as file, np.load(file) as kept:
            if damaged := kept.zip.testzip():  # a member is not read to its end below
                raise BadZipFile(f"{damaged} was changed")
            return [kept[name] for name in names]
    except (
        *(OSError, EOFError, ValueError, LookupError, TypeError, RuntimeError),
        *(BadZipFile, zlib.error, struct.error),
    ) as error:
        raise InputError(
            f"work must hold files as they were written, got {str(path)!r}: {error}; "
            "without that file the same command makes it anew"
        ) from error
