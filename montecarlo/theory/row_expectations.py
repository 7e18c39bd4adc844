"""Expectations over a row of Gaussian keys, averaged over the length of the query.

In: d_k, number of keys, and what |q| is to be multiplied by to give the standard
deviation of a row's divided scores.  Out: expectations of `ROW_NAMES` with errors.
Expectations as functions of that standard deviation are interpolated once per panel and
number of keys; the panels are made when they are first asked for.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev

from montecarlo.theory.gaussian_rows import (
    expect_gaussian_row,
    gaussian_profile,
    join_largest,
)
from montecarlo.theory.largest_weight import (
    LargestProfile,
    integrate_largest,
    largest_profile,
    legendre,
)
from montecarlo.theory.row_integrals import Array, Expectations, Profile, integrate_row

#: Panel 0 is 0 to FIRST_EDGE, as a function of s (the largest weight is
#: linear there); panel i > 0 is from FIRST_EDGE 2**((i-1)/PER_OCTAVE) on, as a function
#: of ln s, which is analytic for |Im ln s| < pi/4.
FIRST_EDGE, PER_OCTAVE = 0.25, 2
#: Chebyshev points of a panel.
POINTS = 12
#: |q| is within this of sqrt(d_k) but for a probability of 1e-15.
CHI_REACH = 8.0
#: Gauss-Legendre points of the part of |q| within a panel, and those of the check.
LENGTHS, FEWER_LENGTHS = 56, 40


@dataclass(frozen=True, slots=True)
class Panel:
    """Expectations as polynomials over a range of standard deviations of the scores.

    Attributes
    ----------
    coefficients : ndarray, shape (POINTS, 6)
        Of Chebyshev polynomials.
    errors : ndarray, shape (6,)
        Of the values at the nodes, and of the interpolation.
    """

    coefficients: Array
    errors: Array


def expect_fixed_length(d_k: int, n_keys: int, scale: float) -> Expectations:
    """Return the expectations over a row where every entry of q is 1 or -1.

    Parameters
    ----------
    d_k, n_keys : int
    scale : float
        Standard deviation of a divided score over |q|, where |q| is sqrt(d_k).

    Returns
    -------
    Expectations
        Shape (6,).
    """
    return _expect_row(math.sqrt(d_k) * scale, n_keys)


@lru_cache(maxsize=1024)
def _expect_row(std: float, n_keys: int) -> Expectations:
    return expect_gaussian_row(std, n_keys)


@lru_cache(maxsize=1024)
def expect_gaussian_length(d_k: int, n_keys: float, scale: float) -> Expectations:
    """Return the expectations over a row and a query of standard normal entries.

    Parameters
    ----------
    d_k, n_keys : int
    scale : float
        Standard deviation of a divided score over |q|.

    Returns
    -------
    Expectations
        Shape (6,).  The error adds those of the panels and the difference from fewer
        points in |q|.

    Notes
    -----
    Gauss-Legendre in |q| ~ chi_d itself, cut where the panels meet: in the quantile of
    |q| the integrand has no derivative at the ends.
    """
    fine, errors = _average(d_k, n_keys, scale, LENGTHS)
    coarse, _ = _average(d_k, n_keys, scale, FEWER_LENGTHS)
    return Expectations(fine, errors + np.abs(fine - coarse))


def _average(
    d_k: int, n_keys: float, scale: float, n_points: int
) -> tuple[Array, Array]:
    """Average the panels over |q|; also the average of their errors."""
    centre = math.sqrt(d_k)
    low = max(0.0, centre - CHI_REACH) * scale
    high = (centre + CHI_REACH) * scale
    nodes, weights = legendre(n_points)
    total, errors, mass = np.zeros(6), np.zeros(6), 0.0
    for index in range(_panel_of(low), _panel_of(high) + 1):
        start, stop = edges(index)
        start, stop = max(start, low), min(stop, high)
        s = start + (stop - start) * nodes
        length = s / scale
        # The density of chi_d over its value at the mode, or near it for d = 1.
        log_density = (d_k - 1) * np.log(length / centre) - 0.5 * (length**2 - d_k)
        weight = (stop - start) * weights * np.exp(log_density)
        panel = make_panel(index, n_keys)
        x = _coordinate(s, index)
        total += chebyshev.chebval(x, panel.coefficients) @ weight
        errors += panel.errors * weight.sum()
        mass += weight.sum()
    return total / mass, errors / mass


def edges(index: int) -> tuple[float, float]:
    """Return the standard deviations between which a panel holds."""
    high = FIRST_EDGE * 2.0 ** (index / PER_OCTAVE)
    low = FIRST_EDGE * 2.0 ** ((index - 1) / PER_OCTAVE) if index > 0 else 0.0
    return low, high


def _panel_of(std: float) -> int:
    """Return the index of the panel that a standard deviation is in."""
    if std <= FIRST_EDGE:
        return 0
    return math.ceil(PER_OCTAVE * math.log2(std / FIRST_EDGE))


def _coordinate(std: Array, index: int) -> Array:
    """Map a panel to the interval from -1 to 1."""
    low, high = edges(index)
    if index == 0:
        return 2.0 * std / high - 1.0
    return 2.0 * np.log(std / low) / math.log(high / low) - 1.0


def _nodes(index: int) -> Array:
    """Return the standard deviations that the Chebyshev points of a panel stand for."""
    x = np.polynomial.chebyshev.chebpts1(POINTS)
    low, high = edges(index)
    if index == 0:
        return high * 0.5 * (x + 1.0)
    return low * np.exp(0.5 * (x + 1.0) * math.log(high / low))


@lru_cache(maxsize=64)
def _profiles(index: int) -> tuple[Profile, LargestProfile]:
    """Return what all numbers of keys share."""
    stds = _nodes(index)
    return gaussian_profile(stds), largest_profile(stds)


@lru_cache(maxsize=4096)
def make_panel(index: int, n_keys: float) -> Panel:
    """Interpolate the expectations over one range of standard deviations.

    Notes
    -----
    The interpolation's error is taken from the last two Chebyshev coefficients.
    """
    row, largest = _profiles(index)
    at_nodes = join_largest(
        integrate_row(row, n_keys), integrate_largest(largest, n_keys)
    )
    x = np.polynomial.chebyshev.chebpts1(POINTS)
    basis = chebyshev.chebvander(x, POINTS - 1) * (2.0 / POINTS)
    basis[:, 0] *= 0.5
    coefficients = basis.T @ at_nodes.values
    missing = np.abs(coefficients[-2:]).sum(axis=0)
    return Panel(coefficients, at_nodes.errors.max(axis=0) + missing)
