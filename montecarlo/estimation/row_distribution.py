"""The distribution of a row value over all rows of a point, and its quantiles.

A quantile here is that of a row drawn from the point.  Counts on a fixed grid are
pooled over replicates; the error of the distribution function at a point comes from
its variance between replicates, since rows of one replicate share their keys.
"""

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from montecarlo.attention.grids import LogGrid
from montecarlo.attention.softmax import Array
from montecarlo.estimation.estimates import Estimate, half_width_error
from montecarlo.estimation.intervals import Interval, Moments, interval_ends
from montecarlo.sampling.batches import Counts

Bins = np.ndarray[tuple[int, ...], np.dtype[np.intp]]


@dataclass(frozen=True, slots=True)
class RowDistribution:
    """An estimated distribution function on the edges of a grid.

    Attributes
    ----------
    edges : ndarray, shape (n_bins,)
        Upper edge of each bin.
    share : ndarray, shape (n_bins,)
        Estimated probability that a row's value is at most the edge.
    error : ndarray, shape (n_bins,)
        Its standard error between replicates.
    skewness : ndarray, shape (n_bins,)
        Of the replicates' own shares.
    n_replicates : int
    inside : slice
        The bins that hold rows, and one on either side: beyond, nothing changes.
    grid : LogGrid
        What the rows were counted on.
    """

    edges: Array
    share: Array
    error: Array
    skewness: Array
    n_replicates: int
    inside: slice
    grid: LogGrid
    _ends: dict[float, tuple[Array, Array]] = field(default_factory=dict, repr=False)

    def bounds(self, level: float, error_rate: float) -> Interval:
        """Return the interval of a quantile.

        The level is the part of the rows below the quantile; the rate is one-sided.
        The bounds of the distribution function are inverted, rounded outwards to whole
        bins: where in a bin its values lie is not known, and all of them may be equal.
        """
        if error_rate not in self._ends:
            parts = (self.share, self.error, self.skewness)
            moments = Moments(*(part[self.inside] for part in parts))
            ends = interval_ends(moments, self.n_replicates, error_rate)
            self._ends[error_rate] = ends
        low, high = self._ends[error_rate]
        first, last = (_grid_bin(bin_of(end, level), self) for end in (high, low))
        return _bins(self, first, last)


def row_distribution(
    counts: Counts, grid: LogGrid, n_replicates: int
) -> RowDistribution:
    """Build the distribution function from counts.

    Parameters
    ----------
    counts : ndarray of int64, shape (3, n_bins) or (6, n_bins)
        As `montecarlo.sampling.replicates.count_bins` makes them, or `count_some` of
        values that only some rows have.
    grid : LogGrid
    n_replicates : int
        Those that have a row with a value.

    Notes
    -----
    Given its keys, the rows of a replicate are independent, so the true error is at
    least the binomial one.  Few replicates may agree by chance; where their variance is
    smaller than that (p taken half a row from 0 and 1), it is not used.
    """
    sums = counts.cumsum(axis=1).astype(np.float64)
    first, full = (int((sums[0] >= rows).argmax()) for rows in (1.0, sums[0, -1]))
    inside = slice(max(0, first - 1), full + 1)
    if len(counts) == 3:
        moments = shares(sums[:, inside], sums[0, -1], n_replicates)
    else:
        moments = shares_of_some(sums[:, inside], sums[:3, -1], n_replicates)
    # most of a grid is empty, and all is the same there as at the nearest bin inside
    nearest = np.arange(grid.n_bins).clip(inside.start, full) - inside.start
    share, error, skewness = (part[nearest] for part in moments)
    return RowDistribution(
        grid.edges(), share, error, skewness, n_replicates, inside, grid
    )


def shares(sums: Array, n_rows: float, n_replicates: int) -> Moments:
    """Return shares of rows, with standard errors and skewness between replicates.

    Parameters
    ----------
    sums : ndarray, shape (3, ...)
        Over replicates: of the number of rows below some edge, its square, its cube.
    n_rows : float
        Rows of all replicates.
    n_replicates : int

    Returns
    -------
    Moments
        Shape (...).
    """
    per_replicate = n_rows / n_replicates  # the same in each
    powers = np.array([per_replicate, per_replicate**2, per_replicate**3])
    scale = n_replicates * powers.reshape(-1, *[1] * (sums.ndim - 1))
    share, square, cube = sums / scale
    variance = np.maximum(square - share**2, 0.0)
    inside = (sums[0] + 0.5) / (n_rows + 1.0)
    least = inside * (1.0 - inside) / n_rows
    error = np.sqrt(np.maximum(variance / (n_replicates - 1), least))
    # no replicate lies farther from the mean than 1: rounding cannot blow this up
    third = cube - 3.0 * share * square + 2.0 * share**3
    third = np.where(cube > 0.0, third, 0.0)  # no cubes: as if there were no skewness
    floored = np.maximum(variance, n_replicates * least)
    return Moments(share, error, third / (floored * np.sqrt(floored)))


def shares_of_some(sums: Array, rows: Array, n_replicates: int) -> Moments:
    """Return what `shares` returns where the number of rows differs by replicate.

    Parameters
    ----------
    sums : ndarray, shape (6, ...)
        Over replicates: of c, c², c³, c·m, c²·m and c·m², where c is the number of rows
        below some edge and m that of all rows of the replicate that have a value.
    rows : ndarray, shape (3,)
        Sums of m, m² and m³.
    n_replicates : int
        Those with m > 0: others say nothing of these rows.

    Returns
    -------
    Moments
        Shape (...).

    Notes
    -----
    The share F is a ratio of two sums; a replicate moves it by (c - F m) over the sum
    of m, to the first order.  The bias of the ratio is of the order of the squared
    error and left alone.
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
    return Moments(share, error, skewness)


def quantile_estimate(rows: RowDistribution, level: float) -> Estimate:
    """Estimate a quantile; its interval inverts that of the distribution function.

    Where it lies beyond the grid that rows were counted on, there is no value and no
    standard error: the interval, from there on, is what is known.
    """
    bounds = partial(rows.bounds, level)
    bin_ = int(bin_of(rows.share, level))
    if bin_ in rows.grid.open_bins:
        return Estimate(math.nan, math.nan, rows.n_replicates, bounds=bounds)
    value = _crossing(rows, level, bin_)
    error = half_width_error(bounds, rows.n_replicates)
    finest = _bins(rows, bin_, bin_)
    return Estimate(value, error, rows.n_replicates, bounds=bounds, finest=finest)


def share_above(rows: RowDistribution, threshold: Estimate) -> Estimate:
    """Estimate the share of rows above a number that is an estimate itself.

    Parameters
    ----------
    rows : RowDistribution
    threshold : Estimate
        Of the same replicates, or of others.

    Returns
    -------
    Estimate
        Its interval covers whatever the two have to do with each other: the error rate
        is split over the threshold and the share, which is taken at whole bins.
    """

    def shares_between(ends: Interval, low: Array, high: Array) -> Interval:
        # the first edge at or above the threshold: at most this share lies below it
        above = min(int(np.searchsorted(rows.edges, ends.high)), len(high) - 1)
        below = int(np.searchsorted(rows.edges, ends.low, side="right")) - 1
        least = 1.0 - float(high[above])
        most = 1.0 if below < 0 else 1.0 - float(low[below])
        return Interval(max(0.0, least), min(1.0, most))

    def bounds(error_rate: float) -> Interval:
        ends = threshold.interval(0.5 * error_rate)
        parts = (rows.share, rows.error, rows.skewness)
        low, high = interval_ends(Moments(*parts), rows.n_replicates, 0.5 * error_rate)
        return shares_between(ends, low, high)

    share_below = float(np.interp(threshold.value, rows.edges, rows.share))
    error = half_width_error(bounds, rows.n_replicates)
    point = Interval(threshold.value, threshold.value)
    finest = shares_between(point, rows.share, rows.share)
    return Estimate(
        1.0 - share_below, error, rows.n_replicates, bounds=bounds, finest=finest
    )


def _bins(rows: RowDistribution, first: int, last: int) -> Interval:
    """Return the values that some neighbouring bins hold; one past the last: any."""
    highest = len(rows.edges) - 1
    is_open = last > highest or (last == highest and last in rows.grid.open_bins)
    return Interval(
        float(rows.edges[first - 1]) if first > 0 else rows.grid.least,
        math.inf if is_open else float(rows.edges[last]),
    )


def _grid_bin(inside_bin: Bins, rows: RowDistribution) -> int:
    """Turn a bin counted from the first inside into one of the whole grid.

    The first inside stands for all below it, and one past the last for none at all.
    """
    if inside_bin == 0:
        return 0
    grid_bin = int(rows.inside.start + inside_bin)
    return len(rows.edges) if grid_bin >= rows.inside.stop else grid_bin


def bin_of(curves: Array, level: float) -> Bins:
    """Return the bin in which curves over the edges first reach a level.

    Returns
    -------
    ndarray of int, shape (...)
        One past the last where they never do.
    """
    reached = curves >= level
    first = reached.argmax(axis=-1)
    nowhere = (first == 0) & ~reached[..., 0]
    return np.asarray(np.where(nowhere, curves.shape[-1], first))


def _crossing(rows: RowDistribution, level: float, bin_: int) -> float:
    """Return where the distribution function reaches a level within a bin.

    Even in the logarithm, but around zero; infinite past the last bin.
    """
    if bin_ == len(rows.edges):
        return math.inf
    if bin_ < 2:  # exact zero, or the first bin of the grid
        return float(rows.edges[bin_])
    below, above = rows.share[bin_ - 1], rows.share[bin_]
    part = float((level - below) / (above - below)) if above > below else 1.0
    low, high = float(rows.edges[bin_ - 1]), float(rows.edges[bin_])
    if low * high <= 0.0:
        return low + part * (high - low)
    return float(low * (high / low) ** part)
