"""Reads files of queries and keys: ``.npz`` of NumPy, and ``.pt`` of torch.

NumPy reads them without pickles, torch with ``weights_only=True``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from montecarlo.errors import InputError, is_file_limit, reading, show
from montecarlo.model.arrays import (
    NAMES,
    Model,
    check_array,
    make_model,
    make_sequences,
)
from montecarlo.small_files import require_regular


def open_files(
    paths: Sequence[Path], *, axes: Sequence[str] | None = None, causal: bool = False
) -> Model:
    """Return the arrays in files as one model; each file adds sequences to it.

    Parameters
    ----------
    paths : sequence of Path
        ``.npz`` files of arrays ``q`` and ``k``, or ``.pt`` files with a dict of such
        tensors.  Attention ``weights``, or ``v`` and ``outputs``, are read if they are
        there, the latter with ``added``.
    axes : sequence of str, optional
        Names of the arrays' axes; by default all of `AXES`.
    causal : bool
        Whether a query sees only keys up to its own position.

    Raises
    ------
    InputError
        If a file is not usable, or arrays do not fit each other.
    """
    require_files(paths)
    sequences = []
    for path in paths:
        held = _read_file(path)
        labels = {name: f"{name} of {path.name}" for name in held}
        arrays = {name: check_array(labels[name], a) for name, a in held.items()}
        sequences += make_sequences(arrays, axes, labels, causal=causal)
    return make_model(sequences, causal=causal)


def require_files(paths: Sequence[Path]) -> None:
    """Raise an `InputError` if a file cannot be read, or is given twice.

    Also if its name does not end in ``.npz`` or ``.pt``, if it is no regular file, or
    if a ``.pt`` file is given without torch.
    """
    for path in paths:
        if path.suffix not in {".npz", ".pt"}:
            raise InputError(
                f"file must end in .npz or .pt, got {str(path)!r}: np.savez or "
                "torch.save writes one of arrays q, k and weights, or v and outputs"
            )
        if path.suffix == ".pt" and find_spec("torch") is None:  # an extra
            raise InputError(f"file {path} needs torch: pip install -e '.[torch]'")
        require_regular("file", path)  # pipes and devices are not opened
        with reading("file", path):
            path.open("rb").close()
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError(f"files must differ, got {', '.join(map(str, paths))}")


def _read_file(path: Path) -> dict[str, Any]:
    """Return those arrays or tensors of a file whose names are in `NAMES`, by name.

    An `InputError` is raised if ``q`` or ``k`` is missing, or the file is not usable.
    """
    with path.open("rb") as file, _errors_in_one_line(path):
        if path.suffix == ".npz":
            if file.read(2) != b"PK":  # with which archives begin
                raise InputError(f"{path.name} is not an .npz file, as np.savez writes")
            file.seek(0)
            held = np.load(file, allow_pickle=False)
        else:
            import torch

            held = torch.load(file, map_location="cpu", weights_only=True)
        if not isinstance(held, Mapping):
            got = type(held).__name__
            raise InputError(f"{path.name} must hold arrays by their names, got {got}")
        if not {"q", "k"} <= set(held):
            raise InputError(
                f"{path.name} must hold arrays q and k, and weights, or v and outputs, "
                f"got {show(list(held))}"
            )
        return {name: held[name] for name in NAMES if name in held}


@contextmanager
def _errors_in_one_line(path: Path) -> Iterator[None]:
    """Raise a one-line `InputError` for what NumPy or torch raises in a with block.

    An error because of too many open files is raised as it is.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and is_file_limit(error):
            raise  # the file is not the reason
        text = str(error)  # torch names an object's type in a later line
        reason = text.partition("GLOBAL ")[2].split(" ")[0] or text.partition("\n")[0]
        raise InputError(
            f"{path.name} must hold arrays of numbers by name, as np.savez writes, or "
            "torch.save of a dict of tensors, and no other objects, got "
            f"{reason or 'a part'}"
        ) from None
