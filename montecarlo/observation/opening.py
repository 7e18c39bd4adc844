"""From files, or arrays in hand, to sequences of heads whose parts fit each other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from numpy.typing import ArrayLike

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError, reading
from montecarlo.observation.arrays import AXES, Side, check_axes, make_side, wrap_array
from montecarlo.observation.numpy_files import npy_tensor, npz_tensors
from montecarlo.observation.safetensors_files import safetensors_tensors

#: The pattern of names in safetensors files, where none is given.
PATTERN = "{side}"
KINDS = (".npz", ".npy", ".safetensors")


class Head(NamedTuple):
    """One head: its layer and its number, as the files count them."""

    layer: int
    head: int


@dataclass(frozen=True, slots=True)
class Source:
    """Queries and keys of some sequences."""

    queries: Side
    keys: Side


@dataclass(frozen=True, slots=True)
class Model:
    """Queries and keys of all sequences of a model.

    Attributes
    ----------
    d_k : int
    layers : tuple of int
        As the files count them.
    head_labels, key_heads : tuple of int
        Of each layer, as the files count them; several heads of queries may share one
        of keys.
    sequences : tuple of (Source, int)
        Where each sequence stands.
    causal : bool
        Whether a query sees only keys up to its own position.
    """

    d_k: int
    layers: tuple[int, ...]
    head_labels: tuple[int, ...]
    key_heads: tuple[int, ...]
    sequences: tuple[tuple[Source, int], ...]
    causal: bool

    def heads(self) -> list[Head]:
        """Return all heads, layer by layer."""
        return [Head(layer, h) for layer in self.layers for h in self.head_labels]

    def read(self, head: Head, sequence: int) -> tuple[Array, Array]:
        """Read queries and keys of one sequence of a head.

        Returns
        -------
        q, k : ndarray, shape (n_tokens, d_k)
        """
        source, number = self.sequences[sequence]
        shared = len(self.head_labels) // len(self.key_heads)
        key_head = self.key_heads[self.head_labels.index(head.head) // shared]
        place = {"sequence": number, "layer": head.layer, "head": head.head}
        queries = source.queries.read(place)
        return queries, source.keys.read({**place, "head": key_head})

    @property
    def most_tokens(self) -> int:
        """Keys of the longest sequence."""
        return max(_tokens(source.keys) for source, _ in self.sequences)


def _tokens(side: Side) -> int:
    place = side.axes.index("token")
    return max(tensor.shape[place] for tensor in side.tensors.values())


def open_arrays(
    queries: ArrayLike,
    keys: ArrayLike,
    axes: Sequence[str] | None = None,
    *,
    causal: bool = False,
) -> Model:
    """Make a model of two arrays in hand.

    Their axes are by default all of `AXES`.
    """
    named = check_axes(AXES if axes is None else axes)
    sides = [
        make_side(name, {(): wrap_array(name, array)}, named)
        for name, array in (("q", queries), ("k", keys))
    ]
    return make_model([Source(*sides)], causal=causal)


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
        ``.npz`` files with arrays q and k, each with further sequences; two ``.npy``
        files, queries and keys; or the ``.safetensors`` files of one model.
    scratch : Path
        An empty folder that members of archives are unpacked into.
    axes : sequence of str, optional
        Names of the arrays' axes; by default all of `AXES` that names do not count.
    names : str, optional
        The pattern of names in safetensors files, see `safetensors_tensors`.
    causal : bool
    """
    kinds = {path.suffix for path in paths}
    for path in paths:
        if path.suffix not in KINDS:
            raise InputError(f"file must end in {', '.join(KINDS)}, got {str(path)!r}")
        if not path.is_file():
            raise InputError(f"file must be there, got {str(path)!r}")
        with reading("file", path):
            path.open("rb").close()
    if len(kinds) > 1:
        raise InputError(f"files must be of one kind, got {', '.join(sorted(kinds))}")
    if names is not None and kinds != {".safetensors"}:
        raise InputError("--names must stand with .safetensors files only")
    if kinds == {".safetensors"}:
        return _open_safetensors(
            paths, PATTERN if names is None else names, axes, causal=causal
        )
    named = check_axes(AXES if axes is None else axes)
    if kinds == {".npy"}:
        if len(paths) != 2:
            raise InputError(
                f".npy files must be two, queries and then keys, got {len(paths)}"
            )
        sides = [
            make_side(name, {(): npy_tensor(path, f"{name} ({path.name})")}, named)
            for name, path in zip("qk", paths, strict=True)
        ]
        return make_model([Source(*sides)], causal=causal)
    sources = []
    for number, path in enumerate(paths):
        folder = scratch / str(number)
        folder.mkdir()
        tensors = npz_tensors(path, folder)
        sides = [make_side(name, {(): tensors[name]}, named) for name in "qk"]
        sources.append(Source(*sides))
    return make_model(sources, causal=causal)


def _open_safetensors(
    paths: Sequence[Path], pattern: str, axes: Sequence[str] | None, *, causal: bool
) -> Model:
    found, counted = safetensors_tensors(list(paths), pattern)
    rest = [axis for axis in AXES if axis not in counted]
    named = check_axes(rest if axes is None else axes)
    if doubled := [axis for axis in counted if axis in named]:
        raise InputError(
            f"axes must not name {doubled[0]!r}, which the names count: {pattern!r}"
        )
    sides = [make_side(side, found[side], named, counted) for side in "qk"]
    return make_model([Source(*sides)], causal=causal)


def make_model(sources: Sequence[Source], *, causal: bool) -> Model:
    """Join sources to a model."""
    first = sources[0]
    for source in sources:
        _require_fit(source, causal=causal)
        for mine, firsts in (
            (source.queries, first.queries),
            (source.keys, first.keys),
        ):
            for axis in ("layer", "head", "d"):
                if mine.labels(axis) != firsts.labels(axis):
                    raise InputError(
                        f"{mine.name} must have the same {axis!r} in every file, got "
                        f"{mine.size(axis)} after {firsts.size(axis)}"
                    )
    return Model(
        d_k=first.queries.size("d"),
        layers=first.queries.labels("layer"),
        head_labels=first.queries.labels("head"),
        key_heads=first.keys.labels("head"),
        sequences=tuple((s, n) for s in sources for n in s.queries.labels("sequence")),
        causal=causal,
    )


def _keys_beside(q: Side, k: Side) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """Return what turns numbers in queries' names to those of the keys they meet."""
    if "head" not in q.in_name:
        return lambda key: key
    place = q.in_name.index("head")
    heads, key_heads = q.labels("head"), k.labels("head")
    numbers = {
        head: key_heads[number * len(key_heads) // len(heads)]
        for number, head in enumerate(heads)
    }
    return lambda key: (*key[:place], numbers[key[place]], *key[place + 1 :])


def _require_fit(source: Source, *, causal: bool) -> None:
    """Make sure that queries and keys of a source fit each other."""
    q, k = source.queries, source.keys
    for axis in ("sequence", "layer", "d"):
        if q.labels(axis) != k.labels(axis):
            raise InputError(
                f"q and k must agree along the axis {axis!r}, got {q.size(axis)} "
                f"and {k.size(axis)}"
            )
    heads, key_heads = q.size("head"), k.size("head")
    if key_heads > heads or heads % key_heads:
        raise InputError(
            f"k must have as many along the axis 'head' as q, {heads}, or a part that "
            f"divides it, got {key_heads}"
        )
    beside = _keys_beside(q, k)
    for key, tensor in q.tensors.items():
        tokens = tensor.shape[q.axes.index("token")]
        other = k.tensors[beside(key)].shape[k.axes.index("token")]
        for name, count in ((q.name, tokens), (k.name, other)):
            if count < 2:
                raise InputError(
                    f"{name} must have at least 2 along the axis 'token', got {count}"
                )
        if causal and tokens != other:
            raise InputError(
                "q and k must agree along the axis 'token' where attention is causal, "
                f"got {tokens} and {other}"
            )
