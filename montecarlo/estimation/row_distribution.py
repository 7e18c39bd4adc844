"""The distribution of a quantity over the attention rows of a point, and its quantiles.

Rows of all replicates are counted in the bins of a fixed grid.  The standard error of
the distribution function comes from its variance between replicates, since the rows of
a replicate share their keys and are not independent.
"""

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from montecarlo.attention.grids import Bins, LogGrid
from montecarlo.attention.softmax import Array
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.intervals import EstimateMoments, Interval, interval_ends
from montecarlo.sampling.batches import Counts


@dataclass(frozen=True, slots=True)
class RowDistribution:
    """An estimated distribution function F at the edges of consecutive bins of a grid.

    The bins are those from the first to the last that hold rows.  If there is a bin
    before the first, it is included.

    Attributes
    ----------
    edges : ndarray, shape (n_bins,)
        Upper edge of each bin, increasing.
    share : ndarray, shape (n_bins,)
        Estimates of F, the probability that a row has a value of at most the edge.
    error : ndarray, shape (n_bins,)
        Standard errors of ``share``.
    skewness : ndarray, shape (n_bins,)
        Skewness of the shares of single replicates.
    n_replicates : int
        Number of replicates with at least one value.
    grid : LogGrid
        The grid on which the rows were counted.
    start : int
        Index on the grid of the first of these bins.
    """

    edges: Array
    share: Array
    error: Array
    skewness: Array
    n_replicates: int
    grid: LogGrid
    start: int
    _ends: dict[float, tuple[Array, Array]] = field(default_factory=dict, repr=False)

    def share_ends(self, error_rate: float) -> tuple[Array, Array]:
        """Return (lower ends, upper ends) of confidence intervals of F at all edges.

        They are pointwise intervals with the one-sided ``error_rate``.  Each array has
        the shape (n_bins,).  The result is cached.
        """
        if error_rate not in self._ends:
            moments = EstimateMoments(self.share, self.error, self.skewness)
            ends = interval_ends(moments, self.n_replicates, error_rate)
            self._ends[error_rate] = ends
        return self._ends[error_rate]

    def quantile_interval(self, level: float, error_rate: float) -> Interval:
        """Return the confidence interval of the quantile at which F is ``level``.

        ``error_rate`` is one-sided.  The ends are edges of bins, rounded outwards,
        since all values in a bin may be equal.  They may be infinite, as from
        `bin_range`.
        """
        low, high = self.share_ends(error_rate)
        return self.bin_range(int(bin_of(high, level)), int(bin_of(low, level)))

    def bin_range(self, first: int, last: int) -> Interval:
        """Return the range of values in the bins ``first`` to ``last``, both included.

        Bin i ends at ``edges[i]``, and begins where bin i - 1 ends, or for i = 0 at
        ``grid.least``.  ``last`` = n_bins means no upper limit.  So does the last bin
        of the grid if it counts all larger values.
        """
        place = self.start + last
        is_open = place == self.grid.n_bins - 1 and place in self.grid.open_bins
        return Interval(
            float(self.edges[first - 1]) if first > 0 else self.grid.least,
            math.inf if is_open or last == len(self.edges) else float(self.edges[last]),
        )


def row_distribution(
    counts: Counts, grid: LogGrid, n_replicates: int
) -> RowDistribution:
    """Return the distribution function of a quantity, from counts of rows in bins.

    Parameters
    ----------
    counts : ndarray of int64, shape (3, n_bins) or (6, n_bins)
        As returned by `montecarlo.sampling.replicates.count_bins`, or by `count_some`
        for a quantity that only some rows have.  At least one row is counted.
    grid : LogGrid
    n_replicates : int
        Number of replicates with at least one value.

    Notes
    -----
    Given its keys, the rows of a replicate are independent, so the variance is at least
    the binomial one.  A smaller variance between replicates, which may be equal by
    chance, is replaced by the binomial one at a share moved by half a row from 0 and 1.
    """
    sums = counts.cumsum(axis=1).astype(np.float64)
    first, full = (int((sums[0] >= rows).argmax()) for rows in (1.0, sums[0, -1]))
    start, stop = max(0, first - 1), full + 1
    if len(counts) == 3:
        moments = shares(sums[:, start:stop], sums[0, -1], n_replicates)
    else:
        moments = shares_of_some(sums[:, start:stop], sums[:3, -1], n_replicates)
    return RowDistribution(
        grid.edges()[start:stop], *moments, n_replicates, grid, start
    )


def shares(sums: Array, n_rows: float, n_replicates: int) -> EstimateMoments:
    """Return the share of attention rows whose value is at most some edge, from counts.

    Parameters
    ----------
    sums : ndarray, shape (3, ...)
        Sums over replicates of c, c² and c³, where c is the number of attention rows of
        the replicate with a value up to the edge.
    n_rows : float
        Total number of rows; all replicates have equally many.
    n_replicates : int
        At least 2.

    Returns
    -------
    EstimateMoments
        Estimates of shape (...), with standard errors and skewness.
    """
    per_replicate = n_rows / n_replicates
    powers = np.array([per_replicate, per_replicate**2, per_replicate**3])
    scale = n_replicates * powers.reshape(-1, *[1] * (sums.ndim - 1))
    share, square, cube = sums / scale
    variance = np.maximum(square - share**2, 0.0)
    inside = (sums[0] + 0.5) / (n_rows + 1.0)
    least = inside * (1.0 - inside) / n_rows
    error = np.sqrt(np.maximum(variance / (n_replicates - 1), least))
    # shares differ from their mean by at most 1, so the cancellation is harmless
    third = cube - 3.0 * share * square + 2.0 * share**3
    third = np.where(cube > 0.0, third, 0.0)  # c³ was not summed: skewness 0
    floored = np.maximum(variance, n_replicates * least)
    return EstimateMoments(share, error, third / (floored * np.sqrt(floored)))


def shares_of_some(sums: Array, rows: Array, n_replicates: int) -> EstimateMoments:
    """Return the shares of rows up to an edge, for a quantity that some rows lack.

    It is like `shares`, but only rows with a value count, and the number of these
    differs between replicates.

    Parameters
    ----------
    sums : ndarray, shape (6, ...)
        Sums over replicates of c, c², c³, c·m, c²·m and c·m².  m is the number of rows
        of the replicate that have a value, and c of those with a value up to some edge.
    rows : ndarray, shape (3,)
        Sums of m, m² and m³.
    n_replicates : int
        Number of replicates with m > 0; at least 2.

    Returns
    -------
    EstimateMoments
        Shape (...).

    Notes
    -----
    The share F is Σc / Σm.  To first order, a replicate changes it by (c - F m) / Σm.
    The bias of the ratio, of the order of the squared error, is neglected.
    """
    c, c2, c3, cm, c2m, cm2 = sums
    m, m2, m3 = rows
    share = c / m
    second = np.maximum(c2 - 2.0 * share * cm + share**2 * m2, 0.0) / m**2
    third = (c3 - 3.0 * share * c2m + 3.0 * share**2 * cm2 - share**3 * m3) / m**3
    inside = (c + 0.5) / (m + 1.0)
    least = inside * (1.0 - inside) / m
    error = np.sqrt(np.maximum(second * n_replicates / (n_replicates - 1), least))
    floored = np.maximum(second, least)
    skewness = math.sqrt(n_replicates) * third / (floored * np.sqrt(floored))
    return EstimateMoments(share, error, skewness)


def quantile_estimate(rows: RowDistribution, level: float) -> Estimate:
    """Return the estimate of the quantile over attention rows at ``level``, in (0, 1).

    The interval inverts that of the distribution function.  If the quantile lies in one
    of the grid's `open_bins`, which also count values outside of the grid, value and
    standard error are NaN.  There is still an interval, which may be one-sided.
    """
    bounds = partial(rows.quantile_interval, level)
    bin_ = int(bin_of(rows.share, level))
    if rows.start + bin_ in rows.grid.open_bins:
        return Estimate(math.nan, math.nan, rows.n_replicates, bounds=bounds)
    value, smallest = _quantile_in_bin(rows, level, bin_), rows.bin_range(bin_, bin_)
    estimate = Estimate(value, math.nan, rows.n_replicates, smallest_interval=smallest)
    return estimate.with_bounds(bounds)


def share_above(rows: RowDistribution, threshold: Estimate) -> Estimate:
    """Return the estimate of the share of attention rows above an estimated threshold.

    Parameters
    ----------
    rows : RowDistribution
    threshold : Estimate
        From the same replicates or from others.

    Returns
    -------
    Estimate
        Its interval is valid for any dependence of share and threshold: each gets half
        of the error rate.  The share is evaluated at whole bins.
    """

    def share_range(ends: Interval, low: Array, high: Array) -> Interval:
        """Return the range of 1 - F over the thresholds in ``ends``, clipped to [0, 1].

        ``low`` and ``high`` are bounds of F at ``rows.edges``, shape (n_bins,).
        """
        # the first edge at or above the largest threshold: F is at most ``high`` there
        above = min(int(np.searchsorted(rows.edges, ends.high)), len(high) - 1)
        below = int(np.searchsorted(rows.edges, ends.low, side="right")) - 1
        least = 1.0 - float(high[above])
        most = 1.0 if below < 0 else 1.0 - float(low[below])
        return Interval(max(0.0, least), min(1.0, most))

    def bounds(error_rate: float) -> Interval:
        """Return the interval of the share above the threshold at an error rate.

        The rate is one-sided.  Half of it is for ``threshold``, and half for the share.
        """
        half = 0.5 * error_rate
        return share_range(threshold.interval(half), *rows.share_ends(half))

    share = 1.0 - float(np.interp(threshold.value, rows.edges, rows.share))
    point = Interval(threshold.value, threshold.value)
    smallest = share_range(point, rows.share, rows.share)
    estimate = Estimate(share, math.nan, rows.n_replicates, smallest_interval=smallest)
    return estimate.with_bounds(bounds)


def bin_of(curves: Array, level: float) -> Bins:
    """Return the index of the first bin in which a curve reaches a level.

    Parameters
    ----------
    curves : ndarray, shape (..., n_bins)
        One or more curves, such as distribution functions at the upper edges of bins.
    level : float

    Returns
    -------
    ndarray of int, shape (...)
        An index for each curve; n_bins for one that does not reach the level.
    """
    reached = curves >= level
    first = np.where(reached.any(axis=-1), reached.argmax(axis=-1), curves.shape[-1])
    return np.asarray(first)


def _quantile_in_bin(rows: RowDistribution, level: float, bin_: int) -> float:
    """Return the quantile at ``level``, which lies in the bin with index ``bin_``.

    Within the bin, F is interpolated linearly in the logarithm of the value.  On a
    signed grid, it is interpolated in the value itself in a bin next to 0.  In the
    first two bins of any grid, the result is the upper edge.
    """
    high = float(rows.edges[bin_])
    if rows.start + bin_ < 2:  # exact zero, or the first bin of the grid
        return high
    low = float(rows.edges[bin_ - 1])
    below, above = rows.share[bin_ - 1], rows.share[bin_]
    part = float((level - below) / (above - below)) if above > below else 1.0
    if low * high <= 0.0:
        return low + part * (high - low)
    return float(low * (high / low) ** part)
