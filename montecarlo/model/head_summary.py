"""Sizes of scores, and entropy of attention weights, of each head.

`measure_rows` returns numbers of each row of a recorded call, `summarise_rows` a line
for each head, over the rows of several calls.  Scores are computed from queries and
keys with the scale, cap and mask that were passed, and so without dropout.  It is fast
enough to watch training.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from montecarlo.attention.quantities import SATURATED
from montecarlo.attention.softmax import entropy_of_weights
from montecarlo.model.arrays import UNSEEN, Arrays

#: Levels of the quantiles of the largest score of a row.
QUANTILES = (0.5, 0.9, 0.99)
#: Sources whose default scale is 1 / sqrt(d_k).
BY_DEFAULT = ("torch", "transformers")
#: An array of numbers of any type, or of booleans.
Numbers = NDArray[Any]


class HeadSummary(NamedTuple):
    """Sizes of the scores and entropy of the weights of a head; NaN without rows.

    Attributes
    ----------
    layer, head : int
    rows : int
        Number of rows that see at least 2 keys, without padding.
    score_max : float
        Largest absolute score, after scale and cap and before any bias.  Infinite if a
        score is not finite.
    score_max_q50, score_max_q90, score_max_q99 : float
        Quantiles over rows of the largest absolute score of a row.
    entropy : float
        Mean over rows of the entropy of the weights, in nats.
    entropy_share : float
        Mean over rows of entropy / ln(number of keys that the row sees): 0 to 1.
    weight_max : float
        Mean over rows of the largest weight.
    saturated_rows : float
        Share of rows whose largest weight is at least 0.9.
    scale : float
        Factor of q·k: as it was passed, else the default of torch, 1 / sqrt(d_k).  NaN
        if it is unknown, as after division by a tensor; then largest scores are NaN,
        too.
    """

    layer: int
    head: int
    rows: int
    score_max: float
    score_max_q50: float
    score_max_q90: float
    score_max_q99: float
    entropy: float
    entropy_share: float
    weight_max: float
    saturated_rows: float
    scale: float


class RowNumbers(NamedTuple):
    """Numbers of each attention row of a call, arrays of shape (n_heads, n_rows)."""

    largest: Numbers  # largest absolute score
    entropy: Numbers  # in nats
    share: Numbers  # entropy over the largest possible one
    weight: Numbers  # largest weight
    scale: float  # factor of q·k; NaN where it is unknown


def measure_rows(arrays: Arrays, passed: Mapping[str, object]) -> RowNumbers:
    """Return largest score, entropy and largest weight of each row of a recorded call.

    A row is a query of a sequence.  Rows that see a single key, and rows of padding,
    are left out.

    Parameters
    ----------
    arrays : mapping
        ``q`` and ``k``, shape (n_sequences, n_heads, n_tokens, d_k), and perhaps
        ``weights`` and ``added``, shape (n_sequences, n_heads, n_rows, n_keys).
    passed : mapping
        Options of the call: ``source``, ``scale`` and ``cap``; ``queries``, the number
        of all queries, of which ``q`` holds the last; and ``hidden``, a mask that is
        added, or True for visible keys, of shape (n_sequences or 1, n_heads or 1,
        n_rows or 1, n_keys).
    """
    added = arrays.get("added", passed.get("hidden"))
    sequences = []
    for number in range(len(arrays["q"])):
        one = {name: np.asarray(array[number]) for name, array in arrays.items()}
        one.pop("added", None)
        if isinstance(added, Sequence | np.ndarray):
            one["added"] = np.asarray(added[min(number, len(added) - 1)])
        elif "weights" in one and (causal := _causal_mask(one["weights"])) is not None:
            one["added"] = causal
        sequences.append(one)
    with np.errstate(all="ignore"):  # scores that are not finite
        scale = _scale_of(passed, sequences[0]["q"].shape[-1])
        found = [_measure_sequence(one, scale, passed) for one in sequences]
    a, b, c, d = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    return RowNumbers(a, b, c, d, scale)


def _measure_sequence(
    arrays: Mapping[str, Numbers], scale: float, passed: Mapping[str, object]
) -> tuple[Numbers, ...]:
    """Return the arrays of `RowNumbers` except the scale, for one sequence.

    Each has the shape (n_heads, n_rows).  Rows that see a single key, or that are
    padding, are left out.  ``arrays`` are those of the sequence, shape (n_heads, ...).
    Of the options ``passed``, the cap and the number of queries are used.
    """
    q, k = (arrays[name].astype(np.float32, copy=False) for name in "qk")
    grouped = q.reshape(len(k), -1, q.shape[2])
    products: Numbers = grouped @ k.transpose(0, 2, 1)
    scores = np.float32(scale) * products.reshape(*q.shape[:2], -1)
    n_rows, n_keys = scores.shape[1:]
    cap = passed.get("cap")
    if isinstance(cap, float | int):
        scores = cap * np.tanh(scores / cap)
    bias, some = _read_added(arrays.get("added"))
    seen = np.broadcast_to(some, scores.shape)
    count = seen.sum(axis=-1)
    largest = np.abs(scores).max(axis=-1, where=seen, initial=0.0)
    weights = arrays.get("weights")
    if weights is None:
        weights = softmax(np.where(seen, scores + bias, -np.inf), axis=-1)
    weights = weights.astype(np.float32, copy=False)
    weight, entropy = weights.max(axis=-1), entropy_of_weights(weights)
    share = entropy / np.log(np.maximum(count, 2))
    kept = (count > 1).all(axis=0)
    if passed.get("queries") == n_keys:
        own = np.arange(n_keys - n_rows, n_keys)
        kept &= seen[:, np.arange(n_rows), own].all(axis=0)  # others are padding
    if not math.isnan(scale):
        largest = np.where(np.isfinite(largest), largest, np.inf)
    return tuple(one[:, kept] for one in (largest, entropy, share, weight))


def _read_added(added: Numbers | None) -> tuple[Numbers | float, Numbers | bool]:
    """Return (bias of visible keys, which keys are visible) from what was added.

    ``added`` may be a boolean mask, which has no bias; without it all keys are visible.
    """
    if added is None:
        return 0.0, True
    if added.dtype == bool:
        return 0.0, added
    seen = added > UNSEEN
    return np.where(seen, added, 0.0).astype(np.float32), seen


def _causal_mask(weights: Numbers) -> NDArray[np.bool_] | None:
    """Return a causal mask, True for visible keys, if all weights of later keys are 0.

    Its shape is (1, n_rows, n_keys).  None if some of these weights are not 0, or if
    there are no later keys.
    """
    n_rows, n_keys = weights.shape[1:]
    own = np.arange(n_keys - n_rows, n_keys)[:, None]
    causal: NDArray[np.bool_] = own >= np.arange(n_keys)
    hidden = weights[:, ~causal]
    return causal[None] if hidden.size and not hidden.any() else None


def _scale_of(passed: Mapping[str, object], d_k: int) -> float:
    """Return the factor of q·k that was passed, or else torch's default 1 / sqrt(d_k).

    The default holds for the sources `BY_DEFAULT`.  Else the factor is NaN, for not
    known.
    """
    given = passed.get("scale")
    if isinstance(given, float | int):
        return float(given)
    return d_k**-0.5 if passed.get("source") in BY_DEFAULT else math.nan


def summarise_rows(layer: int, calls: Sequence[RowNumbers]) -> list[HeadSummary]:
    """Return a `HeadSummary` for each head of a layer, over the rows of all its calls.

    ``layer`` is the number of the layer, and ``calls`` are from `measure_rows`.
    Quantiles are values of rows, without interpolation.
    """
    largest, entropy, share, weight = (
        np.concatenate(parts, axis=1) for parts in list(zip(*calls, strict=True))[:4]
    )
    heads, n_rows = largest.shape
    scale = np.full(heads, np.mean([call.scale for call in calls]))
    stats = np.full((8, heads), math.nan)
    if n_rows:
        with np.errstate(invalid="ignore"):  # of infinite scores
            stats[0] = largest.max(axis=1)
            # inverted_cdf: each quantile is the score of a row
            stats[1:4] = np.quantile(largest, QUANTILES, axis=1, method="inverted_cdf")
            stats[4:7] = [one.mean(axis=1) for one in (entropy, share, weight)]
            stats[7] = (weight >= SATURATED["saturated"]).mean(axis=1)
    table = np.vstack([stats, scale]).T.tolist()
    return [HeadSummary(layer, n, n_rows, *row) for n, row in enumerate(table)]
