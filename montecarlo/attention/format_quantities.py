"""The table of quantities of number formats: functions of a row computed in one.

A new one is one entry in `FORMAT_QUANTITIES`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from montecarlo.attention.number_formats import NumberFormat
from montecarlo.attention.ranges import SHARE, Range
from montecarlo.attention.softmax import Array


@dataclass(frozen=True, slots=True)
class FormatRows:
    """Rows as a number format has them.

    Attributes
    ----------
    weights, exact : ndarray, shape (..., n_keys)
        In the format, and without it.
    scores : ndarray, shape (..., n_keys)
        Divided, not rounded.
    number_format : NumberFormat
    """

    weights: Array
    exact: Array
    scores: Array
    number_format: NumberFormat


def score_overflows(rows: FormatRows) -> Array:
    """Return 1 for rows one of whose divided scores is no finite number, else 0."""
    scores = rows.number_format.round(np.ascontiguousarray(rows.scores))
    return np.asarray(~np.isfinite(scores).all(axis=-1), dtype=np.float64)


def overflows(weights: Array) -> Array:
    """Return 1 for rows that overflowed, else 0.

    An overflowing exponential leaves a weight that is no finite number; an overflowing
    sum leaves no weight above 0.
    """
    lost = ~np.isfinite(weights).all(axis=-1) | ~(weights > 0.0).any(axis=-1)
    return np.asarray(lost, dtype=np.float64)


def zero_share(weights: Array) -> Array:
    """Return the share of weights that are exactly 0."""
    share: Array = (weights == 0.0).mean(axis=-1)
    return share


def distinct_share(weights: Array) -> Array:
    """Return the number of different weights in a row over the number of keys."""
    finite = np.where(np.isfinite(weights), weights, 0.0)
    ordered = np.sort(finite, axis=-1)
    changes = (np.diff(ordered, axis=-1) != 0.0).sum(axis=-1)
    share: Array = (changes + 1.0) / weights.shape[-1]
    return share


def weight_error(weights: Array, exact: Array) -> Array:
    """Return half the sum of absolute errors of a row, 1 where the format overflows."""
    with np.errstate(invalid="ignore"):
        error = 0.5 * np.abs(weights - exact).sum(axis=-1)
    return np.where(overflows(weights) > 0.0, 1.0, np.minimum(error, 1.0))


@dataclass(frozen=True, slots=True)
class FormatQuantity:
    """A function of one row of weights in a number format.

    Attributes
    ----------
    name, symbol : str
        The name in the tables; LaTeX.
    evaluate : callable
        `FormatRows` of shape (..., n_keys) -> ndarray, shape (...).
    moments : float
        Moments of the entries that its interval needs: none, it is bounded.
    indicator : bool
        Whether it is 0 or 1.
    words : str
        What it is, in English: a message, to be translated.
    tabled : bool
        Whether the table of a report has it, or who asks for it alone.
    """

    name: str
    symbol: str
    evaluate: Callable[[FormatRows], Array]
    moments: float = 0.0
    indicator: bool = False
    words: str = ""
    tabled: bool = True

    def within(self, n_keys: int) -> Range:
        """Return the range of its values: each is a share, or an error up to 1."""
        del n_keys
        return SHARE


FORMAT_QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        FormatQuantity(
            "format_overflow",
            r"P_{\infty}",
            lambda rows: overflows(rows.weights),
            indicator=True,
            words="share of rows whose weights overflow in a number format",
        ),
        FormatQuantity(
            "format_zero_share",
            "P_0",
            lambda rows: zero_share(rows.weights),
            words="share of the weights that a number format makes zero",
        ),
        FormatQuantity(
            "format_distinct_share",
            r"n_{\ne}/n",
            lambda rows: distinct_share(rows.weights),
            words="number of different weights of a row as a part of its keys",
        ),
        FormatQuantity(
            "format_error",
            r"\delta",
            lambda rows: weight_error(rows.weights, rows.exact),
            words="half the sum of the absolute errors of the weights of a row",
        ),
        FormatQuantity(
            "format_score_overflow",
            r"P_{\lvert s\rvert = \infty}",
            score_overflows,
            indicator=True,
            words="share of rows one of whose scores overflows in a number format",
            tabled=False,
        ),
    )
}
