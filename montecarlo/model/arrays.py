"""Arrays of queries and keys: in memory or in a file, read one block at a time.

In: where an array lies.  Out: blocks as float64.  A file is memory-mapped anew for each
block, so that what stays in memory is one block, however large the file.
"""

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError

#: What axes may be called: what comes first is named first.
AXES = ("sequence", "layer", "head", "token", "d")
#: Other words for them.
ALSO = {"batch": "sequence"}
#: Axes that arrays mostly have, by their number: what is proposed.
USUAL = {
    2: ("token", "d"),
    3: ("head", "token", "d"),
    4: ("sequence", "head", "token", "d"),
    5: AXES,
}
#: Axes that every array has to have; attention weights have keys in place of entries.
NEEDED = ("token", "d")
KEY = "key"
Index = tuple[int | slice, ...]
ALL_TOKENS = slice(None)
#: Number formats by name; bfloat16 is read as the upper half of a float32.
FORMATS = {"float16": "f2", "bfloat16": "u2", "float32": "f4", "float64": "f8"}
#: Axes of a file's array at most, and the length of each: beyond, a number of bytes has
#: no end, nor has the message that shows it.
MOST_AXES, MOST_LENGTH = 8, 2**48
#: Numbers of one sequence of a head at most, which are read at once; sequences; and
#: heads in all layers: beyond, what is kept of each does not fit into memory.
MOST_NUMBERS, MOST_SEQUENCES, MOST_HEADS = 2**24, 2**18, 2**17


@dataclass(frozen=True, slots=True)
class Tensor:
    """An array that is read in blocks.

    Attributes
    ----------
    name : str
        For messages.
    shape : tuple of int
    take : callable
        Index -> the block as float64, which belongs to the caller.
    n_bytes : int
        What it takes in its file; 0 in memory.
    """

    name: str
    shape: tuple[int, ...]
    take: Callable[[Index], Array]
    n_bytes: int = 0


def wrap_array(name: str, array: ArrayLike) -> Tensor:
    """Wrap an array that is in memory, or whatever NumPy makes an array of."""
    if np.ma.is_masked(array):
        raise InputError(f"{name} must have no masked entries, got some")
    values = np.asarray(array)
    if values.dtype.kind != "f" and values.dtype.name != "bfloat16":
        raise InputError(
            f"{name} must hold floating-point numbers, got entries of type "
            f"{values.dtype.name}"
        )
    return Tensor(name, values.shape, lambda i: np.array(values[i], dtype=np.float64))


def require_shape(name: str, shape: Sequence[object]) -> None:
    """Make sure that what a file gives as a shape is one."""
    counts = all(type(n) is int and 0 <= n <= MOST_LENGTH for n in shape)
    if not counts or len(shape) > MOST_AXES:
        raise InputError(
            f"{name} must have a shape of counts, at most {MOST_AXES}, each at most "
            f"2^48, got {reprlib.repr(shape)}"
        )


def map_array(  # noqa: PLR0913 - where an array lies, and how
    name: str,
    path: Path,
    offset: int,
    shape: tuple[int, ...],
    number_format: str,
    *,
    byte_order: str = "<",
    fortran: bool = False,
) -> Tensor:
    """Describe an array of a file.

    Parameters
    ----------
    name : str
    path : Path
    offset : int
        Bytes before it.
    shape : tuple of int
    number_format : str
        A key of `FORMATS`.
    byte_order : {"<", ">", "="}
    fortran : bool
        Whether the first axis runs fastest.
    """
    kind = np.dtype(byte_order + FORMATS[number_format])
    needed = kind.itemsize * math.prod(shape)
    have = path.stat().st_size - offset
    if have < needed:
        raise InputError(
            f"{name} must have {needed} bytes for its shape {shape}, got {have}: "
            "the file is cut off"
        )

    def take(index: Index) -> Array:
        order: Any = "F" if fortran else "C"
        mapped = np.memmap(path, kind, "r", offset, shape, order)
        block = np.asarray(mapped[index])
        if number_format == "bfloat16":
            block = (block.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return np.array(block, dtype=np.float64)

    return Tensor(name, shape, take, needed)


@dataclass(frozen=True, slots=True)
class Side:
    """All queries, or all keys, of one source: tensors, their axes, and their names'.

    Attributes
    ----------
    name : str
        ``q``, ``k``, or what softmax made of them: ``weights``, ``v``, ``outputs``.
    axes : tuple of str
        Those of each tensor.
    in_name : tuple of str
        Axes that the tensors' names count: mostly none, or the layer.
    tensors : mapping
        Numbers of the axes in the name -> Tensor.
    """

    name: str
    axes: tuple[str, ...]
    in_name: tuple[str, ...]
    tensors: Mapping[tuple[int, ...], Tensor]

    def labels(self, axis: str) -> tuple[int, ...]:
        """Return what counts along an axis; one 0 where there is no such axis."""
        if axis in self.in_name:
            place = self.in_name.index(axis)
            return tuple(sorted({key[place] for key in self.tensors}))
        return tuple(range(self.size(axis)))

    def size(self, axis: str) -> int:
        """Return the length of an axis; 1 where there is no such axis."""
        if axis in self.in_name:
            return len(self.labels(axis))
        if axis not in self.axes:
            return 1
        return next(iter(self.tensors.values())).shape[self.axes.index(axis)]

    def tokens(self, place: Mapping[str, int]) -> int:
        """Return the number of tokens of a sequence of a head."""
        tensor = self.tensors[tuple(place[axis] for axis in self.in_name)]
        return tensor.shape[self.axes.index("token")]

    def read(self, place: Mapping[str, int], tokens: slice = ALL_TOKENS) -> Array:
        """Read one sequence of one head, or some of its tokens.

        The place has labels of ``sequence``, ``layer`` and ``head``.

        Returns
        -------
        ndarray, shape (n_tokens, d_k), for weights (n_tokens, n_keys)
        """
        tensor = self.tensors[tuple(place[axis] for axis in self.in_name)]
        along: dict[str, int | slice] = {**place, "token": tokens}
        index = tuple(along.get(a, ALL_TOKENS) for a in self.axes)
        block = tensor.take(index)
        last = KEY if KEY in self.axes else "d"
        if self.axes.index("token") > self.axes.index(last):
            block = np.ascontiguousarray(block.T)
        if not np.isfinite(block).all():
            token, entry = np.argwhere(~np.isfinite(block))[0]
            where = ", ".join(f"{axis} {number}" for axis, number in place.items())
            raise InputError(
                f"{tensor.name} must be finite, got {block[token, entry]} at "
                f"{where}, token {range(self.tokens(place))[tokens][token]}, "
                f"{last} {entry}"
            )
        return block


def make_side(
    name: str,
    tensors: Mapping[tuple[int, ...], Tensor],
    axes: Sequence[str],
    in_name: Sequence[str] = (),
) -> Side:
    """Give names to the axes of queries or keys."""
    first = next(iter(tensors.values()))
    for tensor in tensors.values():
        if len(tensor.shape) != len(axes):
            raise InputError(
                f"{tensor.name} must have the axes {','.join(axes)}, got shape "
                f"{tensor.shape}: name its axes{_propose(tensor.shape)}"
            )
        for axis, size in zip(axes, tensor.shape, strict=True):
            if size == 0:
                raise InputError(
                    f"{tensor.name} must have something along each axis, got shape "
                    f"{tensor.shape}: its axis {axis!r} is empty"
                )
            varies = axis in {"token", KEY} and "sequence" in in_name
            if size != first.shape[axes.index(axis)] and not varies:
                raise InputError(
                    f"{tensor.name} must have the shape of {first.name}, "
                    f"{first.shape}, got {tensor.shape}: they differ along {axis!r}"
                )
    side = Side(name, tuple(axes), tuple(in_name), tensors)
    _require_sizes(side)
    expected = math.prod(side.size(axis) for axis in in_name)
    if len(tensors) != expected:
        counted = " and ".join(in_name)
        raise InputError(
            f"{name} must have an array for every {counted}, got {len(tensors)} of "
            f"{expected}"
        )
    return side


def _require_sizes(side: Side) -> None:
    """Refuse what would not fit into memory, by shapes alone."""
    sizes = {axis: side.size(axis) for axis in ("sequence", "layer", "head")}
    limits = [
        ("sequences", sizes["sequence"], MOST_SEQUENCES),
        ("heads in all layers", sizes["layer"] * sizes["head"], MOST_HEADS),
    ]
    if KEY not in side.axes:  # of these, some rows are read at once
        for tensor in side.tensors.values():
            count = math.prod(tensor.shape[side.axes.index(axis)] for axis in NEEDED)
            if count > MOST_NUMBERS:
                limits.append(("numbers of a sequence of a head", count, MOST_NUMBERS))
                break
    for what, count, most in limits:
        if count > most:
            raise InputError(
                f"{side.name} must have at most {most} {what}, got {count}"
            )


def _propose(shape: Sequence[int]) -> str:
    """Say which axes an array of such a shape mostly has."""
    axes = USUAL.get(len(shape))
    if axes is None:
        return " with --axes"
    if "head" in axes:
        head, token = axes.index("head"), axes.index("token")
        if shape[head] > shape[token]:  # models have more tokens than heads
            axes = (*axes[:head], "token", "head", *axes[token + 1 :])
    return f", perhaps --axes {','.join(axes)}"


def require_more_tokens(side: Side) -> None:
    """Ask about axes that nobody named, if there are more heads than tokens."""
    if not {"head", "token"} <= set(side.axes):
        return
    shape = next(iter(side.tensors.values())).shape
    heads, tokens = (shape[side.axes.index(axis)] for axis in ("head", "token"))
    if heads <= tokens or tokens < 2:  # a single one is refused for itself
        return
    other = {"head": "token", "token": "head"}
    swapped = ",".join(other.get(axis, axis) for axis in side.axes)
    raise InputError(
        f"{side.name} has {heads} heads of {tokens} tokens, shape {shape}: if these "
        f"are swapped, type --axes {swapped}; if not, --axes {','.join(side.axes)}"
    )


def check_axes(axes: Sequence[str]) -> tuple[str, ...]:
    """Return names of axes, other words for them replaced."""
    known = ", ".join(AXES)
    if isinstance(axes, str):
        raise InputError(f"axes must be a sequence of names, got the text {axes!r}")
    axes = [ALSO.get(axis, axis) for axis in axes]
    for axis in axes:
        if axis not in AXES or list(axes).count(axis) > 1:
            raise InputError(
                f"axes must be different ones among {known}; got {','.join(axes)!r}"
            )
    for axis in NEEDED:
        if axis not in axes:
            raise InputError(f"axes must have {axis!r}, got {','.join(axes)!r}")
    return tuple(axes)
