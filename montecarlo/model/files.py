"""Reads files of queries and keys: ``.npz`` of NumPy, and ``.pt`` of torch.

NumPy reads them without pickles, torch with ``weights_only=True``.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.errors import InputError, is_file_limit, reading
from montecarlo.model.arrays import (
    NAMES,
    Model,
    check_array,
    make_model,
    make_sequences,
    to_numpy,
)
from montecarlo.names import PROJECT
from montecarlo.small_files import require_regular

KINDS = (".npz", ".pt")


def open_files(
    paths: Sequence[Path],
    *,
    axes: Sequence[str] | None = None,
    names: str | None = None,
    causal: bool = False,
) -> Model:
    """Make a model of files, each with further sequences.

    Parameters
    ----------
    paths : sequence of Path
        ``.npz`` files, or ``.pt`` files with a dict of tensors, of arrays q and k.
        Attention weights, or values and outputs, are read if they are there.
    axes : sequence of str, optional
        Names of the arrays' axes; by default all of `AXES`.
    names : str, optional
        Names of the arrays in the files, see `read_names`.
    causal : bool
        Whether a query sees only keys up to its own position.

    Raises
    ------
    InputError
        If a file is not usable, or arrays do not fit each other.
    """
    require_files(paths)
    wanted = read_names(names) if names is not None else {"q": "q", "k": "k"}
    sequences, unread = [], []
    for path in paths:
        read = _read_npz if path.suffix == ".npz" else _read_torch
        arrays, others = read(path, wanted)
        labels = {name: f"{wanted.get(name, name)} of {path.name}" for name in arrays}
        held = {name: _check(labels[name], array) for name, array in arrays.items()}
        sequences += make_sequences(held, axes, labels, causal=causal)
        used = sequences[-1].layers
        unread += [*(name for name in held if name not in used), *others]
    return make_model(sequences, unread, causal=causal)


def require_files(paths: Sequence[Path]) -> None:
    """Refuse files that cannot be read, and one that stands there twice."""
    for path in paths:
        if path.suffix not in KINDS:
            raise InputError(
                f"file must end in {' or '.join(KINDS)}, got {str(path)!r}: np.savez "
                "or torch.save writes one of arrays q, k and weights, or v and outputs"
            )
        require_regular("file", path)  # pipes and devices are not opened
        with reading("file", path):
            path.open("rb").close()
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError(
            f"files must be different ones, got {', '.join(map(str, paths))}"
        )


def read_names(typed: str) -> dict[str, str]:
    """Return the names of arrays in a file, by their names in `NAMES`.

    ``typed`` has two names, of queries and of keys, and where they are needed
    ``weights=NAME``, ``v=NAME`` and ``outputs=NAME``, with commas between them.
    """
    found: dict[str, str] = {}
    for place, part in enumerate(typed.split(",")):
        key, _, name = part.strip().rpartition("=")
        key = key or (NAMES[place] if place < 2 else "")
        if key not in NAMES or key in found or not name:
            raise InputError(
                "names of arrays must be those of q and of k, and then weights=NAME, "
                f"or v=NAME and outputs=NAME, got {typed!r}"
            )
        found[key] = name
    if not {"q", "k"} <= found.keys():
        raise InputError(f"names of arrays must name q and k, got {typed!r}")
    return found


def _pick(
    path: Path, held: Mapping[str, Any], wanted: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the arrays that are read, by their names in `NAMES`, and names of others.

    ``held`` are all arrays of a file, ``wanted`` names that it must have; arrays that
    have a name of `NAMES` are read as well.
    """
    for name in wanted.values():
        if name not in held:
            have = ", ".join(list(held)[:4]) + ", ..." * (len(held) > 4) or "nothing"
            raise InputError(
                f"{path.name} must hold an array {name}, got {have}: name them with "
                "--names"
            )
    names = {name: name for name in NAMES} | dict(wanted)
    read = {key: held[name] for key, name in names.items() if name in held}
    chosen = {name for key, name in names.items() if key in read}
    return read, [name for name in held if name not in chosen]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Refuse in one line what NumPy cannot read, whatever exception it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers that Python 2 wrote
            yield
    except InputError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and is_file_limit(error):
            raise  # the file is not the reason
        reason = str(error).partition("\n")[0] or "one that is cut off"
        raise InputError(
            f"{path.name} must be a file of NumPy's numbers, got {reason}"
        ) from None


def _check(label: str, array: Any) -> NDArray[Any]:  # noqa: ANN401 - or torch's
    """Return an array of numbers; raw bytes of bfloat16 become float32."""
    held = to_numpy(array) if hasattr(array, "detach") else np.asarray(array)
    if held.dtype.str[1:] == "V2":  # NumPy reads bfloat16 so
        upper = np.ascontiguousarray(held).view("<u2").astype(np.uint32)
        held = (upper << np.uint32(16)).view(np.float32)
    return check_array(label, held)


def _read_npz(
    path: Path, wanted: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return arrays of an archive by their names in `NAMES`, and names of others."""
    with path.open("rb") as file, _reading(path):
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError(f"{path.name} must be an archive of NumPy")
        return _pick(path, archive, wanted)


def _read_torch(
    path: Path, wanted: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return tensors of a dict by their names in `NAMES`, and names of others."""
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
    return _pick(path, held, wanted)
