"""Arrays of a model: queries, keys and what softmax made of them, by named axes.

In: arrays in memory, or readers of files, and the names of their axes.  Out: a `Model`,
which reads one sequence of one head at a time, as float64.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError, show
from montecarlo.names import require_flag


class NotFiniteError(InputError):
    """An array that holds a number that is not finite."""


#: Names of axes, in the order in which an array has them if nobody names them.
AXES = ("sequence", "layer", "head", "token", "d")
#: Other words for them.
ALSO = {"batch": "sequence"}
#: Axes that arrays mostly have, by their number: what is proposed.
COMMON_AXES = {
    2: ("token", "d"),
    3: ("head", "token", "d"),
    4: ("sequence", "head", "token", "d"),
    5: AXES,
}
#: Axes that every array has to have; attention weights have keys in place of entries.
NEEDED = ("token", "d")
KEY = "key"
#: What a model is read from: queries, keys, attention weights, values, outputs; and
#: what was added to scores before softmax, which outputs do not tell.
NAMES = ("q", "k", "weights", "v", "outputs", "added")
#: What tells the scale that was applied: either all of the one or all of the other.
EVIDENCE = {"weights": ("weights",), "outputs": ("v", "outputs")}
ADDED = "added"
#: Arrays that have keys in place of entries.
OF_KEYS = ("weights", ADDED)
#: Array, axis, and which of q and k it is as long as.
LENGTHS = (
    *((name, "token", "q") for name in ("weights", ADDED, "outputs")),
    *((name, KEY, "k") for name in OF_KEYS),
    ("v", "token", "k"),
)
#: What stands among them for minus infinity; from what on a number hides a key.
HIDDEN, UNSEEN = -(2.0**100), -5e3
#: Weights that are read at once.
MOST_READ = 2**20
#: Queries and keys of a sequence at least.
FEWEST = {"q": 2, "k": 2}
#: Numbers beyond this have squares that float64 cannot hold with others beside them.
LARGEST = 1e100
Index = tuple[int | slice, ...]
#: Of each sequence of a recorded call, by name, shape (n_heads, n_tokens, ...).
Arrays = Mapping[str, Sequence[NDArray[Any]] | NDArray[Any]]
ALL_TOKENS = slice(None)


@dataclass
class Sink:
    """Where recorded calls go: to who keeps them, or to one that is within another."""

    rows: int | None  # the last queries of each sequence that are kept; None for all
    room: Callable[[], int]  # how many sequences there is room for
    keep: Callable[[Arrays, Mapping[str, object]], None]
    note: Callable[..., None]  # what is not followed, and whether it is attention
    config: Mapping[str, object] | None = None  # of the model that runs
    #: Calls within one that is recorded as a whole, and what was passed to each.
    within: list[tuple[Arrays, Mapping[str, object]]] | None = None

    def add(self, arrays: Arrays, passed: Mapping[str, object]) -> None:
        """Keep a call, or hold it for the one that it is within."""
        if self.within is None:
            self.keep(arrays, passed)
        else:
            self.within.append((arrays, passed))

    def miss(self, told: str, *, is_certain: bool) -> None:
        """Note attention that could not be followed, except within what is recorded."""
        if self.within is None:
            self.note(told, is_certain=is_certain)


class Tensor(NamedTuple):
    """An array that is read in blocks."""

    name: str  # for messages
    shape: tuple[int, ...]
    take: Callable[[Index], Array]  # the block as float64, which belongs to the caller


def wrap_array(name: str, array: ArrayLike) -> Tensor:
    """Wrap an array that is in memory, or whatever NumPy makes an array of."""
    try:
        is_masked, values = np.ma.is_masked(array), np.asarray(array)
    except Exception as error:  # noqa: BLE001 - of whatever stands for an array
        raise InputError(
            f"{name} must be an array of numbers, got {type(array).__name__}: {error}"
        ) from None
    if is_masked:
        raise InputError(f"{name} must have no masked entries, got some")
    kind = values.dtype
    if kind.kind != "f" and not kind.name.startswith(("bfloat16", "float8")):
        raise InputError(
            f"{name} must hold floating-point numbers, got entries of type {kind.name}"
        )
    return Tensor(name, values.shape, lambda i: np.array(values[i], dtype=np.float64))


def to_numpy(array: Any) -> NDArray[Any]:  # noqa: ANN401 - or a tensor of torch
    """Return a copy in memory; of torch bfloat16, which NumPy lacks, as float32."""
    if not hasattr(array, "detach"):
        return np.array(array)
    held = array.detach()
    held = held.float() if "bfloat16" in str(held.dtype) else held
    return np.array(held.cpu().numpy())


#: Numbers in the names of tensors -> Tensor.
Tensors = Mapping[tuple[int, ...], Tensor]


@dataclass(frozen=True, slots=True)
class ArraySet:
    """All queries of one source, or all its keys, weights, values or outputs."""

    name: str  # one of `NAMES`
    axes: tuple[str, ...]  # those of each tensor
    in_name: tuple[str, ...]  # axes that the tensors' names count: mostly none
    tensors: Tensors

    def labels(self, axis: str) -> tuple[int, ...]:
        """Return what counts along an axis; one 0 where there is no such axis."""
        if axis in self.in_name:
            place = self.in_name.index(axis)
            return tuple(sorted({key[place] for key in self.tensors}))
        if axis not in self.axes:
            return (0,)
        first = next(iter(self.tensors.values()))
        return tuple(range(first.shape[self.axes.index(axis)]))

    def size(self, axis: str) -> int:
        """Return the length of an axis; 1 where there is no such axis."""
        return len(self.labels(axis))

    def at(self, place: Mapping[str, int]) -> Tensor:
        """Return the tensor that holds a place."""
        return self.tensors[tuple(place[axis] for axis in self.in_name)]

    def length(self, axis: str, place: Mapping[str, int]) -> int:
        """Return the length of a tensor's own axis: sequences differ in tokens."""
        return self.at(place).shape[self.axes.index(axis)]

    def longest(self, axis: str) -> int:
        """Return the length of a tensor's own axis in the longest one."""
        place = self.axes.index(axis)
        return max(tensor.shape[place] for tensor in self.tensors.values())

    def take(self, place: Mapping[str, int], tokens: slice = ALL_TOKENS) -> Array:
        """Read one sequence of one head, whatever its numbers are."""
        along: dict[str, int | slice] = {**place, "token": tokens}
        block = self.at(place).take(tuple(along.get(a, ALL_TOKENS) for a in self.axes))
        if self.axes.index("token") > self.axes.index(self._last):
            block = np.ascontiguousarray(block.T)
        return block

    @property
    def _last(self) -> str:
        return KEY if KEY in self.axes else "d"

    def read(self, place: Mapping[str, int], tokens: slice = ALL_TOKENS) -> Array:
        """Read one sequence of one head, shape (n_tokens, d_k or n_keys), or a part.

        The place has labels of ``sequence``, ``layer`` and ``head``.
        """
        tensor, last = self.at(place), self._last
        block = self.take(place, tokens)
        if not np.isfinite(block).all():
            token, entry = np.argwhere(~np.isfinite(block))[0]
            where = ", ".join(f"{axis} {number}" for axis, number in place.items())
            number = range(self.length("token", place))[tokens][token]
            raise NotFiniteError(
                f"{tensor.name} must be finite, got {block[token, entry]} at {where}, "
                f"token {number}, {last} {entry}"
            )
        return block


def make_array_set(
    name: str,
    tensors: Tensors,
    axes: Sequence[str],
    in_name: Sequence[str] = (),
) -> ArraySet:
    """Give names to the axes of tensors, and refuse those that do not fit them."""
    first = next(iter(tensors.values()))
    for tensor in tensors.values():
        if len(tensor.shape) != len(axes):
            raise InputError(
                f"{tensor.name} must have the axes {','.join(axes)}, got shape "
                f"{tensor.shape}: name its axes{_propose(tensor.shape)}"
            )
        for axis, size, expected in zip(axes, tensor.shape, first.shape, strict=True):
            if size == 0:
                raise InputError(
                    f"{tensor.name} must have something along each axis, got shape "
                    f"{tensor.shape}: its axis {axis!r} is empty"
                )
            varies = axis in {"token", KEY} and "sequence" in in_name
            if size != expected and not varies:
                raise InputError(
                    f"{tensor.name} must have the shape of {first.name}, "
                    f"{first.shape}, got {tensor.shape}: they differ along {axis!r}"
                )
    return ArraySet(name, tuple(axes), tuple(in_name), tensors)


def _propose(shape: Sequence[int]) -> str:
    """Say which axes an array of such a shape mostly has."""
    axes = COMMON_AXES.get(len(shape))
    if axes is None:
        return " with --axes"
    if "head" in axes:
        head, token = axes.index("head"), axes.index("token")
        if shape[head] > shape[token]:  # models have more tokens than heads
            axes = (*axes[:head], "token", "head", *axes[token + 1 :])
    return f", perhaps --axes {','.join(axes)}"


def _require_more_tokens(queries: ArraySet) -> None:
    """Ask about axes that nobody named, if there are more heads than tokens."""
    if not {"head", "token"} <= set(queries.axes):
        return
    shape = next(iter(queries.tensors.values())).shape
    heads, tokens = (shape[queries.axes.index(axis)] for axis in ("head", "token"))
    if heads <= tokens or tokens < 2:  # a single one is refused for itself
        return
    others = {"head": "token", "token": "head"}
    swapped = ",".join(others.get(axis, axis) for axis in queries.axes)
    raise InputError(
        f"{queries.name} has {heads} heads of {tokens} tokens, shape {shape}: if these "
        f"are swapped, type --axes {swapped}; if not, --axes {','.join(queries.axes)}"
    )


def check_axes(axes: Sequence[str]) -> tuple[str, ...]:
    """Return names of axes, other words for them replaced."""
    given: Any = axes
    are_several = isinstance(given, Sequence) and not isinstance(given, str)
    if not are_several or not all(isinstance(axis, str) for axis in given):
        raise InputError(f"axes must be a sequence of names, got {show(axes)}")
    axes = [ALSO.get(axis, axis) for axis in axes]
    for axis in axes:
        if axis not in AXES or axes.count(axis) > 1:
            raise InputError(
                f"axes must be different ones among {', '.join(AXES)}; got "
                f"{','.join(axes)!r}"
            )
    for axis in NEEDED:
        if axis not in axes:
            raise InputError(f"axes must have {axis!r}, got {','.join(axes)!r}")
    return tuple(axes)


class Source(NamedTuple):
    """Arrays of some sequences: ``q``, ``k``, and evidence of the scale, if any."""

    arrays: Mapping[str, ArraySet]
    unread: tuple[str, ...] = ()  # names of arrays of no use, or not asked for

    def key_heads(self) -> dict[int, int]:
        """Map heads of queries to those of the keys that they meet."""
        heads, shared = (self.arrays[name].labels("head") for name in "qk")
        return {h: shared[i * len(shared) // len(heads)] for i, h in enumerate(heads)}


def make_source(
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
    if "outputs" in told and tensors.get(ADDED):
        told.append(ADDED)
    arrays = {}
    for name in ("q", "k", *told):
        own = [axis for axis in axes_here if axis != "d"] + [KEY]
        named = own if name in OF_KEYS else axes_here
        arrays[name] = make_array_set(name, tensors[name], named, in_name)
    if axes is None:
        _require_more_tokens(arrays["q"])
    return Source(arrays, (*(name for name in tensors if name not in arrays), *left))


class Head(NamedTuple):
    """One head: its layer and its number, as the files count them."""

    layer: int
    head: int


#: Shows how far work on heads is: the heads and the work's name in, the heads out.
Track = Callable[[Sequence[Head], str], Iterable[Head]]


def untracked(heads: Sequence[Head], _: str) -> Iterable[Head]:
    """Show nothing."""
    return heads


@dataclass(frozen=True)
class Rows:
    """Rows of attention of one sequence of a head."""

    queries: Array  # shape (n_rows, d_k)
    keys: Array  # shape (n_keys, d_k)
    scores: Array  # their products as they were captured, shape (n_rows, n_keys)
    #: Of the queries, counted as keys are; where there are fewer queries than keys,
    #: they are the last ones.
    places: NDArray[np.intp]
    shift: int  # keys that there are more than queries
    #: Evidence of the scale, by its names in `NAMES`, and ``added`` where it is known.
    made: Mapping[str, Array]

    @property
    def weights(self) -> Array:
        """Attention weights, shape (n_rows, n_keys)."""
        return self.made["weights"]

    @property
    def values(self) -> Array:
        """Values, shape (n_keys, d_v)."""
        return self.made["v"]

    @property
    def outputs(self) -> Array:
        """Means of the values by the weights, shape (n_rows, d_v)."""
        return self.made["outputs"]

    @property
    def added(self) -> Array | None:
        """What was added to scores, shape (n_rows, n_keys); None where not known."""
        return self.made.get(ADDED)

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """Place of each key less that of the query, shape (n_rows, n_keys)."""
        found: NDArray[np.intp] = np.arange(self.scores.shape[1]) - self.places[:, None]
        return found

    def some(self, chosen: slice | NDArray[np.bool_]) -> "Rows":
        """Return some of the rows."""
        made = {n: a if n == "v" else a[chosen] for n, a in self.made.items()}
        return replace(
            self,
            queries=self.queries[chosen],
            scores=self.scores[chosen],
            places=self.places[chosen],
            made=made,
        )


@dataclass(frozen=True, slots=True)
class Model:
    """Queries and keys of all sequences of a model."""

    d_k: int
    layers: tuple[int, ...]  # as the files count them, and heads likewise
    #: Heads of queries of each layer, each with that of the keys that it meets.
    key_heads: Mapping[int, int]
    sequences: tuple[tuple[Source, int], ...]  # where each stands
    causal: bool  # a query sees only keys up to its own position

    @property
    def head_labels(self) -> tuple[int, ...]:
        """Heads of queries of each layer."""
        return tuple(self.key_heads)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Entries of a query, heads, and heads of keys."""
        return self.d_k, len(self.key_heads), len(set(self.key_heads.values()))

    def heads(self) -> list[Head]:
        """Return all heads, layer by layer."""
        return [Head(layer, h) for layer in self.layers for h in self.head_labels]

    def read(self, head: Head, sequence: int) -> tuple[Array, Array]:
        """Read queries and keys of one sequence of a head, shape (n_tokens, d_k)."""
        arrays, place, key_place = self._find(head, sequence)
        return arrays["q"].read(place), arrays["k"].read(key_place)

    def take(self, head: Head, sequence: int) -> dict[str, Array]:
        """Read all arrays of one sequence of a head, whatever their numbers are."""
        arrays, place, key_place = self._find(head, sequence)
        return {
            name: one.take(key_place if name in {"k", "v"} else place)
            for name, one in arrays.items()
        }

    def read_vectors(self, layer: int, sequence: int) -> dict[str, Array]:
        """Read queries, keys and values of all heads, shape (head, token, d)."""
        source, number = self.sequences[sequence]
        place = {"sequence": number, "layer": layer}
        return {
            name: np.stack([one.read(place | {"head": h}) for h in one.labels("head")])
            for name, one in source.arrays.items()
            if name in {"q", "k", "v"}
        }

    def read_rows(self, head: Head, sequence: int, n_rows: int) -> Rows:
        """Read at most so many rows of a sequence, with all of their keys.

        They stand at even distances, and the last one is among them.
        """
        arrays, place, key_place = self._find(head, sequence)
        n_tokens = arrays["q"].length("token", place)
        step = -(-n_tokens // n_rows)
        chosen = slice((n_tokens - 1) % step, None, step)
        keys = arrays["k"].read(key_place)
        queries = arrays["q"].read(place, chosen)
        made = {
            name: found.read(key_place) if name == "v" else found.read(place, chosen)
            for name, found in arrays.items()
            if name not in {"q", "k"}
        }
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Array = queries @ keys.T
        for name, values in {"scores of q and k": scores, **made}.items():
            if not (np.abs(values) < LARGEST).all():
                raise InputError(
                    f"{name} must be smaller than {LARGEST:g}, got larger ones"
                )
        shift = len(keys) - n_tokens
        places = np.arange(n_tokens)[chosen] + shift
        return Rows(queries, keys, scores, places, shift, made)

    def column_sums(self, head: Head, sequence: int) -> Array:
        """Return what the weights of each key add up to, shape (n_keys,).

        They are read some rows at a time.
        """
        arrays, place, _ = self._find(head, sequence)
        rows = max(MOST_READ // self.most_tokens, 1)
        total = np.zeros(1)
        for start in range(0, arrays["q"].length("token", place), rows):
            block = arrays["weights"].read(place, slice(start, start + rows))
            total = total + block.sum(axis=0)
        return total

    def _find(
        self, head: Head, sequence: int
    ) -> tuple[Mapping[str, ArraySet], dict[str, int], dict[str, int]]:
        """Return where queries of a sequence of a head stand, and where their keys."""
        source, number = self.sequences[sequence]
        place = {"sequence": number, "layer": head.layer, "head": head.head}
        return source.arrays, place, {**place, "head": self.key_heads[head.head]}

    @property
    def source(self) -> str | None:
        """What tells the applied scale, a key of `EVIDENCE`; None if nothing does."""
        given = self.sequences[0][0].arrays
        for name, needed in EVIDENCE.items():
            if all(one in given for one in needed):
                return name
        return None

    @property
    def unread(self) -> list[str]:
        """Names of arrays that files hold and that were not read, each once."""
        names = (name for source, _ in self.sequences for name in source.unread)
        return list(dict.fromkeys(names))

    @property
    def most_tokens(self) -> int:
        """Keys of the longest sequence."""
        return max(source.arrays["k"].longest("token") for source, _ in self.sequences)


def open_arrays(
    arrays: Mapping[str, ArrayLike | None],
    axes: Sequence[str] | None = None,
    *,
    causal: bool = False,
    fewest: Mapping[str, int] = FEWEST,
) -> Model:
    """Make a model of arrays in hand, by their names in `NAMES`.

    Their axes are by default all of `AXES`; attention weights, and what was
    added to scores, have the keys last, in place of ``d``.
    """
    if missing := [name for name in "qk" if arrays.get(name) is None]:
        raise InputError(f"{missing[0]} must be an array, got None")
    tensors: dict[str, Tensors] = {
        name: {(): wrap_array(name, array)}
        for name, array in arrays.items()
        if array is not None
    }
    source = make_source(tensors, axes)
    is_causal = require_flag("causal", causal)
    return make_model([source], causal=is_causal, fewest=fewest)


def make_model(
    sources: Sequence[Source], *, causal: bool, fewest: Mapping[str, int] = FEWEST
) -> Model:
    """Join sources to a model.

    With a single query per sequence, as in decoding, a scale can be told, and nothing
    of how queries vary.
    """
    first = sources[0].arrays
    for source in sources:
        if source.arrays.keys() != first.keys():
            got, wanted = (
                ", ".join(name for name in one if name not in {"q", "k"}) or "nothing"
                for one in (source.arrays, first)
            )
            raise InputError(
                f"files must hold the same beside q and k, got {got} after {wanted}"
            )
        _require_fit(source, causal=causal, fewest=fewest)
        for name in ("q", "k"):
            _require_agreement(source.arrays[name], first[name], ("layer", "head", "d"))
    return Model(
        d_k=first["q"].size("d"),
        layers=first["q"].labels("layer"),
        key_heads=sources[0].key_heads(),
        sequences=tuple(
            (s, n) for s in sources for n in s.arrays["q"].labels("sequence")
        ),
        causal=causal,
    )


def _require_agreement(one: ArraySet, other: ArraySet, axes: Sequence[str]) -> None:
    for axis in axes:
        if one.labels(axis) != other.labels(axis):
            both = " and ".join(dict.fromkeys((one.name, other.name)))
            raise InputError(
                f"{both} must agree along the axis {axis!r}, got {one.size(axis)} and "
                f"{other.size(axis)}"
            )


def _require_fit(source: Source, *, causal: bool, fewest: Mapping[str, int]) -> None:
    """Make sure that the arrays of a source fit each other."""
    arrays = source.arrays
    q, k = arrays["q"], arrays["k"]
    _require_agreement(q, k, ("sequence", "layer", "d"))
    heads, key_heads = q.size("head"), k.size("head")
    if key_heads > heads or heads % key_heads:
        raise InputError(
            f"k must have as many along the axis 'head' as q, {heads}, or a part that "
            f"divides it, got {key_heads}"
        )
    for name in arrays.keys() - {"q", "k"}:
        owner = k if name == "v" else q
        _require_agreement(owner, arrays[name], ("sequence", "layer", "head"))
    met = source.key_heads()
    for numbers in q.tensors:
        place = dict(zip(q.in_name, numbers, strict=True))
        key_place = place | ({"head": met[place["head"]]} if "head" in place else {})
        counts = {"q": q.length("token", place), "k": k.length("token", key_place)}
        for name, count in counts.items():
            if count < fewest[name]:
                raise InputError(
                    f"{name} must have at least {fewest[name]} along the axis 'token', "
                    f"got {count}"
                )
        if causal and counts["q"] != counts["k"]:
            raise InputError(
                "q and k must agree along the axis 'token' where attention is causal, "
                f"got {counts['q']} and {counts['k']}"
            )
        for name, axis, side in LENGTHS:
            where = key_place if name == "v" else place
            if name in arrays:
                _require_length(arrays[name], axis, where, side, counts[side])
    if "outputs" in arrays and arrays["v"].size("d") != arrays["outputs"].size("d"):
        raise InputError(
            f"v and outputs must agree along the axis 'd', got {arrays['v'].size('d')} "
            f"and {arrays['outputs'].size('d')}: outputs are those of each head, "
            "before they are joined"
        )


def _require_length(
    array: ArraySet, axis: str, place: Mapping[str, int], side: str, wanted: int
) -> None:
    """Refuse an array that is not as long as queries or keys."""
    length = array.length(axis, place)
    if length != wanted:
        raise InputError(
            f"{array.at(place).name} must have {wanted} along the axis {axis!r}, as "
            f"{side}, got {length}"
        )
