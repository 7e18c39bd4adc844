"""Files of a model's arrays: ``.npz``, ``.npy`` and ``.safetensors``.

Nothing is unpickled, and sizes are refused by headers before data are read.  What is
read of a file at once is one block.
"""

import errno
import lzma
import math
import re
import shutil
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError, reading
from montecarlo.model.arrays import (
    AXES,
    NAMES,
    Index,
    Model,
    Tensor,
    Tensors,
    make_model,
    make_source,
    require_shape,
)
from montecarlo.names import PROJECT
from montecarlo.small_files import require_regular

KINDS = (".npz", ".npy", ".safetensors")
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
#: Number formats of safetensors that are read.
TYPES = ("F64", "F32", "F16", "BF16")
#: What stands for ``{side}`` in a tensor's name.
SIDES = {"q": "q", "query": "q", "k": "k", "key": "k", "v": "v", "value": "v"} | {
    "weights": "weights",
    "outputs": "outputs",
}
#: What a pattern may count, and the digits of a number in a name at most.
COUNTED, MOST_DIGITS = AXES[:3], 18
Found = dict[str, dict[tuple[int, ...], Tensor]]


def open_files(
    paths: Sequence[Path],
    scratch: Path,
    *,
    axes: Sequence[str] | None = None,
    names: str | None = None,
    causal: bool = False,
) -> Model:
    """Make a model of files.

    Parameters
    ----------
    paths : sequence of Path
        ``.npz`` files with arrays q and k, each with further sequences; ``.npy``
        files, as `NPY_FILES` says; or the ``.safetensors`` files of one model.
        Attention weights, or values and outputs, are read if they are there.
    scratch : Path
        An empty folder that members of archives are unpacked into when they are read.
    axes : sequence of str, optional
        Names of the arrays' axes; by default all of `AXES` that names do not count.
    names : str, optional
        The pattern of names in safetensors files, see `find_tensors`; of npz files
        the names of the arrays, see `read_names`.
    causal : bool
        Whether a query sees only keys up to its own position.

    Raises
    ------
    InputError
        If a file is not usable, or arrays do not fit each other.
    """
    kind = require_files(paths)
    if kind == ".safetensors":
        pattern = "{side}" if names is None else names
        found, counted = find_tensors(paths, pattern)
        if doubled := [axis for axis in counted if axis in (axes or ())]:
            raise InputError(
                f"axes must not name {doubled[0]!r}, which the names count: {pattern!r}"
            )
        return make_model([make_source(found, axes, counted)], causal=causal)
    if kind == ".npy":
        if names is not None:
            raise InputError("--names must stand with .npz or .safetensors files only")
        if len(paths) not in NPY_FILES:
            raise InputError(
                ".npy files must be two, queries and then keys, with attention weights "
                f"three, with values and outputs four, got {len(paths)}"
            )
        named = zip(NPY_FILES[len(paths)], paths, strict=True)
        arrays: dict[str, Tensors] = {
            name: {(): npy_tensor(one, f"{name} ({one.name})")} for name, one in named
        }
        return make_model([make_source(arrays, axes)], causal=causal)
    wanted = read_names(names) if names is not None else {"q": "q", "k": "k"}
    sources = []
    for number, path in enumerate(paths):
        tensors, left = npz_tensors(path, scratch / str(number), wanted)
        sources.append(make_source(tensors, axes, left=left))
    return make_model(sources, causal=causal)


def require_files(paths: Sequence[Path]) -> str:
    """Refuse files that cannot be read together; returns of what kind they are."""
    for path in paths:
        if path.suffix not in KINDS:
            raise InputError(f"file must end in {', '.join(KINDS)}, got {str(path)!r}")
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
    """Return what arrays of an npz file are called.

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


def npy_tensor(path: Path, name: str) -> Tensor:
    """Describe the array of a ``.npy`` file."""
    with path.open("rb") as file:
        return _describe(file, name, path.stat().st_size, lambda: path)


def _describe(
    file: IO[bytes], name: str, size: int, find: Callable[[], Path]
) -> Tensor:
    """Describe an array by its header in a ``.npy`` file of some size.

    What does not fit is refused.  Each block maps anew the file that is found then.
    """
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
    offset, needed = file.tell(), kind.itemsize * math.prod(shape)
    if size - offset != needed:
        raise InputError(
            f"{name} must have {needed} bytes for its shape {shape}, got "
            f"{size - offset}"
        )

    def take(index: Index) -> Array:
        order: Literal["F", "C"] = "F" if is_fortran else "C"
        block = np.asarray(np.memmap(find(), kind, "r", offset, shape, order)[index])
        if kind.kind == "V":  # bfloat16 is the upper half of a float32
            halves = np.ascontiguousarray(block).view("<u2").astype(np.uint32)
            block = (halves << np.uint32(16)).view(np.float32)
        return np.array(block, dtype=np.float64)

    return Tensor(name, shape, take)


def npz_tensors(
    path: Path, folder: Path, wanted: Mapping[str, str]
) -> tuple[dict[str, Tensors], list[str]]:
    """Describe arrays of a ``.npz`` file; returns them and names of those left.

    Those that are wanted have to be there by their names, others of `NAMES` may be.
    Each is unpacked into a folder, and mapped, when a block of it is read first.
    """
    names = {name: f"{name}.npy" for name in NAMES}
    names |= {side: f"{name}.npy" for side, name in wanted.items()}
    with _archive(path) as archive:
        there = archive.namelist()
        found: dict[str, Tensors] = {
            side: {(): _member(path, archive, name, folder / f"{side}.npy")}
            for side, name in names.items()
            if name in there or side in wanted
        }
    left = [one for one in there if one not in names.values()]
    return found, [one.removesuffix(".npy") for one in left]


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive; what `zipfile` raises while it is read becomes one line."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except (
        *(zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError),
        *(zlib.error, lzma.LZMAError, OSError),
    ) as error:
        # bz2 gives its errors no number; EINVAL is a place before the file's beginning
        if isinstance(error, OSError) and error.errno not in {None, errno.EINVAL}:
            raise
        raise InputError(
            f"{path.name} must be an archive of NumPy, got a broken one: "
            f"{str(error) or 'it is cut off'}"
        ) from None


def _member(path: Path, archive: zipfile.ZipFile, name: str, target: Path) -> Tensor:
    """Describe a member of an archive."""
    called, there = name.removesuffix(".npy"), archive.namelist()
    label = f"{called} of {path.name}"
    if name not in there:
        have = ", ".join(there[:4]) + ", ..." * (len(there) > 4) or "nothing"
        raise InputError(
            f"{path.name} must hold an array {called}, got {have}: name them with "
            "--names"
        )

    @cache
    def unpacked() -> Path:
        target.parent.mkdir(exist_ok=True)
        with (
            _archive(path) as again,
            again.open(name) as member,
            target.open("wb") as file,
        ):
            shutil.copyfileobj(member, file)
        return target

    with archive.open(name) as member:
        return _describe(member, label, archive.getinfo(name).file_size, unpacked)


def find_tensors(paths: Sequence[Path], pattern: str) -> tuple[Found, tuple[str, ...]]:
    """Find queries and keys of safetensors files by the pattern of their names.

    It has ``{side}``, which stands for a key of `SIDES`, and where names count them
    ``{layer}``, ``{head}`` and ``{sequence}``.  Returns the tensors of each value of
    `SIDES` by these numbers, none for what is not there, which only q and k have to be;
    and what they count.
    """
    expression, counted = _expression(pattern)
    found: Found = {side: {} for side in SIDES.values()}
    names: list[str] = []
    for path in paths:
        tensors = safetensors_file(path)
        for name in tensors.keys():  # noqa: SIM118 - no mapping
            names.append(name)
            match = expression.fullmatch(name)
            if match is None:
                continue
            side = found[SIDES[match["side"]]]
            key = tuple(int(match[axis]) for axis in counted)
            if key in side:
                raise InputError(f"{name} must stand once, got it in two places")
            side[key] = safetensors_tensor(tensors, name, path)
    for side_name in ("q", "k"):
        if not found[side_name]:
            have = ", ".join(names[:4]) + ", ..." * (len(names) > 4)
            raise InputError(
                f"{side_name} must have a name of the pattern {pattern!r} "
                f"({'{side}'} stands for {', '.join(SIDES)}), got {have or 'none'}"
            )
    return found, counted


def safetensors_file(path: Path) -> Any:  # noqa: ANN401 - the library's own type
    """Map a safetensors file; the library checks its header before it reads data."""
    try:
        import ml_dtypes  # noqa: F401 - bfloat16, which NumPy lacks
        import safetensors
    except ImportError as error:  # an extra
        raise InputError(
            f"files of safetensors need a library: pip install '{PROJECT}[safetensors]'"
            f" ({error})"
        ) from error
    try:
        return safetensors.safe_open(path, framework="numpy")
    except safetensors.SafetensorError as error:
        reason = str(error).removeprefix("Error while deserializing header: ")
        raise InputError(
            f"{path.name} must be a safetensors file, got a broken one: {reason}"
        ) from None


def safetensors_tensor(tensors: Any, name: str, path: Path) -> Tensor:  # noqa: ANN401
    """Describe an array of a file that `safetensors_file` has mapped."""
    part = tensors.get_slice(name)
    shape, label = tuple(part.get_shape()), f"{name} of {path.name}"
    if part.get_dtype() not in TYPES:
        raise InputError(
            f"{label} must hold {', '.join(TYPES)}, got {part.get_dtype()}"
        )
    require_shape(label, shape)

    def read(index: Index) -> Array:
        # the library takes no slice that reaches beyond the end
        inside = tuple(
            slice(*one.indices(size)) if isinstance(one, slice) else one
            for one, size in zip(index, shape, strict=False)
        )
        return np.array(part[inside], dtype=np.float64)

    return Tensor(label, shape, read)


def _expression(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return what matches names that follow a pattern, and what it counts."""
    fields = re.findall(r"\{(\w*)\}", pattern)
    counts = tuple(axis for axis in COUNTED if axis in fields)
    if sorted(fields) != sorted(["side", *counts]):
        raise InputError(
            "names must hold {side}, and may hold {layer}, {head}, {sequence}, each "
            f"once, got {pattern!r}"
        )
    text = re.escape(pattern)
    for field in fields:
        inner = "|".join(SIDES) if field == "side" else f"[0-9]{{1,{MOST_DIGITS}}}"
        text = text.replace(re.escape(f"{{{field}}}"), f"(?P<{field}>{inner})")
    return re.compile(text), counts
