"""Pairs: blocks of queries and keys, drawn and reduced to means over their scores.

One block after the other: the scores of one stay in the cache; those of several do not,
and every pass over them would take four times as long.
"""

import math

import numpy as np

from montecarlo.attention.pairs import GAP_AT, GAP_NORMAL
from montecarlo.attention.softmax import Array, Scores
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.matrices import draw_matrices

#: Terms that are added up in the precision they come in; their sums are in float64.
ADDED_AT_ONCE = 2**12


def pair_means(point: DesignPoint, seed: int, indices: range) -> Array:
    """Draw some replicates of pairs and reduce them.

    The point has no rows.

    Returns
    -------
    ndarray, shape (n_replicates, n_means)
        `PAIR_MEANS` of each block.

    Notes
    -----
    Scores are float32.  Where entries have a mean, squares are much larger than the
    variance that is made of them, so all is float64 from there on.
    """
    standard = point.distribution_q.is_standard and point.distribution_k.is_standard
    mean, variance = score_moments(point)
    at = mean + GAP_AT * math.sqrt(variance)
    means = []
    for index in indices:
        q, k = draw_matrices(point, seed, index)
        matching = point.dependence.kind != "none"  # only matching pairs count
        scores = np.vecdot(q, k) if matching else q @ k.T
        drawn: list[Scores] = [q, k, scores]
        if not standard:
            drawn = [x.astype(np.float64) for x in drawn]
        means.append(_reduce(drawn, at))
    return np.array(means)


def _reduce(drawn: list[Scores], at: float) -> list[float]:
    """Return `PAIR_MEANS` of a block: entries of q, those of k, and scores.

    A distribution without a variance, for which ``at`` is infinite, has no gap.
    """
    q, k, scores = (_in_rows(x) for x in drawn)
    squares = np.square(scores)
    return [
        *(_mean(q), _mean_product(q, q), _mean(k), _mean_product(k, k)),
        *(_mean(scores), _mean(np.abs(scores)), _mean_product(scores, scores)),
        *(_mean_product(squares, scores), _mean_product(squares, squares)),
        np.count_nonzero(scores <= at) / scores.size - GAP_NORMAL
        if math.isfinite(at)
        else math.nan,
    ]


def _in_rows(values: Scores) -> Scores:
    """Cut a block into the rows along which it is added up."""
    return values.reshape(-1, math.gcd(values.size, ADDED_AT_ONCE))


def _mean(values: Scores) -> float:
    """Return the mean of all values."""
    return _mean_product(values, np.ones(values.shape[-1], values.dtype))


def _mean_product(one: Scores, other: Scores) -> float:
    """Return the mean of the elementwise product."""
    sums: list[float] = np.vecdot(one, other).tolist()  # added up in float64
    return sum(sums) / one.size


def score_moments(point: DesignPoint) -> tuple[float, float]:
    """Return mean and variance of a score: what its distribution is standardised by.

    The point has no rows.

    Notes
    -----
    Entries are m_q + s_q a and m_k + s_k b, where a and b are standardised, symmetric
    and, in matching pairs, dependent: a b has mean rho and variance 1 + rho² for
    Gaussian entries, 1 + rho (kurtosis - 1) - rho² for copied ones.  A projection of a
    token of length sqrt(width) has width times the variance of a weight.
    """
    initialisation = point.initialisation
    if initialisation is not None:
        entry = initialisation.width * initialisation.weight_variance(point.d_k)
        return 0.0, point.d_k * entry**2
    q, k = point.distribution_q, point.distribution_k
    rho, of_product = point.dependence.rho, 1.0
    if rho:
        gaussian = point.distribution_k.family == "gaussian"
        of_product += rho**2 if gaussian else rho * (k.kurtosis - 1.0) - rho**2
    variance = of_product * (q.std * k.std) ** 2
    variance += (q.mean * k.std) ** 2 + (k.mean * q.std) ** 2
    variance += 2.0 * rho * q.mean * k.mean * q.std * k.std
    mean = q.mean * k.mean + rho * q.std * k.std
    return point.d_k * mean, point.d_k * variance
