"""The distribution of a row value over all rows of a condition, and its quantiles.

A quantile here is that of a row drawn from the condition.  Counts on a fixed grid are
pooled over replicates; the error of the distribution function at a point comes from
its spread between replicates, since rows of one replicate share their keys.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from montecarlo.attention.grids import LogGrid
from montecarlo.attention.softmax import Array
from montecarlo.estimation.estimates import (
    Estimate,
    Interval,
    half_width_error,
    t_quantile,
)
from montecarlo.sampling.replicates import Counts


@dataclass(frozen=True, slots=True)
class RowDistribution:
    """An estimated distribution function on the edges of a grid.

    Attributes
    ----------
    edges : ndarray, shape (n_bins,)
        Upper edge of each bin; the first is 0.
    share : ndarray, shape (n_bins,)
        Estimated probability that a row's value is at most the edge.
    error : ndarray, shape (n_bins,)
        Its standard error between replicates.
    n_replicates : int
    """

    edges: Array
    share: Array
    error: Array
    n_replicates: int


def row_distribution(
    counts: Counts, grid: LogGrid, n_replicates: int
) -> RowDistribution:
    """Build the distribution function from counts.

    Parameters
    ----------
    counts : ndarray of int64, shape (2, n_bins)
        Row values per bin, and rises of the squared cumulative count (see
        `montecarlo.sampling.replicates.Batch`).
    grid : LogGrid
    n_replicates : int

    Returns
    -------
    RowDistribution

    Notes
    -----
    Given its keys, the rows of a replicate are independent, so the true error is at
    least the binomial one.  Few replicates may agree by chance; where their spread is
    smaller than that (p taken half a row from 0 and 1), it is not believed.
    """
    total, squares = counts.cumsum(axis=1).astype(np.float64)
    rows = total[-1] / n_replicates  # per replicate, the same in each
    share = total / total[-1]
    if n_replicates < 2:
        return RowDistribution(
            grid.edges(), share, np.full_like(share, math.nan), n_replicates
        )
    between = np.maximum(squares / rows**2 - n_replicates * share**2, 0.0)
    inside = (total + 0.5) / (total[-1] + 1.0)
    least = inside * (1.0 - inside) / total[-1]
    error = np.sqrt(np.maximum(between / (n_replicates * (n_replicates - 1)), least))
    return RowDistribution(grid.edges(), share, error, n_replicates)


def quantile_estimate(rows: RowDistribution, level: float) -> Estimate:
    """Estimate a quantile; its interval inverts that of the distribution function.

    Parameters
    ----------
    rows : RowDistribution
    level : float
        Part of the rows below the quantile, between 0 and 1.

    Returns
    -------
    Estimate
    """
    bounds = partial(_bounds, rows, level)
    value = _crossing(rows.edges, rows.share, level)
    if rows.n_replicates < 2:
        return Estimate(value, math.nan, rows.n_replicates)
    error = half_width_error(bounds, rows.n_replicates)
    return Estimate(value, error, rows.n_replicates, bounds)


def _bounds(rows: RowDistribution, level: float, error_rate: float) -> Interval:
    """Invert the bounds of the distribution function, rounded outwards to whole bins.

    Where in a bin its values lie is not known: all of them may be equal.
    """
    margin = t_quantile(error_rate, rows.n_replicates) * rows.error
    first = _bin_of(rows.share + margin, level)
    last = _bin_of(rows.share - margin, level)
    return Interval(
        float(rows.edges[first - 1]) if first > 1 else 0.0,
        float(rows.edges[last]) if last < len(rows.edges) - 1 else math.inf,
    )


def _bin_of(curve: Array, level: float) -> int:
    """Return the bin in which a curve over the edges first reaches a level.

    One past the last where it never does.
    """
    reached = curve >= level
    return int(reached.argmax()) if reached.any() else len(curve)


def _crossing(edges: Array, curve: Array, level: float) -> float:
    """Return where a curve over the edges first reaches a level, even in the logarithm.

    Infinite where it never does.
    """
    bin_ = _bin_of(curve, level)
    if bin_ == len(curve):
        return math.inf
    if bin_ < 2:  # exact zero, or the first bin of the grid
        return float(edges[bin_])
    below, above = curve[bin_ - 1], curve[bin_]
    part = float((level - below) / (above - below)) if above > below else 1.0
    return float(edges[bin_ - 1] * (edges[bin_] / edges[bin_ - 1]) ** part)
