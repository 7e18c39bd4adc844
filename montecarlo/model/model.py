"""A model: sequences of heads whose queries, keys and what is made of them fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError
from montecarlo.model.arrays import KEY, Side

#: What tells the scale that was applied: either all of the one or all of the other.
EVIDENCE = {"weights": ("weights",), "outputs": ("v", "outputs")}
#: Weights that are read at once.
MOST_READ = 2**20


class Head(NamedTuple):
    """One head: its layer and its number, as the files count them."""

    layer: int
    head: int


@dataclass(frozen=True, slots=True)
class Source:
    """Queries and keys of some sequences, and what softmax made of them.

    ``unread`` are names of arrays that are there and of no use, or not asked for.
    """

    queries: Side
    keys: Side
    made: Mapping[str, Side] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


class HeadRows(NamedTuple):
    """Rows of a sequence of a head, as they are read.

    Attributes
    ----------
    queries : ndarray, shape (n_rows, d_k)
    keys : ndarray, shape (n_keys, d_k)
    places : ndarray of int, shape (n_rows,)
        Of the queries among the keys, the last of which meet.
    shift : int
        Keys that there are more than queries.
    made : dict of ndarray
        ``weights``, shape (n_rows, n_keys); ``v``, shape (n_keys, d_v); ``outputs``,
        shape (n_rows, d_v).
    """

    queries: Array
    keys: Array
    places: NDArray[np.intp]
    shift: int
    made: dict[str, Array]


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
        source, place, key_place = self._places(head, sequence)
        return source.queries.read(place), source.keys.read(key_place)

    def read_rows(self, head: Head, sequence: int, n_rows: int) -> HeadRows:
        """Read rows of a sequence of a head, at even distances to the last one.

        Returns
        -------
        HeadRows
            So many rows at most, each with all of its keys.
        """
        source, place, key_place = self._places(head, sequence)
        n_tokens, n_keys = source.queries.tokens(place), source.keys.tokens(key_place)
        step = -(-n_tokens // n_rows)
        chosen = slice((n_tokens - 1) % step, None, step)
        made = {
            name: side.read(key_place) if name == "v" else side.read(place, chosen)
            for name, side in source.made.items()
        }
        shift = n_keys - n_tokens
        places = np.arange(n_tokens)[chosen] + shift
        queries = source.queries.read(place, chosen)
        return HeadRows(queries, source.keys.read(key_place), places, shift, made)

    def column_sums(self, head: Head, sequence: int) -> Array:
        """Return what the weights of each key add up to, shape (n_keys,).

        They are read some rows at a time.
        """
        source, place, _ = self._places(head, sequence)
        n_tokens = source.queries.tokens(place)
        weights = source.made["weights"]
        rows = max(MOST_READ // self.most_tokens, 1)
        parts = (
            weights.read(place, slice(start, start + rows)).sum(axis=0)
            for start in range(0, n_tokens, rows)
        )
        total: Array = sum(parts, np.zeros(1))
        return total

    def _places(
        self, head: Head, sequence: int
    ) -> tuple[Source, dict[str, int], dict[str, int]]:
        """Return where queries of a sequence of a head stand, and where their keys."""
        source, number = self.sequences[sequence]
        shared = len(self.head_labels) // len(self.key_heads)
        key_head = self.key_heads[self.head_labels.index(head.head) // shared]
        place = {"sequence": number, "layer": head.layer, "head": head.head}
        return source, place, {**place, "head": key_head}

    @property
    def source(self) -> str | None:
        """What tells the applied scale, a key of `EVIDENCE`; None if nothing does."""
        given = self.sequences[0][0].made
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
        return max(_tokens(source.keys) for source, _ in self.sequences)


def _tokens(side: Side) -> int:
    place = side.axes.index("token")
    return max(tensor.shape[place] for tensor in side.tensors.values())


def make_model(sources: Sequence[Source], *, causal: bool) -> Model:
    """Join sources to a model."""
    first = sources[0]
    for source in sources:
        if source.made.keys() != first.made.keys():
            got, wanted = (", ".join(one.made) or "nothing" for one in (source, first))
            raise InputError(
                f"files must hold the same beside q and k, got {got} after {wanted}"
            )
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


def _require_agreement(one: Side, other: Side, axes: Sequence[str]) -> None:
    for axis in axes:
        if one.labels(axis) != other.labels(axis):
            raise InputError(
                f"{one.name} and {other.name} must agree along the axis {axis!r}, got "
                f"{one.size(axis)} and {other.size(axis)}"
            )


def _require_fit(source: Source, *, causal: bool) -> None:
    """Make sure that queries and keys of a source fit each other."""
    q, k = source.queries, source.keys
    _require_agreement(q, k, ("sequence", "layer", "d"))
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
    _require_made(source)


def _require_made(source: Source) -> None:
    """Make sure that what softmax made fits the queries and keys it is made of."""
    q, k = source.queries, source.keys
    for name, side in source.made.items():
        owner = k if name == "v" else q
        _require_agreement(owner, side, ("sequence", "layer", "head"))
    beside = _keys_beside(q, k)
    for key, tensor in q.tensors.items():
        tokens = tensor.shape[q.axes.index("token")]
        keys = k.tensors[beside(key)].shape[k.axes.index("token")]
        expected = {
            "weights": {"token": tokens, KEY: keys},
            "v": {"token": keys},
            "outputs": {"token": tokens},
        }
        for name, side in source.made.items():
            made = side.tensors[beside(key) if name == "v" else key]
            for axis, length in expected[name].items():
                got = made.shape[side.axes.index(axis)]
                if got != length:
                    raise InputError(
                        f"{made.name} must have {length} along the axis {axis!r}, as "
                        f"the {'keys' if axis == KEY or name == 'v' else 'queries'}, "
                        f"got {got}"
                    )
    if {"v", "outputs"} <= source.made.keys():
        widths = [source.made[name].size("d") for name in ("v", "outputs")]
        if widths[0] != widths[1]:
            raise InputError(
                f"v and outputs must agree along the axis 'd', got {widths[0]} and "
                f"{widths[1]}: outputs are those of each head, before they are joined"
            )
