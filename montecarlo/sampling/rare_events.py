"""Small tail probabilities P(q·k > x), estimated by importance sampling.

The sampling distribution is exponentially tilted.  For a tilt t from 0 to 1, the
entries (q_m, k_m) are normal with variance 1/(1 - t²) and correlation t, so that large
scores s are common.  A draw with s > x has the weight exp(-t s) (1 - t²)**(-d_k/2).  It
is at most the weight at x.  Since weights are bounded, the empirical Bernstein
inequality gives an interval that is valid for any number of draws.
"""

import math

import numpy as np

from montecarlo.sampling.design_points import parse_point, stream

#: Name of the quantity in tables, which is not estimated from replicates.
OVERFLOW = "overflow_probability"
#: Number of draws in a block; each block has a random stream.
BLOCK = 4096


def tilt(x: float, d_k: int) -> float:
    """Return the tilt t, between 0 and 1, under which scores q·k have the mean ``x``.

    The mean under a tilt t is d_k t/(1 - t²).  ``x`` must be positive.
    """
    return (math.sqrt(d_k * d_k + 4.0 * x * x) - d_k) / (2.0 * x)


def estimate_tail(
    x: float, d_k: int, seed: int, n_blocks: int, error_rate: float = 0.05
) -> tuple[float, float, float]:
    """Return an estimate of ln P(q·k > x) for standard normal entries, and its errors.

    Parameters
    ----------
    x : float
        Positive.
    d_k : int
        At least 1.
    seed : int
        At least 0.
    n_blocks : int
        Number of blocks of `BLOCK` draws, at least 1.
    error_rate : float
        Two-sided error rate of the interval.

    Returns
    -------
    log_estimate : float
        Natural logarithm of the estimate, which itself may underflow.
    std_error, half_width : float
        Standard error, and half-width of the empirical Bernstein interval, both divided
        by the estimate.

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
        # weights divided by their bound, from 0 to 1
        weights.append(np.where(scores > x, np.exp(-t * (scores - x)), 0.0))
    bounded = np.concatenate(weights)
    n, mean = len(bounded), float(bounded.mean())
    variance = float(bounded.var(ddof=1))
    log_bound = -t * x - 0.5 * d_k * math.log1p(-t * t)
    log_term = math.log(4.0 / error_rate)
    half = math.sqrt(2.0 * variance * log_term / n) + 7.0 * log_term / (3.0 * (n - 1))
    return log_bound + math.log(mean), math.sqrt(variance / n) / mean, half / mean
