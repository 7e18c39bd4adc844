"""Expectations over a row by quadrature with 30 digits, sharing nothing with `theory`.

In: number of keys n and standard deviation s of the scores.  Out: what `expected_row`
gives, by the same separation of the scores (1/Z^k as an integral over t = exp u), but
each function of u as a sum over the normal density itself, all in mpmath, with steps
that leave 15 digits; E H from E ln Z by Stein's identity, E ‖J‖_F² by powers that
cancel.  The largest weight is summed over rows that one key leads, with its rivals by
Gauss-Legendre, in double precision.
"""

import math
from functools import cache

import mpmath
import numpy as np
from mpmath import mp, mpf
from scipy import stats

#: Sums leave out what is below exp(-NATS).
NATS = 55
NAMES = (
    "log_partition",
    "entropy",
    "inverse_participation",
    "jacobian_frobenius_squared",
    "weight_max",
)


@cache
def kernels(s):
    """u, and E w^k exp(-w) for k = 0 to 4 with w = exp(u + s g), on an even grid."""
    reach = mpmath.sqrt(2 * NATS)
    # exp(-w) is analytic while s times the imaginary part of g is below pi/2
    step_g = min(mpf("0.5"), mp.pi**2 / (s * NATS))
    half = int(reach / step_g) + 1
    nodes = [i * step_g for i in range(-half, half + 1)]
    density = [step_g * mpmath.npdf(g) for g in nodes]
    shift = [mpmath.exp(s * g) for g in nodes]
    step_u = mp.pi**2 / NATS
    low = -(NATS + 15) - s * reach
    found = []
    for i in range(int((5 + s * reach - low) / step_u) + 1):
        u = low + i * step_u
        t, sums = mpmath.exp(u), [mpf(0)] * 5
        for weight, factor in zip(density, shift, strict=True):
            w = t * factor
            term = weight * mpmath.exp(-w)
            for power in range(5):
                sums[power] += term
                term *= w
        found.append((u, sums))
    return step_u, found


def by_powers(n, s):
    """E ln Z, E H, E Σp² and E ‖J‖_F²."""
    step, found = kernels(s)
    log_z = y2 = y3 = y4 = pairs = mpf(0)
    for u, (phi, _, a2, a3, a4) in found:
        log_z += mpmath.exp(-mpmath.exp(u)) - phi**n
        one = n * phi ** (n - 1)
        y2 += a2 * one
        y3 += a3 * one / 2
        y4 += a4 * one / 6
        pairs += n * (n - 1) * a2**2 * phi ** (n - 2) / 6
    log_z, y2, y3, y4, pairs = (step * x for x in (log_z, y2, y3, y4, pairs))
    return {
        "log_partition": log_z,
        "entropy": log_z - s**2 * (1 - y2),
        "inverse_participation": y2,
        "jacobian_frobenius_squared": y2 - 2 * y3 + y4 + pairs,
    }


def leading_weight(n, s):
    """E p_max: n ∫ N(g) ∫ t exp(-t) psi^(n-1) du dg, psi = ∫ N over rivals below g.

    Double precision leaves ten digits.
    """
    step_g, step_u = 0.05, 0.3
    nodes, weights = np.polynomial.legendre.leggauss(96)
    u = np.arange(-34 - math.log(n), 4, step_u)  # what is left out is 1e-15 of 1/n
    t = np.exp(u)
    total = 0.0
    for g in np.arange(-8, 12, step_g):
        # rivals g - z/s with z from 0 to where they weigh nothing or are not there
        width = min(45, (g + 9) * s)
        z = width * (nodes + 1) / 2
        mass = weights * width / (2 * s) * stats.norm.pdf(g - z / s)
        lost = -mass @ np.expm1(-np.exp(-z)[:, None] * t)
        rivals = (1 - stats.norm.sf(g) - lost) ** (n - 1)
        total += n * stats.norm.pdf(g) * (t * np.exp(-t)) @ rivals
    return step_g * step_u * total
