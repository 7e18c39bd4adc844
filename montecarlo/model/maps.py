"""Summaries of attention weights alone, where queries and keys are not known.

They do not tell the scale, but how concentrated rows are, how much weight the first key
has, the sum of a row, which keys are hidden, and over which axis softmax ran.

>>> import numpy as np
>>> frame = attention_maps(np.full((2, 4, 4), 0.25), ("head", "token", "d"))
>>> frame["effective_keys"].tolist()
[4.0, 4.0]
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from montecarlo.attention.softmax import Array, entropy_of_weights
from montecarlo.model.arrays import (
    AXES,
    KEY,
    Rows,
    arrange,
    check_array,
    check_axes,
    read_finite,
    require_weights,
)
from montecarlo.model.fits import rounding_error_of
from montecarlo.model.masks import name_mask, sums_are_one

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd


def attention_maps(
    weights: ArrayLike, axes: Sequence[str] | None = None
) -> "pd.DataFrame":
    """Return a summary of each head from its attention weights only.

    It is for weights whose queries and keys are not known.

    Parameters
    ----------
    weights : array_like of floating-point numbers
        At least 0.  The axis of keys is the last; by default that of queries stands
        before it.
    axes : sequence of str, optional
        As for `montecarlo.observe`, with ``d`` as the last for the axis of keys, and
        ``token`` for that of queries.

    Returns
    -------
    DataFrame
        A row per ``layer`` and ``head``.  These columns are means over rows:
        ``entropy``, in nats; ``effective_keys``, its exponential; ``weight_max``, the
        largest weight; ``first_key``, the weight of the first key, which is large if it
        serves as attention sink; and ``row_sum``, the sum of weights, which is less
        than 1 with a sink, or if keys are cut off.  The first three are of weights that
        are divided by the sum of their row.  ``mask`` is judged by weights of 0, and
        named as in `montecarlo.applied_scale`, such as ``causal``.  ``softmax`` is the
        axis along which weights sum to 1: ``keys``, or ``queries`` if softmax ran over
        the wrong axis, or empty.

    Raises
    ------
    InputError
        If weights or axes are not usable.
    """
    named = [a for a in check_axes(AXES if axes is None else axes) if a != "d"]
    held = arrange("weights", check_array("weights", weights), [*named, KEY])
    heads = []
    for layer in range(held.shape[1]):
        for head in range(held.shape[2]):
            place = {"layer": layer, "head": head}
            maps = [
                read_finite("weights", one, place | {"sequence": n}, last=KEY)
                for n, one in enumerate(held[:, layer, head])
            ]
            require_weights(maps, layer, head)
            heads.append(place | _summarise_head(maps))
    import pandas as pd

    return pd.DataFrame.from_records(heads)


def _summarise_head(maps: Sequence[Array]) -> dict[str, Any]:
    """Return the columns of `attention_maps` for a head, by name.

    ``maps`` are its weights in each sequence, shape (n_rows, n_keys).
    """
    rows = np.concatenate(maps)
    sums = rows.sum(axis=1)
    normalised = rows / np.where(sums > 0.0, sums, 1.0)[:, None]
    entropy, largest = entropy_of_weights(normalised), normalised.max(axis=1)
    rounding_error = rounding_error_of(maps)
    axis = "keys" if sums_are_one(sums, rounding_error) else ""
    if not axis and all(sums_are_one(one.sum(axis=0), rounding_error) for one in maps):
        axis = "queries"
    seen = [one > 0.0 for one in maps]
    mask, _ = name_mask([_bare_rows(one) for one in maps], [~one for one in seen], seen)
    return {
        "entropy": entropy.mean(),
        "effective_keys": np.exp(entropy).mean(),
        "weight_max": largest.mean(),
        "first_key": rows[:, 0].mean(),
        "row_sum": sums.mean(),
        "mask": mask,
        "softmax": axis,
    }


def _bare_rows(weights: Array) -> Rows:
    """Return attention weights as `Rows` without queries, keys and scores.

    `name_mask` takes such rows.  ``weights`` has the shape (n_rows, n_keys); the last
    row belongs to the last key.
    """
    n_rows, n_keys = weights.shape
    nothing, shift = np.empty((n_rows, 0)), n_keys - n_rows
    places = np.arange(n_rows) + shift
    return Rows(nothing, nothing, np.zeros_like(weights), places, shift, {})
