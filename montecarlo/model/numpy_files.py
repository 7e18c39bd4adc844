"""NumPy's files: arrays of ``.npy`` and members of ``.npz``, never unpickled.

Headers are read here: NumPy's own reader takes what it does not know for what it does.
"""

import ast
import errno
import io
import reprlib
import zipfile
import zlib
from collections.abc import Collection, Mapping
from itertools import product
from pathlib import Path
from typing import IO

from montecarlo.errors import InputError
from montecarlo.model.arrays import Tensor, map_array, require_shape
from montecarlo.printing import printable

MAGIC = b"\x93NUMPY"
#: Bytes that the length of a header takes, in the format's versions.
VERSIONS = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}
#: Bytes of a header at most: that of an array takes about a hundred.
MOST_HEADER = 10_000
_CODES = {"f2": "float16", "f4": "float32", "f8": "float64"}
#: What is read, by what a header calls it: number format, order of bytes.  NumPy writes
#: bfloat16, which it lacks, as raw bytes.
TYPES = {
    **{o + c: (name, o or "=") for o, (c, name) in product("<>=", _CODES.items())},
    **{code: (name, "=") for code, name in _CODES.items()},
    **dict.fromkeys(("|V2", "<V2", "V2"), ("bfloat16", "<")),
}
#: Bytes of an archive's list of members at most, and their number.
MOST_LISTED, MOST_MEMBERS = 2**20, 10_000
#: An array may be so many times as large as the archive, or so many bytes: numbers
#: that were measured hardly shrink, and what shrinks more is made to fill a disk.
MOST_RATIO, ALWAYS_UNPACKED = 100, 2**24
#: How NumPy packs; other ways may ask for any amount of memory.
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PIECE = 2**20
#: Characters of what an archive says of itself that a message shows.
MOST_SHOWN = 80
#: Bytes of a member's own header before the lengths of its name and of what is added.
LOCAL_LENGTHS = 26


def npy_tensor(path: Path, name: str) -> Tensor:
    """Describe the array of a ``.npy`` file."""
    with path.open("rb") as file:
        offset, descr, fortran, shape = _read_header(file, name)
    if isinstance(descr, str) and descr.lstrip("|<>=") == "O":
        raise InputError(
            f"{name} must hold numbers, got Python objects, which are never loaded"
        )
    if not isinstance(descr, str) or descr not in TYPES:
        known = ", ".join((*_CODES.values(), "bfloat16"))
        raise InputError(
            f"{name} must hold {known}, got entries of type {reprlib.repr(descr)}"
        )
    number_format, order = TYPES[descr]
    tensor = map_array(
        name, path, offset, shape, number_format, byte_order=order, fortran=fortran
    )
    if (behind := path.stat().st_size - offset - tensor.n_bytes) > 0:
        raise InputError(f"{name} must hold one array, got {behind} bytes behind it")
    return tensor


def _read_header(
    file: IO[bytes], name: str
) -> tuple[int, object, bool, tuple[int, ...]]:
    """Return the header's length with all before it, type, order of axes, and shape."""

    def refuse(what: str) -> InputError:
        return InputError(f"{name} must be an array of NumPy, got {what}")

    start = file.read(len(MAGIC) + 2)
    magic, version = start[: len(MAGIC)], start[len(MAGIC) :]
    if magic != MAGIC:
        raise refuse("a file that does not begin as one")
    if version not in VERSIONS:
        raise refuse(f"version {'.'.join(map(str, version)) or 'none'} of the format")
    width = VERSIONS[version]
    length = int.from_bytes(file.read(width), "little")
    if length > MOST_HEADER:
        raise refuse(f"a header of {length} bytes, more than {MOST_HEADER}")
    text = file.read(length)
    if len(text) < length:
        raise refuse("a file that is cut off in its header")
    try:
        header = ast.literal_eval(text.decode("latin1").strip())
        (descr, fortran, shape) = (
            header[key] for key in ("descr", "fortran_order", "shape")
        )
    except (
        *(ValueError, SyntaxError, TypeError, LookupError, RecursionError),
        MemoryError,  # what the parser calls too many brackets
    ):
        raise refuse("a header of no sense") from None
    if (
        len(header) != 3
        or not isinstance(fortran, bool)
        or not isinstance(shape, tuple)
    ):
        raise refuse(f"the header {reprlib.repr(header)}")
    require_shape(name, shape)
    return len(start) + width + length, descr, fortran, shape


def npz_tensors(
    path: Path, scratch: Path, names: Mapping[str, str], optional: Collection[str]
) -> tuple[dict[str, Tensor], list[str]]:
    """Describe arrays of a ``.npz`` file; returns them and names of those left.

    Members are unpacked into a scratch folder, a piece at a time, and mapped.

    Parameters
    ----------
    path, scratch : Path
    names : mapping
        What is looked for, such as ``q``, to the name of its array.
    optional : collection of str
        What may be missing.
    """
    found = {}
    try:
        with _Bounded(path, "rb") as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > MOST_MEMBERS:
                raise InputError(
                    f"{path.name} must have at most {MOST_MEMBERS} members, got "
                    f"{len(members)}"
                )
            _require_whole(file, archive, path.name)
            for side, name in names.items():
                if side in optional and not _is_member(members, f"{name}.npy"):
                    continue
                info = _member(members, f"{name}.npy", path.name)
                target = scratch / f"{side}.npy"
                _unpack(archive, info, target, path)
                found[side] = npy_tensor(target, f"{name} of {path.name}")
    except (
        *(zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError),
        *(zlib.error, UnicodeDecodeError),
    ) as error:
        reason = _shown(error)
        raise InputError(
            f"{path.name} must be an archive of NumPy, got a broken one: "
            f"{reason or 'it is cut off'}"
        ) from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # what a place before the file's beginning is called
        raise InputError(
            f"{path.name} must be an archive of NumPy, got places outside of it"
        ) from None
    known = {f"{name}.npy" for name in names.values()}
    left = [one.filename for one in members if one.filename not in known]
    return found, [name.removesuffix(".npy") for name in left]


def _require_whole(file: IO[bytes], archive: zipfile.ZipFile, name: str) -> None:
    """Make sure that no member reaches into what comes behind it.

    Of an archive that was cut and given its list of members again, the last one does,
    and `zipfile` reads it to the end of the list.
    """
    members = sorted(archive.infolist(), key=lambda one: one.header_offset)
    if not members:
        return
    ends = [*(one.header_offset for one in members[1:]), archive.start_dir]
    for info, end in zip(members, ends, strict=True):
        file.seek(info.header_offset + LOCAL_LENGTHS)
        lengths = file.read(4)
        sizes = (
            int.from_bytes(lengths[:2], "little"),
            int.from_bytes(lengths[2:], "little"),
        )
        begin = info.header_offset + LOCAL_LENGTHS + 4 + sum(sizes)
        if begin + info.compress_size > end:
            raise InputError(
                f"{name} must hold its members whole, got "
                f"{_shown(info.filename)} cut off"
            )


class _Bounded(io.FileIO):
    """A file of which no more is read at once than the list of members may take.

    `zipfile` reads that list whole, however long the archive says that it is.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        most = MOST_LISTED + _PIECE
        if size is None or size < 0 or size > most:
            size = most
        return super().read(size) or b""


def _shown(text: object) -> str:
    """Return the beginning of what an archive says of itself, on one line."""
    return " ".join(printable(text).split())[:MOST_SHOWN]


def _is_member(members: list[zipfile.ZipInfo], name: str) -> bool:
    return any(info.filename == name for info in members)


def _member(members: list[zipfile.ZipInfo], name: str, archive: str) -> zipfile.ZipInfo:
    """Return the one member of a name."""
    named = [info for info in members if info.filename == name]
    if len(named) == 1:
        return named[0]
    if named:
        raise InputError(f"{archive} must hold {name} once, got it {len(named)} times")
    shown = [_shown(info.filename) for info in members[:4]]
    have = ", ".join(shown) or "nothing"
    more = ", ..." if len(members) > 4 else ""
    wanted = name.removesuffix(".npy")
    raise InputError(
        f"{archive} must hold an array {wanted}, got {have}{more}: name them with "
        "--names"
    )


def _unpack(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, path: Path
) -> None:
    """Unpack a member piece by piece; what is no array, or a bomb, is not begun."""
    name = f"{_shown(info.filename)} of {path.name}"
    if info.compress_type not in PACKINGS:
        raise InputError(
            f"{name} must be packed as NumPy does, stored or deflated, got method "
            f"{info.compress_type}"
        )
    most = max(ALWAYS_UNPACKED, MOST_RATIO * path.stat().st_size)
    if info.file_size > most:
        raise InputError(
            f"{name} must unpack to at most {most} bytes, {MOST_RATIO} times the "
            f"archive's, got {info.file_size}"
        )
    with archive.open(info) as member:
        start = io.BytesIO(member.read(MOST_HEADER + 16))
        _read_header(
            start, f"{_shown(info.filename).removesuffix('.npy')} of {path.name}"
        )
    with archive.open(info) as member, target.open("wb") as file:
        while piece := member.read(_PIECE):
            file.write(piece)
