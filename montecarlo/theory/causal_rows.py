"""Exact expectations over the rows of a causal mask: the i-th row has i keys.

In: expectations over a row as a function of its length, the number of keys.  Out: their
mean over all the rows of the matrix, with its numerical error.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from montecarlo.theory.row_integrals import Array, Expectations

#: Rows up to this length are asked one by one; longer ones are interpolated in ln i,
#: each panel over lengths that grow by this factor.
SHORT, FACTOR = 32, 8.0
#: Chebyshev points of a panel, and those of the check.
POINTS, FEWER = 14, 11


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
        fine, own = _sum_panel(expect, low, high, POINTS)
        coarse, _ = _sum_panel(expect, low, high, FEWER)
        total += fine
        errors += own + np.abs(fine - coarse)
        low = high
    return Expectations(total / n_keys, errors / n_keys)


def _sum_panel(
    expect: Callable[[float], Expectations], low: int, high: int, n_points: int
) -> tuple[Array, Array]:
    """Sum over the lengths above one and up to another, by a polynomial in ln i."""
    x = chebyshev.chebpts1(n_points)
    width = math.log(high / low)
    at_nodes = [expect(low * math.exp(0.5 * (one + 1.0) * width)) for one in x]
    basis = chebyshev.chebvander(x, n_points - 1) * (2.0 / n_points)
    basis[:, 0] *= 0.5
    coefficients = basis.T @ np.stack([one.values for one in at_nodes])
    lengths = np.arange(low + 1, high + 1, dtype=np.float64)
    places = 2.0 * np.log(lengths / low) / width - 1.0
    sums = np.array([chebyshev.chebval(places, one).sum() for one in np.eye(n_points)])
    errors = np.max([one.errors for one in at_nodes], axis=0) * lengths.size
    return sums @ coefficients, errors
