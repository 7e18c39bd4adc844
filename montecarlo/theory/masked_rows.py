"""Expectations over the rows of a mask: their mean over rows of different lengths.

Short rows are evaluated one by one; over longer ones expectations are interpolated in
the logarithm of the length, panel by panel.
"""

import math
from collections.abc import Callable

import numpy as np

from montecarlo.attention.masks import Mask
from montecarlo.theory.row_expectations import chebyshev_coefficients
from montecarlo.theory.row_integrals import Array, Expectations

#: Order of the last axis as in `ROW_NAMES`: of a row of one key, whose score has the
#: mean 0.
ALONE = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 1.0])
#: Rows up to this length are asked one by one; longer ones are interpolated in ln i,
#: each panel over lengths that grow by this factor.
SHORT, FACTOR = 32, 8.0
#: Chebyshev points of a panel, and those of the check.
POINTS, FEWER = 14, 11


def mean_over_mask(
    expect: Callable[[float], Expectations], first: Array, n_keys: int, mask: Mask
) -> Expectations:
    """Return the mean over the rows that a mask leaves.

    Parameters
    ----------
    expect : callable
        Length of a row, 2 or more, also between whole numbers -> shape (n_quantities,).
    first : ndarray, shape (n_quantities,)
        Of the row with one key.
    n_keys : int
        Rows of the matrix, 2 or more.
    mask : Mask

    Returns
    -------
    Expectations
        Shape (n_quantities,).
    """
    if not mask.is_causal:
        return expect(float(n_keys))
    longest = mask.width or n_keys
    if longest == 1:
        return Expectations(first, np.zeros_like(first))
    rising = mean_over_lengths(expect, first, longest)
    if longest == n_keys:
        return rising
    level, share = expect(float(longest)), longest / n_keys
    return Expectations(
        share * rising.values + (1.0 - share) * level.values,
        share * rising.errors + (1.0 - share) * level.errors,
    )


def mean_over_lengths(
    expect: Callable[[float], Expectations], first: Array, n_keys: int
) -> Expectations:
    """Return the mean over rows of 1, 2, ... n keys.

    Parameters
    ----------
    expect : callable
        Length of a row, 2 or more, also between whole numbers -> shape (n_quantities,).
    first : ndarray, shape (n_quantities,)
        Of the row with one key.
    n_keys : int
        Rows of the matrix, 2 or more.

    Returns
    -------
    Expectations
        Shape (n_quantities,).  The error adds those of the rows and the difference from
        fewer points.
    """
    total, errors = np.array(first, dtype=np.float64), np.zeros_like(first)
    for length in range(2, min(n_keys, SHORT) + 1):
        row = expect(float(length))
        total += row.values
        errors += row.errors
    low = SHORT
    while low < n_keys:
        high = min(n_keys, math.floor(low * FACTOR))
        fine, row_errors = _sum_panel(expect, low, high, POINTS)
        coarse, _ = _sum_panel(expect, low, high, FEWER)
        total += fine
        errors += row_errors + np.abs(fine - coarse)
        low = high
    return Expectations(total / n_keys, errors / n_keys)


def _sum_panel(
    expect: Callable[[float], Expectations], low: int, high: int, n_points: int
) -> tuple[Array, Array]:
    """Sum over the lengths above one and up to another, by a polynomial in ln i."""
    x = np.polynomial.chebyshev.chebpts1(n_points)
    width = math.log(high / low)
    at_nodes = [expect(low * math.exp(0.5 * (one + 1.0) * width)) for one in x]
    coefficients = chebyshev_coefficients(np.stack([one.values for one in at_nodes]))
    lengths = np.arange(low + 1, high + 1, dtype=np.float64)
    places = 2.0 * np.log(lengths / low) / width - 1.0
    sums = np.array(
        [np.polynomial.chebyshev.chebval(places, one).sum() for one in np.eye(n_points)]
    )
    errors = np.max([one.errors for one in at_nodes], axis=0) * lengths.size
    return sums @ coefficients, errors
