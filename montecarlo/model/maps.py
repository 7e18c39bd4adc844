"""Attention maps alone: what weights say without the queries and keys of them.

Not the scale.  But how even rows are, how much of them is on the first key, what they
add up to, which keys they hide, and over which axis softmax ran.

>>> import numpy as np
>>> frame = attention_maps(np.full((2, 4, 4), 0.25), ("head", "token", "d"))
>>> frame["effective_keys"].tolist()
[4.0, 4.0]
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from montecarlo.attention.quantities import SATURATED
from montecarlo.attention.softmax import Array, entropy_of_weights
from montecarlo.errors import InputError
from montecarlo.model.arrays import (
    AXES,
    KEY,
    Rows,
    arrange,
    check_array,
    check_axes,
    read_finite,
)
from montecarlo.model.fits import rounding_error_of
from montecarlo.model.masks import are_one, name_mask

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd


class MapSummary(NamedTuple):
    """What the attention weights of a head say.

    Attributes
    ----------
    layer, head : int
    entropy, effective_keys : float
        Means over rows of the entropy in nats, and of its exponential.
    weight_max : float
        Mean over rows of the largest weight.
    saturated_rows : float
        Share of rows whose largest weight is at least 0.9.
    first_key : float
        Mean weight of the first key, where models that need a sink have it.
    row_sum : float
        Mean of what weights of a row add up to: less than 1 beside a sink or where
        keys are cut off.
    mask : str
        As in `montecarlo.applied_scale`, of weights that are 0.
    softmax : str
        What adds up to 1: ``keys`` of a row, as it should be; ``queries``; else empty.
    """

    layer: int
    head: int
    entropy: float
    effective_keys: float
    weight_max: float
    saturated_rows: float
    first_key: float
    row_sum: float
    mask: str
    softmax: str


def attention_maps(
    weights: ArrayLike, axes: Sequence[str] | None = None
) -> "pd.DataFrame":
    """Tell what attention weights say without queries and keys.

    Parameters
    ----------
    weights : array_like of floating-point numbers
        Queries before keys, which are last.
    axes : sequence of str, optional
        As for `montecarlo.observe`, ``d`` standing for keys.

    Returns
    -------
    DataFrame
        A row per layer and head, columns as of `MapSummary`.

    Raises
    ------
    InputError
        If weights are not usable.
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
            if min(one.min() for one in maps) < 0.0:
                raise InputError(
                    "weights must be at least 0, got less in "
                    f"layer {layer}, head {head}"
                )
            heads.append(_summarise(layer, head, maps))
    import pandas as pd

    return pd.DataFrame.from_records(heads, columns=list(MapSummary._fields))


def _summarise(layer: int, head: int, maps: Sequence[Array]) -> MapSummary:
    """Return what the maps of a head say, one of each sequence."""
    rows = np.concatenate(maps)
    sums = rows.sum(axis=1)
    whole = rows / np.where(sums > 0.0, sums, 1.0)[:, None]
    entropy, largest = entropy_of_weights(whole), whole.max(axis=1)
    rounding_error = rounding_error_of(maps)
    axis = "keys" if are_one(sums, rounding_error) else ""
    if not axis and all(are_one(one.sum(axis=0), rounding_error) for one in maps):
        axis = "queries"
    seen = [one > 0.0 for one in maps]
    mask, _ = name_mask([_rows_of(one) for one in maps], [~one for one in seen], seen)
    return MapSummary(
        layer,
        head,
        float(entropy.mean()),
        float(np.exp(entropy).mean()),
        float(largest.mean()),
        float((largest >= SATURATED["saturated"]).mean()),
        float(rows[:, 0].mean()),
        float(sums.mean()),
        mask,
        axis,
    )


def _rows_of(weights: Array) -> Rows:
    """Return rows of whose queries and keys nothing is known; the last see the last."""
    n_rows, n_keys = weights.shape
    nothing, shift = np.empty((n_rows, 0)), n_keys - n_rows
    places = np.arange(n_rows) + shift
    return Rows(nothing, nothing, np.zeros_like(weights), places, shift, {})
