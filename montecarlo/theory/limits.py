"""What becomes of undivided rows as d_k grows without bound, at a fixed number of keys.

In: a quantity, a summary and the number of keys n, for independent standard normal
entries and divisor 1.  Out: its `Limit`, with the exact law of the approach.

Notes
-----
Given q the scores of a row are s times n independent standard normals, s = |q|, and
s/sqrt(d_k) tends to 1.  Let g be the gap between the two largest of the normals.  As s
grows, all weight is on the two largest keys, p = σ(s g) and 1 - p, and only rows with a
gap of order 1/s are not saturated.  For a function f of the divided gap t = s g that
is small at large t, with c = `gap_density` the density of g at 0::

    E f(s g) ~ c/s ∫_0^∞ f(t) dt

For two keys tr J = 2 w, ‖J‖_F = ‖J‖_2 = 2 w with w = p (1 - p), and ∫ 2 w dt = 1 over
t > 0: that gives all three norms the law c/sqrt(d_k).  For all n keys, exactly::

    tr J/(n - 1) <= ‖J‖_2 <= ‖J‖_F <= tr J

since J has no negative eigenvalue and at most n - 1 that are not 0: with the trace's
law the other norms' are rigorous powers of exponent -1/2, too.  Further, over t > 0::

    ∫ (2 w)² dt = 1/3                       mean of ‖J‖_F²
    ∫ w dt = 1/2, E |v1 - v2| = 2/sqrt(pi)  mean of ‖J v‖ = w |v1 - v2| sqrt(2)
    |k1 - k2|² ~ 2 d_k                      mean of ‖K'J v‖ = w |v1 - v2| |k1 - k2|
    ∫ w² dt = 1/12, E (v1 - v2)² = 2        mean square of that
    ∫ -p ln p - (1 - p) ln(1 - p) dt = pi²/6  mean of the entropy

A quantile looks at rows of one gap g > 0, where w = exp(-s g) (1 + o(1)); what else
varies with d_k does so far less than sqrt(d_k) g, so that it enters by its mean
logarithm alone: E ln |v1 - v2| = -γ/2, γ Euler's constant.  A low quantile of a norm is
a high one of the gap.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy
from msgspec import Struct
from scipy.special import log_ndtr

from montecarlo.theory.row_integrals import Array
from montecarlo.theory.score_distribution import expected_maximum

#: Grid of the normals, even; the narrowest integrand, for 2**20 keys, is 0.13 wide.
LOWEST, HIGHEST, NODES = -12.0, 14.0, 13001
#: Levels of quantiles; written down a second time, as in `references`.
LEVELS = {"q10": 0.1, "median": 0.5, "q90": 0.9}


#: What becomes of a quantity as d_k grows without bound.
Tendency = Literal["zero", "constant", "infinity"]


class Limit(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a quantity behaves as d_k grows.

    Attributes
    ----------
    tends_to : {"zero", "constant", "infinity"}
    kind : {"power", "exponential"}
        The value over constant · d_k**exponent tends to 1; or it does over
        constant · d_k**power · exp(-exponent · sqrt(d_k)).
    exponent, constant : float
    power : float
        Of an exponential law.
    """

    tends_to: Tendency
    kind: Literal["power", "exponential"]
    exponent: float
    constant: float
    power: float = 0.0

    def value(self, d_k: float) -> float:
        """Return the law's value at some d_k."""
        if self.kind == "power":
            return float(self.constant * d_k**self.exponent)
        return float(
            self.constant * d_k**self.power * math.exp(-self.exponent * math.sqrt(d_k))
        )


@lru_cache(maxsize=256)
def gap_density(n_keys: int) -> float:
    """Return the density at 0 of the gap between the two largest of n normals.

    Notes
    -----
    n (n - 1) ∫ φ² Φ^(n-2) dx, by the trapezoidal rule: the integrand is analytic and
    vanishes at both ends.  By parts it is n ∫ x φ Φ^(n-1) dx, too: the expected largest
    of n normals.
    """
    x, step = _normals(n_keys)
    logs = -(x**2) - math.log(2.0 * math.pi) + (n_keys - 2.0) * log_ndtr(x)
    logs += math.log(n_keys) + math.log(n_keys - 1.0)
    return float(np.exp(logs).sum() * step)


def gap_exceeds(n_keys: int, gap: float) -> float:
    """Return the probability that the two largest of n normals are farther apart.

    Notes
    -----
    n ∫ φ(x) Φ(x - g)^(n-1) dx: one of them at x, all others below x - g.
    """
    x, step = _normals(n_keys)
    logs = _log_normal(x) + (n_keys - 1.0) * log_ndtr(x - gap) + math.log(n_keys)
    return float(np.exp(logs).sum() * step)


@lru_cache(maxsize=256)
def gap_quantile(n_keys: int, level: float) -> float:
    """Return a quantile of the gap between the two largest of n normals."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    return _solve(lambda gap: gap_exceeds(n_keys, gap), 1.0 - level)


@lru_cache(maxsize=256)
def element_gap_quantile(n_keys: int, level: float) -> float:
    """Return a quantile of what an element p(1 - p) falls by, in units of the scores.

    For an element of a row drawn evenly: the gap to the largest score, and for the
    largest itself, whose 1 - p is the second weight, the gap to the second.

    Notes
    -----
    A certain other key is the largest in all but 1/n of rows, and farther away than g
    with probability (n - 1) ∫ φ(x) Φ(x - g) Φ(x)^(n-2) dx.
    """

    def exceeds(gap: float) -> float:
        x, step = _normals(n_keys)
        logs = _log_normal(x) + log_ndtr(x - gap) + (n_keys - 2.0) * log_ndtr(x)
        others = (n_keys - 1.0) * float(np.exp(logs).sum() * step)
        return others + gap_exceeds(n_keys, gap) / n_keys

    return _solve(exceeds, 1.0 - level)


def _normals(n_keys: int) -> tuple[Array, float]:
    if n_keys < 2:
        raise ValueError(f"n_keys must be at least 2, got {n_keys!r}")
    x: Array = np.linspace(LOWEST, HIGHEST, NODES)
    return x, (HIGHEST - LOWEST) / (NODES - 1)


def _log_normal(x: Array) -> Array:
    density: Array = -0.5 * x**2 - 0.5 * math.log(2.0 * math.pi)
    return density


def _solve(exceeds: Callable[[float], float], share: float) -> float:
    widest = HIGHEST - LOWEST
    return float(
        scipy.optimize.brentq(lambda gap: exceeds(gap) - share, 0.0, widest, xtol=1e-13)
    )


def limit_of(quantity: str, summary: str, n_keys: int) -> Limit | None:
    """Return the limit of a quantity of undivided rows as d_k grows.

    Parameters
    ----------
    quantity : str
        A name in `montecarlo.attention.quantities.ROW_QUANTITIES`.
    summary : str
        ``mean``, ``median``, ``q10`` or ``q90``.
    n_keys : int

    Returns
    -------
    Limit or None
        None where it is not derived here.
    """
    if summary == "mean":
        return _limit_of_mean(quantity, n_keys)
    level = LEVELS.get(summary)
    return None if level is None else _limit_of_quantile(quantity, level, n_keys)


def _limit_of_mean(quantity: str, n_keys: int) -> Limit | None:
    density = gap_density(n_keys)
    query = math.sqrt(2.0 / math.pi)
    to_zero = {
        "jacobian_trace": 1.0,
        "jacobian_frobenius": 1.0,
        "jacobian_spectral": 1.0,
        "jacobian_frobenius_squared": 1.0 / 3.0,
        "element_gradient": 1.0 / n_keys,
        "entropy": math.pi**2 / 6.0,
    }
    if quantity in to_zero:
        return Limit("zero", "power", -0.5, to_zero[quantity] * density)
    to_constant = {
        "gradient_query": query * density,
        **dict.fromkeys(("weight_max", "inverse_participation", "effective_keys"), 1.0),
        **dict.fromkeys(("saturated", "saturated_99", "saturated_999"), 1.0),
    }
    if quantity in to_constant:
        return Limit("constant", "power", 0.0, to_constant[quantity])
    largest = expected_maximum(n_keys)
    to_infinity = {
        "gradient_query_squared": (0.5, density / 3.0),
        "score_max": (0.5, largest),
        "log_partition": (0.5, largest),
        "score_row_variance": (1.0, 1.0),
    }
    if quantity in to_infinity:
        return Limit("infinity", "power", *to_infinity[quantity])
    return None


def _limit_of_quantile(quantity: str, level: float, n_keys: int) -> Limit | None:
    if quantity in ("weight_max", "effective_keys"):
        return Limit("constant", "power", 0.0, 1.0)
    if quantity == "element_gradient":
        rate = element_gap_quantile(n_keys, 1.0 - level)
        return Limit("zero", "exponential", rate, 1.0)
    difference = math.exp(-0.5 * np.euler_gamma)  # of v at two keys, by its logarithm
    factors = {
        **dict.fromkeys(
            ("jacobian_trace", "jacobian_frobenius", "jacobian_spectral"), (2.0, 0.0)
        ),
        "gradient_query": (math.sqrt(2.0) * difference, 0.5),
    }
    if quantity not in factors:
        return None
    constant, power = factors[quantity]
    rate = gap_quantile(n_keys, 1.0 - level)
    return Limit("zero", "exponential", rate, constant, power)
