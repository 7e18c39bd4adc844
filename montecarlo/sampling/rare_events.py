"""Probabilities too small for plain sampling: the tail of q·k by exponential tilting.

Under a tilt t the pair of entries (q_m, k_m) is again normal, with variance 1/(1 - t²)
and correlation t, and large scores are common; each draw above the threshold counts
with the weight exp(-t s)(1 - t²)**(-d/2).  Above the threshold x that weight is at
most its value at x, so it is bounded, and the empirical Bernstein inequality gives an
interval that holds for every number of draws.
"""

import math

import numpy as np

from montecarlo.sampling.design_points import parse_point, stream

#: The quantity of tables that is estimated in this way, and not in replicates.
OVERFLOW = "overflow_probability"
#: Draws of a block; a block is the unit of a random stream.
BLOCK = 4096


def tilt(x: float, d_k: int) -> float:
    """Return the tilt under which the mean score is x: d t/(1 - t²) = x."""
    return (math.sqrt(d_k * d_k + 4.0 * x * x) - d_k) / (2.0 * x)


def estimate_tail(
    x: float, d_k: int, seed: int, n_blocks: int, error_rate: float = 0.05
) -> tuple[float, float, float]:
    """Estimate P(q·k > x) for independent Gaussian entries.

    Parameters
    ----------
    x : float
        Positive.
    d_k, seed : int
    n_blocks : int
        Blocks of 4096 draws, at least 1.
    error_rate : float
        Two-sided, of the interval.

    Returns
    -------
    float, float, float
        The logarithm of the estimate, as it may be below all floats; over the
        estimate, its standard error and the half-width of its empirical Bernstein
        interval.

    References
    ----------
    Maurer and Pontil (2009), Empirical Bernstein bounds and sample variance
    penalization, COLT, theorem 4: for n draws in [0, 1] of variance V, with
    probability 1 - delta the mean is off by at most
    sqrt(2 V ln(2/delta)/n) + 7 ln(2/delta)/(3(n - 1)) on one side.
    """
    t = tilt(x, d_k)
    std = 1.0 / math.sqrt(1.0 - t * t)  # of a tilted entry
    point = parse_point("gaussian", "gaussian", d_k)
    weights = []
    for block in range(n_blocks):
        rng = stream(seed, point, block, "tail")
        q = rng.standard_normal((BLOCK, d_k))
        z = rng.standard_normal((BLOCK, d_k))
        k = t * q + math.sqrt(1.0 - t * t) * z
        scores = std * std * (q * k).sum(axis=1)
        # weights over their bound at x: in [0, 1]
        weights.append(np.where(scores > x, np.exp(-t * (scores - x)), 0.0))
    bounded = np.concatenate(weights)
    n, mean = len(bounded), float(bounded.mean())
    variance = float(bounded.var(ddof=1))
    log_bound = -t * x - 0.5 * d_k * math.log1p(-t * t)
    log_term = math.log(4.0 / error_rate)
    half = math.sqrt(2.0 * variance * log_term / n) + 7.0 * log_term / (3.0 * (n - 1))
    return log_bound + math.log(mean), math.sqrt(variance / n) / mean, half / mean
