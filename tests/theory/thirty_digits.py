"""Expectations over a row by quadrature with 30 digits, sharing nothing with `theory`.

In: number of keys n and standard deviation s of the scores.  Out: what `expected_row`
gives, by the same separation of the scores (1/Z^k as an integral over t = exp u), but
each function of u as a sum over the normal density itself, all in mpmath, with steps
that leave 15 digits; E H from E ln Z by Stein's identity, E ‖J‖_F² by powers that
cancel, the largest weight over rows that one key leads, with its rivals by
Gauss-Legendre.
"""

from functools import cache

import mpmath
from mpmath import mp, mpf

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


def leading_weight(n, s, coarser=1):
    """E p_max: n ∫ N(g) ∫ t exp(-t) psi^(n-1) du dg, psi = ∫ N over rivals below g.

    At n = 4096 and s = 2, steps twice as long leave nine digits; elsewhere fewer.
    """
    step_g, step_u = coarser * mpf("0.05"), coarser * mpf("0.3")
    rule = mpmath.calculus.quadrature.GaussLegendre(mp)
    nodes = rule.calc_nodes(5, mp.prec)  # 96 points: 48 leave 8 digits, 192 change none
    total = mpf(0)
    low = -34 - mpmath.log(n)  # what is left out is 1e-15 of 1/n
    times = [low + i * step_u for i in range(int((4 - low) / step_u) + 1)]
    for i in range(int(20 / step_g)):
        g = -8 + i * step_g
        top = n * mpmath.npdf(g)
        if top * mpmath.ncdf(g) ** (n - 1) < mpf(10) ** -20:
            continue
        # rivals g - z/s with z from 0 to where they weigh nothing or are not there
        width = min(mpf(45), (g + 9) * s)
        rivals = []
        for x, weight in nodes:
            z = width * (x + 1) / 2
            mass = weight * width / (2 * s) * mpmath.npdf(g - z / s)
            rivals.append((mass, mpmath.exp(-z)))
        above = mpmath.ncdf(-g)
        for u in times:
            t = mpmath.exp(u)
            lost = mpmath.fsum(-mass * mpmath.expm1(-t * e) for mass, e in rivals)
            total += top * mpmath.exp(u - t) * (1 - above - lost) ** (n - 1)
    return step_g * step_u * total
