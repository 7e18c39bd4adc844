"""Banks of real replicates, and their rows, ready to be judged in samples.

A bank holds what estimates of a point are made of, replicate by replicate.  A judged
sample has as many replicates as the report's first interim analysis, drawn from the
bank with replacement.  Its truth is the bank itself: the bank's own luck, which would
count at a rate of 1 in 10,000, is no part of it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product as pairs_of
from pathlib import Path

import numpy as np
from numpy.random import SFC64, Generator
from numpy.typing import NDArray
from scipy.special import betaincinv

from montecarlo.attention.grids import Grid
from montecarlo.attention.quantities import (
    PAIR_MEANS,
    PAIR_QUANTITIES,
    QUANTILES,
    QUANTITIES,
    ROW_QUANTITIES,
    Quantity,
    Scale,
    is_indicator,
)
from montecarlo.attention.softmax import Array
from montecarlo.estimation.estimates import (
    Estimate,
    jackknife,
    mean_estimate,
    product,
    share_estimate,
)
from montecarlo.estimation.intervals import (
    Moments,
    interval_ends,
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
from montecarlo.estimation.summaries import QUANTILE_RATIO, RowKey
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.replicates import (
    count_bins,
    count_columns,
    mean_columns,
    row_quantities,
    row_values,
    sample,
)
from montecarlo.study.presets import PRESETS
from studies.program import Arrays, keep

#: Replicates in a bank, and the part of them where replicates are expensive.
SIZE, LARGE_PART = 2**14, 4
DIVISORS = ("none", "sqrt", "2sqrt", "linear")
#: Keys of the replicates that are drawn at once.
KEYS_AT_ONCE = 2**13

#: (distribution, d_k) of the blocks of pairs, and (distribution, d_k, number of keys)
#: of the rows.
PAIRS = (
    *(("gaussian", d_k) for d_k in (1, 16, 64, 256, 1024)),
    *(("rademacher", d_k) for d_k in (16, 256)),
    *(("uniform", d_k) for d_k in (16, 256)),
    *(("laplace", d_k) for d_k in (16, 256)),
    *(("logistic", d_k) for d_k in (16, 256)),
    *(("student_t10", d_k) for d_k in (16, 256)),
    *(("student_t5", d_k) for d_k in (16, 256)),
    *(("student_t3", d_k) for d_k in (16, 256)),
    ("gaussian(mean=0.5)", 64),
)
ROWS = (
    *(("gaussian", d_k, 128) for d_k in (16, 64, 256, 1024)),
    ("gaussian", 64, 32),
    ("gaussian", 64, 512),
    ("gaussian", 64, 2048),
    *(
        (distribution, d_k, 128)
        for distribution in ("rademacher", "laplace")
        for d_k in (16, 256)
    ),
    *((distribution, 64, 128) for distribution in ("student_t10", "student_t5")),
    *(("student_t3", d_k, 128) for d_k in (16, 256)),
    ("gaussian(mean=0.5)", 64, 128),
)
PLANTED = (16, 256)
PAIR_ROWS = (
    "entry_variance_q",
    "score_abs",
    "score_variance",
    "score_std",
    "score_variance_ratio",
    "score_excess_kurtosis",
    "score_distribution_gap",
)
MEANS = (
    "score_row_variance",
    "score_max",
    "weight_max",
    "entropy",
    "inverse_participation",
    "jacobian_frobenius",
    "jacobian_spectral",
    "gradient_query",
    "planted_weight",
)
COUNTED = ("weight_max", "effective_keys", "jacobian_frobenius", "gradient_query")
COMPARED = ("effective_keys", "jacobian_frobenius", "gradient_query")
#: Shares of rows, and what the distance between the outer quantiles is judged of.
SHARES = ("saturated", "planted_rank_first")
QUANTILE_RATIOS = ("jacobian_frobenius",)

#: Samples that are drawn together.
CHUNK = 2048
#: Bins on either side of a quantile that are counted: whether an interval misses it is
#: decided in the bin of the quantile and the one below.
NEAR = 4
#: Where two quantiles are compared, their ends count: as many standard errors of the
#: share of rows, on either side, hold all but one in a million millions.
REACH = 12.0

Bins = NDArray[np.int16]
Places = NDArray[np.intp]
Indices = NDArray[np.int64]
#: One-sided error rate -> both ends of the interval of each sample.
Ends = Callable[[float], tuple[Array, Array]]


@dataclass(frozen=True, slots=True)
class Bank:
    """Replicates of one point.

    Attributes
    ----------
    point : DesignPoint
    means : ndarray, shape (size, n_columns)
        As in `montecarlo.sampling.batches.Batch`.
    bins : dict
        (divisor, quantity) to the bins of its row values, shape (size, n_rows).
    """

    point: DesignPoint
    means: Array
    bins: dict[tuple[str, str], Bins]

    def column(self, divisor: str, name: str) -> Array:
        """Return one mean of every replicate."""
        columns = mean_columns(self.point, DIVISORS)
        return self.means[:, columns.index((divisor, name))]


def points() -> list[DesignPoint]:
    """Return the points that have a bank: pairs first."""
    found = [
        parse_point(distribution, distribution, d_k) for distribution, d_k in PAIRS
    ]
    found += [
        parse_point(distribution, distribution, d_k, n_keys)
        for distribution, d_k, n_keys in ROWS
    ]
    found += [
        parse_point("gaussian", "gaussian", d_k, 128, "planted(0.5)") for d_k in PLANTED
    ]
    return found


def first_analysis(point: DesignPoint) -> int:
    """Return the replicates of the standard report's first interim analysis."""
    grid = PRESETS["standard"]
    return grid.first_large if point.is_large else grid.first


def row_keys(point: DesignPoint) -> Iterator[RowKey]:
    """Name the rows of a point that are calibrated."""
    if not point.has_rows:
        for name in PAIR_ROWS:
            yield RowKey("none", name, "value")
        return
    have = row_quantities(point)
    for name in (*MEANS, *SHARES):
        # a factor changes neither a row variance nor the largest score
        divided = QUANTITIES[name].name not in ("score_row_variance", "score_max")
        used = ("none", "sqrt", "linear") if divided else ("sqrt",)
        for divisor in used if name in have else ():
            yield RowKey(divisor, name, "mean")
    for name, divisor, summary in pairs_of(COUNTED, ("none", "sqrt"), QUANTILES):
        yield RowKey(divisor, name, summary)
    for name in COMPARED:
        yield RowKey("none/sqrt", name, "mean")
    for name, divisor in pairs_of(QUANTILE_RATIOS, ("sqrt", "none/sqrt")):
        yield RowKey(divisor, name, QUANTILE_RATIO)


def read_or_draw(point: DesignPoint, seed: int, size: int, work: Path | None) -> Bank:
    """Return the bank of a point, drawn where the folder does not have it.

    A quarter of the size where replicates are expensive; no folder keeps nothing.
    """
    if point.is_large:
        size //= LARGE_PART
    arrays = keep(
        work,
        "bank",
        [point.name, seed, size],
        lambda: _draw(point, seed, size),
    )
    means = arrays.pop("means")
    bins = {(d, q): some for name, some in arrays.items() for d, q in [name.split("/")]}
    return Bank(point, means, bins)


def _draw(point: DesignPoint, seed: int, size: int) -> Arrays:
    if not point.has_rows:
        return {"means": sample(point, seed, 0, size, DIVISORS).means}
    names = [(divisor, name) for divisor, name, _ in count_columns(point, DIVISORS)]
    at_once = max(1, math.ceil(KEYS_AT_ONCE / point.shape[1]))
    parts: dict[str, list[Array | Bins]] = {}
    for first in range(0, size, at_once):
        some = range(first, min(first + at_once, size))
        means, values = row_values(point, seed, some, DIVISORS)
        parts.setdefault("means", []).append(means)
        for divisor, name in pairs_of(("none", "sqrt"), COUNTED):
            bins = grid_of(name).bins(values[names.index((divisor, name))])
            parts.setdefault(f"{divisor}/{name}", []).append(bins.astype(np.int16))
    return {name: np.concatenate(some) for name, some in parts.items()}


def grid_of(quantity: str) -> Grid:
    """Return the grid that the rows of a quantity are counted on."""
    grid = ROW_QUANTITIES[quantity].grid
    if grid is None:
        raise ValueError(f"quantity must be counted, got {quantity!r}")
    return grid


def index_chunks(
    size: int, n_replicates: int, samples: int, seed: int
) -> Iterator[Indices]:
    """Yield which replicates of a bank each sample holds, in chunks of samples.

    Yields
    ------
    ndarray of int64, shape (at most CHUNK, n_replicates)
    """
    rng = Generator(SFC64(seed))
    for first in range(0, samples, CHUNK):
        shape = (min(CHUNK, samples - first), n_replicates)
        yield rng.integers(size, size=shape)


# --- Rows of a bank -------------------------------------------------------------------


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


def make_row(bank: Bank, key: RowKey) -> BankRow:
    """Return a row of a bank as a statistic of samples."""
    if key.summary in QUANTILES:
        return _make_quantile(bank, key)
    if key.summary == QUANTILE_RATIO:
        return _make_quantile_ratio(bank, key, pooled_value(bank, key)[0])
    if is_share(key):
        return _make_share(bank, key)
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


def _make_quantile(bank: Bank, key: RowKey) -> BankRow:
    """Return a quantile of rows by bins; an end in the truth's does not miss it."""
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


def _make_quantile_ratio(bank: Bank, key: RowKey, truth: float) -> BankRow:
    """Return the ratio of the outer quantiles of rows, or of two such ratios."""
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
    """Return the ends of a quantile's interval as values; far ones are infinite."""
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


def _make_share(bank: Bank, key: RowKey) -> BankRow:
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
