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
    """
    total, squares = counts.cumsum(axis=1).astype(np.float64)
    rows = total[-1] / n_replicates  # per replicate, the same in each
    share = total / total[-1]
    if n_replicates < 2:
        return RowDistribution(
            grid.edges(), share, np.full_like(share, math.nan), n_replicates
        )
    between = np.maximum(squares / rows**2 - n_replicates * share**2, 0.0)
    error = np.sqrt(between / (n_replicates * (n_replicates - 1)))
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
    margin = t_quantile(error_rate, rows.n_replicates) * rows.error
    return Interval(
        _crossing(rows.edges, rows.share + margin, level),
        _crossing(rows.edges, rows.share - margin, level),
    )


def _crossing(edges: Array, curve: Array, level: float) -> float:
    """Return where a curve over the edges first reaches a level, even in the logarithm.

    Infinite where it never does.
    """
    reached = curve >= level
    if not reached.any():
        return math.inf
    bin_ = int(reached.argmax())
    if bin_ < 2:  # exact zero, or the first bin of the grid
        return float(edges[bin_])
    below, above = curve[bin_ - 1], curve[bin_]
    part = float((level - below) / (above - below)) if above > below else 1.0
    return float(edges[bin_ - 1] * (edges[bin_] / edges[bin_ - 1]) ** part)
