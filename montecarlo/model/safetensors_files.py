"""Safetensors: a JSON header, then the bytes of arrays, which are read as they are.

The format's own NumPy reader refuses bfloat16, which is what most models are kept in.
"""

import json
import re
import reprlib
from collections import Counter
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from montecarlo.errors import InputError
from montecarlo.model.arrays import (
    AXES,
    FORMATS,
    Tensor,
    map_array,
    require_shape,
)

KINDS = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
#: Bytes of a header at most, and arrays in it: it takes thirty times its length of
#: memory to read, and a large model's has some hundred thousand bytes.
MOST_HEADER, MOST_TENSORS, MOST_NAME = 10_000_000, 100_000, 1000
#: What stands for ``{side}`` in a tensor's name.
SIDES = {"q": "q", "query": "q", "k": "k", "key": "k", "v": "v", "value": "v"} | {
    "weights": "weights",
    "outputs": "outputs",
}
#: What a pattern may count.
COUNTED = AXES[:3]

Found = dict[str, dict[tuple[int, ...], Tensor]]
#: Of a number in a tensor's name.
MOST_DIGITS = 18


class Entry(NamedTuple):
    """What a header says of an array, and the place of its first byte in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    size: int


def read_header(path: Path) -> Mapping[str, Entry]:
    """Read names, types, shapes and places of the arrays of a file."""
    with path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        have = path.stat().st_size
        if len(start) < 8 or length > min(MOST_HEADER, have - 8):
            raise InputError(
                f"{path.name} must be a safetensors file, got one whose header would "
                f"take {length} of {have} bytes, of {MOST_HEADER} at most"
            )
        text = file.read(length)
    try:
        header = json.loads(text, object_pairs_hook=_once)
        entries = {n: _entry(e) for n, e in header.items() if n != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path.name} must be a safetensors file, its header is broken: "
            f"{str(error)[:200]}"
        ) from None
    if len(entries) > MOST_TENSORS:
        raise InputError(
            f"{path.name} must have at most {MOST_TENSORS} arrays, got {len(entries)}"
        )
    if (longest := max(map(len, entries), default=0)) > MOST_NAME:
        raise InputError(
            f"{path.name} must have names of at most {MOST_NAME} characters, got "
            f"one of {longest}"
        )
    _require_order(entries, have - 8 - length, path.name)
    return {n: e._replace(start=e.start + 8 + length) for n, e in entries.items()}


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make a mapping of pairs whose keys stand once."""
    made = dict(pairs)
    if len(made) < len(pairs):
        ((twice, times),) = Counter(name for name, _ in pairs).most_common(1)
        raise InputError(f"{twice[:80]!r} must stand once, got it {times} times")
    return made


def _entry(record: Mapping[str, object]) -> Entry:
    """Return what a header says of an array; its place is behind the header."""
    first, last = _counts(record["data_offsets"])
    return Entry(str(record["dtype"]), _counts(record["shape"]), first, last - first)


def _counts(values: object) -> tuple[int, ...]:
    """Return a list of whole numbers, which JSON may have as something else."""
    if not isinstance(values, list) or any(type(value) is not int for value in values):
        raise TypeError(f"whole numbers are needed, got {reprlib.repr(values)}")
    return tuple(values)


def _require_order(entries: Mapping[str, Entry], have: int, file: str) -> None:
    """Make sure that arrays fill what is behind the header, each byte once.

    The format asks for it: what overlaps, or lies between, was put there by hand.
    """
    end = 0
    for name, entry in sorted(entries.items(), key=lambda e: (e[1].start, e[1].size)):
        if entry.start != end or entry.size < 0:
            raise InputError(
                f"{name} of {file} must begin where what is before it ends, at "
                f"{end}, got {_short(entry.start)} with {_short(entry.size)} bytes"
            )
        end += entry.size
    if end != have:
        problem = "the file is cut off" if have < end else "the rest belongs to none"
        raise InputError(
            f"{file} must have {_short(end)} bytes for its arrays, got {have}: "
            f"{problem}"
        )


def _short(number: int) -> str:
    """Write a number that may have any length."""
    return str(number) if abs(number) < 2**63 else "more than 2^63"


def tensor_of(path: Path, name: str, entry: Entry) -> Tensor:
    """Describe one array of a file."""
    label = f"{name} of {path.name}"
    known = KINDS.get(entry.dtype)
    if known is None:
        raise InputError(
            f"{label} must hold {', '.join(KINDS)}, got {entry.dtype[:40]}"
        )
    require_shape(label, entry.shape)
    needed = np.dtype(FORMATS[known]).itemsize * prod(entry.shape)
    if entry.size != needed:
        raise InputError(
            f"{label} must have {needed} bytes for its shape {entry.shape}, got "
            f"{entry.size}"
        )
    return map_array(label, path, entry.start, entry.shape, known)


def safetensors_tensors(
    paths: list[Path], pattern: str
) -> tuple[Found, tuple[str, ...]]:
    """Find queries and keys by the pattern of their names.

    Parameters
    ----------
    paths : list of Path
        Files of one model.
    pattern : str
        With ``{side}``, which stands for a key of `SIDES`, and where names count them
        ``{layer}``, ``{head}`` and ``{sequence}``.

    Returns
    -------
    dict, tuple of str
        For each value of `SIDES`: numbers in the name -> Tensor, none for what is not
        there, which only q and k have to be; and what they count.
    """
    expression, counted = _expression(pattern)
    found: Found = {side: {} for side in SIDES.values()}
    names = []
    for path in paths:
        for name, entry in read_header(path).items():
            names.append(name)
            match = expression.fullmatch(name)
            if match is None:
                continue
            side = found[SIDES[match["side"]]]
            key = tuple(_number(axis, match[axis]) for axis in counted)
            if key in side:
                raise InputError(f"{name} must stand once, got it in two places")
            side[key] = tensor_of(path, name, entry)
    for side_name in ("q", "k"):
        if not found[side_name]:
            shown = ", ".join(name[:80] for name in names[:4]) + (
                ", ..." if len(names) > 4 else ""
            )
            raise InputError(
                f"{side_name} must have a name of the pattern {pattern!r} "
                f"({'{side}'} stands for {', '.join(SIDES)}), got {shown or 'none'}"
            )
    return found, counted


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
