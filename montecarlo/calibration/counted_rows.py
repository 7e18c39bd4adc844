"""Rows of a bank that are made of counts: quantiles, ratios of two, shares of rows.

Many samples go through NumPy together, each judged as the report judges one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import betaincinv

from montecarlo.attention.quantities import QUANTILES
from montecarlo.attention.softmax import Array
from montecarlo.calibration.bank import Bank, Bins, grid_of
from montecarlo.estimation.intervals import Moments, interval_ends, mean_moments
from montecarlo.estimation.row_distribution import bin_of, bins_around, shares
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.streams import Indices

#: Bins on either side of a quantile that are counted: whether an interval misses it is
#: decided in the bin of the quantile and the one below.
NEAR = 4
#: Where two quantiles are compared, their ends count: as many standard errors of the
#: share of rows, on either side, hold all but one in a million millions.
REACH = 12.0

Places = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
#: One-sided error rate -> both ends of the interval of each sample.
Ends = Callable[[float], tuple[Array, Array]]


@dataclass(frozen=True, slots=True)
class BankRow:
    """A row of a bank, ready to be judged in samples.

    Attributes
    ----------
    truth : float
        Its value over the whole bank, on the scale of the ends.
    sample : callable
        Indices of replicates, shape (n_samples, n_replicates) -> Ends.
    """

    truth: float
    sample: Callable[[Indices], Ends]


def make_quantile(bank: Bank, key: RowKey) -> BankRow:
    """Return a quantile of rows, on the scale of bins.

    An end in the bin of the truth does not miss it.
    """
    bins = bank.bins[key.divisor, key.quantity]
    level = QUANTILES[key.summary]
    truth = int(bin_of(_pool(bins), level))
    near = np.arange(max(0, truth - NEAR), truth + NEAR + 1)
    below = _below(bins, near)

    def sample(indices: Indices) -> Ends:
        n = indices.shape[-1]
        moments = _moments(below, indices, bins.shape[1])

        def ends(error_rate: float) -> tuple[Array, Array]:
            low, high = bins_around(moments, n, level, error_rate)
            low, high = near[0] + low, near[0] + high
            return low - 0.5, high + 0.5  # the outer edges of both bins

        return ends

    return BankRow(float(truth), sample)


def make_quantile_ratio(bank: Bank, key: RowKey, truth: float) -> BankRow:
    """Return the ratio of the outer quantiles of rows, or of two such ratios.

    Parameters
    ----------
    bank : Bank
    key : RowKey
        Under a divisor, or under two as ``over/under``.
    truth : float
        Over the whole bank.
    """
    parts = [
        (_quantile_ends(bank, RowKey(divisor, key.quantity, name)), power * sign)
        for divisor, sign in zip(key.divisor.split("/"), (1, -1), strict=False)
        for name, power in (("q90", 1), ("q10", -1))
    ]

    def sample(indices: Indices) -> Ends:
        made = [(part(indices), power) for part, power in parts]

        def ends(error_rate: float) -> tuple[Array, Array]:
            low = high = np.ones(len(indices))
            for part, power in made:
                least, most = part(error_rate / len(parts))
                with np.errstate(divide="ignore"):
                    if power < 0:
                        least, most = 1.0 / most, 1.0 / least
                low, high = low * least, high * most
            return low, high

        return ends

    return BankRow(truth, sample)


def _quantile_ends(bank: Bank, key: RowKey) -> Callable[[Indices], Ends]:
    """Return the ends of the interval of a quantile as values, not as bins.

    Only edges near it are counted; beyond them an end is as far off as can be.
    """
    bins, level = bank.bins[key.divisor, key.quantity], QUANTILES[key.summary]
    edges = grid_of(key.quantity).edges()

    @cache
    def window(n: int) -> tuple[Places, Array]:
        pooled = _pool(bins)
        below = (bins <= int(bin_of(pooled, level))).mean(axis=1)
        error = max(below.std(), math.sqrt(level * (1.0 - level) / bins.shape[1]))
        reach = REACH * error / math.sqrt(n)
        first, last = (int(bin_of(pooled, level + s * reach)) for s in (-1, 1))
        near = np.arange(max(0, first - 1), min(last + 1, len(pooled)) + 1)
        return near, _below(bins, near)

    def sample(indices: Indices) -> Ends:
        n = indices.shape[-1]
        near, below = window(n)
        moments = _moments(below, indices, bins.shape[1])

        def ends(error_rate: float) -> tuple[Array, Array]:
            first, last = bins_around(moments, n, level, error_rate)
            inside = last < len(near)
            first = near[0] + first
            last = np.where(inside, near[0] + last, len(edges) - 1)
            low = np.where(first > max(1, near[0]), edges[first - 1], 0.0)
            return low, np.where(last < len(edges) - 1, edges[last], math.inf)

        return ends

    return sample


def _pool(bins: Bins) -> Array:
    """Return the share of all rows at or below each bin."""
    pooled = np.bincount(bins.ravel(), minlength=int(bins.max()) + 1).cumsum()
    return np.asarray(pooled / pooled[-1])


def _below(bins: Bins, near: Places) -> Array:
    """Return how many rows of each replicate lie at or below some bins."""
    below = np.stack([(bins <= edge).sum(axis=1) for edge in near], axis=1)
    return below.astype(np.float64)


def _moments(below: Array, indices: Indices, n_rows: int) -> Moments:
    """Return shares of rows of each sample, with errors between its replicates."""
    n_samples, n = indices.shape
    sums = np.zeros((3, n_samples, below.shape[1]))
    for replicate in indices.T:
        counts = below[replicate]
        for power in (1, 2, 3):
            sums[power - 1] += counts**power
    return shares(sums, n * n_rows, n)


def make_share(bank: Bank, key: RowKey) -> BankRow:
    """Return the share of rows for which something holds."""
    values = bank.column(key.divisor, key.quantity)

    def sample(indices: Indices) -> Ends:
        n = indices.shape[-1]
        rows = n * bank.point.shape[0]
        moments = mean_moments(values[indices])
        hits = np.round(moments.value * rows)
        inside = (hits + 0.5) / (rows + 1.0)
        floor = np.sqrt(inside * (1.0 - inside) / rows)
        moments = moments._replace(std_error=np.maximum(moments.std_error, floor))

        def ends(error_rate: float) -> tuple[Array, Array]:
            low, high = interval_ends(moments, n, error_rate)
            some, where = np.unique(hits, return_inverse=True)
            with np.errstate(invalid="ignore"):
                least = betaincinv(some, rows - some + 1.0, error_rate)
                most = betaincinv(some + 1.0, rows - some, 1.0 - error_rate)
            least = np.where(some > 0.0, least, 0.0)[where]
            most = np.where(some < rows, most, 1.0)[where]
            return np.minimum(low, least), np.maximum(high, most)

        return ends

    return BankRow(float(values.mean()), sample)
