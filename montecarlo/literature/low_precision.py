"""What a short number format rounds to 0: of a row, and behind a sink.

Exponentials are computed with the largest score taken away, so that the largest is 1,
and may be multiplied by a scale.  They are rounded as they are, before they are divided
by their sum, or as weights, after it.
"""

import math

import numpy as np
from scipy.integrate import quad
from scipy.special import log_softmax, ndtr

from montecarlo.attention.number_formats import ROUNDINGS
from montecarlo.estimation.estimates import Estimate, mean_estimate, share_estimate
from montecarlo.literature.settings import Setting
from montecarlo.sampling.streams import ModelRows
from montecarlo.theory.row_integrals import REACH, Array
from montecarlo.theory.score_distribution import expected_maximum

#: Exponent of the least number of each format: what is at most half of it becomes 0.
LEAST = {"e4m3": -9, "e5m2": -16, "float16": -24, "bfloat16": -133}
#: Keys of the sink: the first of a sequence.
SINK_KEYS = 4


def gap_of(at: Setting) -> float:
    """Return how far below the largest score an exponential becomes 0."""
    kept = math.log(at.scale or 1.0)
    return kept + (1 - LEAST[at.number_format]) * math.log(2.0)


def behind_sink(at: Setting) -> float:
    """Return the expected share of the other keys whose exponential becomes 0.

    Their scores are N(0, s²), those of the sink N(Δ, s²), and the largest is that of a
    block of the sink alone, as where blocks are taken in their order.
    """
    std, gap = at.std or 1.0, gap_of(at)

    def part(g: float) -> float:
        density = math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)
        largest = SINK_KEYS * density * ndtr(g) ** (SINK_KEYS - 1)
        return float(largest * ndtr(((at.gap or 0.0) + std * g - gap) / std))

    return float(quad(part, -REACH, REACH, epsabs=1e-12, limit=200)[0])


def drawn_behind_sink(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it from rows that are drawn and rounded."""
    std, found = at.std or 1.0, []
    for rows in source.normal(at.keys):
        scores = std * rows
        largest = (at.gap or 0.0) + scores[:, :SINK_KEYS].max(axis=1, keepdims=True)
        found.append(_lost(scores[:, SINK_KEYS:] - largest, at).mean(axis=1))
    return _mean(np.concatenate(found))


def leading_order(at: Setting) -> float:
    """Return it where the largest score of the sink is replaced by its mean."""
    std, largest = at.std or 1.0, expected_maximum(SINK_KEYS)
    return float(ndtr((at.gap or 0.0) / std + largest - gap_of(at) / std))


def over_leading_order(at: Setting) -> float:
    """Return the exact share over the one to leading order."""
    return behind_sink(at) / leading_order(at)


def in_row(at: Setting) -> float:
    """Return the expected share of a row's exponentials that become 0."""
    std, gap, n = at.std or 1.0, gap_of(at), at.keys

    def part(g: float) -> float:
        density = math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)
        return float(density * ndtr(g) ** (n - 2) * ndtr(g - gap / std))

    # each of the other n - 1 keys, where one of n is the largest
    return (n - 1) * float(quad(part, -REACH, REACH, epsabs=1e-14, limit=400)[0])


def drawn_in_row(source: ModelRows, at: Setting) -> Estimate:
    """Estimate it from rows that are drawn and rounded."""
    std, found = at.std or 1.0, []
    for rows in source.normal(at.keys):
        below = std * (rows - rows.max(axis=1, keepdims=True))
        found.append(_lost(below, at).mean(axis=1))
    return _mean(np.concatenate(found))


def drawn_normalised(source: ModelRows, at: Setting) -> Estimate:
    """Estimate the share of a row's weights, divided by their sum, that become 0."""
    found = [
        _lost(log_softmax((at.std or 1.0) * rows, axis=1), at).mean(axis=1)
        for rows in source.normal(at.keys)
    ]
    return _mean(np.concatenate(found))


def _mean(shares: Array) -> Estimate:
    """Estimate the mean of shares; that none is lost in rows drawn is no certainty."""
    found = mean_estimate(shares)
    return found if found.std_error > 0.0 else share_estimate(shares, 1)


def _lost(below: Array, at: Setting) -> Array:
    """Tell which become 0, given their logarithms, by rounding them."""
    rounded = ROUNDINGS[at.number_format](np.exp(below) * (at.scale or 1.0))
    return np.asarray(rounded == 0.0, dtype=np.float64)
