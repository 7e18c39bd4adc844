"""How scores grow with d_k where a query is correlated with its key, entry by entry."""

import math

import numpy as np

from montecarlo.estimation.estimates import Estimate, mean_estimate, product
from montecarlo.literature.score_rows import log_slope
from montecarlo.literature.settings import Setting
from montecarlo.sampling.streams import ModelRows


def second_moment(d_k: int, correlation: float) -> float:
    """Return E (q·k)² of standard normal entries: d (1 + ρ²) + d² ρ²."""
    return d_k * (1.0 + correlation**2) + (d_k * correlation) ** 2


def exact_exponent(at: Setting) -> float:
    """Return the exponent of the root mean square of q·k between two d_k."""
    low, high, correlation = _sizes(at)
    growth = second_moment(high, correlation) / second_moment(low, correlation)
    return 0.5 * math.log(growth) / math.log(high / low)


def drawn_exponent(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it from pairs that are drawn."""
    low, high, correlation = _sizes(at)
    small, large = (_mean_square(source, d_k, correlation) for d_k in (low, high))
    growth = product([(large, 1), (small, -1)])
    return log_slope(growth, 2.0 * math.log(high / low))


def _sizes(at: Setting) -> tuple[int, int, float]:
    return at.from_d_k or 0, at.dimension, at.correlation or 0.0


def _mean_square(source: ModelRows, d_k: int, correlation: float) -> Estimate:
    across = math.sqrt(1.0 - correlation**2)
    found = [
        (q * (correlation * q + across * z)).sum(axis=1) ** 2
        for q, z in source.pairs(d_k)
    ]
    return mean_estimate(np.concatenate(found))
