"""NumPy's files: arrays of ``.npy`` and members of ``.npz``, never unpickled."""

import io
import lzma
import shutil
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from montecarlo.observation.arrays import Tensor, stored

#: Types of entries that are read; NumPy writes bfloat16, which it lacks, as raw bytes.
KINDS = {
    ("f", 2): "float16",
    ("f", 4): "float32",
    ("f", 8): "float64",
    ("V", 2): "bfloat16",
}
#: Bytes of a header at most: that of an array takes about a hundred.
MOST_HEADER = 10_000


def npy_tensor(path: Path, name: str) -> Tensor:
    """Describe the array of a ``.npy`` file.

    Parameters
    ----------
    path : Path
    name : str
        What messages call it.

    Raises
    ------
    ValueError
        If it is none, is cut off, or holds something else than real numbers.
    """
    with path.open("rb") as file:
        shape, fortran, kind = _header(file, name)
        offset = file.tell()
    if kind.hasobject:
        raise ValueError(
            f"{name} must hold numbers, got Python objects, which are never loaded"
        )
    known = None if kind.names else KINDS.get((kind.kind, kind.itemsize))
    if known is None:
        raise ValueError(
            f"{name} must hold {', '.join(KINDS.values())}, got entries of type "
            f"{kind.name}"
        )
    order = ">" if kind.byteorder == ">" else "<"
    return stored(name, path, offset, shape, known, byte_order=order, fortran=fortran)


def _header(
    file: IO[bytes], name: str
) -> tuple[tuple[int, ...], bool, "np.dtype[np.generic]"]:
    try:
        version = npy.read_magic(file)
        if version == (1, 0):
            header = npy.read_array_header_1_0(file, MOST_HEADER)
        else:
            header = npy.read_array_header_2_0(file, MOST_HEADER)
    except (
        *(ValueError, SyntaxError, TypeError, RecursionError),
        tokenize.TokenError,
    ) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise ValueError(f"{name} must be an array of NumPy: {reason}") from None
    shape, fortran, kind = header
    if any(size < 0 for size in shape):
        raise ValueError(f"{name} must have a shape of counts, got {shape}")
    return shape, fortran, kind


def npz_tensors(path: Path, scratch: Path) -> Mapping[str, Tensor]:
    """Describe the arrays ``q`` and ``k`` of a ``.npz`` file.

    Parameters
    ----------
    path : Path
    scratch : Path
        A folder: members are unpacked there, a piece at a time, and mapped.

    Raises
    ------
    ValueError
        If it is no archive, lacks one of them, or one is not usable.
    """
    found = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            for name in ("q", "k"):
                info = members.get(f"{name}.npy")
                if info is None:
                    have = ", ".join(members) or "nothing"
                    raise ValueError(
                        f"{path.name} must hold arrays q and k, got {have}"
                    )
                target = scratch / f"{name}.npy"
                with archive.open(info) as member:
                    _require_header(member, f"{name} of {path.name}")
                with archive.open(info) as member, target.open("wb") as file:
                    shutil.copyfileobj(member, file, 2**20)
                found[name] = npy_tensor(target, f"{name} of {path.name}")
    except (
        *(zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError),
        *(zlib.error, lzma.LZMAError),
    ) as error:
        raise ValueError(f"{path.name} must be an archive of NumPy: {error}") from None
    return found


def _require_header(member: IO[bytes], name: str) -> None:
    """Refuse what is no array before all of it is unpacked."""
    _header(io.BytesIO(member.read(MOST_HEADER + 16)), name)
