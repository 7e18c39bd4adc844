"""Rows of a head as a fit takes them: scores, places, and what softmax made of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from montecarlo.attention.number_formats import NUMBER_FORMATS, NumberFormat
from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError
from montecarlo.observation.model import Head, HeadRows, Model

#: Pairs of a head that a fit takes, sequences, and rows of each at most; rows in all at
#: least, where there are so many.
MOST_PAIRS, MOST_SEQUENCES, MOST_ROWS, FEWEST_ROWS = 2**17, 32, 64, 16
#: Outputs cost a search, and each row has many.
MOST_PAIRS_OF_OUTPUTS = 2**15
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


def read_weights(model: Model, head: Head) -> list[WeightBlock]:
    """Read rows of a head with their attention weights."""
    blocks = []
    for found in _read(model, head):
        weights = found.made["weights"]
        if (weights < 0.0).any():
            raise InputError(
                f"weights must be at least 0, got {weights.min():g} in layer "
                f"{head.layer}, head {head.head}"
            )
        blocks.append(
            WeightBlock(_scores(found), found.places, weights, shift=found.shift)
        )
    return blocks


def read_outputs(model: Model, head: Head) -> list[OutputBlock]:
    """Read rows of a head with their outputs."""
    return [
        OutputBlock(
            _scores(found),
            found.places,
            found.made["v"],
            found.made["outputs"],
            shift=found.shift,
        )
        for found in _read(model, head, MOST_PAIRS_OF_OUTPUTS)
    ]


def read_rows(model: Model, head: Head) -> Iterator[tuple[Array, Array | None]]:
    """Yield scores of rows, those of later keys -inf where a model is causal.

    With them the attention weights, None where there are none.
    """
    for found in _read(model, head):
        scores = _scores(found)
        if model.causal:
            keys = np.arange(scores.shape[1])
            scores = np.where(keys <= found.places[:, None], scores, -np.inf)
        yield scores, found.made.get("weights")


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
        for block in read_weights(model, head)[:1]:
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
    return scores


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
    narrow = sorted(NUMBER_FORMATS.values(), key=lambda one: one.bits)
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
