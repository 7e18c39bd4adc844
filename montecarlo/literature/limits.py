"""What statements say of large n or large d_k, decided by theory.

Each function returns the value in the limit itself; what it is at finite n or d_k is
looked at elsewhere, and never decides about a limit.
"""

import math

import numpy as np
from numpy.polynomial import Polynomial
from scipy.optimize import brentq
from scipy.special import digamma, gamma

from montecarlo.literature.settings import Setting
from montecarlo.theory.limits import limit_of

#: ln n of two numbers of keys so large that an exponent between them is its limit to
#: nine digits.
VERY_LARGE = (1e12, 1e13)


def raised_weight_limit(at: Setting) -> float:
    """Return the weight of a score above equal ones by a gap, for n without bound.

    Notes
    -----
    Multiplied by γ ln n, its weight is 1/(1 + (n - 1)/n^(γΔ)); γ = 0 stands for scores
    that are not multiplied, of whatever gap.
    """
    return float(np.heaviside((at.growth or 0.0) * (at.gap or 0.0) - 1.0, 0.5))


def concentration_limit(at: Setting) -> float:
    """Return E Σp² of normal scores for n without bound, at a fixed s/√(2 ln n).

    Notes
    -----
    With m = √(2 ln n)/s below 1, the largest exponentials tend to the points w of a
    Poisson process of intensity w^(-m-1).  From 1/Z² = ∫ t exp(-t Z) dt and the
    process's Laplace functional it is::

        Γ(2 - m) ∫ t^(m-1) exp(-Γ(1 - m)/m t^m) dt = Γ(2 - m)/Γ(1 - m)

    With m from 1 on no weight keeps a part of the sum.
    """
    m = 1.0 / (at.times or 1.0)
    return float(gamma(2.0 - m) / gamma(1.0 - m)) if m < 1.0 else 0.0


def gap_that_holds(entropy: float, log_n: float) -> float:
    """Return by how much one score must lie above n equal ones for an entropy.

    Notes
    -----
    The others share the weight r; the entropy -(1 - r) ln(1 - r) - r ln(r/n) rises with
    r until all are equal, and the gap is its slope: ln n + ln((1 - r)/r).
    """

    def off(log_r: float) -> float:
        r = math.exp(log_r)
        return -(1.0 - r) * math.log1p(-r) - r * (log_r - log_n) - entropy

    all_equal = -math.log1p(math.exp(-log_n))
    log_r = brentq(off, -80.0, min(all_equal, -1e-12), xtol=1e-14)
    return log_n + math.log1p(-math.exp(log_r)) - log_r


def gap_exponent(at: Setting) -> float:
    """Return the exponent with which that gap grows with ln n between two n."""
    low, high = at.from_keys or 2, at.keys
    logs = math.log(low - 1), math.log(high - 1)
    first, last = (gap_that_holds(at.level or 0.0, log_n) for log_n in logs)
    return math.log(last / first) / math.log(math.log(high) / math.log(low))


def gap_exponent_limit(at: Setting) -> float:
    """Return it for n without bound."""
    first, last = (gap_that_holds(at.level or 0.0, log_n) for log_n in VERY_LARGE)
    return math.log(last / first) / math.log(VERY_LARGE[1] / VERY_LARGE[0])


def normal_exponent_limit(at: Setting) -> float:
    """Return the exponent of s of normal scores that keeps an entropy, likewise.

    Notes
    -----
    In the limit of `concentration_limit` the entropy is ψ(1) - ψ(1 - m), a function of
    m = √(2 ln n)/s alone.
    """

    def off(m: float) -> float:
        return float(digamma(1.0) - digamma(1.0 - m)) - (at.level or 0.0)

    m = brentq(off, 1e-12, 1.0 - 1e-12)
    first, last = (math.sqrt(2.0 * log_n) / m for log_n in VERY_LARGE)
    return math.log(last / first) / math.log(VERY_LARGE[1] / VERY_LARGE[0])


def score_exponent_limit(at: Setting) -> float:
    """Return the exponent of the root mean square of q·k for d_k without bound.

    Notes
    -----
    Half of the degree of E (q·k)² = d (1 + ρ²) + d² ρ².
    """
    square = (at.correlation or 0.0) ** 2
    return Polynomial([0.0, 1.0 + square, square]).trim().degree() / 2.0


def jacobian_limit(at: Setting, summary: str) -> float:
    """Return what ‖J‖_F of unscaled rows tends to for d_k without bound."""
    found = limit_of("jacobian_frobenius", summary, at.keys)
    if found is None:
        raise ValueError(f"summary must have a limit, got {summary!r}")
    ends = {"zero": 0.0, "constant": found.constant, "infinity": math.inf}
    return ends[found.tends_to]


def spectral_bound(at: Setting) -> float:
    """Return the largest (max u - min u)²/4 of a unit vector u, at least ‖J‖_2.

    Notes
    -----
    uᵀ J u is the variance of u under the weights, at most a quarter of the square of
    its range; the range of a unit vector is largest at (1, -1, 0, ...)/√2.
    """
    ends = np.zeros(at.keys)
    ends[:2] = 1.0, -1.0
    return float(np.ptp(ends / np.linalg.norm(ends)) ** 2 / 4.0)
