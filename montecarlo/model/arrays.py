"""Arrays of a model: queries, keys and what softmax made of them, by named axes.

In: arrays in memory or mapped from files, and the names of their axes.  Out: a `Model`,
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
#: And that have the heads of keys, which may be fewer.
OF_KEY_HEADS = ("k", "v")
#: Arrays with an axis that is as long as one of another array.
AGREE = (
    *(("k", axis, "q", axis) for axis in ("sequence", "layer", "d")),
    *((n, axis, "q", axis) for n in ("weights", ADDED, "outputs") for axis in AXES[:4]),
    *((name, KEY, "k", "token") for name in OF_KEYS),
    *(("v", axis, "k", axis) for axis in AXES[:4]),
    ("outputs", "d", "v", "d"),
)
#: What stands among them for minus infinity; from what on a number hides a key.
HIDDEN, UNSEEN = -(2.0**100), -5e3
#: Weights that are read at once.
MOST_READ = 2**20
#: Queries and keys of a sequence at least.
FEWEST = {"q": 2, "k": 2}
#: Numbers beyond this have squares that float64 cannot hold with others beside them.
LARGEST = 1e100
#: Of one sequence, for each layer, axes (head, token, d or key).
Layers = Sequence[NDArray[Any]] | NDArray[Any]
#: Of each sequence of a recorded call, by name, shape (n_heads, n_tokens, ...).
Arrays = Mapping[str, Sequence[NDArray[Any]] | NDArray[Any]]
ALL_TOKENS = slice(None)


@dataclass
class Receiver:
    """Takes the calls of attention that are recorded, and what was missed."""

    rows: int | None  # number of last queries to keep of each sequence; None: all
    room: Callable[[], int]  # returns how many more sequences are kept
    keep: Callable[[Arrays, Mapping[str, object]], None]
    #: Called with a reason, and ``is_certain``: whether it surely is attention.
    report_missed: Callable[..., None]
    config: Mapping[str, object] | None = None  # of the model that runs
    #: While a call is recorded as a whole: the calls within it, each with its options.
    within: list[tuple[Arrays, Mapping[str, object]]] | None = None

    def add(self, arrays: Arrays, passed: Mapping[str, object]) -> None:
        """Keep a call; one within another is held until the other is recorded."""
        if self.within is None:
            self.keep(arrays, passed)
        else:
            self.within.append((arrays, passed))

    def miss(self, reason: str, *, is_certain: bool) -> None:
        """Report attention that could not be recorded, unless within another call."""
        if self.within is None:
            self.report_missed(reason, is_certain=is_certain)


def check_array(name: str, array: ArrayLike) -> NDArray[Any]:
    """Return an array of floating-point numbers, or whatever NumPy makes one of."""
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
    return values


def to_numpy(array: Any) -> NDArray[Any]:  # noqa: ANN401 - or a tensor of torch
    """Return a copy in memory; of torch bfloat16, which NumPy lacks, as float32."""
    if not hasattr(array, "detach"):
        return np.array(array)
    held = array.detach()
    held = held.float() if "bfloat16" in str(held.dtype) else held
    return np.array(held.cpu().numpy())


def arrange(name: str, array: NDArray[Any], axes: Sequence[str]) -> NDArray[Any]:
    """Return a view with all of `AXES`, of length 1 where the array has no such axis.

    Arrays that have keys in place of entries have the axis ``key`` last.
    """
    if array.ndim != len(axes):
        raise InputError(
            f"{name} must have the axes {','.join(axes)}, got shape {array.shape}: "
            f"name its axes{_propose(array.shape)}"
        )
    if 0 in array.shape:
        raise InputError(
            f"{name} must have something along each axis, got shape {array.shape}: its "
            f"axis {axes[array.shape.index(0)]!r} is empty"
        )
    order = axes_of(KEY if KEY in axes else "d")
    turned = array.transpose([axes.index(axis) for axis in order if axis in axes])
    return turned[tuple(slice(None) if axis in axes else None for axis in order)]


def axes_of(last: str) -> tuple[str, ...]:
    """Return `AXES`, with another last one."""
    return (*AXES[:-1], last)


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


def _require_more_tokens(name: str, queries: NDArray[Any]) -> None:
    """Ask about axes that nobody named, if there are more heads than tokens."""
    _, _, heads, tokens, _ = queries.shape
    if heads <= tokens or tokens < 2:  # a single one is refused for itself
        return
    raise InputError(
        f"{name} has {heads} heads of {tokens} tokens, shape {queries.shape}: if these "
        "are swapped, type --axes sequence,layer,token,head,d; if not, --axes "
        f"{','.join(AXES)}"
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


class SequenceArrays(NamedTuple):
    """Arrays of one sequence, by their names in `NAMES`."""

    number: int  # of the sequence in its file, for messages
    labels: Mapping[str, str]  # what arrays are called there
    layers: Mapping[str, Layers]


class Source(NamedTuple):
    """Sequences of ``q``, ``k`` and evidence of the scale, if there is any."""

    sequences: Sequence[SequenceArrays]
    unread: Sequence[str] = ()  # names of arrays of no use, or not asked for

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes that all sources of a model have in common."""
        q, k = (self.sequences[0].layers[name] for name in "qk")
        sizes = len(q), len(q[0]), len(k[0]), q[0].shape[-1]
        return dict(zip(("layer", "head", "head of k", "d"), sizes, strict=True))


def make_source(  # noqa: PLR0913 - how they lie, and what they must fit
    arrays: Mapping[str, NDArray[Any]],
    axes: Sequence[str] | None,
    labels: Mapping[str, str] | None = None,
    *,
    unread: Sequence[str] = (),
    causal: bool = False,
    fewest: Mapping[str, int] = FEWEST,
) -> Source:
    """Name axes, by default all of `AXES`, and refuse arrays that do not fit.

    Of what tells nothing alone, nothing is made.
    """
    axes_here = check_axes(AXES if axes is None else axes)
    labels = labels or {name: name for name in arrays}
    read = ["q", "k"]
    for needed in EVIDENCE.values():
        if all(name in arrays for name in needed):
            read += needed
    if "outputs" in read and ADDED in arrays:
        read.append(ADDED)
    of_keys = [axis for axis in axes_here if axis != "d"] + [KEY]
    made = {
        name: arrange(
            labels[name], arrays[name], of_keys if name in OF_KEYS else axes_here
        )
        for name in read
    }
    if axes is None:
        _require_more_tokens(labels["q"], made["q"])
    _require_fit(made, labels, causal=causal, fewest=fewest)
    sequences = [
        SequenceArrays(n, labels, {name: array[n] for name, array in made.items()})
        for n in range(len(made["q"]))
    ]
    return Source(sequences, (*(name for name in arrays if name not in made), *unread))


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
    layers: tuple[int, ...]  # as the model counts them
    #: Heads of queries of each layer, each with that of the keys that it meets.
    key_heads: Mapping[int, int]
    sequences: tuple[SequenceArrays, ...]
    causal: bool  # a query sees only keys up to its own position
    unread: tuple[str, ...] = ()  # names of arrays in files that were not read

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
        return self._read("q", head, sequence), self._read("k", head, sequence)

    def take(self, head: Head, sequence: int) -> dict[str, Array]:
        """Read all arrays of one sequence of a head, whatever their numbers are."""
        names = self.sequences[sequence].layers
        return {name: to_float(self._find(name, head, sequence)) for name in names}

    def read_vectors(self, layer: int, sequence: int) -> dict[str, Array]:
        """Read queries, keys and values of all heads, shape (head, token, d)."""
        meeting = {shared: head for head, shared in self.key_heads.items()}
        return {
            name: np.stack(
                [
                    self._read(name, Head(layer, head), sequence)
                    for head in (self.key_heads if name == "q" else meeting.values())
                ]
            )
            for name in ("q", "k", "v")
            if name in self.sequences[sequence].layers
        }

    def read_rows(self, head: Head, sequence: int, n_rows: int) -> Rows:
        """Read at most so many rows of a sequence, with all of their keys.

        They stand at even distances, and the last one is among them.
        """
        n_tokens = len(self._find("q", head, sequence))
        step = -(-n_tokens // n_rows)
        chosen = slice((n_tokens - 1) % step, None, step)
        made = {
            name: self._read(
                name, head, sequence, slice(None) if name in OF_KEY_HEADS else chosen
            )
            for name in self.sequences[sequence].layers
        }
        queries, keys = made.pop("q"), made.pop("k")
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
        rows = max(MOST_READ // self.most_tokens, 1)
        total = np.zeros(1)
        for start in range(0, len(self._find("q", head, sequence)), rows):
            part = slice(start, start + rows)
            total = total + self._read("weights", head, sequence, part).sum(axis=0)
        return total

    def _find(self, name: str, head: Head, sequence: int) -> NDArray[Any]:
        """Return an array of one sequence of a head, as it is held."""
        layer = self.sequences[sequence].layers[name][self.layers.index(head.layer)]
        held: NDArray[Any] = layer[self._own(name, head)]
        return held

    def _own(self, name: str, head: Head) -> int:
        """Return the number of a head in an array: that of its keys or its own."""
        return self.key_heads[head.head] if name in OF_KEY_HEADS else head.head

    def _read(
        self, name: str, head: Head, sequence: int, tokens: slice = ALL_TOKENS
    ) -> Array:
        """Read some tokens of an array, which must be finite."""
        one = self.sequences[sequence]
        place = {"layer": head.layer, "head": self._own(name, head)}
        held = self._find(name, head, sequence)
        place = {"sequence": one.number} | place
        last = KEY if name in OF_KEYS else "d"
        return read_finite(one.labels[name], held, place, tokens, last)

    @property
    def source(self) -> str | None:
        """What tells the applied scale, a key of `EVIDENCE`; None if nothing does."""
        given = self.sequences[0].layers
        for name, needed in EVIDENCE.items():
            if all(one in given for one in needed):
                return name
        return None

    @property
    def most_tokens(self) -> int:
        """Keys of the longest sequence."""
        every = (keys for one in self.sequences for keys in one.layers["k"])
        return max(int(keys.shape[1]) for keys in every)


def to_float(array: NDArray[Any]) -> Array:
    """Return a copy in float64."""
    return np.array(array, dtype=np.float64, order="C")


def read_finite(
    name: str,
    array: NDArray[Any],
    place: Mapping[str, int],
    tokens: slice = ALL_TOKENS,
    last: str = "d",
) -> Array:
    """Return some rows as float64; refuse numbers that are not finite."""
    block = to_float(array[tokens])
    if not np.isfinite(block).all():
        row, entry = np.argwhere(~np.isfinite(block))[0]
        where = ", ".join(f"{axis} {number}" for axis, number in place.items())
        raise NotFiniteError(
            f"{name} must be finite, got {block[row, entry]} at {where}, token "
            f"{range(len(array))[tokens][row]}, {last} {entry}"
        )
    return block


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
    given = {name: check_array(name, a) for name, a in arrays.items() if a is not None}
    is_causal = require_flag("causal", causal)
    source = make_source(given, axes, causal=is_causal, fewest=fewest)
    return make_model([source], causal=is_causal)


def make_model(
    sources: Sequence[Source],
    *,
    layers: Sequence[int] | None = None,
    causal: bool = False,
) -> Model:
    """Join sources to a model, whose layers count from 0 if nothing else is said."""
    first = sources[0]
    names, sizes = first.sequences[0].layers.keys(), first.sizes
    for source in sources[1:]:
        if source.sequences[0].layers.keys() != names:
            got, wanted = (
                ", ".join(name for name in one if name not in {"q", "k"}) or "nothing"
                for one in (source.sequences[0].layers, names)
            )
            raise InputError(
                f"files must hold the same beside q and k, got {got} after {wanted}"
            )
        for axis, size in source.sizes.items():
            if size != sizes[axis]:
                raise InputError(
                    f"files must agree along the axis {axis!r}, got {size} after "
                    f"{sizes[axis]}"
                )
    heads = sizes["head"]
    return Model(
        sizes["d"],
        tuple(range(sizes["layer"]) if layers is None else layers),
        {head: head * sizes["head of k"] // heads for head in range(heads)},
        tuple(one for source in sources for one in source.sequences),
        causal,
        tuple(dict.fromkeys(name for source in sources for name in source.unread)),
    )


def _require_fit(
    arrays: Mapping[str, NDArray[Any]],
    labels: Mapping[str, str],
    *,
    causal: bool,
    fewest: Mapping[str, int],
) -> None:
    """Make sure that arrays with all axes fit each other."""
    sizes = {
        name: dict(
            zip(axes_of(KEY if name in OF_KEYS else "d"), array.shape, strict=True)
        )
        for name, array in arrays.items()
    }
    for name, axis, owner, same in AGREE:
        if name in sizes and sizes[name][axis] != sizes[owner][same]:
            joined = ": outputs are those of each head, before they are joined"
            raise InputError(
                f"{labels[name]} must have {sizes[owner][same]} along the axis "
                f"{axis!r}, as {owner}, got {sizes[name][axis]}"
                f"{joined * (owner == 'v')}"
            )
    heads, key_heads = sizes["q"]["head"], sizes["k"]["head"]
    if key_heads > heads or heads % key_heads:
        raise InputError(
            f"k must have as many along the axis 'head' as q, {heads}, or a part that "
            f"divides it, got {key_heads}"
        )
    counts = {name: sizes[name]["token"] for name in "qk"}
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
