"""Rows of a head as a fit takes them: scores, places, and what softmax made of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.attention.number_formats import FLOAT8, NUMBER_FORMATS, NumberFormat
from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError
from montecarlo.model.model import Head, HeadRows, Model

#: Pairs of a head that a fit takes, sequences, and rows of each at most; rows in all at
#: least, where there are so many.
MOST_PAIRS, MOST_SEQUENCES, MOST_ROWS, FEWEST_ROWS = 2**17, 32, 64, 16
#: Outputs cost a search, and each row has many.
MOST_PAIRS_OF_OUTPUTS = 2**15
#: Masks of which what is hidden is read from the zeros of weights.
PARTIAL = ("window", "keys", "causal_keys", "other")
#: Rows that may be even for the others to count: beyond, the head is.
MOST_EVEN = 0.5
#: Weights that are added up over queries, about.
MOST_SUMMED = 2**22
#: Numbers beyond this have squares that float64 cannot hold with others beside them.
LARGEST = 1e100
#: Formats of eight bits, and those of a number's fraction.
BITS8 = (("e5m2", 3), ("e4m3", 4))
#: Keys of the row that is shown at most.
MOST_POINTS = 256


@dataclass(frozen=True)
class Block:
    """Some rows of one sequence of a head.

    Attributes
    ----------
    scores : ndarray, shape (n_rows, n_keys)
        Products of queries and keys, as they were captured.
    places : ndarray of int, shape (n_rows,)
        Of the queries, counted as keys are; where there are fewer queries than keys,
        they are the last ones.
    shift : int
        Keys that there are more than queries.
    """

    scores: Array
    places: NDArray[np.intp]
    shift: int = field(default=0, kw_only=True)

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """Place of each key less that of the query, shape (n_rows, n_keys)."""
        found: NDArray[np.intp] = np.arange(self.scores.shape[1]) - self.places[:, None]
        return found


@dataclass(frozen=True)
class WeightBlock(Block):
    """Rows with their attention weights, shape (n_rows, n_keys)."""

    weights: Array


@dataclass(frozen=True)
class OutputBlock(Block):
    """Rows with their outputs, and the values that these are means of.

    Attributes
    ----------
    values : ndarray, shape (n_keys, d_v)
    outputs : ndarray, shape (n_rows, d_v)
    """

    values: Array
    outputs: Array

    def part(self, n_rows: int) -> "OutputBlock":
        """Return rows at even distances, so many at most."""
        step = -(-len(self.places) // n_rows)
        return OutputBlock(
            self.scores[::step],
            self.places[::step],
            self.values,
            self.outputs[::step],
            shift=self.shift,
        )


def read_weights(model: Model, head: Head) -> tuple[list[WeightBlock], int]:
    """Read rows of a head with their attention weights.

    Returns
    -------
    list of WeightBlock, int
        Without rows of padding, of which so many are left out: those that are all 0;
        and, where they are few, those whose weights are the same although scores are
        not, as where all keys were hidden by a large number.
    """
    blocks = []
    for found in _read(model, head):
        weights = found.made["weights"]
        if (weights < 0.0).any():
            raise InputError(
                f"weights must be at least 0, got {weights.min():g} in layer "
                f"{head.layer}, head {head.head}"
            )
        _require_size("weights must be", weights)
        blocks.append(
            WeightBlock(_scores(found), found.places, weights, shift=found.shift)
        )
    unit = unit_of(format_of([block.weights for block in blocks]))
    empty = [~block.weights.any(axis=1) for block in blocks]
    even = [_are_even(block, unit) for block in blocks]
    n_rows = sum(len(one) for one in even)
    if sum(int(one.sum()) for one in even) > MOST_EVEN * n_rows:
        even = [np.zeros_like(one) for one in even]
    kept = [~(e | z) for e, z in zip(even, empty, strict=True)]
    filled = [
        WeightBlock(b.scores[k], b.places[k], b.weights[k], shift=b.shift)
        for b, k in zip(blocks, kept, strict=True)
        if k.any()
    ]
    return filled, n_rows - sum(int(k.sum()) for k in kept)


def _are_even(block: WeightBlock, unit: float) -> NDArray[np.bool_]:
    """Tell which rows have the same weight for keys whose scores differ."""
    seen = block.weights > 0.0
    count = seen.sum(axis=1)
    least = np.where(seen, block.weights, np.inf).min(axis=1)
    most = block.weights.max(axis=1)
    differ = np.ptp(block.scores, axis=1) > 0.0
    found: NDArray[np.bool_] = (
        (count > 1) & differ & (most - least <= 2.0 * max(unit, 2.0**-48) * most)
    )
    return found


def read_outputs(model: Model, head: Head) -> list[OutputBlock]:
    """Read rows of a head with their outputs."""
    blocks = []
    for found in _read(model, head, MOST_PAIRS_OF_OUTPUTS):
        v, outputs = found.made["v"], found.made["outputs"]
        for name, values in (("v", v), ("outputs", outputs)):
            _require_size(f"{name} must have entries", values)
        blocks.append(
            OutputBlock(_scores(found), found.places, v, outputs, shift=found.shift)
        )
    return blocks


def is_dead(model: Model, head: Head) -> bool:
    """Tell whether queries, keys or something made of them are 0 in all rows."""
    lives: dict[str, bool] = {}
    for found in _read(model, head):
        arrays = {"q": found.queries, "k": found.keys, **found.made}
        for name, array in arrays.items():
            lives[name] = lives.get(name, False) or bool(array.any())
    return not all(lives.values())


def column_sums(model: Model, head: Head) -> Array:
    """Return what the weights of each key add up to over all queries.

    Of a few sequences, as many as there is room for; one at least.
    """
    sums, room = [], MOST_SUMMED
    for sequence in range(len(model.sequences)):
        one = model.column_sums(head, sequence)
        sums.append(one)
        room -= len(one) ** 2
        if room <= 0:
            break
    return np.concatenate(sums)


def read_rows(
    model: Model, head: Head, mask: str
) -> Iterator[tuple[Array, Array | None]]:
    """Yield scores of rows, those of keys that a mask hides -inf.

    With them the attention weights, None where there are none.  Rows without a weight
    are left out.  ``mask`` is one of `montecarlo.model.hidden.Hidden`.
    """
    for found in _read(model, head):
        scores, weights = _scores(found), found.made.get("weights")
        later = np.arange(scores.shape[1]) > found.places[:, None]
        is_causal = model.causal or mask == "causal"
        if weights is not None and not mask:  # nothing was told, and zeros may be small
            is_causal = is_causal or not weights[later].any()
        if is_causal:
            scores = np.where(later, -np.inf, scores)
        elif mask == "causal_start":
            places = found.places[:, None] - found.shift
            scores = np.where(np.arange(scores.shape[1]) > places, -np.inf, scores)
        elif weights is not None and mask in PARTIAL:
            scores = np.where(weights > 0.0, scores, -np.inf)
        if weights is not None:
            kept = weights.any(axis=1)
            scores, weights = scores[kept], weights[kept]
        if len(scores):
            yield scores, weights


def sample_row(model: Model, head: Head) -> pd.DataFrame:
    """Return the last row of a head that tells most: its scores and log weights.

    Returns
    -------
    DataFrame
        Columns ``score`` and ``log_weight``, one line per key that has a weight; none
        where there are no weights.
    """
    found: list[pd.DataFrame] = []
    if model.source == "weights":
        for block in read_weights(model, head)[0][:1]:
            seen = block.weights > 0.0
            row = int(np.flatnonzero(seen.sum(axis=1) == seen.sum(axis=1).max())[-1])
            keys = np.flatnonzero(seen[row])[-MOST_POINTS:]
            logs = np.log(block.weights[row, keys])
            scores = block.scores[row, keys]
            found.append(pd.DataFrame({"score": scores, "log_weight": logs}))
    columns = pd.DataFrame(columns=["score", "log_weight"], dtype=float)
    return found[0] if found else columns


def _scores(found: HeadRows) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        scores: Array = found.queries @ found.keys.T
    _require_size("q and k must have scores", scores)
    return scores


def _require_size(told: str, values: Array) -> None:
    """Refuse numbers whose squares float64 cannot hold."""
    if not (np.abs(values) < LARGEST).all():
        raise InputError(f"{told} smaller than {LARGEST:g}, got larger ones")


def _read(model: Model, head: Head, most: int = MOST_PAIRS) -> Iterator[HeadRows]:
    """Read rows at even distances, from sequences at even distances.

    Every row is read with all of its keys.
    """
    n = len(model.sequences)
    chosen = range(0, n, -(-n // MOST_SEQUENCES))
    room = most // (len(chosen) * model.most_tokens)
    n_rows = min(max(room, -(-FEWEST_ROWS // len(chosen))), MOST_ROWS)
    for sequence in chosen:
        yield model.read_rows(head, sequence, n_rows)


def format_of(arrays: Sequence[Array]) -> NumberFormat:
    """Return the narrowest number format that holds all of some numbers.

    What an array is kept in says less: weights of a bfloat16 model are often stored as
    float32.
    """
    narrow = [
        *(NumberFormat(name, bits, FLOAT8[name], 0.0, None) for name, bits in BITS8),
        *sorted(NUMBER_FORMATS.values(), key=lambda one: one.bits),
    ]
    for one in narrow[:-1]:
        if all(np.array_equal(one.round(array), array) for array in arrays):
            return one
    return narrow[-1]


@lru_cache
def spacing_of(number_format: NumberFormat) -> float:
    """Return the least positive number of a format: distances below are no smaller."""
    power = 1074
    while not number_format.round(np.array([2.0**-power]))[0]:
        power -= 1
    return float(2.0**-power)


def unit_of(number_format: NumberFormat) -> float:
    """Return what rounding moves a number by at most, as a part of it."""
    return float(2.0**-number_format.bits)
