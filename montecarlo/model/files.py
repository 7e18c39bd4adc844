"""Files of queries and keys: ``.npz``, ``.npy``, and ``.pt`` of torch.

Nothing is unpickled but what torch takes for tensors, and sizes are refused by headers
before data are read.
"""

import errno
import lzma
import math
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError, reading
from montecarlo.model.arrays import (
    NAMES,
    Index,
    Model,
    Tensor,
    make_model,
    make_source,
    require_shape,
    to_numpy,
    wrap_array,
)
from montecarlo.names import PROJECT
from montecarlo.small_files import require_regular

KINDS = (".npz", ".npy", ".pt")
#: What .npy files hold, by their number.
NPY_FILES = {
    2: ("q", "k"),
    3: ("q", "k", "weights"),
    4: ("q", "k", "v", "outputs"),
}
#: Number formats by NumPy's codes.  NumPy, which lacks bfloat16, writes raw bytes.
FORMATS = {"f2": "float16", "f4": "float32", "f8": "float64", "V2": "bfloat16"}
#: What reads the header of each version; 2 and 3 differ in names of fields alone.
READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    (3, 0): np.lib.format.read_array_header_2_0,
}
#: What zipfile raises while it reads a broken archive.
BROKEN = (
    *(zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError),
    *(zlib.error, lzma.LZMAError, OSError),
)


def open_files(
    paths: Sequence[Path],
    *,
    axes: Sequence[str] | None = None,
    names: str | None = None,
    causal: bool = False,
) -> Model:
    """Make a model of files.

    Parameters
    ----------
    paths : sequence of Path
        ``.npz`` files with arrays q and k, or ``.pt`` files with a dict of tensors,
        each with further sequences; or ``.npy`` files, as `NPY_FILES` says.  Attention
        weights, or values and outputs, are read if they are there.
    axes : sequence of str, optional
        Names of the arrays' axes; by default all of `AXES`.
    names : str, optional
        What arrays are called, see `read_names`.
    causal : bool
        Whether a query sees only keys up to its own position.

    Raises
    ------
    InputError
        If a file is not usable, or arrays do not fit each other.
    """
    kind = require_files(paths)
    if kind != ".npy":
        wanted = read_names(names) if names is not None else {"q": "q", "k": "k"}
        read = read_npz if kind == ".npz" else read_torch
        sources = []
        for path in paths:
            tensors, left = read(path, wanted)
            sources.append(make_source(_alone(tensors), axes, left=left))
        return make_model(sources, causal=causal)
    if names is not None:
        raise InputError("--names must stand with .npz or .pt files only")
    if len(paths) not in NPY_FILES:
        raise InputError(
            ".npy files must be two, queries and then keys, with attention weights "
            f"three, with values and outputs four, got {len(paths)}"
        )
    named = zip(NPY_FILES[len(paths)], paths, strict=True)
    arrays = {name: npy_tensor(one, f"{name} ({one.name})") for name, one in named}
    return make_model([make_source(_alone(arrays), axes)], causal=causal)


def _alone(tensors: Mapping[str, Tensor]) -> dict[str, dict[tuple[int, ...], Tensor]]:
    return {name: {(): one} for name, one in tensors.items()}


def require_files(paths: Sequence[Path]) -> str:
    """Refuse files that cannot be read together; returns of what kind they are."""
    for path in paths:
        if path.suffix not in KINDS:
            raise InputError(
                f"file must end in {', '.join(KINDS)}, got {str(path)!r}: np.savez or "
                "torch.save writes one of arrays q, k and weights, or v and outputs"
            )
        require_regular("file", path)  # pipes and devices are not opened
        with reading("file", path):
            path.open("rb").close()
    # sequences that count twice are no sequences; queries may be the keys
    several = [path.resolve() for path in paths if path.suffix != ".npy"]
    if len(set(several)) < len(several):
        raise InputError(
            f"files must be different ones, got {', '.join(map(str, paths))}"
        )
    kind, *others = sorted({path.suffix for path in paths})
    if others:
        raise InputError(f"files must be of one kind, got {', '.join([kind, *others])}")
    return kind


def read_names(typed: str) -> dict[str, str]:
    """Return what arrays of a file are called.

    Two names, of queries and of keys, and where they are needed ``weights=NAME``,
    ``v=NAME`` and ``outputs=NAME``, with commas between them.
    """
    found: dict[str, str] = {}
    for place, part in enumerate(typed.split(",")):
        side, _, name = part.strip().rpartition("=")
        side = side or (NAMES[place] if place < 2 else "")
        if side not in NAMES or side in found or not name:
            raise InputError(
                "names of arrays must be those of q and of k, and then weights=NAME, "
                f"or v=NAME and outputs=NAME, got {typed!r}"
            )
        found[side] = name
    if not {"q", "k"} <= found.keys():
        raise InputError(f"names of arrays must name q and k, got {typed!r}")
    return found


def _pick(
    path: Path, there: Sequence[str], wanted: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return names of arrays that are read, and of those left.

    Those that are wanted have to be there, others of `NAMES` may be.
    """
    names = {name: name for name in NAMES} | dict(wanted)
    for name in wanted.values():
        if name not in there:
            have = ", ".join(there[:4]) + ", ..." * (len(there) > 4) or "nothing"
            raise InputError(
                f"{path.name} must hold an array {name}, got {have}: name them with "
                "--names"
            )
    chosen = {side: name for side, name in names.items() if name in there}
    return chosen, [one for one in there if one not in chosen.values()]


def npy_tensor(path: Path, name: str) -> Tensor:
    """Describe the array of a ``.npy`` file: each block maps it anew."""
    with path.open("rb") as file:
        shape, order, kind = _read_header(file, name, path.stat().st_size)
        offset = file.tell()

    def take(index: Index) -> Array:
        return _as_float64(np.memmap(path, kind, "r", offset, shape, order)[index])

    return Tensor(name, shape, take)


def _read_header(
    file: IO[bytes], name: str, size: int
) -> tuple[tuple[int, ...], Literal["F", "C"], np.dtype[Any]]:
    """Read the header of a ``.npy`` file of some size, and refuse what does not fit."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers that Python 2 wrote
            version = np.lib.format.read_magic(file)
            if version not in READERS:
                raise ValueError(f"version {version[0]}.{version[1]} of the format")  # noqa: TRY301 - as NumPy
            shape, is_fortran, kind = READERS[version](file)
    except (OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError):
        raise  # of the archive that it stands in
    except Exception as error:  # noqa: BLE001 - the parser of Python code that reads it
        raise InputError(
            f"{name} must be an array of NumPy, got {str(error) or 'no header'}"
        ) from None
    if kind.hasobject:
        raise InputError(
            f"{name} must hold numbers, got Python objects, which are never loaded"
        )
    if kind != np.dtype(kind.str) or kind.str[1:] not in FORMATS:  # or has parts
        raise InputError(
            f"{name} must hold {', '.join(FORMATS.values())}, got entries of type "
            f"{str(kind)!r}"
        )
    require_shape(name, shape)
    needed = kind.itemsize * math.prod(shape)
    if size - file.tell() != needed:
        raise InputError(
            f"{name} must have {needed} bytes for its shape {shape}, got "
            f"{size - file.tell()}"
        )
    return shape, "F" if is_fortran else "C", kind


def _as_float64(block: NDArray[Any]) -> Array:
    """Return numbers of a file; bfloat16 is the upper half of a float32."""
    if block.dtype.kind == "V":
        halves = np.ascontiguousarray(block).view("<u2").astype(np.uint32)
        block = (halves << np.uint32(16)).view(np.float32)
    return np.array(block, dtype=np.float64)


def read_npz(
    path: Path, wanted: Mapping[str, str]
) -> tuple[dict[str, Tensor], list[str]]:
    """Read arrays of a ``.npz`` file; returns them and the names of those left."""
    with _archive(path) as archive:
        there = [one.removesuffix(".npy") for one in archive.namelist()]
        chosen, left = _pick(path, there, wanted)
        found = {side: _member(path, archive, name) for side, name in chosen.items()}
    return found, left


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive; what `zipfile` raises while it is read becomes one line."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except BROKEN as error:
        # bz2 gives its errors no number; EINVAL is a place before the file's beginning
        if isinstance(error, OSError) and error.errno not in {None, errno.EINVAL}:
            raise
        raise InputError(
            f"{path.name} must be an archive of NumPy, got a broken one: "
            f"{str(error) or 'it is cut off'}"
        ) from None


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> Tensor:
    """Read a member of an archive."""
    label, member = f"{name} of {path.name}", f"{name}.npy"
    with archive.open(member) as file:
        size = archive.getinfo(member).file_size
        shape, order, kind = _read_header(file, label, size)
        content = file.read()
    array = np.frombuffer(content, kind).reshape(shape, order=order)
    return Tensor(label, shape, lambda index: _as_float64(array[index]))


def read_torch(
    path: Path, wanted: Mapping[str, str]
) -> tuple[dict[str, Tensor], list[str]]:
    """Read tensors of a ``.pt`` file, which holds a dict of them by their names."""
    try:
        import torch
    except ImportError as error:  # an extra
        raise InputError(
            f".pt files need torch: pip install '{PROJECT}[torch]' ({error})"
        ) from error
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001 - whatever torch makes of bytes
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path.name} must hold tensors that torch.load reads with "
            f"weights_only=True, got {reason}"
        ) from None
    if not isinstance(held, dict) or not all(isinstance(one, str) for one in held):
        raise InputError(
            f"{path.name} must hold a dict of tensors by their names, got "
            f"{type(held).__name__}"
        )
    chosen, left = _pick(path, list(held), wanted)
    found = {
        side: wrap_array(f"{name} of {path.name}", to_numpy(held[name]))
        for side, name in chosen.items()
    }
    return found, left
