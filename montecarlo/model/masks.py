"""Names the mask of attention rows, from weights or from what was added to scores."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array
from montecarlo.model.arrays import Rows
from montecarlo.model.fits import Fit, joined, keys_seen, rounding_error_of

#: Largest difference of a row's sum of weights from 1, in rounding errors; and the
#: smallest that this is taken for, since weights may be written with few digits.
MOST_ROUNDINGS, LEAST_LOST = 4.0, 2e-3

#: An array for each sequence, shape (n_rows, n_keys): True for some pairs of a query
#: and a key.
PairMasks = Sequence[NDArray[np.bool_]]


class Mask(NamedTuple):
    """The name of a head's mask, and the sum of the weights of its rows."""

    #: ``none``; ``causal``, where the last query sees the last key; ``causal_start``,
    #: where the first query sees the first key alone; ``window``, causal and with a
    #: largest distance; ``chunks``, causal within chunks; ``keys``, the same keys
    #: hidden from all rows of a sequence; ``causal_keys``, both; ``other``; empty if
    #: it is not known.
    mask: str = ""
    window: int = 0  # number of keys of a window, or of a chunk; 0 for other masks
    row_sum: float = math.nan  # mean over rows of the sum of weights
    #: What rows add up to: ``one``; ``less``, as with a sink; ``other``, as with
    #: dropout; empty if it is not known.
    sums: str = ""


def find_mask(blocks: Sequence[Rows], fit: Fit) -> Mask:
    """Return the mask of a head, judged by weights of 0 that scores do not explain.

    ``blocks`` are rows of the head, one block for each sequence, and ``fit`` is the fit
    of its scale.
    """
    hidden = [_hidden_pairs(block, fit) for block in blocks]
    mask, window = name_mask(blocks, hidden, [one.weights > 0.0 for one in blocks])
    weights = [block.weights for block in blocks]
    sums = np.concatenate([p.sum(axis=1) for p in weights])
    rounding_error, found = rounding_error_of(weights), "one"
    if not sums_are_one(sums, rounding_error):
        found = "less" if (sums < 1.0 + _tolerance(rounding_error)).all() else "other"
    return Mask(mask, window, float(sums.mean()), found)


def passed_mask(blocks: Sequence[Rows]) -> Mask:
    """Return the mask that was passed to attention; sums of weights are left unknown.

    It is read from ``added`` of each block of rows; ``none`` if these are not known.
    """
    seen = [keys_seen(one) for one in blocks]
    return Mask(*name_mask(blocks, [~one for one in seen], seen))


def sums_are_one(sums: Array, rounding_error: float) -> bool:
    """Return whether the weights of a typical row add up to 1, up to rounding.

    The median over rows of the distance from 1 counts.  ``sums`` are the sums of rows,
    and ``rounding_error`` is the relative rounding error of a weight.
    """
    return bool(np.median(np.abs(sums - 1.0)) <= _tolerance(rounding_error))


def _tolerance(rounding_error: float) -> float:
    """Return how far rounding can take a sum of weights from 1.

    ``rounding_error`` is the relative rounding error of a weight.
    """
    return max(MOST_ROUNDINGS * rounding_error, LEAST_LOST)


def _hidden_pairs(block: Rows, fit: Fit) -> NDArray[np.bool_]:
    """Return which keys a mask hides from each row, shape (n_rows, n_keys).

    True if a weight is 0 although a smaller score of the same row has a weight above 0.
    By scores alone, the weight of 0 would be the larger one.
    """
    expected: Array = fit.scale * block.scores
    if fit.form == "distance":
        expected = expected + fit.parameter * np.abs(block.offsets)
    seen = block.weights > 0.0
    least = np.where(seen, expected, np.inf).min(axis=1, keepdims=True)
    return np.asarray(~seen & (expected > least))


def name_mask(  # noqa: PLR0911 - a return for each name
    blocks: Sequence[Rows], hidden: PairMasks, seen: PairMasks
) -> tuple[str, int]:
    """Return (name of a mask, number of keys of its window or chunks).

    The names are those of `Mask.mask`.  The number is 0 for other masks than ``window``
    and ``chunks``.

    Parameters
    ----------
    blocks : sequence of Rows
        Rows of a head, one block for each sequence.
    hidden, seen : sequence of ndarray of bool
        For each block, which pairs of a query and a key are surely hidden, and which
        are surely visible.  Some pairs may be neither.
    """
    is_hidden, is_seen = joined(hidden), joined(seen)
    if not is_hidden.any():
        return "none", 0
    # how far the key of each pair is ahead of its query
    ahead = joined(block.offsets for block in blocks)
    later = joined(block.offsets > -block.shift for block in blocks)
    is_from_start = not (is_hidden & ~later).any() and not (is_seen & later).any()
    if is_from_start and any(block.shift for block in blocks):
        return "causal_start", 0
    is_causal = bool((ahead > 0).any()) and not (is_seen & (ahead > 0)).any()
    # hidden pairs that a causal mask does not explain
    rest = is_hidden & (ahead <= 0) if is_causal else is_hidden
    if not rest.any():
        return "causal", 0
    if is_causal:
        nearest = int(ahead[rest].max())
        if not (is_seen & (ahead <= nearest)).any():
            return "window", -nearest
        if width := _chunk_width(blocks, rest, seen):
            return "chunks", width
    keys = joined(
        block.offsets + block.places[:, None] + n * len(ahead)
        for n, block in enumerate(blocks)
    )
    if np.isin(keys[rest], keys[is_seen]).any():
        return "other", 0
    return ("causal_keys" if is_causal else "keys"), 0


def _chunk_width(
    blocks: Sequence[Rows], rest: NDArray[np.bool_], seen: PairMasks
) -> int:
    """Return the number of keys of a chunk; 0 if rows see more than their own chunk.

    0, too, if all rows are in one chunk.  ``rest`` are pairs of a query and a key that
    are hidden although the key is not later.
    """
    first_keys = [one.argmax(axis=1) for one in seen]
    starts = joined(first_keys)
    width = math.gcd(*starts.tolist())
    if not np.ptp(starts):
        return 0  # rows of a single chunk do not show where those before it ended
    within = joined(
        np.arange(one.shape[1]) >= first[:, None]
        for one, first in zip(seen, first_keys, strict=True)
    )
    places = joined(block.places for block in blocks)
    is_so = (starts == places // width * width).all() and not (rest & within).any()
    return width if is_so else 0
