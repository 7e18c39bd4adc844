"""What the weights of rows come to, estimated from rows that are drawn."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import softmax

from montecarlo.attention.gradients import jacobian_frobenius_squared
from montecarlo.attention.softmax import (
    FAR,
    RowSums,
    entropy,
    inverse_participation,
    measure_gaps,
    softmax_rows,
)
from montecarlo.estimation.estimates import (
    Estimate,
    half_width_error,
    mean_estimate,
    product,
)
from montecarlo.estimation.intervals import Interval
from montecarlo.literature.settings import Setting
from montecarlo.sampling.streams import ModelRows
from montecarlo.theory import expected_row
from montecarlo.theory.row_integrals import Array

#: Scores (..., n_keys) -> a value of each row.
RowValue = Callable[[Array], Array]


def entropy_of(scores: Array) -> Array:
    """Return the entropy of the weights of each row, in nats."""
    return entropy(_sums(scores))


def concentration_of(scores: Array) -> Array:
    """Return Σp² of each row."""
    return inverse_participation(_sums(scores))


def frobenius_of(scores: Array) -> Array:
    """Return ‖J‖_F² of each row."""
    return jacobian_frobenius_squared(_sums(scores))


def first_weight_of(scores: Array) -> Array:
    """Return the weight of the first key of each row."""
    return np.asarray(softmax(scores, axis=-1)[..., 0])


def _sums(scores: Array) -> RowSums:
    """Return softmax of rows; one of a single key is given a second without weight."""
    if scores.shape[-1] == 1:
        scores = np.append(scores, np.full_like(scores, FAR), axis=-1)
    return softmax_rows(measure_gaps(scores), 1.0).sums


def mean_over_rows(source: ModelRows, at: Setting, value: RowValue) -> Estimate:
    """Estimate the mean of a value over rows of normal scores, one of them raised."""
    found = []
    for rows in source.normal(at.keys):
        scores = rows * (at.std or 1.0)
        if at.gap is not None:
            scores[:, 0] += at.gap
        found.append(value(scores))
    return mean_estimate(np.concatenate(found))


def mean_over_mask(source: ModelRows, at: Setting, value: RowValue) -> Estimate:
    """Estimate the mean over the rows of a causal mask."""
    rows = source.causal(at.keys)
    found = [weight * value((at.std or 1.0) * z) for z, weight in rows]
    return mean_estimate(np.concatenate(found))


def unscaled_over_scaled(source: ModelRows, at: Setting, value: RowValue) -> Estimate:
    """Estimate what a mean over rows of q·k is, over the one with √d_k divided by."""
    none, sqrt = (_mean_of_queries(source, at, divisor, value) for divisor in _two(at))
    return product([(none, 1), (sqrt, -1)])


def small_jacobians(source: ModelRows, at: Setting) -> Estimate:
    """Estimate in what part of unscaled rows ‖J‖_F² is below its mean under √d_k."""
    exact = expected_row(at.keys, d_k=at.d_k)["jacobian_frobenius_squared"].value
    return _mean_of_queries(
        source, at, 1.0, lambda scores: (frobenius_of(scores) < exact).astype(float)
    )


def query_gradients(source: ModelRows, at: Setting) -> Estimate:
    """Estimate E |Kᵀ J v|² unscaled over that with √d_k, all entries standard normal.

    Notes
    -----
    The output o has one dimension, and ∂o/∂q = Kᵀ J v over the divisor, which is left
    out here: with it the ratio is d_k times as large.  Along q the keys are the scores
    over |q|; across it they are d_k - 1 further normal entries each, of which Kᵀ (J v)
    takes ‖J v‖² times a chi-square: no key need be drawn.
    """
    none, sqrt = (_query_gradient(source, at, divisor) for divisor in _two(at))
    return product([(none, 1), (sqrt, -1)])


def log_slope(growth: Estimate, reach: float) -> Estimate:
    """Return ln of a positive estimate over a number, with the interval that it has."""

    def bounds(error_rate: float) -> Interval:
        low, high = growth.interval(error_rate)
        return Interval(_log(low) / reach, _log(high) / reach)

    n = growth.n_replicates
    value = math.log(growth.value) / reach
    return replace(
        growth, value=value, std_error=half_width_error(bounds, n), bounds=bounds
    )


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _two(at: Setting) -> tuple[float, float]:
    return 1.0, math.sqrt(at.dimension)


def _mean_of_queries(
    source: ModelRows, at: Setting, divisor: float, value: RowValue
) -> Estimate:
    """Estimate a mean over rows q·k: normal given |q|, so that no key need be drawn."""
    found = []
    for rows in source.normal(at.keys):
        lengths = source.lengths(at.dimension, len(rows))
        found.append(value(rows * (lengths / divisor)[:, np.newaxis]))
    return mean_estimate(np.concatenate(found))


def _query_gradient(source: ModelRows, at: Setting, divisor: float) -> Estimate:
    found = []
    for along, v in zip(source.normal(at.keys), source.normal(at.keys), strict=True):
        n_rows = len(along)
        lengths = source.lengths(at.dimension, n_rows)[:, np.newaxis]
        weights = softmax(along * lengths / divisor, axis=-1)
        moved = weights * (v - (weights * v).sum(axis=-1, keepdims=True))
        inner = (along * moved).sum(axis=-1) ** 2
        across = source.lengths(at.dimension - 1, n_rows) ** 2
        found.append(inner + across * (moved**2).sum(axis=-1))
    return mean_estimate(np.concatenate(found))
