"""Files of a model's arrays: ``.npz``, ``.npy`` and ``.safetensors``.

Nothing is unpickled, and sizes are refused by headers before anything is read.  What is
read of a file at once is one block.
"""

import errno
import io
import math
import re
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
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
from montecarlo.printing import printable
from montecarlo.small_files import require_regular

KINDS = (".npz", ".npy", ".safetensors")
#: What .npy files hold, by their number.
NPY_FILES = {
    2: ("q", "k"),
    3: ("q", "k", "weights"),
    4: ("q", "k", "v", "outputs"),
}
#: Bytes of the header of a ``.npy`` file at most: an array's takes about a hundred.
MOST_HEADER = 10_000
#: Its number formats, by NumPy's codes.  NumPy, which lacks bfloat16, writes raw bytes.
FORMATS = {"f2": "float16", "f4": "float32", "f8": "float64", "V2": "bfloat16"}
#: Bytes of an archive's list of members at most, and their number.
MOST_LISTED, MOST_MEMBERS = 2**20, 10_000
#: An array may be so many times as large as the archive, or so many bytes: numbers
#: that were measured hardly shrink, and what shrinks more is made to fill a disk.
MOST_RATIO, ALWAYS_UNPACKED = 100, 2**24
#: How NumPy packs; other ways may ask for any amount of memory.
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PIECE = 2**20
#: Characters of what a file says of itself that a message shows.
MOST_SHOWN = 80
#: Bytes of a member's own header before the lengths of its name and of what is added.
LOCAL_LENGTHS = 26
#: The pattern of names in safetensors files, where none is given.
PATTERN = "{side}"
#: Number formats of safetensors that are read.
TYPES = ("F64", "F32", "F16", "BF16")
#: Bytes of a safetensors header at most, and arrays in it: a large model's has some
#: hundred thousand bytes.
MOST_JSON, MOST_TENSORS = 10_000_000, 100_000
#: What stands for ``{side}`` in a tensor's name.
SIDES = {"q": "q", "query": "q", "k": "k", "key": "k", "v": "v", "value": "v"} | {
    "weights": "weights",
    "outputs": "outputs",
}
#: What a pattern may count, and the digits of a number in a tensor's name at most.
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
        An empty folder that members of archives are unpacked into.
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
    for path in paths:
        if path.suffix not in KINDS:
            raise InputError(f"file must end in {', '.join(KINDS)}, got {str(path)!r}")
        require_regular("file", path)  # pipes and devices are not opened
        with reading("file", path):
            path.open("rb").close()
    kind, *others = sorted({path.suffix for path in paths})
    if others:
        raise InputError(f"files must be of one kind, got {', '.join([kind, *others])}")
    if kind == ".safetensors":
        pattern = PATTERN if names is None else names
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
        tensors: dict[str, Tensors] = {
            name: {(): npy_tensor(path, f"{name} ({path.name})")}
            for name, path in zip(NPY_FILES[len(paths)], paths, strict=True)
        }
        return make_model([make_source(tensors, axes)], causal=causal)
    wanted = read_names(names) if names is not None else {"q": "q", "k": "k"}
    names_of = {name: name for name in NAMES} | wanted
    sources = []
    for number, path in enumerate(paths):
        folder = scratch / str(number)
        folder.mkdir()
        members, left = npz_tensors(path, folder, names_of, names_of.keys() - wanted)
        tensors = {name: {(): one} for name, one in members.items()}
        sources.append(make_source(tensors, axes, left=left))
    return make_model(sources, causal=causal)


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
    """Describe the array of a ``.npy`` file; each block maps the file anew."""
    with path.open("rb") as file:
        shape, fortran, kind = _read_header(file, name)
        offset = file.tell()
    if kind.hasobject:
        raise InputError(
            f"{name} must hold numbers, got Python objects, which are never loaded"
        )
    if kind != np.dtype(kind.str) or kind.str[1:] not in FORMATS:  # or has parts
        raise InputError(
            f"{name} must hold {', '.join(FORMATS.values())}, got entries of type "
            f"{str(kind)[:MOST_SHOWN]!r}"
        )
    require_shape(name, shape)
    needed = kind.itemsize * math.prod(shape)
    have = path.stat().st_size - offset
    if have < needed:
        raise InputError(
            f"{name} must have {needed} bytes for its shape {shape}, got {have}: "
            "the file is cut off"
        )
    if have > needed:
        raise InputError(
            f"{name} must hold one array, got {have - needed} bytes behind it"
        )
    order: Literal["F", "C"] = "F" if fortran else "C"

    def take(index: Index) -> Array:
        block = np.asarray(np.memmap(path, kind, "r", offset, shape, order)[index])
        if kind.kind == "V":  # bfloat16 is the upper half of a float32
            halves = np.ascontiguousarray(block).view("<u2").astype(np.uint32)
            block = (halves << np.uint32(16)).view(np.float32)
        return np.array(block, dtype=np.float64)

    return Tensor(name, shape, take)


def _read_header(
    file: IO[bytes], name: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether the first axis runs fastest, and type of entries."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers that Python 2 wrote
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                header = np.lib.format.read_array_header_1_0(file, MOST_HEADER)
            elif version in {(2, 0), (3, 0)}:  # these differ in names of fields alone
                header = np.lib.format.read_array_header_2_0(file, MOST_HEADER)
            else:
                raise ValueError(f"version {version[0]}.{version[1]} of the format")
    except (
        *(ValueError, SyntaxError, TypeError, LookupError, RecursionError),
        *(MemoryError, OverflowError, tokenize.TokenError),  # of the header's parser
    ) as error:
        raise InputError(
            f"{name} must be an array of NumPy, got {_shown(error) or 'no header'}"
        ) from None
    return header


def npz_tensors(
    path: Path, scratch: Path, names: Mapping[str, str], optional: Collection[str]
) -> tuple[dict[str, Tensor], list[str]]:
    """Describe arrays of a ``.npz`` file; returns them and names of those left.

    What is looked for, such as ``q``, has a name there, and some of it may be missing.
    Members are unpacked into a scratch folder, a piece at a time, and mapped.
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
            there = {info.filename for info in members}
            for side, name in names.items():
                if side in optional and f"{name}.npy" not in there:
                    continue
                info = _member(members, f"{name}.npy", path.name)
                target = scratch / f"{side}.npy"
                _unpack(archive, info, target, path)
                found[side] = npy_tensor(target, f"{name} of {path.name}")
    except (
        *(zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError),
        *(zlib.error, UnicodeDecodeError),
    ) as error:
        raise InputError(
            f"{path.name} must be an archive of NumPy, got a broken one: "
            f"{_shown(error) or 'it is cut off'}"
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
        sizes = [int.from_bytes(file.read(2), "little") for _ in range(2)]
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
            key = tuple(_number(axis, match[axis]) for axis in counted)
            if key in side:
                raise InputError(f"{name} must stand once, got it in two places")
            side[key] = safetensors_tensor(tensors, name, path)
    for side_name in ("q", "k"):
        if not found[side_name]:
            shown = ", ".join(name[:MOST_SHOWN] for name in names[:4]) + (
                ", ..." if len(names) > 4 else ""
            )
            raise InputError(
                f"{side_name} must have a name of the pattern {pattern!r} "
                f"({'{side}'} stands for {', '.join(SIDES)}), got {shown or 'none'}"
            )
    return found, counted


def safetensors_file(path: Path) -> Any:  # noqa: ANN401 - the library's own type
    """Map a safetensors file, whose header is measured before it is read."""
    try:
        import ml_dtypes  # noqa: F401 - bfloat16, which NumPy lacks
        import safetensors
    except ImportError as error:  # an extra
        raise InputError(
            f"files of safetensors need a library: pip install '{PROJECT}[safetensors]'"
            f" ({error})"
        ) from error
    with path.open("rb") as file:
        start = file.read(8)
    length, have = int.from_bytes(start, "little"), path.stat().st_size
    if len(start) < 8 or length > min(MOST_JSON, have - 8):
        raise InputError(
            f"{path.name} must be a safetensors file, got one whose header would take "
            f"{length} of {have} bytes, of {MOST_JSON} at most"
        )
    try:
        tensors: Any = safetensors.safe_open(path, framework="numpy")
    except safetensors.SafetensorError as error:
        reason = _shown(str(error).removeprefix("Error while deserializing header: "))
        raise InputError(
            f"{path.name} must be a safetensors file, got a broken one: {reason}"
        ) from None
    if (count := len(tensors.keys())) > MOST_TENSORS:
        raise InputError(
            f"{path.name} must have at most {MOST_TENSORS} arrays, got {count}"
        )
    return tensors


def safetensors_tensor(tensors: Any, name: str, path: Path) -> Tensor:  # noqa: ANN401
    """Describe an array of a file that `safetensors_file` has mapped."""
    part = tensors.get_slice(name)
    shape, label = tuple(part.get_shape()), f"{_shown(name)} of {path.name}"
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


def _number(axis: str, digits: str) -> int:
    """Return a number that stands in a tensor's name; tables hold no larger ones."""
    if len(digits) > MOST_DIGITS:
        raise InputError(
            f"{axis} in a tensor's name must have at most {MOST_DIGITS} digits, got "
            f"{len(digits)}"
        )
    return int(digits)


def _expression(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return what matches names, in time that does not depend on how it fails."""
    fields = re.findall(r"\{(\w*)\}", pattern)
    for field in fields:
        if field not in (*COUNTED, "side") or fields.count(field) > 1:
            raise InputError(
                f"names may hold {{side}}, {{layer}}, {{head}}, {{sequence}}, each "
                f"once, got {pattern!r}"
            )
    if "side" not in fields:
        raise InputError(f"names must hold {{side}}, got {pattern!r}")
    counted = "|".join(COUNTED)
    if re.search(rf"\{{({counted})\}}[0-9]*\{{({counted})\}}", pattern):
        raise InputError(
            "names must have something between two numbers that is no digit, got "
            f"{pattern!r}"
        )
    text = re.escape(pattern)
    for field in fields:
        inner = "|".join(SIDES) if field == "side" else "[0-9]+"
        text = text.replace(re.escape(f"{{{field}}}"), f"(?P<{field}>{inner})")
    return re.compile(text), tuple(axis for axis in COUNTED if axis in fields)
