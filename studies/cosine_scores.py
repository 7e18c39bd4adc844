"""Exact expectations where scores are cosines: of normalised queries and Gaussian keys.

A Gaussian vector points in every direction alike, so that the cosine x of the angle
between it and any other vector has the density (1 - x²)**((d - 3)/2) on [-1, 1], up to
a constant, for d > 1.  Given a query, the cosines of independent keys are independent:
expectations over a row are those of `row_integrals` with this distribution of a score.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import betainc, poch

from montecarlo.theory.row_expectations import discrete_profile
from montecarlo.theory.row_integrals import (
    LOG_T,
    NEGLIGIBLE,
    ROW_NAMES,
    STEP_G,
    STEP_T,
    WIDEST_GAP,
    Array,
    integrate_row,
    legendre,
    log_complement,
)

#: A density of exp(-NOTHING) of its largest value is left out.
NOTHING = 55.0
#: Gauss-Legendre points of a panel of the angle.  A panel is at most so wide, in scores
#: and in widths of the density, 1/sqrt(d).
POINTS, PANEL_SCORES, PANEL_WIDTHS = 24, 3.0, 2.0
#: Points between the largest score and one far below it.
GAP_POINTS = 72


@lru_cache(maxsize=1024)
def expect_cosines(d_k: int, n_keys: int, scale: float) -> dict[str, float]:
    """Return the expectations over a row of n independent cosines times a scale.

    Parameters
    ----------
    d_k, n_keys : int
        d_k is 2 or more.
    scale : float
        What a cosine is multiplied by; positive, at most 64 sqrt(d_k), or it takes
        more than seconds.

    Returns
    -------
    dict
        By `montecarlo.theory.row_integrals.ROW_NAMES`, right to a billionth.
    """
    row = integrate_row(discrete_profile(*cosine_nodes(d_k, scale)), n_keys)
    values = (*row.values.tolist(), _largest_weight(d_k, n_keys, scale))
    return dict(zip(ROW_NAMES, values, strict=True))


def cosine_nodes(d_k: int, scale: float) -> tuple[Array, Array]:
    """Return scores and probabilities that stand for a cosine times a scale, d_k > 1.

    Notes
    -----
    Of the angle φ with cosine sin φ the density is cos(φ)**(d - 2), which has no corner
    at the ends: Gauss-Legendre over panels of it.
    """
    reach = _reach(d_k)
    widest = max(scale / PANEL_SCORES, math.sqrt(d_k) / PANEL_WIDTHS)
    n_panels = math.ceil(2.0 * reach * widest)
    nodes, weights = legendre(POINTS)
    width = 2.0 * reach / n_panels
    starts = -reach + width * np.arange(n_panels)
    angle = (starts[:, np.newaxis] + width * nodes).ravel()
    probability = np.tile(weights, n_panels) * np.cos(angle) ** (d_k - 2)
    return scale * np.sin(angle), probability / probability.sum()


def _reach(d_k: int) -> float:
    """Return the angle beyond which the density is nothing."""
    if d_k == 2:
        return 0.5 * math.pi
    return math.acos(math.exp(-NOTHING / (d_k - 2)))


def _largest_cosine(d_k: int, n_keys: int) -> tuple[Array, Array]:
    """Return an even grid of t, and the logarithm of the density of t.

    Notes
    -----
    The largest cosine is tanh t, so that the density of t is that of a cosine,
    sech(t)**(d - 1) up to a constant, times n F**(n - 1).
    """
    power = d_k - 1.0
    end = math.acosh(math.exp(min((NOTHING + math.log(n_keys)) / power, 600.0)))
    step = STEP_G / math.sqrt(power)
    ends = math.ceil(end / step)
    t = step * np.arange(-ends, ends + 1, dtype=np.float64)
    log_sech = math.log(2.0) - np.abs(t) - np.log1p(np.exp(-2.0 * np.abs(t)))
    constant = math.log(n_keys * _density(d_k))
    others = (n_keys - 1.0) * log_complement(_above(t, d_k))
    log_density = constant + power * log_sech + others
    there = np.flatnonzero(log_density > log_density.max() + math.log(NEGLIGIBLE))
    first, last = int(there[0]) // 2 * 2, int(there[-1]) + 1
    return t[first:last], log_density[first:last]


def _density(d_k: int) -> float:
    """Return the density of a cosine at 0."""
    return float(poch(0.5 * (d_k - 1), 0.5)) / math.sqrt(math.pi)


def _above(t: Array, d_k: int) -> Array:
    """Return P(cosine > tanh t)."""
    tail: Array = 0.5 * betainc(0.5 * (d_k - 1), 0.5, np.cosh(t) ** -2.0)
    return np.where(t < 0.0, 1.0 - tail, tail)


def _largest_weight(d_k: int, n_keys: int, scale: float) -> float:
    """Return the expected largest weight.

    Notes
    -----
    As `row_integrals.integrate_largest`, with the density of a cosine.  Below the
    largest score the variable is the angle to the query, δ, so that 1 - cos δ keeps its
    precision where it is small.
    """
    t, log_density = _largest_cosine(d_k, n_keys)
    nodes, weights = legendre(GAP_POINTS)
    first = 2.0 * np.arctan(np.exp(-t))
    farthest = np.maximum(np.cos(first) - WIDEST_GAP / scale, -math.sin(_reach(d_k)))
    width = np.maximum(np.arccos(farthest) - first, 0.0)
    apart = width[:, np.newaxis] * nodes
    angle = first[:, np.newaxis] + apart
    gaps = 2.0 * scale * np.sin(angle - 0.5 * apart) * np.sin(0.5 * apart)
    density = np.sin(angle) ** (d_k - 2) * width[:, np.newaxis] * weights
    density *= _density(d_k)
    above = _above(t, d_k)
    inner = np.empty((t.size, LOG_T.size))
    for i in range(t.size):
        lost = -np.expm1(-np.exp(LOG_T[:, np.newaxis] - gaps[i]))
        # Not a BLAS product: its last bit would depend on the number of threads.
        inner[i] = above[i] + np.einsum("uz,z->u", lost, density[i])
    log_below = log_density - (n_keys - 1.0) * log_complement(above)
    terms = np.exp((n_keys - 1.0) * log_complement(inner) + log_below[:, np.newaxis])
    terms *= np.exp(LOG_T - np.exp(LOG_T))
    return float(t[1] - t[0]) * STEP_T * float(terms.sum())
