"""The exact distribution of q·k for Gaussian entries, at every d_k, far into its tails.

Given q the score is normal with standard deviation |q|, and |q| has the chi
distribution with d_k degrees of freedom: distribution and tails are integrals over |q|
of a normal one. In logarithms, so that nothing over- or underflows; no Bessel function
is needed, though the density is one (the variance-gamma distribution).
"""

import math
from functools import lru_cache

import numpy as np
import scipy

from montecarlo.theory.row_integrals import Array

#: Nodes of the trapezoidal rule over ln |q|.  The integrand is smooth and vanishes
#: with all derivatives at both ends, so the rule converges faster than any power.
NODES = 2001
#: Nodes cover this many widths, 1/sqrt(2 d), of ln |q| on either side of its peak.
WIDTHS = 14.0


def score_distribution(x: float, d_k: int) -> float:
    """Return P(q·k <= x)."""
    radius, weight = _lengths(d_k, 0.5 * math.log(d_k))
    return float((weight * scipy.special.ndtr(x / radius)).sum())


def log_score_tail(x: float, d_k: int) -> float:
    """Return ln P(q·k > x), to nearly full relative precision however small it is.

    ``x`` is at least 0.

    Notes
    -----
    Far in the tail the integrand peaks at a larger |q| than typical ones: near the
    root r of r⁴ - d r² - x² = 0, where d ln r - r²/2 - x²/(2 r²) is largest.
    """
    peak = 0.5 * math.log(0.5 * (d_k + math.sqrt(d_k * d_k + 4.0 * x * x)))
    radius, _ = _lengths(d_k, peak)
    logs = _log_density(radius, d_k) + scipy.special.log_ndtr(-x / radius)
    logs += np.log(radius)
    top = float(logs.max())
    step = math.log(radius[1] / radius[0])
    return top + math.log(float(np.exp(logs - top).sum()) * step)


def _log_density(radius: Array, d_k: int) -> Array:
    """Return the logarithm of the chi density."""
    constant = (1.0 - 0.5 * d_k) * math.log(2.0) - scipy.special.gammaln(0.5 * d_k)
    density: Array = constant + (d_k - 1.0) * np.log(radius) - 0.5 * radius**2
    return density


@lru_cache(maxsize=256)
def _lengths(d_k: int, peak: float) -> tuple[Array, Array]:
    """Return values of |q| around a peak, and their probabilities under chi."""
    # the lower tail of ln |q| falls like |q|**d only: wide for small d
    reach = WIDTHS / math.sqrt(2.0 * d_k)
    low, high = peak - reach - 40.0 / d_k, peak + reach
    logs = np.linspace(low, high, NODES)
    radius = np.exp(logs)
    step = (high - low) / (NODES - 1)
    weight: Array = np.exp(_log_density(radius, d_k) + logs) * step
    return radius, weight


def distribution_gap(x: float, d_k: int) -> float:
    """Return P(q·k <= x sqrt(d_k)) - Φ(x): how far the score is from normal at x."""
    return score_distribution(x * math.sqrt(d_k), d_k) - float(scipy.special.ndtr(x))


@lru_cache(maxsize=256)
def largest_gap(d_k: int) -> float:
    """Return sup |F - Φ|, F the distribution function of q·k over sqrt(d_k).

    Both are symmetric about 0, so x > 0 is enough; the gap changes its sign there, and
    the larger of its two extremes is refined between its neighbours on a grid.
    """
    from scipy.optimize import minimize_scalar  # takes longer than a point

    x = np.linspace(0.0, 5.0, 101)
    sizes = [abs(distribution_gap(float(one), d_k)) for one in x]
    best = max(1, min(int(np.argmax(sizes)), len(x) - 2))
    found = minimize_scalar(
        lambda one: -abs(distribution_gap(one, d_k)),
        bounds=(x[best - 1], x[best + 1]),
        method="bounded",
    )
    return max(sizes[best], -float(found.fun))


@lru_cache(maxsize=256)
def expected_maximum(n: int) -> float:
    """Return the expected largest of n independent N(0, 1).

    Notes
    -----
    ∫ (1 - Φ(x)ⁿ) dx over x > 0 minus ∫ Φ(x)ⁿ dx over x < 0, by the trapezoidal rule.
    """
    x = np.linspace(-12.0, 12.0, 24001)
    power = np.exp(n * scipy.special.log_ndtr(x))
    integrand = np.where(x > 0.0, 1.0 - power, -power)
    integrand[x == 0.0] = 0.5 - power[x == 0.0]
    return float(integrand.sum() * (x[1] - x[0]))
