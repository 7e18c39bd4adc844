"""Distribution and tail of q·k, where all entries are independent N(0, 1).

Given q the score is N(0, |q|²), and |q| has the chi distribution with d_k degrees of
freedom: distribution functions are integrals of the normal one over |q|.  They are
computed from logarithms, so that nothing over- or underflows.  (q·k has a
variance-gamma distribution; the Bessel function of its density is not needed here.)
"""

import math
from functools import lru_cache

import numpy as np
import scipy

from montecarlo.theory.row_integrals import Array

#: Nodes of the trapezoidal rule over ln |q|.  The integrand is smooth and vanishes with
#: all derivatives at both ends, so the rule converges faster than any power of its
#: step.
NODES = 2001
#: Nodes cover this many standard deviations of ln |q|, 1/sqrt(2 d), on either side of
#: the peak of the integrand.
WIDTHS = 14.0


def score_cdf(x: float, d_k: int) -> float:
    """Return the probability that a score is at most x: P(q·k <= x).

    q and k are standard normal vectors of dimension ``d_k``.
    """
    radius, weight = _query_norms(d_k, 0.5 * math.log(d_k))
    return float((weight * scipy.special.ndtr(x / radius)).sum())


def log_score_tail(x: float, d_k: int) -> float:
    """Return the log-probability that a score exceeds x >= 0: ln P(q·k > x).

    q and k are standard normal vectors of dimension ``d_k``.  The result is accurate
    even if the probability itself underflows.

    Notes
    -----
    Far in the tail the integrand over r = |q| peaks where d ln r - r²/2 - x²/(2 r²) is
    largest, at the root of r⁴ - d r² - x² = 0.  The nodes are centred there.
    """
    peak = 0.5 * math.log(0.5 * (d_k + math.sqrt(d_k * d_k + 4.0 * x * x)))
    radius, _ = _query_norms(d_k, peak)
    logs = _log_chi_density(radius, d_k) + scipy.special.log_ndtr(-x / radius)
    logs += np.log(radius)
    top = float(logs.max())
    step = math.log(radius[1] / radius[0])
    return top + math.log(float(np.exp(logs - top).sum()) * step)


def _log_chi_density(radius: Array, d_k: int) -> Array:
    """Return the natural logarithm of the chi density at ``radius``, elementwise.

    The distribution has d_k degrees of freedom.
    """
    constant = (1.0 - 0.5 * d_k) * math.log(2.0) - scipy.special.gammaln(0.5 * d_k)
    return constant + (d_k - 1.0) * np.log(radius) - 0.5 * radius**2


@lru_cache(maxsize=256)
def _query_norms(d_k: int, peak: float) -> tuple[Array, Array]:
    """Return (nodes of a quadrature over |q| ~ chi(d_k), their probabilities).

    Both have the shape (NODES,).  The nodes are evenly spaced in ln |q| around
    ``peak``, a value of ln |q|.
    """
    # the lower tail of ln |q| falls like |q|**d only: wide for small d
    reach = WIDTHS / math.sqrt(2.0 * d_k)
    low, high = peak - reach - 40.0 / d_k, peak + reach
    logs = np.linspace(low, high, NODES)
    radius = np.exp(logs)
    step = (high - low) / (NODES - 1)
    weight: Array = np.exp(_log_chi_density(radius, d_k) + logs) * step
    return radius, weight


def distribution_gap(x: float, d_k: int) -> float:
    """Return F(x) - Φ(x), the distance of a score's distribution from a normal one.

    F is the distribution function of q·k/sqrt(d_k) for standard normal q and k, and Φ
    that of N(0, 1).
    """
    return score_cdf(x * math.sqrt(d_k), d_k) - float(scipy.special.ndtr(x))


@lru_cache(maxsize=256)
def kolmogorov_distance(d_k: int) -> float:
    """Return the Kolmogorov distance between q·k/sqrt(d_k) and N(0, 1).

    It is the largest |F(x) - Φ(x)| over x, with F the distribution function of
    q·k/sqrt(d_k) for standard normal q and k, and Φ that of N(0, 1).

    Notes
    -----
    Both distributions are symmetric about 0, so x > 0 is enough.  The grid point with
    the largest distance is refined by finer grids between its neighbours.
    """
    low, high = 0.0, 5.0
    for n_points in (26, *5 * (11,)):
        x = np.linspace(low, high, n_points)
        sizes = [abs(distribution_gap(float(one), d_k)) for one in x]
        best = int(np.argmax(sizes))
        low, high = x[max(best - 1, 0)], x[min(best + 1, n_points - 1)]
    return max(sizes)


@lru_cache(maxsize=256)
def expected_maximum(n: int) -> float:
    """Return the expected maximum of n independent N(0, 1) variables.

    Notes
    -----
    ∫ (1 - Φ(x)ⁿ) dx over x > 0 minus ∫ Φ(x)ⁿ dx over x < 0, by the trapezoidal rule.
    """
    x = np.linspace(-12.0, 12.0, 24001)
    power = np.exp(n * scipy.special.log_ndtr(x))
    integrand = np.where(x > 0.0, 1.0 - power, -power)
    integrand[x == 0.0] = 0.5 - power[x == 0.0]
    return float(integrand.sum() * (x[1] - x[0]))
