"""Which keys rows do not see, by their weights; and what these add up to."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array
from montecarlo.model.arrays import Rows
from montecarlo.model.fits import Fit, keys_seen, rounding_error_of

#: How far a row's weights may add up to something else than 1, in roundings; and at
#: least: numbers that were written with few digits do not add up to 1 either.
MOST_ROUNDINGS, LEAST_LOST = 4.0, 2e-3


class Mask(NamedTuple):
    """Which keys rows do not see, and what their weights add up to."""

    #: ``none``; ``causal``, where the last query sees the last key; ``causal_start``,
    #: where the first sees the first alone; ``window``, causal and not far back;
    #: ``chunks``, causal within chunks; ``keys``, which no row of a sequence sees;
    #: ``causal_keys``, both; ``other``; empty where it is not known.
    mask: str = ""
    window: int = 0  # keys that a row sees in a window, or that a chunk has
    row_sum: float = math.nan  # mean over rows of what their weights add up to
    sums: str = ""  # ``one``; ``less``, as with a sink; ``other``, as with dropout


def find_mask(blocks: Sequence[Rows], fit: Fit) -> Mask:
    """Find the mask in attention weights: zeros where scores do not make them."""
    hidden = [_hidden_pairs(block, fit) for block in blocks]
    mask, window = name_mask(blocks, hidden, [one.weights > 0.0 for one in blocks])
    weights = [block.weights for block in blocks]
    sums = np.concatenate([p.sum(axis=1) for p in weights])
    rounding_error, found = rounding_error_of(weights), "one"
    if not are_one(sums, rounding_error):
        found = "less" if (sums < 1.0 + _allowed(rounding_error)).all() else "other"
    return Mask(mask, window, float(sums.mean()), found)


def passed_mask(blocks: Sequence[Rows]) -> Mask:
    """Name the mask that was passed beside values and outputs."""
    seen = [keys_seen(one) for one in blocks]
    return Mask(*name_mask(blocks, [~one for one in seen], seen))


def are_one(sums: Array, rounding_error: float) -> bool:
    """Tell whether most sums of weights are 1, up to what rounding leaves of them."""
    return bool(np.median(np.abs(sums - 1.0)) <= _allowed(rounding_error))


def _allowed(rounding_error: float) -> float:
    return max(MOST_ROUNDINGS * rounding_error, LEAST_LOST)


def _hidden_pairs(block: Rows, fit: Fit) -> NDArray[np.bool_]:
    """Return where a weight is 0 although a smaller one of its row is not."""
    expected: Array = fit.scale * block.scores
    if fit.form == "distance":
        expected = expected + fit.parameter * np.abs(block.offsets)
    seen = block.weights > 0.0
    least = np.where(seen, expected, np.inf).min(axis=1, keepdims=True)
    found: NDArray[np.bool_] = ~seen & (expected > least)
    return found


def name_mask(  # noqa: PLR0911 - a return for each name
    blocks: Sequence[Rows],
    hidden: Sequence[NDArray[np.bool_]],
    seen: Sequence[NDArray[np.bool_]],
) -> tuple[str, int]:
    """Return what a mask is called, and how many keys its window has.

    ``hidden`` are pairs that surely are, ``seen`` those that surely are not.
    """
    if not any(one.any() for one in hidden):
        return "none", 0
    ahead = [block.offsets > 0 for block in blocks]
    if any(block.shift > 0 for block in blocks):
        later = [block.offsets > -block.shift for block in blocks]
        inside = all(not (h & ~a).any() for h, a in zip(hidden, later, strict=True))
        if inside and _are_hidden(later, seen):
            return "causal_start", 0
    is_causal = _are_hidden(ahead, seen)
    # what a mask of the future does not say
    rest = [h & ~a if is_causal else h for h, a in zip(hidden, ahead, strict=True)]
    if not any(one.any() for one in rest):
        return "causal", 0
    if is_causal:
        away = [-block.offsets for block in blocks]
        nearest = min(
            int(w[r].min()) for w, r in zip(away, rest, strict=True) if r.any()
        )
        if not any((s & (w >= nearest)).any() for s, w in zip(seen, away, strict=True)):
            return "window", nearest
        if width := _chunk_of(blocks, rest, seen):
            return "chunks", width
    columns = [h.any(axis=0) for h in rest]
    if any((s & c).any() for s, c in zip(seen, columns, strict=True)):
        return "other", 0
    return ("causal_keys" if is_causal else "keys"), 0


def _chunk_of(
    blocks: Sequence[Rows],
    hidden: Sequence[NDArray[np.bool_]],
    seen: Sequence[NDArray[np.bool_]],
) -> int:
    """Return of how many keys chunks are, outside of which none is seen; 0 if of none.

    The last key that a row does not see ends the chunk before its own.
    """
    ends = {
        int(np.flatnonzero(row)[-1]) + 1
        for block, one in zip(blocks, seen, strict=True)
        for row in ~one & (block.offsets <= 0)
        if row.any()
    }
    width = math.gcd(*ends)
    first = [(one.places >= width // 2) & (one.places < width) for one in blocks]
    if len(ends) < 2 and not any(one.any() for one in first):
        return 0  # rows of a single chunk do not tell where those before it ended
    for block, h, s in zip(blocks, hidden, seen, strict=True):
        own = block.places // width * width
        before = np.arange(h.shape[1]) < own[:, None]
        if (s & before).any() or (h & ~before).any():
            return 0
    return width


def _are_hidden(
    places: Sequence[NDArray[np.bool_]], seen: Sequence[NDArray[np.bool_]]
) -> bool:
    """Tell whether there are such places, and none of them is seen."""
    return any(one.any() for one in places) and not any(
        (s & p).any() for s, p in zip(seen, places, strict=True)
    )
