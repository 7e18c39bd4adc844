"""Judged samples: drawn from a bank, and how their intervals lie to the truth.

A judged sample is as many replicates as the report's first look takes.  Its truth is
the bank itself, of which it is a sample: the bank's own luck, which would count at a
rate of 1 in 10,000, is no part of it.  How the bank lies to an exact value is a number
of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from montecarlo.attention.pairs import PAIR_MEANS, PAIR_QUANTITIES, PairQuantity, Scale
from montecarlo.attention.rows import QUANTILES, ROW_QUANTITIES
from montecarlo.attention.softmax import Array
from montecarlo.calibration.bank import Bank
from montecarlo.estimation.estimates import Estimate, jackknife, mean_estimate
from montecarlo.estimation.intervals import (
    jackknife_moments,
    mean_ends,
    mean_moments,
)
from montecarlo.estimation.row_distribution import (
    bin_of,
    bins_around,
    quantile_estimate,
    row_distribution,
    shares,
)
from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.replicates import count_bins
from montecarlo.sampling.resampling import Indices

#: Bins on either side of a quantile that are counted: whether an interval misses it is
#: decided in the bin of the quantile and the one below.
NEAR = 4

#: One-sided error rate -> both ends of the interval of each sample.
Ends = Callable[[float], tuple[Array, Array]]


@dataclass(frozen=True, slots=True)
class Statistic:
    """A row of a bank, ready to be judged in samples.

    Attributes
    ----------
    truth : float
        Its value over the whole bank, on the scale of the ends.
    sampled : callable
        Indices of replicates, shape (n_samples, n_replicates) -> Ends.
    """

    truth: float
    sampled: Callable[[Indices], Ends]


def statistic(bank: Bank, key: RowKey) -> Statistic:
    """Return a row of a bank as a statistic of samples.

    Parameters
    ----------
    bank : Bank
    key : RowKey
    """
    if key.summary in QUANTILES:
        return _quantile(bank, key)
    values, function = columns_of(bank, key)
    scale = _interval_scale(key)
    truth = float(function(values.mean(axis=1)))

    def on_scale(means: Array) -> Array:
        return function(means) if scale is None else scale.forward(function(means))

    def sampled(indices: Indices) -> Ends:
        n = indices.shape[-1]
        if len(values) == 1:
            moments = mean_moments(values[0][indices])
        else:
            moments = jackknife_moments(values[:, indices], on_scale)

        def ends(error_rate: float) -> tuple[Array, Array]:
            low, high = mean_ends(moments, n, error_rate)
            return (low, high) if scale is None else (scale.back(low), scale.back(high))

        return ends

    return Statistic(truth, sampled)


def columns_of(bank: Bank, key: RowKey) -> tuple[Array, Callable[[Array], Array]]:
    """Return the means of replicates that a row is made of, and the function of them.

    Returns
    -------
    values : ndarray, shape (n_means, size)
    function : callable
        (n_means, ...) -> (...).
    """
    if bank.condition.n_keys is None:
        quantity, d_k = PAIR_QUANTITIES[key.quantity], bank.condition.d_k
        names = _used(quantity)
        columns = [bank.column("none", name) for name in names]
        return np.stack(columns), lambda means: quantity.evaluate(
            dict(zip(names, means, strict=True)), d_k
        )
    if "/" in key.divisor:
        columns = [bank.column(d, key.quantity) for d in key.divisor.split("/")]
        return np.stack(columns), lambda means: means[0] / means[1]
    return bank.column(key.divisor, key.quantity)[np.newaxis], lambda means: means[0]


def _interval_scale(key: RowKey) -> Scale | None:
    pairs = PAIR_QUANTITIES.get(key.quantity)
    return None if pairs is None else pairs.interval_scale


def _used(quantity: PairQuantity) -> tuple[str, ...]:
    """Return the means that a quantity is a function of."""
    used: dict[str, None] = {}

    class Means(dict[str, Array]):
        def __getitem__(self, name: str) -> Array:
            used[name] = None
            return np.asarray(PAIR_MEANS.index(name) + 1.0)

    quantity.evaluate(Means(), 1)
    return tuple(used)


def _quantile(bank: Bank, key: RowKey) -> Statistic:
    """Return a quantile of rows, on the scale of bins.

    An end in the bin of the truth does not miss it.
    """
    bins = bank.bins[key.divisor, key.quantity]
    level = QUANTILES[key.summary]
    pooled = np.bincount(bins.ravel(), minlength=int(bins.max()) + 1).cumsum()
    truth = int(bin_of(pooled / pooled[-1], level))
    near = np.arange(max(0, truth - NEAR), truth + NEAR + 1)
    below = np.stack([(bins <= edge).sum(axis=1) for edge in near], axis=1)
    below = below.astype(np.float64)

    def sampled(indices: Indices) -> Ends:
        n_samples, n = indices.shape
        sums = np.zeros((3, n_samples, len(near)))
        for replicate in indices.T:
            counts = below[replicate]
            for power in (1, 2, 3):
                sums[power - 1] += counts**power
        moments = shares(sums, n * bins.shape[1], n)

        def ends(error_rate: float) -> tuple[Array, Array]:
            low, high = bins_around(moments, n, level, error_rate)
            low, high = near[0] + low, near[0] + high
            return low - 0.5, high + 0.5  # the outer edges of both bins

        return ends

    return Statistic(float(truth), sampled)


def estimate(bank: Bank, key: RowKey, indices: Indices) -> Estimate:
    """Return the report's estimate of a row from some replicates of a bank.

    Parameters
    ----------
    bank : Bank
    key : RowKey
    indices : ndarray, shape (n_replicates,)
    """
    if key.summary in QUANTILES:
        grid = ROW_QUANTITIES[key.quantity].grid
        if grid is None:
            raise ValueError(f"quantity must be counted, got {key.quantity!r}")
        bins = bank.bins[key.divisor, key.quantity][indices]
        counts = count_bins(bins, grid.n_bins)
        rows = row_distribution(counts, grid, len(indices))
        return quantile_estimate(rows, QUANTILES[key.summary])
    values, function = columns_of(bank, key)
    if len(values) == 1:
        return mean_estimate(values[0][indices])
    return jackknife(values[:, indices], function, _interval_scale(key))


def pooled_value(bank: Bank, key: RowKey) -> tuple[float, float]:
    """Return the value of a row over the whole bank, with its standard error."""
    found = estimate(bank, key, np.arange(len(bank.means)))
    return found.value, found.std_error
