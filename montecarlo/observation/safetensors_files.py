"""Safetensors: a JSON header, then the bytes of arrays, which are read as they are.

The format's own NumPy reader refuses bfloat16, which is what most models are kept in.
"""

import json
import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from montecarlo.observation.arrays import AXES, FORMATS, Tensor, stored

KINDS = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
#: Bytes of a header at most, as in the format's own reader.
MOST_HEADER = 100_000_000
#: What stands for ``{side}`` in a tensor's name.
SIDES = {"q": "q", "query": "q", "k": "k", "key": "k"}
#: What a pattern may count.
COUNTED = AXES[:3]

Found = dict[str, dict[tuple[int, ...], Tensor]]
#: Of a number in a tensor's name.
MOST_DIGITS = 18


def read_header(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Read names, types, shapes and places of the arrays of a file.

    Raises
    ------
    ValueError
        If the file is no safetensors.
    """
    with path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        have = path.stat().st_size
        if len(start) < 8 or length > min(MOST_HEADER, have - 8):
            raise ValueError(
                f"{path.name} must be a safetensors file, got one whose header "
                f"would take {length} of {have} bytes"
            )
        text = file.read(length)
    try:
        header = json.loads(text)
        entries = {n: dict(e) for n, e in header.items() if n != "__metadata__"}
        for entry in entries.values():
            first, last = _counts(entry["data_offsets"])
            entry |= {"start": 8 + length + first, "size": last - first}
            entry["shape"] = _counts(entry["shape"])
            entry["dtype"] = str(entry["dtype"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path.name} must be a safetensors file, its header is broken: {error}"
        ) from None
    for name, entry in entries.items():
        if entry["start"] < 8 + length or min(entry["shape"], default=0) < 0:
            raise ValueError(
                f"{name} of {path.name} must lie behind the header and have a shape "
                f"of counts, got shape {entry['shape']} at {entry['data_offsets']}"
            )
    return entries


def _counts(values: object) -> tuple[int, ...]:
    """Return a list of whole numbers, which JSON may have as something else."""
    if not isinstance(values, list) or any(type(value) is not int for value in values):
        raise TypeError(f"whole numbers are needed, got {values!r}")
    return tuple(values)


def tensor_of(path: Path, name: str, entry: Mapping[str, Any]) -> Tensor:
    """Describe one array of a file.

    Raises
    ------
    ValueError
        If its type is not read, or its bytes do not fit its shape.
    """
    known = KINDS.get(entry["dtype"])
    if known is None:
        raise ValueError(
            f"{name} of {path.name} must hold {', '.join(KINDS)}, got {entry['dtype']}"
        )
    needed = np.dtype(FORMATS[known]).itemsize * prod(entry["shape"])
    if entry["size"] != needed:
        raise ValueError(
            f"{name} of {path.name} must have {needed} bytes for its shape "
            f"{entry['shape']}, got {entry['size']}"
        )
    label = f"{name} of {path.name}"
    return stored(label, path, entry["start"], entry["shape"], known)


def safetensors_tensors(
    paths: list[Path], pattern: str
) -> tuple[Found, tuple[str, ...]]:
    """Find queries and keys by the pattern of their names.

    Parameters
    ----------
    paths : list of Path
        Files of one model.
    pattern : str
        With ``{side}``, which stands for q, query, k or key, and where names count
        them ``{layer}``, ``{head}`` and ``{sequence}``.

    Returns
    -------
    dict, tuple of str
        For ``q`` and ``k``: numbers in the name -> Tensor; and what they count.

    Raises
    ------
    ValueError
        If the pattern is none or nothing fits it.
    """
    expression, counted = _expression(pattern)
    found: Found = {"q": {}, "k": {}}
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
                raise ValueError(f"{name} must stand once, got it in two places")
            side[key] = tensor_of(path, name, entry)
    for side_name, tensors in found.items():
        if not tensors:
            shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
            raise ValueError(
                f"{side_name} must have a name of the pattern {pattern!r} "
                f"({'{side}'} stands for {', '.join(SIDES)}), got {shown or 'none'}"
            )
    return found, counted


def _number(axis: str, digits: str) -> int:
    """Return a number that stands in a tensor's name; tables hold no larger ones."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(
            f"{axis} in a tensor's name must have at most {MOST_DIGITS} digits, got "
            f"{len(digits)}"
        )
    return int(digits)


def _expression(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    fields = re.findall(r"\{(\w*)\}", pattern)
    for field in fields:
        if field not in (*COUNTED, "side") or fields.count(field) > 1:
            raise ValueError(
                f"names may hold {{side}}, {{layer}}, {{head}}, {{sequence}}, each "
                f"once, got {pattern!r}"
            )
    if "side" not in fields:
        raise ValueError(f"names must hold {{side}}, got {pattern!r}")
    text = re.escape(pattern)
    for field in fields:
        inner = "|".join(SIDES) if field == "side" else r"\d+"
        text = text.replace(re.escape(f"{{{field}}}"), f"(?P<{field}>{inner})")
    return re.compile(text), tuple(axis for axis in COUNTED if axis in fields)
