"""Rows of a bank: estimated, and ready to be judged in samples of its replicates.

A judged sample has as many replicates as the report's first interim analysis.  Its
truth is the bank itself, of which it is a sample: the bank's own luck, which would
count at a rate of 1 in 10,000, is no part of it.  How the bank lies to an exact value
is a number of its own.
"""

from collections.abc import Callable

import numpy as np

from montecarlo.attention.quantities import (
    PAIR_MEANS,
    PAIR_QUANTITIES,
    QUANTILES,
    Quantity,
    Scale,
    is_indicator,
)
from montecarlo.attention.softmax import Array
from montecarlo.calibration.bank import Bank, grid_of
from montecarlo.calibration.counted_rows import (
    BankRow,
    Ends,
    make_quantile,
    make_quantile_ratio,
    make_share,
)
from montecarlo.estimation.estimates import (
    Estimate,
    jackknife,
    mean_estimate,
    product,
    share_estimate,
)
from montecarlo.estimation.intervals import (
    Moments,
    jackknife_moments,
    mean_ends,
    mean_moments,
)
from montecarlo.estimation.row_distribution import quantile_estimate, row_distribution
from montecarlo.estimation.summaries import QUANTILE_RATIO, RowKey
from montecarlo.sampling.replicates import count_bins
from montecarlo.sampling.streams import Indices


def make_row(bank: Bank, key: RowKey) -> BankRow:
    """Return a row of a bank as a statistic of samples."""
    if key.summary in QUANTILES:
        return make_quantile(bank, key)
    if key.summary == QUANTILE_RATIO:
        return make_quantile_ratio(bank, key, pooled_value(bank, key)[0])
    if is_share(key):
        return make_share(bank, key)
    values, function = columns_of(bank, key)
    scale = _interval_scale(key)
    truth = float(function(values.mean(axis=1)))

    def sample(indices: Indices) -> Ends:
        n = indices.shape[-1]
        moments = moments_of(bank, key, indices)

        def ends(error_rate: float) -> tuple[Array, Array]:
            low, high = mean_ends(moments, n, error_rate)
            return (low, high) if scale is None else (scale.back(low), scale.back(high))

        return ends

    return BankRow(truth, sample)


def moments_of(bank: Bank, key: RowKey, indices: Indices) -> Moments:
    """Return what the intervals of a mean, or a function of means, are made of.

    Parameters
    ----------
    bank : Bank
    key : RowKey
    indices : ndarray, shape (n_samples, n_replicates)

    Returns
    -------
    Moments
        Of shape (n_samples,), on the scale where the interval is made.
    """
    values, function = columns_of(bank, key)
    if len(values) == 1:
        return mean_moments(values[0][indices])
    scale = _interval_scale(key)
    if scale is None:
        return jackknife_moments(values[:, indices], function)
    return jackknife_moments(
        values[:, indices], lambda means: scale.forward(function(means))
    )


def is_share(key: RowKey) -> bool:
    """Tell whether a row is the share of rows for which something holds."""
    return is_indicator(key.quantity) and "/" not in key.divisor


def columns_of(bank: Bank, key: RowKey) -> tuple[Array, Callable[[Array], Array]]:
    """Return the means of replicates that a row is made of, and the function of them.

    Returns
    -------
    values : ndarray, shape (n_means, size)
    function : callable
        (n_means, ...) -> (...).
    """
    if not bank.point.has_rows:
        quantity, d_k = PAIR_QUANTITIES[key.quantity], bank.point.d_k
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


def _used(quantity: Quantity) -> tuple[str, ...]:
    """Return the means that a quantity is a function of."""
    used: dict[str, None] = {}

    class Means(dict[str, Array]):
        def __getitem__(self, name: str) -> Array:
            used[name] = None
            return np.asarray(PAIR_MEANS.index(name) + 1.0)

    with np.errstate(invalid="ignore"):  # the numbers stand for nothing
        quantity.evaluate(Means(), 1)
    return tuple(used)


def estimate(bank: Bank, key: RowKey, indices: Indices) -> Estimate:
    """Return the report's estimate of a row from some replicates of a bank."""
    if key.summary == QUANTILE_RATIO:
        parts = [
            (_quantile(bank, RowKey(divisor, key.quantity, summary), indices), power)
            for divisor in key.divisor.split("/")
            for summary, power in (("q90", 1), ("q10", -1))
        ]
        if len(parts) == 2:
            return product(parts)
        return product([(product(parts[:2]), 1), (product(parts[2:]), -1)])
    if key.summary in QUANTILES:
        return _quantile(bank, key, indices)
    values, function = columns_of(bank, key)
    if is_share(key):
        return share_estimate(values[0][indices], bank.point.shape[0])
    if len(values) == 1:
        return mean_estimate(values[0][indices])
    return jackknife(values[:, indices], function, _interval_scale(key))


def _quantile(bank: Bank, key: RowKey, indices: Indices) -> Estimate:
    grid = grid_of(key.quantity)
    bins = bank.bins[key.divisor, key.quantity][indices]
    rows = row_distribution(count_bins(bins, grid.n_bins), grid, len(indices))
    return quantile_estimate(rows, QUANTILES[key.summary])


def pooled_value(bank: Bank, key: RowKey) -> tuple[float, float]:
    """Return the value of a row over the whole bank, with its standard error."""
    found = estimate(bank, key, np.arange(len(bank.means)))
    return found.value, found.std_error
