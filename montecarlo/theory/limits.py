"""Limits of row quantities as d_k grows, without scaling and at a fixed number of keys.

In: a quantity, a summary and the number of keys n, for q and k with independent
standard normal entries and scores q·k (divisor 1).  Out: a `Limit`, which holds the
leading term of the quantity for large d_k.

Notes
-----
Given q, the scores of a row are s = |q| times n independent standard normals, and
s/sqrt(d_k) tends to 1.  Let g be the gap between the two largest of the normals.  As s
grows, all weight is on the two largest keys, p = σ(s g) and 1 - p, with σ the logistic
function, and only rows with a gap of order 1/s are not saturated.  Let f be a function
of the gap in scores, t = s g, that is integrable over t > 0, and c =
`gap_density_at_zero` the density of g at 0::

    E f(s g) ~ c/s ∫_0^∞ f(t) dt

J = diag(p) - p pᵀ is the Jacobian of softmax.  With only the two largest keys, and w =
p (1 - p), tr J = ‖J‖_F = ‖J‖_2 = 2 w.  As ∫ 2 w dt = 1 over t > 0, the mean of each of
these is asymptotically c/sqrt(d_k).  For all n keys, exactly::

    tr J/(n - 1) <= ‖J‖_2 <= ‖J‖_F <= tr J

because J is positive semidefinite of rank at most n - 1.  So the exponent -1/2 of the
trace is also that of the other two norms.  For other quantities, with v standard normal
and integrals over t > 0::

    ∫ (2 w)² dt = 1/3                       mean of ‖J‖_F²
    ∫ w dt = 1/2, E |v1 - v2| = 2/sqrt(pi)  mean of ‖J v‖ = w |v1 - v2| sqrt(2)
    |k1 - k2|² ~ 2 d_k                      mean of ‖KᵀJ v‖ = w |v1 - v2| |k1 - k2|
    ∫ w² dt = 1/12, E (v1 - v2)² = 2        mean of ‖KᵀJ v‖²
    ∫ -p ln p - (1 - p) ln(1 - p) dt = pi²/6  mean of the entropy

The quantile of a quantity at a level is attained at a fixed gap g > 0, where w =
exp(-s g) (1 + o(1)).  The other random factors vary far less than exp(-s g), so that
each is replaced by the exponential of its mean logarithm: E ln |v1 - v2| = -γ/2, γ
Euler's constant.  A low quantile of a norm belongs to a high quantile of the gap.
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

#: Evenly spaced grid of a standard normal variable.  The narrowest integrand, for 2**20
#: keys, is 0.13 wide.
GRID_START, GRID_STOP, GRID_POINTS = -12.0, 14.0, 13001
#: Levels of the quantile summaries.  Not imported, as in `references`: theory must not
#: share a mistake with the simulation.
LEVELS = {"q10": 0.1, "median": 0.5, "q90": 0.9}


#: The limit of a quantity as d_k grows: 0, a positive constant, or infinity.
Tendency = Literal["zero", "constant", "infinity"]


class Limit(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limit and leading term of a quantity as d_k grows.

    Attributes
    ----------
    tends_to : {"zero", "constant", "infinity"}
    kind : {"power", "exponential"}
        The leading term is constant · d_k**exponent for ``"power"``, and
        constant · d_k**power · exp(-exponent · sqrt(d_k)) for ``"exponential"``.
    exponent, constant : float
    power : float
        Used by ``"exponential"`` only.
    """

    tends_to: Tendency
    kind: Literal["power", "exponential"]
    exponent: float
    constant: float
    power: float = 0.0

    def value(self, d_k: float) -> float:
        """Return the leading term at ``d_k``, by the formula for ``kind``.

        For ``"power"`` it is constant · d_k**exponent, for ``"exponential"``
        constant · d_k**power · exp(-exponent · sqrt(d_k)).
        """
        if self.kind == "power":
            return float(self.constant * d_k**self.exponent)
        return float(
            self.constant * d_k**self.power * math.exp(-self.exponent * math.sqrt(d_k))
        )


@lru_cache(maxsize=256)
def gap_density_at_zero(n_keys: int) -> float:
    """Return the density at 0 of the gap between the two largest of n normals.

    The n = ``n_keys`` normal variables are independent and standard.

    Notes
    -----
    n (n - 1) ∫ φ² Φ^(n-2) dx, by the trapezoidal rule: the integrand is analytic and
    vanishes at both ends.  Integrated by parts this is n ∫ x φ Φ^(n-1) dx, the expected
    maximum of the n normals.
    """
    x, step = _normal_grid(n_keys)
    logs = -(x**2) - math.log(2.0 * math.pi) + (n_keys - 2.0) * log_ndtr(x)
    logs += math.log(n_keys) + math.log(n_keys - 1.0)
    return float(np.exp(logs).sum() * step)


def gap_survival(n_keys: int, gap: float) -> float:
    """Return P(gap > ``gap``) for the gap between the two largest of n normals.

    The n = ``n_keys`` normal variables are independent and standard.

    Notes
    -----
    n ∫ φ(x) Φ(x - gap)^(n-1) dx: one of them at x, all others below x - gap.
    """
    x, step = _normal_grid(n_keys)
    logs = _log_normal_density(x) + (n_keys - 1.0) * log_ndtr(x - gap)
    logs += math.log(n_keys)
    return float(np.exp(logs).sum() * step)


@lru_cache(maxsize=256)
def gap_quantile(n_keys: int, level: float) -> float:
    """Return a quantile of the gap between the two largest of n standard normals.

    ``level`` is the probability of a smaller gap: ValueError unless it is between 0 and
    1.  The n = ``n_keys`` variables are independent.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    return _invert_survival(lambda gap: gap_survival(n_keys, gap), 1.0 - level)


@lru_cache(maxsize=256)
def element_rate_quantile(n_keys: int, level: float) -> float:
    """Return a quantile of the rate g at which p(1 - p) falls, as exp(-s g).

    ``level`` is the probability of a smaller g.  The scores of a row are s times
    independent standard normals, with s large.  A key is drawn uniformly from the row,
    and p is its weight.  g is the gap from the normal of this key to the largest one.
    If its normal is the largest, 1 - p is the weight of the second largest, and g is
    the gap between these two.

    Notes
    -----
    P(g > gap) = (n - 1) ∫ φ(x) Φ(x - gap) Φ(x)^(n-2) dx for a key that is not the
    largest, plus `gap_survival`/n for one that is.
    """

    def survival(gap: float) -> float:
        """Return the probability that the rate g exceeds ``gap``.

        g is the rate for a key that is drawn uniformly from ``n_keys`` keys.
        """
        x, step = _normal_grid(n_keys)
        logs = _log_normal_density(x) + log_ndtr(x - gap) + (n_keys - 2.0) * log_ndtr(x)
        others = (n_keys - 1.0) * float(np.exp(logs).sum() * step)
        return others + gap_survival(n_keys, gap) / n_keys

    return _invert_survival(survival, 1.0 - level)


def _normal_grid(n_keys: int) -> tuple[Array, float]:
    """Return (evenly spaced grid for integrals over a standard normal, its step).

    The grid has the shape (GRID_POINTS,) and is the same for any number of keys.
    ``n_keys`` is only checked: ValueError if it is less than 2.
    """
    if n_keys < 2:
        raise ValueError(f"n_keys must be at least 2, got {n_keys!r}")
    x: Array = np.linspace(GRID_START, GRID_STOP, GRID_POINTS)
    return x, (GRID_STOP - GRID_START) / (GRID_POINTS - 1)


def _log_normal_density(x: Array) -> Array:
    """Return the natural logarithm of the standard normal density, elementwise."""
    return -0.5 * x**2 - 0.5 * math.log(2.0 * math.pi)


def _invert_survival(survival: Callable[[float], float], probability: float) -> float:
    """Return the value that a variable exceeds with a given probability.

    ``survival`` returns the probability that the variable exceeds a value.  ValueError
    unless the result is from 0 to `GRID_STOP` - `GRID_START`.
    """

    def excess(gap: float) -> float:
        """Return ``survival(gap)`` minus ``probability``, which is 0 at the result."""
        return survival(gap) - probability

    widest = GRID_STOP - GRID_START
    return float(scipy.optimize.brentq(excess, 0.0, widest, xtol=1e-13))


def limit_of(quantity: str, summary: str, n_keys: int) -> Limit | None:
    """Return the limit of a row quantity as d_k grows, for unscaled scores (divisor 1).

    Queries and keys have independent standard normal entries.

    Parameters
    ----------
    quantity : str
        A name in `montecarlo.attention.quantities.ROW_QUANTITIES`.
    summary : str
        Summary over rows: ``mean``, ``median``, ``q10`` or ``q90``.
    n_keys : int
        Number of keys, fixed while d_k grows; at least 2.

    Returns
    -------
    Limit or None
        None if it is not derived here, as for unknown names and other summaries.
    """
    if summary == "mean":
        return _limit_of_mean(quantity, n_keys)
    level = LEVELS.get(summary)
    return None if level is None else _limit_of_quantile(quantity, level, n_keys)


#: Norms of the Jacobian of softmax whose limits are the same.
NORMS = ("jacobian_trace", "jacobian_frobenius", "jacobian_spectral")


def _limit_of_mean(quantity: str, n_keys: int) -> Limit | None:
    """Return the limit of a quantity's mean over rows; None if it is not derived here.

    The formulas are in the notes of the module.
    """
    density, largest = gap_density_at_zero(n_keys), expected_maximum(n_keys)
    shares = ("saturated", "saturated_99", "saturated_999")
    leading_terms = {  # exponent and constant
        **dict.fromkeys(NORMS, (-0.5, density)),
        "jacobian_frobenius_squared": (-0.5, 1.0 / 3.0 * density),
        "element_gradient": (-0.5, 1.0 / n_keys * density),
        "entropy": (-0.5, math.pi**2 / 6.0 * density),
        "gradient_query": (0.0, math.sqrt(2.0 / math.pi) * density),
        **dict.fromkeys(("weight_max", "inverse_participation"), (0.0, 1.0)),
        **dict.fromkeys(("effective_keys", *shares), (0.0, 1.0)),
        "gradient_query_squared": (0.5, density / 3.0),
        **dict.fromkeys(("score_max", "log_partition"), (0.5, largest)),
        "score_row_variance": (1.0, 1.0),
    }
    if quantity not in leading_terms:
        return None
    exponent, constant = leading_terms[quantity]
    above_zero: Tendency = "infinity" if exponent else "constant"
    tends_to: Tendency = "zero" if exponent < 0.0 else above_zero
    return Limit(tends_to, "power", exponent, constant)


def _limit_of_quantile(quantity: str, level: float, n_keys: int) -> Limit | None:
    """Return the limit of a quantity's quantile over rows; None if not derived here.

    ``level`` is the share of rows with values below the quantile.  The formulas are in
    the notes of the module.
    """
    if quantity in ("weight_max", "effective_keys"):
        return Limit("constant", "power", 0.0, 1.0)
    if quantity == "element_gradient":
        rate = element_rate_quantile(n_keys, 1.0 - level)
        return Limit("zero", "exponential", rate, 1.0)
    constant, power = 2.0, 0.0
    if quantity == "gradient_query":
        difference = math.exp(-0.5 * np.euler_gamma)  # exp(E ln |v1 - v2|)
        constant, power = math.sqrt(2.0) * difference, 0.5
    elif quantity not in NORMS:
        return None
    rate = gap_quantile(n_keys, 1.0 - level)
    return Limit("zero", "exponential", rate, constant, power)
