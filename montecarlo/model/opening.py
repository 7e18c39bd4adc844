"""From files, or arrays in hand, to a model whose parts fit each other."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from montecarlo.errors import InputError, reading
from montecarlo.model.arrays import (
    AXES,
    KEY,
    Side,
    Tensor,
    check_axes,
    make_side,
    require_more_tokens,
    wrap_array,
)
from montecarlo.model.model import EVIDENCE, Model, Source, make_model
from montecarlo.model.numpy_files import npy_tensor, npz_tensors
from montecarlo.model.safetensors_files import safetensors_tensors

#: The pattern of names in safetensors files, where none is given.
PATTERN = "{side}"
KINDS = (".npz", ".npy", ".safetensors")
#: What a model is read from: queries and keys, and what softmax made of them.
SIDES = ("q", "k", "weights", "v", "outputs")
#: What .npy files hold, by their number.
NPY_FILES = {
    2: ("q", "k"),
    3: ("q", "k", "weights"),
    4: ("q", "k", "v", "outputs"),
}
Tensors = Mapping[tuple[int, ...], Tensor]


def open_arrays(  # noqa: PLR0913 - five arrays, and how they lie
    queries: ArrayLike,
    keys: ArrayLike,
    axes: Sequence[str] | None = None,
    *,
    weights: ArrayLike | None = None,
    v: ArrayLike | None = None,
    outputs: ArrayLike | None = None,
    causal: bool = False,
) -> Model:
    """Make a model of arrays in hand.

    Their axes are by default all of `AXES`; attention weights have the keys last, in
    place of ``d``.
    """
    given = dict(zip(SIDES, (queries, keys, weights, v, outputs), strict=True))
    tensors: dict[str, Tensors] = {
        name: {(): wrap_array(name, array)}
        for name, array in given.items()
        if array is not None
    }
    return make_model([_make_source(tensors, axes)], causal=causal)


def _make_source(
    tensors: Mapping[str, Tensors],
    axes: Sequence[str] | None,
    in_name: Sequence[str] = (),
    left: Sequence[str] = (),
) -> Source:
    """Name the axes of what was found; of what tells nothing alone, nothing is made.

    Where nobody named them they are all of `AXES` that names do not count.
    """
    rest = [axis for axis in AXES if axis not in in_name]
    axes_here = check_axes(rest if axes is None else axes)
    told = [
        name
        for needed in EVIDENCE.values()
        if all(tensors.get(name) for name in needed)
        for name in needed
    ]
    sides: dict[str, Side] = {}
    for name in ("q", "k", *told):
        own = [axis for axis in axes_here if axis != "d"] + [KEY]
        named = own if name == "weights" else axes_here
        sides[name] = make_side(name, tensors[name], named, in_name)
    if axes is None:
        require_more_tokens(sides["q"])
    unread = (*(name for name in tensors if name not in sides), *left)
    return Source(sides.pop("q"), sides.pop("k"), sides, unread)


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
        files, as `NPY_FILES` says; or the ``.safetensors`` files of one model.  What
        softmax made of queries and keys is read if it is there.
    scratch : Path
        An empty folder that members of archives are unpacked into.
    axes : sequence of str, optional
        Names of the arrays' axes; by default all of `AXES` that names do not count.
    names : str, optional
        The pattern of names in safetensors files, see `safetensors_tensors`; of npz
        files the names of the arrays, see `read_names`.
    causal : bool
    """
    kinds = {path.suffix for path in paths}
    for path in paths:
        if path.suffix not in KINDS:
            raise InputError(f"file must end in {', '.join(KINDS)}, got {str(path)!r}")
        _require_file(path)
    if len(kinds) > 1:
        raise InputError(f"files must be of one kind, got {', '.join(sorted(kinds))}")
    if names is not None and kinds == {".npy"}:
        raise InputError("--names must stand with .npz or .safetensors files only")
    if kinds == {".safetensors"}:
        return _open_safetensors(
            paths, PATTERN if names is None else names, axes, causal=causal
        )
    tensors: dict[str, Tensors]
    if kinds == {".npy"}:
        if len(paths) not in NPY_FILES:
            raise InputError(
                ".npy files must be two, queries and then keys, with attention weights "
                f"three, with values and outputs four, got {len(paths)}"
            )
        tensors = {
            name: {(): npy_tensor(path, f"{name} ({path.name})")}
            for name, path in zip(NPY_FILES[len(paths)], paths, strict=True)
        }
        return make_model([_make_source(tensors, axes)], causal=causal)
    wanted = read_names(names)
    optional = set(SIDES[2:]) - (wanted.keys() if names is not None else set())
    sources = []
    for number, path in enumerate(paths):
        folder = scratch / str(number)
        folder.mkdir()
        names_of = {name: name for name in SIDES} | wanted
        found, left = npz_tensors(path, folder, names_of, optional)
        tensors = {name: {(): one} for name, one in found.items()}
        sources.append(_make_source(tensors, axes, left=left))
    return make_model(sources, causal=causal)


def _require_file(path: Path) -> None:
    """Refuse what is no file that can be read; pipes and devices are not opened."""
    with reading("file", path):
        if not path.exists():
            raise InputError(f"file must be there, got {str(path)!r}")
        if not path.is_file():
            raise InputError(f"file must be a regular one, got {str(path)!r}")
        path.open("rb").close()


def read_names(typed: str | None) -> dict[str, str]:
    """Return what arrays of an npz file are called.

    Parameters
    ----------
    typed : str or None
        Two names, of queries and of keys, and where they are needed ``weights=NAME``,
        ``v=NAME`` and ``outputs=NAME``, with commas between them.
    """
    if typed is None:
        return {"q": "q", "k": "k"}
    found: dict[str, str] = {}
    for place, part in enumerate(typed.split(",")):
        side, _, name = part.strip().rpartition("=")
        side = side or (SIDES[place] if place < 2 else "")
        if side not in SIDES or side in found or not name:
            raise InputError(
                "names of arrays must be those of q and of k, and then weights=NAME, "
                f"or v=NAME and outputs=NAME, got {typed!r}"
            )
        found[side] = name
    if not {"q", "k"} <= found.keys():
        raise InputError(f"names of arrays must name q and k, got {typed!r}")
    return found


def _open_safetensors(
    paths: Sequence[Path], pattern: str, axes: Sequence[str] | None, *, causal: bool
) -> Model:
    found, counted = safetensors_tensors(list(paths), pattern)
    if doubled := [axis for axis in counted if axis in (axes or ())]:
        raise InputError(
            f"axes must not name {doubled[0]!r}, which the names count: {pattern!r}"
        )
    return make_model([_make_source(found, axes, counted)], causal=causal)
