"""Expectations over a row of cosines by quadrature with 30 digits.

As `thirty_digits`, and sharing nothing with `theory`: of d_k, the number of keys n and
what a cosine is multiplied by.  Functions of u are sums over an even grid: of the angle
for an even d_k, where the density has no corner, and else of t = artanh x.  The entropy
is E ln Z - E Σ p s, and E ‖J‖_F² comes by powers that cancel.
"""

import math
from functools import cache

import mpmath
import numpy as np
from mpmath import mp, mpf

from tests.theory.thirty_digits import NAMES

__all__ = ["NAMES", "by_powers", "leading_weight"]
LONG = np.longdouble
#: Sums leave out what is below exp(-NATS), and steps leave 17 digits.
NATS = 42


def nodes_of(d, scale):
    """Values of a cosine and their probabilities."""
    if d % 2 == 0:
        step = min(
            mpf("0.4") / mpmath.sqrt(d), 6 * mpmath.asinh(mp.pi / (2 * scale)) / NATS
        )
        step = mp.pi / mpmath.ceil(mp.pi / step)
        angles = [i * step for i in range(int(mp.pi / step) + 1)]
        found = [(mpmath.cos(a), mpmath.sin(a) ** (d - 2)) for a in angles]
        if d == 2:  # both ends are one point of the circle, seen twice
            found[0] = found[0][0], mpf("0.5")
            found[-1] = found[-1][0], mpf("0.5")
    else:
        step = min(mpf("0.4") / mpmath.sqrt(d - 1), mp.pi**2 / (scale * NATS))
        half = int(mpmath.acosh(mpmath.exp(mpf(NATS) / (d - 1))) / step) + 1
        grid = [i * step for i in range(-half, half + 1)]
        found = [(mpmath.tanh(t), mpmath.sech(t) ** (d - 1)) for t in grid]
    total = mpmath.fsum(p for _, p in found)
    return [(x, p / total) for x, p in found if p > total * mpmath.exp(-NATS - 10)]


@cache
def kernels(d, scale):
    """u, E w^k exp(-w) for k = 0 to 4 with w = exp(u + s), and E s w exp(-w)."""
    nodes = [(scale * x, p, mpmath.exp(scale * x)) for x, p in nodes_of(d, scale)]
    step = mp.pi**2 / NATS
    reach = max(s for s, _, _ in nodes)
    low = -(NATS + 15) - reach
    found = []
    for i in range(int((5 + reach - low) / step) + 1):
        u = low + i * step
        t, sums, tilted = mpmath.exp(u), [mpf(0)] * 5, mpf(0)
        for s, probability, factor in nodes:
            w = t * factor
            if w > 2 * NATS:
                continue
            term = probability * mpmath.exp(-w)
            tilted += s * term * w
            for power in range(5):
                sums[power] += term
                term *= w
        found.append((u, sums, tilted))
    return step, found


def by_powers(d, n, scale):
    """E ln Z, E H, E Σp² and E ‖J‖_F²."""
    step, found = kernels(d, scale)
    log_z = mean_score = y2 = y3 = y4 = pairs = mpf(0)
    for u, (phi, _, a2, a3, a4), tilted in found:
        log_z += mpmath.exp(-mpmath.exp(u)) - phi**n
        one = n * phi ** (n - 1)
        mean_score += tilted * one
        y2 += a2 * one
        y3 += a3 * one / 2
        y4 += a4 * one / 6
        pairs += n * (n - 1) * a2**2 * phi ** (n - 2) / 6
    sums = (log_z, mean_score, y2, y3, y4, pairs)
    log_z, mean_score, y2, y3, y4, pairs = (step * x for x in sums)
    return {
        "log_partition": log_z,
        "entropy": log_z - mean_score,
        "inverse_participation": y2,
        "jacobian_frobenius_squared": y2 - 2 * y3 + y4 + pairs,
    }


def leading_weight(d, n, scale, coarser=1):
    """E p_max: n ∫ f(x) ∫ t exp(-t) psi^(n-1) du dx, x the largest cosine.

    psi = ∫ f over rivals below x, which Gauss-Legendre goes through by their angle.
    The three nested sums are in NumPy's long doubles, of 18 digits.
    """
    step_t, step_u = coarser * 0.05 / math.sqrt(d - 1), coarser * LONG("0.3")
    rule = mpmath.calculus.quadrature.GaussLegendre(mp).calc_nodes(5, mp.prec)
    x, weight = (
        np.array([LONG(mpmath.nstr(one[side], 25)) for one in rule]) for side in (0, 1)
    )
    constant = LONG(mpmath.nstr(mpmath.beta(mpf(d - 1) / 2, mpf("0.5")), 25))
    reach = float(mpmath.acosh(mpmath.exp((mpf(45) + mpmath.log(n)) / (d - 1))))
    u = np.arange(-34 - math.log(n), 4, float(step_u)).astype(np.longdouble)
    half, total = int(reach / step_t), LONG(0)
    # nobody is farther away than this
    edge = math.sqrt(-math.expm1(-90 / (d - 2))) if d > 2 else 1.0
    for i in range(-half, half + 1):
        t = i * LONG(step_t)
        sech = 1 / np.cosh(t)
        square = mpf(np.format_float_positional(sech**2, 21, trim="-"))
        tail = mpmath.betainc(mpf(d - 1) / 2, mpf("0.5"), 0, square, regularized=True)
        above = LONG(mpmath.nstr(tail / 2 if t >= 0 else 1 - tail / 2, 25))
        top = n * sech ** (d - 1) / constant
        if top * (1 - above) ** (n - 1) < 1e-20:
            continue
        first = 2 * np.arctan(np.exp(-t))
        low_end = max(np.cos(first) - 45 / LONG(scale), -LONG(edge))
        width = max(np.arccos(low_end) - first, LONG(0))
        apart = width * (x + 1) / 2
        angle = first + apart
        gap = 2 * LONG(scale) * np.sin(angle - apart / 2) * np.sin(apart / 2)
        mass = weight * width / 2 * np.sin(angle) ** (d - 2) / constant
        lost = -np.expm1(-np.exp(u[:, np.newaxis] - gap)) @ mass
        total += (top * np.exp(u - np.exp(u)) * (1 - above - lost) ** (n - 1)).sum()
    return float(LONG(step_t) * step_u * total)
