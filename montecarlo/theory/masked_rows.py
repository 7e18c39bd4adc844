"""Expectations under an attention mask: averages over rows of different lengths.

In: a function that returns the expectations of a row of n keys.  Out: their mean over
the rows of the mask.  Short rows are evaluated one by one.  Longer rows are divided
into panels, on each of which the expectations are interpolated in ln n.
"""

import math
from collections.abc import Callable

import numpy as np

from montecarlo.attention.masks import Mask
from montecarlo.theory.row_expectations import chebyshev_coefficients
from montecarlo.theory.row_integrals import Array, Expectations

#: Expectations of `ROW_NAMES` for a row of one key, whose score has mean 0.
SINGLE_KEY_ROW = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 1.0])
#: Longest row that is evaluated by itself.
LONGEST_SINGLE = 32
#: Ratio of the longest to the shortest row of a panel.
PANEL_RATIO = 8.0
#: Number of Chebyshev nodes of a panel, and the smaller number for the error estimate.
NODES, FEWER_NODES = 14, 11


def mean_over_mask(
    expect: Callable[[float], Expectations],
    single_key: Array,
    n_keys: int,
    mask: Mask,
) -> Expectations:
    """Return expectations averaged over the rows of a masked attention matrix.

    Under a causal mask or a window, rows have different numbers of keys.  Long rows are
    interpolated in ln n.  Otherwise the result is ``expect(n_keys)``.

    Parameters
    ----------
    expect : callable
        n -> expectations, shape (n_quantities,), of a row of n >= 2 keys; n may be
        fractional.
    single_key : ndarray, shape (n_quantities,)
        The expectations of a row of one key.
    n_keys : int
        Number of keys, and of rows; at least 2.
    mask : Mask
        Determines the number of keys of each row.

    Returns
    -------
    Expectations
        Shape (n_quantities,).  The errors are those of ``expect`` plus the change if
        the interpolation has fewer nodes.
    """
    if not mask.is_causal:
        return expect(float(n_keys))
    total, errors = single_key.astype(np.float64), np.zeros_like(single_key)
    longest = mask.longest(n_keys)
    for length in range(2, min(longest, LONGEST_SINGLE) + 1):
        row = expect(float(length))
        total += row.values
        errors += row.errors
    low = LONGEST_SINGLE
    while low < longest:
        high = min(longest, math.floor(low * PANEL_RATIO))
        fine, row_errors = _sum_over_panel(expect, low, high, NODES)
        coarse, _ = _sum_over_panel(expect, low, high, FEWER_NODES)
        total += fine
        errors += row_errors + np.abs(fine - coarse)
        low = high
    if longest < n_keys:
        single = Expectations(single_key, np.zeros_like(single_key))
        row = expect(float(longest)) if longest > 1 else single
        total += (n_keys - longest) * row.values
        errors += (n_keys - longest) * row.errors
    return Expectations(total / n_keys, errors / n_keys)


def _sum_over_panel(
    expect: Callable[[float], Expectations], low: int, high: int, n_nodes: int
) -> tuple[Array, Array]:
    """Return row expectations, summed over the rows of a panel, and their errors.

    The panel has the row lengths from ``low`` + 1 to ``high``, both included.  The
    expectations are interpolated in ln n by Chebyshev polynomials at ``n_nodes`` nodes.

    Returns
    -------
    sums, errors : ndarray, shape (n_quantities,)
        The errors are the largest error of ``expect`` at any node, times the number of
        lengths, ``high`` - ``low``.
    """
    nodes = np.polynomial.chebyshev.chebpts1(n_nodes)
    width = math.log(high / low)
    rows = [expect(low * math.exp(0.5 * (node + 1.0) * width)) for node in nodes]
    coefficients = chebyshev_coefficients(np.stack([row.values for row in rows]))
    lengths = np.arange(low + 1, high + 1, dtype=np.float64)
    places = 2.0 * np.log(lengths / low) / width - 1.0
    polynomials = np.polynomial.chebyshev.chebvander(places, n_nodes - 1)
    errors = np.max([row.errors for row in rows], axis=0) * lengths.size
    return polynomials.sum(axis=0) @ coefficients, errors
