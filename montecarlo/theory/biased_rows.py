"""Exact expectations over a row of which one score has a mean: a sink, or a signal.

In: the standard deviation of the scores, the mean of one of them, the number of keys.
Out: the expectations of `BIASED_NAMES` with their numerical errors.
"""

import numpy as np

from montecarlo.theory.gaussian_rows import grid_of, profile_at
from montecarlo.theory.row_integrals import ROUNDING, Array, Expectations, Profile

#: Order of the last axis: those of a row but for the largest weight, and the weight of
#: the key whose score has the mean.
BIASED_NAMES = (
    "log_partition",
    "entropy",
    "inverse_participation",
    "jacobian_trace",
    "jacobian_frobenius_squared",
    "biased_weight",
)


def expect_biased_row(std: float, bias: float, n_keys: float) -> Expectations:
    """Return the expectations over a row of n scores, one N(bias, s²), others N(0, s²).

    Parameters
    ----------
    std : float
        s, positive.
    bias : float
        Positive for a key that attracts, as a sink does.
    n_keys : float
        The one with the mean is among them; 2 at least.  Between two whole numbers the
        expectations are continued smoothly.

    Returns
    -------
    Expectations
        Shape (6,).  The error is the difference from twice the step, plus how far the
        weights are from summing to 1.

    Notes
    -----
    The integrals are those of `row_integrals.integrate_row`, written out for one key
    that differs: with φ, a1, a2 of the others and Φ, A1, A2 of that key ::

        E Σp     = ∫ [A1 φ^(n-1) + (n-1) a1 Φ φ^(n-2)] du = 1         (self-check)
        E Σp²    = ∫ [A2 φ^(n-1) + (n-1) a2 Φ φ^(n-2)] du
        E tr J   = ∫ [2(n-1) A1 a1 φ^(n-2) + (n-1)(n-2) a1² Φ φ^(n-3)] du

    and so on; every term is positive.
    """
    stds = np.array([std])
    u, stride = grid_of(stds, bias)
    usual = profile_at(stds, u, stride)
    # exp(u + bias + x): the same functions, further on; ln w stands in a1_log as it is
    other = profile_at(stds, u + bias, stride)
    fine = _sums(usual, other, n_keys, 1)
    coarse = _sums(usual, other, n_keys, 2)
    values = fine[1:]
    errors = np.abs(values - coarse[1:])
    errors += (abs(fine[0] - 1.0) + ROUNDING) * np.abs(values)
    return Expectations(values, errors)


def _sums(usual: Profile, other: Profile, n_keys: float, stride: int) -> Array:
    """Sum the weights, and what `BIASED_NAMES` says, on every few points."""
    u, n = usual.u[::stride], float(n_keys)
    a1, a1_log, a2 = (part[0, ::stride] for part in (usual.a1, usual.a1_log, usual.a2))
    b1, b1_log, b2 = (part[0, ::stride] for part in (other.a1, other.a1_log, other.a2))
    log_phi, log_other = usual.log_phi[0, ::stride], other.log_phi[0, ::stride]

    def others(kept: int, *, with_biased: bool) -> Array:
        """Ordered choices of ``kept`` usual keys, times φ of all the keys left."""
        ways = np.prod([n - 1.0 - i for i in range(kept)])
        rest = (n - 1.0 - kept) * log_phi + (0.0 if with_biased else log_other)
        product: Array = max(ways, 0.0) * np.exp(rest)
        return product

    def both(biased: Array, usual_part: Array) -> Array:
        """Sum something of one key over all the keys."""
        mine = biased * others(0, with_biased=True)
        return mine + usual_part * others(1, with_biased=False)

    two = others(1, with_biased=True), others(2, with_biased=False)
    three = others(2, with_biased=True), others(3, with_biased=False)
    trace = 2.0 * b1 * a1 * two[0] + a1 * a1 * two[1]
    frobenius = 2.0 * (2.0 * b2 * a2 * two[0] + a2 * a2 * two[1])
    frobenius += (b2 * a1 * a1 + 2.0 * a2 * a1 * b1) * three[0]
    frobenius += a2 * a1 * a1 * three[1]
    weights = both(b1, a1)
    parts = (
        weights,
        -u * weights,
        -both(b1_log + np.euler_gamma * b1, a1_log + np.euler_gamma * a1),
        both(b2, a2),
        trace,
        frobenius / 6.0,
        b1 * others(0, with_biased=True),
    )
    sums: Array = (u[1] - u[0]) * np.stack([part.sum() for part in parts])
    sums[1] -= np.euler_gamma
    return sums
