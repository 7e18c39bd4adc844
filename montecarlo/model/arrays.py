"""Arrays of a model: queries, keys, and weights or values and outputs, by named axes.

In: arrays in memory or read from files, and the names of their axes.  Out: a `Model`,
which returns one sequence of one head at a time, as float64.
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

#: Names of axes, in the order that arrays have by default.
AXES = ("sequence", "layer", "head", "token", "d")
#: Other names of axes that are accepted.
ALSO = {"batch": "sequence", "key": "d"}
#: Axes that every array must have; weights have keys in place of ``d``.
NEEDED = ("token", "d")
KEY = "key"
#: Names of arrays: queries, keys, attention weights, values, outputs, and what was
#: added to scores before softmax.
NAMES = ("q", "k", "weights", "v", "outputs", "added")
#: Arrays that the applied scale can be determined from, beside queries and keys.
EVIDENCE = {"weights": ("weights",), "outputs": ("v", "outputs")}
ADDED = "added"
#: Arrays whose last axis is that of the keys.
OF_KEYS = ("weights", ADDED)
#: Arrays that have a row for each query.
OF_QUERIES = ("q", "weights", "outputs", ADDED)
#: Arrays that have the heads of keys, which may be fewer than those of queries.
OF_KEY_HEADS = ("k", "v")
#: Axes that must be as long as an axis of another array: array, axis, other, its axis.
AGREE = (
    *(("k", axis, "q", axis) for axis in ("sequence", "layer", "d")),
    *((n, axis, "q", axis) for n in ("weights", ADDED, "outputs") for axis in AXES[:4]),
    *((name, KEY, "k", "token") for name in OF_KEYS),
    *(("v", axis, "k", axis) for axis in AXES[:4]),
    ("outputs", "d", "v", "d"),
)
#: An axis, and that for which it is easily taken.
SWAPPED = {"head": "token", "token": "head", KEY: "head"}
#: What ``added`` has in place of minus infinity; numbers up to `UNSEEN` hide a key.
HIDDEN, UNSEEN = -(2.0**100), -5e3
#: Largest sum of weights of a typical query: dropout of 9 in 10 makes at most 10.
MOST_SUM = 20.0
#: What booleans are told in place of an array, which are mostly a mask.
MASK_HINT = "booleans; of a mask, np.where(seen, 0.0, -1e9) is added to scores"
#: Entries must be smaller: float64 must hold sums of their squares.
LARGEST = 1e100
#: Arrays of one sequence, one of each layer, with the axes (head, token, d or key).
Layers = Sequence[NDArray[Any]] | NDArray[Any]
#: By name, arrays of each sequence of a call, shape (n_heads, n_tokens, ...).
Arrays = Mapping[str, Sequence[NDArray[Any]] | NDArray[Any]]
ALL_TOKENS = slice(None)


@dataclass
class Receiver:
    """Takes calls of attention as they are recorded, and reports of what was missed."""

    rows: int | None  # number of last queries to keep of each sequence; None: all
    room: Callable[[], int]  # returns how many more sequences are kept
    keep: Callable[[Arrays, Mapping[str, object]], None]
    #: Called with a reason, and ``is_certain``: whether it surely is attention.
    report_missed: Callable[..., None]
    config: Mapping[str, object] | None = None  # of the model that runs
    #: While a call is recorded as a whole: the calls within it, each with its options.
    within: list[tuple[Arrays, Mapping[str, object]]] | None = None

    def add(self, arrays: Arrays, passed: Mapping[str, object]) -> None:
        """Pass a call on to ``keep``, or hold it if it is inside a recorded call.

        ``arrays`` are those of the call, and ``passed`` are its options.
        """
        if self.within is None:
            self.keep(arrays, passed)
        else:
            self.within.append((arrays, passed))

    def miss(self, reason: str, *, is_certain: bool) -> None:
        """Report attention that could not be recorded, unless inside a recorded call.

        ``reason`` is text; ``is_certain`` says whether it surely was attention.
        """
        if self.within is None:
            self.report_missed(reason, is_certain=is_certain)


def check_array(name: str, array: ArrayLike) -> NDArray[Any]:
    """Return an array-like as an array; raise an `InputError` unless it holds floats.

    Integers are an error, too.  bfloat16, also as raw bytes, and float8 are accepted,
    tensors of torch, and entries that are NaN or infinite.  ``name`` is the array's
    name in the message.
    """
    try:
        values = to_numpy(array) if hasattr(array, "detach") else np.asarray(array)
    except Exception as error:  # noqa: BLE001 - of whatever stands for an array
        raise InputError(
            f"{name} must be an array of numbers, got {type(array).__name__}: {error}"
        ) from None
    if values.dtype.str[1:] == "V2":  # NumPy reads bfloat16 so
        upper = np.ascontiguousarray(values).view("<u2").astype(np.uint32)
        values = (upper << np.uint32(16)).view(np.float32)
    kind = values.dtype
    if kind.kind != "f" and not kind.name.startswith(("bfloat16", "float8")):
        known = {"U": "a text; np.load reads a file", "b": MASK_HINT}
        got = known.get(kind.kind, f"entries of type {kind.name}")
        raise InputError(f"{name} must hold floating-point numbers, got {got}")
    return values


def to_numpy(tensor: Any) -> NDArray[Any]:  # noqa: ANN401 - torch has no types here
    """Return a copy of a torch tensor as an array; bfloat16 becomes float32."""
    held = tensor.detach()
    held = held.float() if "bfloat16" in str(held.dtype) else held
    return np.array(held.cpu().numpy())


def arrange(name: str, array: NDArray[Any], axes: Sequence[str]) -> NDArray[Any]:
    """Return a view of an array with all of `AXES`, in their order.

    Axes that the array lacks have the length 1.  ``axes`` are the names of the array's
    axes.  If ``key`` is among them, it is the last axis, in place of ``d``.  An
    `InputError` is raised if the number of names is not that of axes, or an axis is
    empty.
    """
    if array.ndim != len(axes) or 0 in array.shape:
        raise InputError(
            f"{name} must have the axes {','.join(axes)}, got shape {array.shape}: "
            "name them in their order, by axes or --axes; none may be empty"
        )
    order = axes_of(KEY if KEY in axes else "d")
    ordered = array.transpose([axes.index(axis) for axis in order if axis in axes])
    return ordered[tuple(slice(None) if axis in axes else None for axis in order)]


def axes_of(last: str) -> tuple[str, ...]:
    """Return `AXES`, the last of them replaced by ``last``."""
    return (*AXES[:-1], last)


def check_axes(axes: Sequence[str]) -> tuple[str, ...]:
    """Return names of axes; raise an `InputError` if they are not usable.

    They must be different names of `AXES`, and all of `NEEDED` must be among them.
    ``batch`` is accepted, too, and returned as ``sequence``; ``key``, the last axis of
    weights, is returned as ``d``.  A text is split at its commas.
    """
    given: Any = axes.split(",") if isinstance(axes, str) else axes
    names = given if isinstance(given, Sequence) else []
    found = [ALSO.get(str(name), str(name)) for name in names]
    if len(set(found)) < len(found) or not {*NEEDED} <= {*found} <= {*AXES}:
        raise InputError(
            f"axes must be different names among {', '.join(AXES)}, and token and d "
            f"must be there, got {show(axes)}"
        )
    return tuple(found)


class SequenceArrays(NamedTuple):
    """Arrays of one sequence, in all layers and heads, by their names in `NAMES`."""

    number: int  # of the sequence in its file, for messages
    labels: Mapping[str, str]  # names of arrays for messages
    layers: Mapping[str, Layers]

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of layers, heads and key heads, and d_k; equal in all sequences.

        Such as ``{"layer": 12, "head": 8, "head of k": 2, "d": 64}``.
        """
        q, k = (self.layers[name] for name in "qk")
        sizes = len(q), len(q[0]), len(k[0]), q[0].shape[-1]
        return dict(zip(("layer", "head", "head of k", "d"), sizes, strict=True))


def make_sequences(
    arrays: Mapping[str, NDArray[Any]],
    axes: Sequence[str] | None,
    labels: Mapping[str, str] | None = None,
    *,
    causal: bool = False,
) -> list[SequenceArrays]:
    """Return the arrays of each sequence, from arrays whose axes are named.

    Parameters
    ----------
    arrays : mapping
        By their names in `NAMES`; ``q`` and ``k`` must be there.  If only one of values
        and outputs is there, it is left out, and so is ``added`` without both.
    axes : sequence of str or None
        Names of the axes; None for all of `AXES`.
    labels : mapping, optional
        Names of arrays for messages.
    causal : bool
        Whether a query sees only keys up to its own position.

    Raises
    ------
    InputError
        If axes are not usable, or arrays do not fit each other.  Also if ``axes`` is
        None and queries have more heads than tokens, and 2 tokens or more: these axes
        are probably swapped.
    """
    checked_axes = check_axes(AXES if axes is None else axes)
    labels = labels or {name: name for name in arrays}
    used = ["q", "k"]
    for needed in EVIDENCE.values():
        if all(name in arrays for name in needed):
            used += needed
    if "outputs" in used and ADDED in arrays:
        used.append(ADDED)
    of_keys = [axis for axis in checked_axes if axis != "d"] + [KEY]
    arranged = {
        name: arrange(
            labels[name], arrays[name], of_keys if name in OF_KEYS else checked_axes
        )
        for name in used
    }
    if ADDED in arranged:  # by minus infinity, too, a key may be hidden
        arranged[ADDED] = np.maximum(arranged[ADDED], np.float32(HIDDEN))
    _, _, heads, tokens, _ = arranged["q"].shape
    if axes is None and heads > tokens > 1:
        raise InputError(
            f"{labels['q']} must have more tokens than heads, or named axes, "
            f"got {heads} heads of {tokens} tokens: if these are swapped, type --axes "
            f"sequence,layer,token,head,d; if not, --axes {','.join(AXES)}"
        )
    _require_fit(arranged, labels, causal=causal)
    return [
        SequenceArrays(n, labels, {name: array[n] for name, array in arranged.items()})
        for n in range(len(arranged["q"]))
    ]


class Head(NamedTuple):
    """A head: the number of its layer, and its own number within the layer."""

    layer: int
    head: int


#: Takes heads and the name of the work on them; yields the heads, and shows progress.
Track = Callable[[Sequence[Head], str], Iterable[Head]]


def untracked(heads: Sequence[Head], _: str) -> Iterable[Head]:
    """Return the heads as they are: a `Track` that shows no progress."""
    return heads


@dataclass(frozen=True)
class Rows:
    """Attention rows of one head in one sequence."""

    queries: Array  # shape (n_rows, d_k)
    keys: Array  # shape (n_keys, d_k)
    scores: Array  # products of queries and keys, shape (n_rows, n_keys)
    #: Positions of the queries among the keys, shape (n_rows,); where there are fewer
    #: queries than keys, queries are the last ones.
    places: NDArray[np.intp]
    shift: int  # number of keys minus that of queries
    #: ``weights``, or ``v``, ``outputs`` and perhaps ``added``.
    made: Mapping[str, Array]

    @property
    def weights(self) -> Array:
        """Attention weights, shape (n_rows, n_keys); a `KeyError` without them."""
        return self.made["weights"]

    @property
    def values(self) -> Array:
        """Values, shape (n_keys, d_v); a `KeyError` without them."""
        return self.made["v"]

    @property
    def outputs(self) -> Array:
        """Outputs, the weighted means of the values, shape (n_rows, d_v).

        A `KeyError` without them.
        """
        return self.made["outputs"]

    @property
    def added(self) -> Array | None:
        """Mask and bias added to scores, shape (n_rows, n_keys); None if not known."""
        return self.made.get(ADDED)

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """Position of the key minus position of the query, shape (n_rows, n_keys)."""
        return np.asarray(np.arange(self.scores.shape[1]) - self.places[:, None])

    @cached_property
    def distances(self) -> Array:
        """Absolute distance of key and query, shape (n_rows, n_keys)."""
        return np.abs(self.offsets).astype(float)

    def some(self, chosen: slice | NDArray[np.bool_]) -> "Rows":
        """Return those of the rows that a slice or a boolean mask chooses.

        All keys stay, and values, which have no axis of rows.
        """
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
    """Arrays of all layers, heads and sequences of a model."""

    d_k: int
    layers: tuple[int, ...]  # numbers of the layers in the model
    key_heads: Mapping[int, int]  # of each head of queries, that of its keys
    sequences: tuple[SequenceArrays, ...]
    causal: bool  # whether a query sees only keys up to its own position

    @property
    def head_labels(self) -> tuple[int, ...]:
        """Numbers of the query heads of each layer."""
        return tuple(self.key_heads)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(d_k, number of query heads, number of key heads)."""
        return self.d_k, len(self.key_heads), len(set(self.key_heads.values()))

    def heads(self) -> list[Head]:
        """Return all heads, layer by layer."""
        return [Head(layer, h) for layer in self.layers for h in self.head_labels]

    def read(self, head: Head, sequence: int) -> tuple[Array, Array]:
        """Return (queries, keys) of one sequence of a head, shapes (n_tokens, d_k).

        Keys may have another number of tokens.  An `InputError` is raised if an entry
        is not finite.
        """
        return self._read("q", head, sequence), self._read("k", head, sequence)

    def take(self, head: Head, sequence: int) -> dict[str, NDArray[Any]]:
        """Return all arrays of one sequence of a head by name, finite or not.

        They are in their number formats, with the axes (token, d or key).
        """
        names = self.sequences[sequence].layers
        return {name: self._find(name, head, sequence) for name in names}

    def read_vectors(self, layer: int, sequence: int) -> dict[str, Array]:
        """Return queries, keys and values by name, each of shape (head, token, d).

        Only those that were recorded.  Keys and values have the heads of keys, which
        may be fewer.  An `InputError` is raised if an entry is not finite.
        """
        first_of = {shared: head for head, shared in self.key_heads.items()}
        return {
            name: np.stack(
                [
                    self._read(name, Head(layer, head), sequence)
                    for head in (self.key_heads if name == "q" else first_of.values())
                ]
            )
            for name in ("q", "k", "v")
            if name in self.sequences[sequence].layers
        }

    def read_rows(self, head: Head, sequence: int, n_rows: int) -> Rows:
        """Return at most ``n_rows`` rows of one sequence of a head, with all keys.

        The rows are evenly spaced, and the last one is among them.  An `InputError` is
        raised if an array is not finite, or has entries or scores of `LARGEST` or more.
        """
        n_tokens = len(self._find("q", head, sequence))
        step = -(-n_tokens // n_rows)
        chosen = slice((n_tokens - 1) % step, None, step)
        made = {
            name: self._read(
                name, head, sequence, ALL_TOKENS if name in OF_KEY_HEADS else chosen
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

    def _find(self, name: str, head: Head, sequence: int) -> NDArray[Any]:
        """Return the array ``name`` of one sequence of a head, in its number format."""
        layer = self.sequences[sequence].layers[name][self.layers.index(head.layer)]
        return np.asarray(layer[self._index(name, head)])

    def _index(self, name: str, head: Head) -> int:
        """Return the index of a head in the array ``name``.

        Arrays such as keys may have fewer heads, each for several query heads.
        """
        return self.key_heads[head.head] if name in OF_KEY_HEADS else head.head

    def _read(
        self, name: str, head: Head, sequence: int, tokens: slice = ALL_TOKENS
    ) -> Array:
        """Return tokens of an array as float64; raise an error if any is not finite."""
        one = self.sequences[sequence]
        place = {"layer": head.layer, "head": self._index(name, head)}
        held = self._find(name, head, sequence)
        place = {"sequence": one.number} | place
        last = KEY if name in OF_KEYS else "d"
        return read_finite(one.labels[name], held, place, tokens, last)

    @property
    def source(self) -> str | None:
        """What shows the scale: ``weights``, ``outputs``, or None without both."""
        given = {*self.sequences[0].layers}
        return next((name for name, some in EVIDENCE.items() if {*some} <= given), None)

    @property
    def most_tokens(self) -> int:
        """Number of keys of the longest sequence."""
        every = (keys for one in self.sequences for keys in one.layers["k"])
        return max(int(keys.shape[1]) for keys in every)


def read_finite(
    name: str,
    array: NDArray[Any],
    place: Mapping[str, int],
    tokens: slice = ALL_TOKENS,
    last: str = "d",
) -> Array:
    """Return some tokens of an array as float64; raise an error if they are not finite.

    The result has the axes (token, ``last``).  ``name`` and ``place``, the layer, head
    and so on by name, are for the message of the error.
    """
    block = np.array(array[tokens], dtype=np.float64, order="C")
    if not np.isfinite(block).all():
        row, entry = np.argwhere(~np.isfinite(block))[0]
        where = ", ".join(f"{axis} {number}" for axis, number in place.items())
        raise InputError(
            f"{name} must be finite, got {block[row, entry]} at {where}, token "
            f"{range(len(array))[tokens][row]}, {last} {entry}"
        )
    return block


def require_weights(
    weights: Iterable[Array], layer: int, head: int, name: str = "weights"
) -> None:
    """Raise an `InputError` for weights of a head below 0, or far from a sum of 1.

    ``weights`` are arrays of shape (n_rows, n_keys), each of a sequence.  Rows may add
    up to less, as with a sink, or differ as after dropout.  A factor of more than
    `MOST_SUM` is refused, as of percent, unless softmax ran over the queries.
    """
    for one in weights:
        place, sums = f"in layer {layer}, head {head}", one.sum(axis=1)
        if one.min() < 0.0:
            raise InputError(f"{name} must be at least 0, got {one.min():g} {place}")
        if min(typical := float(np.median(sums)), one.sum(axis=0).max()) > MOST_SUM:
            raise InputError(
                f"{name} must add up to 1 for each query, or to less with a sink, got "
                f"{typical:.4g} {place}: divide them, as percent by 100"
            )


def open_arrays(
    arrays: Mapping[str, ArrayLike | None],
    axes: Sequence[str] | None = None,
    *,
    causal: bool = False,
) -> Model:
    """Return a model of arrays in memory, given by their names in `NAMES`.

    By default they have all of `AXES`; ``weights`` and ``added`` have keys last, in
    place of ``d``.  An array that is None counts as missing.  An `InputError` is raised
    if ``q`` or ``k`` is missing, or if arrays or axes are not usable.
    """
    if missing := [name for name in "qk" if arrays.get(name) is None]:
        raise InputError(f"{missing[0]} must be an array, got None")
    given = {name: check_array(name, a) for name, a in arrays.items() if a is not None}
    is_causal = require_flag("causal", causal)
    return make_model(make_sequences(given, axes, causal=is_causal), causal=is_causal)


def make_model(
    sequences: Sequence[SequenceArrays],
    *,
    layers: Sequence[int] | None = None,
    causal: bool = False,
) -> Model:
    """Return a model of sequences, which must have the same arrays and sizes.

    Only numbers of tokens may differ; any other difference raises an `InputError`.
    ``layers`` are the numbers of the layers, by default from 0 on.
    """
    sizes = sequences[0].sizes
    first, *others = [f"{', '.join(one.layers)}: {one.sizes}" for one in sequences]
    for other in others:
        if other != first:
            raise InputError(
                "files must hold the same arrays, of the same sizes but for sequences "
                f"and tokens, got {other} after {first}"
            )
    heads = sizes["head"]
    return Model(
        sizes["d"],
        tuple(range(sizes["layer"]) if layers is None else layers),
        {head: head * sizes["head of k"] // heads for head in range(heads)},
        tuple(sequences),
        causal,
    )


def _say_swapped(
    sizes: Mapping[str, Mapping[str, int]], name: str, axis: str, owner: str
) -> str:
    """Return a question about swapped axes or arrays, if sizes look like these.

    An empty string if not.  ``sizes`` are the lengths of axes of each array; that of
    ``axis`` of the array ``name`` is not what ``owner`` has.
    """
    got, swapped = sizes[name][axis], SWAPPED.get(axis, axis)
    if axis == "head" and name == "weights" and got == 1:
        return ": are they means over heads (average_attn_weights=False keeps heads)?"
    if got > 1 and got == sizes[owner][swapped]:
        return f": are heads and tokens swapped in {name} or {owner}?"
    is_other = axis in SWAPPED and owner == "q" and got == sizes["k"].get(axis)
    return f": are q and k swapped, or the axes of {name}?" * is_other


def _require_fit(
    arrays: Mapping[str, NDArray[Any]],
    labels: Mapping[str, str],
    *,
    causal: bool,
) -> None:
    """Raise an `InputError` if sizes of arrays do not fit each other.

    The arrays have all axes; ``labels`` are their names in messages.  With ``causal``,
    there must be as many queries as keys.
    """
    sizes = {
        name: dict(
            zip(axes_of(KEY if name in OF_KEYS else "d"), array.shape, strict=True)
        )
        for name, array in arrays.items()
    }
    for name, axis, owner, same in AGREE:
        if name in sizes and sizes[name][axis] != sizes[owner][same]:
            hint = _say_swapped(sizes, name, axis, owner)
            raise InputError(
                f"{labels[name]} must have {sizes[owner][same]} along the axis "
                f"{axis!r}, as {owner}, got {sizes[name][axis]}{hint}"
            )
    heads, key_heads = sizes["q"]["head"], sizes["k"]["head"]
    if key_heads > heads or heads % key_heads:
        hint = _say_swapped(sizes, "k", "head", "q") * (key_heads % heads == 0)
        raise InputError(
            f"k must have as many along the axis 'head' as q, {heads}, or a part that "
            f"divides it, got {key_heads}{hint}"
        )
    counts = {name: sizes[name]["token"] for name in "qk"}
    if causal and counts["q"] != counts["k"]:
        raise InputError(
            "q and k must agree along the axis 'token' where attention is causal, "
            f"got {counts['q']} and {counts['k']}"
        )
