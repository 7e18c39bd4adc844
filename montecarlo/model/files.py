"""Files of queries and keys: ``.npz``, ``.npy``, and ``.pt`` of torch.

NumPy reads them without pickles, torch what it takes for tensors.
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
    make_source,
    to_numpy,
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
    if kind == ".npy":
        held, labels = _read_npy(paths, names)
        return make_model(
            [make_source(held, axes, labels, causal=causal)], causal=causal
        )
    wanted = read_names(names) if names is not None else {"q": "q", "k": "k"}
    sources = []
    for path in paths:
        read, left = (_read_npz if kind == ".npz" else _read_torch)(path, wanted)
        labels = {side: f"{wanted.get(side, side)} of {path.name}" for side in read}
        held = {side: _check(labels[side], array) for side, array in read.items()}
        sources.append(make_source(held, axes, labels, unread=left, causal=causal))
    return make_model(sources, causal=causal)


def _read_npy(
    paths: Sequence[Path], names: str | None
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Map arrays of a file each; returns them and what they are called."""
    if names is not None:
        raise InputError("--names must stand with .npz or .pt files only")
    if len(paths) not in NPY_FILES:
        raise InputError(
            ".npy files must be two, queries and then keys, with attention weights "
            f"three, with values and outputs four, got {len(paths)}"
        )
    found, labels = {}, {}
    for name, path in zip(NPY_FILES[len(paths)], paths, strict=True):
        with _reading(path):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        labels[name] = f"{name} ({path.name})"
        found[name] = _check(labels[name], array)
    return found, labels


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


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say in one line what NumPy does not read: its parser raises whatever Python's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers that Python 2 wrote
            yield
    except Exception as error:
        if isinstance(error, OSError) and is_file_limit(error):
            raise  # nothing is said of the file
        reason = str(error).partition("\n")[0] or "one that is cut off"
        raise InputError(
            f"{path.name} must be a file of NumPy's numbers, got {reason}"
        ) from None


def _check(label: str, array: Any) -> NDArray[Any]:  # noqa: ANN401 - or torch's
    """Return an array of numbers; of bfloat16, which NumPy lacks, it has raw bytes."""
    held = to_numpy(array) if hasattr(array, "detach") else np.asarray(array)
    if held.dtype.str[1:] == "V2":
        held = _from_bfloat16(held)
    return check_array(label, held)


def _from_bfloat16(array: NDArray[Any]) -> NDArray[np.float32]:
    """Return float32 of which bfloat16 is the upper half."""
    halves = np.ascontiguousarray(array).view("<u2").astype(np.uint32)
    found: NDArray[np.float32] = (halves << np.uint32(16)).view(np.float32)
    return found


def _read_npz(
    path: Path, wanted: Mapping[str, str]
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Read arrays of an archive; returns them and the names of those left."""
    with path.open("rb") as file:
        with _reading(path):
            archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError(f"{path.name} must be an archive of NumPy")
        chosen, left = _pick(path, archive.files, wanted)
        with _reading(path):
            return {side: archive[name] for side, name in chosen.items()}, left


def _read_torch(
    path: Path, wanted: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Read tensors of a dict by their names; returns them and the names left."""
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
    return {side: held[name] for side, name in chosen.items()}, left
