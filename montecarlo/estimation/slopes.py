"""How an estimate changes along d_k: the log-log slope and the ratio of the two ends.

The points along d_k are independent, so errors add in squares.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from montecarlo.attention.softmax import Array
from montecarlo.estimation.estimates import POINTWISE, Estimate
from montecarlo.estimation.intervals import Interval, t_quantile


def log_log_slope(sizes: Sequence[float], estimates: Sequence[Estimate]) -> Estimate:
    """Estimate the least-squares slope of ln value against ln size.

    Parameters
    ----------
    sizes : sequence of float
        At least two different, positive.
    estimates : sequence of Estimate
        Independent, of positive quantities, one per size.
    """
    x = np.log(np.asarray(sizes, dtype=np.float64))
    centred = x - x.mean()
    return _contrast(centred / float((centred**2).sum()), estimates)


def ratio_of_ends(estimates: Sequence[Estimate]) -> Estimate:
    """Estimate the last value over the first.

    Parameters
    ----------
    estimates : sequence of Estimate
        Independent, of positive quantities, at least two.
    """
    weights = np.zeros(len(estimates))
    weights[0], weights[-1] = -1.0, 1.0
    log_ratio = _contrast(weights, estimates)

    def bounds(error_rate: float) -> Interval:
        low, high = log_ratio.interval(error_rate)
        return Interval(_exp(low), _exp(high))

    value = _exp(log_ratio.value)
    return Estimate(
        value, value * log_ratio.std_error, log_ratio.n_replicates, bounds=bounds
    )


def _contrast(weights: Array, estimates: Sequence[Estimate]) -> Estimate:
    """Estimate a weighted sum of logarithms of independent estimates."""
    n = min(estimate.n_replicates for estimate in estimates)
    logs = [_log(estimate.value) for estimate in estimates]
    value = _weigh(weights, logs)
    bounds = partial(_contrast_bounds, weights, tuple(estimates), value)
    low, high = bounds(POINTWISE)
    error = (high - low) / (2.0 * t_quantile(POINTWISE, n))
    return Estimate(value, error, n, bounds=bounds)


def _contrast_bounds(
    weights: Array, estimates: Sequence[Estimate], value: float, error_rate: float
) -> Interval:
    """Add the logarithmic half-widths of the estimates' own intervals in squares.

    Each side separately, since intervals of skewed quantities are not symmetric; for
    symmetric ones this is the usual propagation of errors.
    """
    down = up = 0.0
    for weight, estimate in zip(weights, estimates, strict=True):
        low, high = estimate.interval(error_rate)
        centre = _log(estimate.value)
        below, above = centre - _log(low), _log(high) - centre
        if weight < 0.0:
            below, above = above, below
        if weight != 0.0:
            down += (weight * below) ** 2
            up += (weight * above) ** 2
    return Interval(value - math.sqrt(down), value + math.sqrt(up))


def _weigh(weights: Array, values: Sequence[float]) -> float:
    """Add up; NaN where infinities of both signs meet: two values of exact zero."""
    pairs = zip(weights.tolist(), values, strict=True)
    terms = [weight * value for weight, value in pairs if weight != 0.0]
    return math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)


def _exp(value: float) -> float:
    """Exponential, infinite where it is too large."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _log(value: float) -> float:
    """Logarithm with ln 0 = -inf, also of what an interval pushed below 0."""
    if math.isnan(value):
        return value
    return math.log(value) if value > 0.0 else -math.inf
