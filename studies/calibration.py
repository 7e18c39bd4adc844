"""How often the judge's intervals miss: the table by which it pays for that.

Run as ``python -m studies.calibration [--short] [--seed N]``; --short takes a minute,
for a few lines of it by other trials, printed only.  Out: ``calibration.csv`` beside
this program, and what the judge pays for it, ``montecarlo/claims/calibration.toml``.

Replicates of a point are drawn once, a bank.  A trial takes as many of them, with
replacement, as the report has at its first look, and misses where its interval does not
hold the value of the whole bank.  A trial of the stopping rule looks as often as a
report may, with a part of the rate each time, and misses where any interval does.  The
table holds counts, so that whoever reads it can put an error on them.
"""

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import SFC64, Generator
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from montecarlo.attention.quantities import (
    ANY,
    PAIR_QUANTITIES,
    QUANTILES,
    Scale,
    range_of,
)
from montecarlo.attention.softmax import Array
from montecarlo.claims import calibration
from montecarlo.claims.calibration import KURTOSIS, OF_FEW_ROWS
from montecarlo.estimation.estimates import (
    Estimate,
    clopper_pearson,
    log_log_slope,
)
from montecarlo.estimation.intervals import (
    MOST_SKEWED,
    POINTWISE,
    EstimateMoments,
    interval_ends,
    jackknife_moments,
)
from montecarlo.estimation.row_distribution import bin_of, shares
from montecarlo.estimation.summaries import (
    RowKey,
    Summaries,
    columns_of,
    every_key,
)
from montecarlo.sampling.batches import Batch
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.replicates import (
    Columns,
    count_bins,
    grid_of,
    row_values,
    sample,
)
from montecarlo.study.presets import PRESETS
from studies.program import parse, run_program, write_table

TABLE = Path(__file__).with_suffix(".csv")
RECORD = Path(calibration.__file__).with_suffix(".toml")
#: Nominal one-sided error rates at which misses are counted.
RATES = (1e-2, 1e-3, 1e-4)
SIDES = ("low", "high")
#: Columns: what names a statistic, what its trials are made of, and misses.
NAMES = (
    *("kind", "distribution", "dependence", "d_k", "n_keys"),
    *("divisor", "quantity", "summary"),
    *("replicates", "looks", "bank", "trials"),
)
COUNTS = tuple(f"{side}_{rate:g}" for side in SIDES for rate in RATES)
DIVISORS = ("none", "sqrt")
#: Quantities of rows whose bins a bank keeps.
COUNTED = ("jacobian_frobenius", "jacobian_trace", "weight_max", "gradient_query")
#: Replicates of a bank, and of one whose replicates are expensive; drawn together.
BANK, LARGE_BANK, TOGETHER = 2**12, 2**10, 16
#: Trials of means, of other statistics, of stopping, and in the small version.
MANY, TRIALS, FEW, SHORT = 2**20, 2**19, 2**17, 2**15
#: Trials that are made together, and those that are compared with a report's estimate.
CHUNK, COMPARED = 2**10, 3
#: How near to a quantile bins are looked at, in standard errors of the share of rows.
REACH = 10.0
#: Variance over mean square, below which replicates differ by rounding only.
AGREE = 1e-12
#: One-sided error rates, and both ends of the intervals of some trials at each.
Levels = Sequence[float]
Ends = Iterator[tuple[Array, Array]]
#: Which replicates a trial takes, shape (trials, replicates).
Indices = NDArray[np.int64]
Places = tuple[str, ...]

SHORT_ROWS, GAUSSIAN, LONG = "gaussian 16 128", "gaussian 64 128", "gaussian 64 2048"
LAPLACE, PLANTED = "laplace 16 128", "gaussian 16 128 planted(0.5)"
SERIES, LONG_SERIES = "laplace 16,64,256 128", "gaussian 64,128,256 2048"
ENDS = ("laplace 64,256 128", "student_t10 64,256 128")
PAIRS = ("gaussian 16", "laplace 16", "student_t10 16")
#: By kind: places (distribution, d_k, keys, dependence), and what is estimated there.
CASES = (
    ("mean", (SHORT_ROWS, GAUSSIAN, LONG, LAPLACE), "sqrt inverse_participation mean"),
    ("mean", ("student_t10 64 128",), "sqrt inverse_participation mean"),
    ("mean", ("rademacher 256 128",), "sqrt inverse_participation mean"),
    ("mean", (GAUSSIAN,), "none inverse_participation mean"),
    ("mean", (LAPLACE, LONG), "sqrt weight_max mean"),
    ("mean", (GAUSSIAN, LONG), "sqrt jacobian_trace mean"),
    ("mean", (GAUSSIAN, LONG), "sqrt jacobian_frobenius_squared mean"),
    ("mean", (GAUSSIAN,), "sqrt entropy mean"),
    ("mean", (LONG,), "sqrt effective_keys mean"),
    ("mean", (LONG,), "none score_max mean"),
    ("mean", (LAPLACE,), "sqrt gradient_query mean"),
    ("mean", (PLANTED,), "sqrt planted_weight mean"),
    ("divisor ratio", (GAUSSIAN, LAPLACE, LONG), "none/sqrt effective_keys mean"),
    ("divisor ratio", (GAUSSIAN, LAPLACE, LONG), "none/sqrt gradient_query mean"),
    ("divisor ratio", (GAUSSIAN, LAPLACE, LONG), "none/sqrt jacobian_frobenius mean"),
    ("pairs", (*PAIRS, "rademacher 256"), "none score_variance value"),
    ("pairs", PAIRS, "none score_variance_ratio value"),
    ("pairs", PAIRS, "none score_std value"),
    (KURTOSIS, PAIRS[:2], "none score_excess_kurtosis value"),
    ("pairs", PAIRS[1:], "none entry_variance_q value"),
    ("pairs", PAIRS[:2], "none score_abs value"),
    ("pairs", PAIRS[:1], "none score_distribution_gap value"),
    (OF_FEW_ROWS, (LONG,), "sqrt jacobian_spectral mean"),
    ("share", (SHORT_ROWS, GAUSSIAN, LONG), "none saturated mean"),
    ("share", (LAPLACE, "laplace 16 2048"), "sqrt saturated mean"),
    ("slope", (SERIES, "gaussian 64,128,256 128"), "sqrt jacobian_trace mean"),
    ("slope", ENDS, "sqrt effective_keys mean"),
    ("slope", (SERIES, "gaussian 16,64,256,1024 128"), "sqrt jacobian_spectral mean"),
    ("slope", ("gaussian 16,64,256",), "none score_abs value"),
    ("slope", ("laplace 16,64,256",), "none score_variance value"),
    ("slope", (LONG_SERIES,), "sqrt jacobian_spectral mean"),
    ("slope", (LONG_SERIES,), "sqrt jacobian_trace mean"),
    ("slope", (LONG_SERIES,), "sqrt jacobian_frobenius mean"),
    ("slope", (LONG_SERIES,), "sqrt effective_keys mean"),
    ("slope", (LONG_SERIES,), "sqrt gradient_query mean"),
    ("slope", (LONG_SERIES,), "sqrt score_max mean"),
)
OF_QUANTILES = (
    ("quantile", (LAPLACE,), "none weight_max median"),
    ("quantile", (SHORT_ROWS, GAUSSIAN), "sqrt gradient_query q90"),
    ("quantile ratio", (SHORT_ROWS,), "sqrt jacobian_frobenius spread"),
    ("quantile ratio", (SHORT_ROWS,), "none/sqrt jacobian_frobenius spread"),
)
#: Trials that look as often as the report may.
STOPPING = (
    ("mean", (SHORT_ROWS, GAUSSIAN), "sqrt inverse_participation mean"),
    (KURTOSIS, PAIRS[:2], "none score_excess_kurtosis value"),
    ("slope", (SERIES,), "sqrt jacobian_trace mean"),
    ("share", (SHORT_ROWS,), "none saturated mean"),
    ("pairs", PAIRS[1:2], "none score_variance value"),
)
#: The streams of the tables begin here: a case at the end of one changes no other.
TABLES = ((0, CASES), (64, OF_QUANTILES), (69, STOPPING))


class Case(NamedTuple):
    """A statistic whose intervals are counted.

    Attributes
    ----------
    kind : str
        Of the interval.
    points : tuple of DesignPoint
        By rising d_k; one but for slopes.
    key : RowKey
    stops : bool
        Whether a trial looks as often as the report may.
    """

    kind: str
    points: tuple[DesignPoint, ...]
    key: RowKey
    stops: bool

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of replicates at which a trial looks."""
        looks = PRESETS["standard"].budget_of(self.points[0]).analyses()
        return looks if self.stops else looks[:1]

    @property
    def trials(self) -> int:
        """How many are made."""
        if self.stops:
            return FEW
        return MANY if self.kind in ("mean", OF_FEW_ROWS) else TRIALS

    @property
    def cells(self) -> dict[str, object]:
        """What its line begins with: all that names it, and what it is made of."""
        point = self.points[0]
        place = (point.distribution_k.name, point.dependence.name)
        sizes = (" ".join(str(one.d_k) for one in self.points), point.n_keys or "")
        made = (self.looks[-1], len(self.looks), bank_size(point), self.trials)
        cells = (self.kind, *place, *sizes, *self.key[:3], *made)
        return dict(zip(NAMES, cells, strict=True))

    @property
    def is_short(self) -> bool:
        """Whether the small version makes it, too."""
        first = self.points[0].label, self.points[0].d_k
        return first == ("gaussian", 16) and self.points[-1].d_k <= 64


def cases() -> Iterator[tuple[int, Case]]:
    """Yield what is counted, in the order of the table: its stream, and it."""
    for first, table in TABLES:
        yield from enumerate(_cases(table, stops=table is STOPPING), first)


def _cases(table: Iterable[tuple[str, Places, str]], *, stops: bool) -> Iterator[Case]:
    for kind, places, names in table:
        divisor, quantity, summary = names.split()
        for place in places:
            distribution, sizes, *rest = place.split()
            n_keys = int(rest[0]) if rest else None
            points = tuple(
                parse_point(distribution, distribution, int(d_k), n_keys, *rest[1:])
                for d_k in sizes.split(",")
            )
            yield Case(kind, points, RowKey(divisor, quantity, summary), stops)


def bank_size(point: DesignPoint) -> int:
    """Return how many replicates of a point are drawn."""
    return LARGE_BANK if point.is_large else BANK


# --- Banks ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bank:
    """Replicates of a point.

    Attributes
    ----------
    point : DesignPoint
    means : ndarray, shape (size, n_columns)
    bins : dict
        (divisor, quantity) to the bins of row values, shape (size, n_rows).
    """

    point: DesignPoint
    means: Array
    bins: dict[tuple[str, str], NDArray[np.int16]]

    def estimate(self, key: RowKey, indices: Indices | slice) -> Estimate:
        """Return the report's estimate of a row from some replicates."""
        counts = tuple(
            count_bins(
                self.bins[column][indices], grid_of(self.point, column[1]).n_bins
            )
            if column in self.bins
            else np.zeros((3, 1), np.int64)  # no case asks for it
            for column in columns_at(self.point).counts
        )
        batch = Batch(self.means[indices], counts)
        return Summaries(self.point, batch, columns_at(self.point)).estimate(key)


@lru_cache(maxsize=64)
def columns_at(point: DesignPoint) -> Columns:
    """Return what replicates of a point are reduced to."""
    return columns_of(point, every_key(point, DIVISORS))


@lru_cache(maxsize=64)
def draw_bank(point: DesignPoint, seed: int) -> Bank:
    """Draw the replicates of a point."""
    size = bank_size(point)
    if not point.has_rows:
        return Bank(point, sample(point, seed, 0, size, columns_at(point)).means, {})
    parts: list[Array] = []
    bins: dict[tuple[str, str], list[NDArray[np.int16]]] = {}
    for first in range(0, size, TOGETHER):
        indices = range(first, first + TOGETHER)
        means, values = row_values(point, seed, indices, columns_at(point))
        parts.append(means)
        for column, some in zip(columns_at(point).counts, values, strict=True):
            if column[1] in COUNTED:
                made = grid_of(point, column[1]).bins(some).astype(np.int16)
                bins.setdefault(column, []).append(made)
    joined = {name: np.concatenate(some) for name, some in bins.items()}
    return Bank(point, np.concatenate(parts), joined)


# --- Intervals of many trials at once -------------------------------------------------


def sums_of(indices: Indices, size: int, columns: Array) -> Array:
    """Add up lines of columns, shape (size, ...), over the replicates of each trial."""
    starts = np.arange(0, indices.size + 1, indices.shape[1])
    taken = csr_matrix(
        (np.ones(indices.size), indices.ravel(), starts), (len(indices), size)
    )
    return np.asarray(taken @ columns)


def means_of(
    bank: Bank, key: RowKey
) -> tuple[list[tuple[str, str]], Callable[[Array], Array]]:
    """Return the means that a row is made of, and the function of them."""
    if bank.point.has_rows:
        names = [(divisor, key.quantity) for divisor in key.divisor.split("/")]
        return names, lambda means: means[0] / means[1]
    quantity, d_k = PAIR_QUANTITIES[key.quantity], bank.point.d_k
    used: defaultdict[str, Array] = defaultdict(lambda: np.array(2.0))
    with np.errstate(invalid="ignore"):  # only which means it asks for is looked at
        quantity.evaluate(used, d_k)

    def function(means: Array) -> Array:
        return quantity.evaluate(dict(zip(used, means, strict=True)), d_k)

    return [("none", name) for name in used], function


def moments_of(
    bank: Bank, key: RowKey, indices: Indices, scale: Scale | None = None
) -> EstimateMoments:
    """Return what intervals of means, and of functions of means, are made of."""
    names, function = means_of(bank, key)
    columns, n = columns_at(bank.point).means, indices.shape[1]
    values = bank.means.T[[columns.index(name) for name in names]]
    if len(names) > 1 or not bank.point.has_rows:
        return jackknife_moments(
            np.stack([one[indices] for one in values]),
            lambda m: function(m) if scale is None else scale.forward(function(m)),
        )
    centre = values[0].mean()
    x = values[0] - centre
    first, second, third = sums_of(indices, len(x), np.stack([x, x**2, x**3], 1)).T / n
    variance = second - first**2
    about_mean = third - 3.0 * first * second + 2.0 * first**3
    agree = variance <= AGREE * second
    variance = np.where(agree, 0.0, variance)
    skewness = np.where(agree, 0.0, about_mean / np.where(agree, 1.0, variance**1.5))
    return EstimateMoments(centre + first, np.sqrt(variance / (n - 1)), skewness)


def mean_ends(
    moments: EstimateMoments, n_replicates: int, error_rate: float
) -> tuple[Array, Array]:
    """Return `interval_ends`, unbounded where a mean hangs on rare replicates.

    Notes
    -----
    Where fewer than `FEWEST_OUTLIERS` replicates make nearly all of the variance,
    rarer ones are still to come, and what they add is not known.
    """
    low, high = interval_ends(moments, n_replicates, error_rate)
    rare = np.abs(moments.skewness) > MOST_SKEWED * math.sqrt(n_replicates)
    return np.where(rare, -math.inf, low), np.where(rare, math.inf, high)


def mean_interval(bank: Bank, key: RowKey, indices: Indices, rates: Levels) -> Ends:
    """Return the ends of means, ratios of divisors, and quantities of pairs."""
    quantity = PAIR_QUANTITIES.get(key.quantity)
    scale = None if quantity is None else quantity.interval_scale
    moments, n = moments_of(bank, key, indices, scale), indices.shape[1]
    is_mean = quantity is None and "/" not in key.divisor
    least, most = range_of(key.quantity, bank.point.n_keys) if is_mean else ANY
    for rate in rates:
        low, high = mean_ends(moments, n, rate)
        if math.isfinite(most - least):  # as `bounded_estimate` makes them
            unknown = np.isinf(high - low) | (moments.std_error == 0.0)
            reach = (most - least) * math.sqrt(-math.log(rate) / (2.0 * n))
            low = np.where(unknown, np.maximum(least, moments.value - reach), low)
            high = np.where(unknown, np.minimum(most, moments.value + reach), high)
        yield (low, high) if scale is None else (scale.back(low), scale.back(high))


def share_interval(bank: Bank, key: RowKey, indices: Indices, rates: Levels) -> Ends:
    """Return the ends of shares of rows, as `share_estimate` makes them."""
    moments, n = moments_of(bank, key, indices), indices.shape[1]
    rows = n * bank.point.shape[0]
    hits = np.round(moments.value * rows)
    inside = (hits + 0.5) / (rows + 1.0)
    floor = np.sqrt(inside * (1.0 - inside) / rows)
    moments = moments._replace(std_error=np.maximum(moments.std_error, floor))
    for rate in rates:
        low, high = interval_ends(moments, n, rate)
        some, where = np.unique(hits, return_inverse=True)
        exact = [clopper_pearson(int(one), rows, rate) for one in some]
        least, most = np.array(exact)[where].T
        yield np.minimum(low, least), np.maximum(high, most)


@lru_cache(maxsize=8)
def rows_below(bank: Bank, key: RowKey, n: int) -> tuple[int, Array]:
    """Return the first bin near a quantile, and powers of rows below each near it.

    ``n`` is the number of replicates of a trial; rows are counted by replicate.
    """
    bins, level = bank.bins[key.divisor, key.quantity], QUANTILES[key.summary]
    pooled = np.bincount(bins.ravel()).cumsum() / bins.size
    below = (bins <= int(bin_of(pooled, level))).mean(axis=1)
    binomial = math.sqrt(level * (1.0 - level) / bins.shape[1])
    reach = REACH * max(float(below.std()), binomial) / math.sqrt(n)
    first, last = (int(bin_of(pooled, level + side * reach)) for side in (-1, 1))
    near = range(max(0, first - 1), last + 2)
    counts = np.stack([(bins <= edge).sum(axis=1) for edge in near], axis=1)
    return near[0], np.concatenate([counts**power for power in (1.0, 2.0, 3.0)], axis=1)


def quantile_interval(bank: Bank, key: RowKey, indices: Indices, rates: Levels) -> Ends:
    """Return the ends of a quantile of rows; beyond the bins that are near: far off."""
    trials, n = indices.shape
    bins = bank.bins[key.divisor, key.quantity]
    first, powers = rows_below(bank, key, n)
    sums = sums_of(indices, len(bins), powers).reshape(trials, 3, -1).swapaxes(0, 1)
    moments = shares(sums, float(n * bins.shape[1]), n)
    edges, near = grid_of(bank.point, key.quantity).edges(), sums.shape[-1]
    for rate in rates:
        level, ends = QUANTILES[key.summary], interval_ends(moments, n, rate)
        high, low = (bin_of(end, level) for end in ends)
        far = high == near
        yield (
            np.where(low > 0, edges[first + low - 1], 0.0),
            np.where(far, math.inf, edges[first + np.where(far, 0, high)]),
        )


def quantile_ratio_interval(
    bank: Bank, key: RowKey, indices: Indices, rates: Levels
) -> Ends:
    """Return the ends of q90 over q10, and of one such ratio over another."""
    parts = [
        (RowKey(divisor, key.quantity, summary), power)
        for divisor, sign in zip(key.divisor.split("/"), (1, -1), strict=False)
        for summary, power in (("q90", sign), ("q10", -sign))
    ]
    each = [rate / len(parts) for rate in rates]
    made = [quantile_interval(bank, part, indices, each) for part, _ in parts]
    for ends in zip(*made, strict=True):
        low = high = np.ones(len(indices))
        for (least, most), (_, power) in zip(ends, parts, strict=True):
            with np.errstate(divide="ignore"):
                low = low * (least if power > 0 else 1.0 / most)
                high = high * (most if power > 0 else 1.0 / least)
        yield low, high


def series_interval(
    case: Case, banks: Sequence[Bank], indices: Sequence[Indices], rates: Levels
) -> Ends:
    """Return the ends of a slope."""
    x = np.log([point.d_k for point in case.points])
    weights = (x - x.mean()) / np.square(x - x.mean()).sum()
    taken = list(zip(banks, indices, strict=True))
    logs = [np.log(moments_of(bank, case.key, i).value) for bank, i in taken]
    value = weights @ np.stack(logs)
    made = [mean_interval(bank, case.key, i, rates) for bank, i in taken]
    ranges = [range_of(case.key.quantity, point.n_keys) for point in case.points]
    for ends in zip(*made, strict=True):
        down = up = np.zeros_like(value)
        parts = zip(weights, logs, ends, ranges, strict=True)
        for weight, centre, (low, high), (_, most) in parts:
            if weight == 0.0:
                continue  # an end that is not known makes no difference then
            with np.errstate(divide="ignore"):
                below = centre - np.log(np.maximum(low, 0.0))
                above = np.log(np.clip(high, 0.0, most)) - centre
            if weight < 0.0:
                below, above = above, below
            down, up = down + (weight * below) ** 2, up + (weight * above) ** 2
        yield value - np.sqrt(down), value + np.sqrt(up)


INTERVALS = {
    "mean": mean_interval,
    OF_FEW_ROWS: mean_interval,
    "divisor ratio": mean_interval,
    "pairs": mean_interval,
    KURTOSIS: mean_interval,
    "share": share_interval,
    "quantile": quantile_interval,
    "quantile ratio": quantile_ratio_interval,
}


# --- Counting -------------------------------------------------------------------------


def find_ends(
    case: Case, banks: Sequence[Bank], indices: Sequence[Indices], rates: Levels
) -> Ends:
    """Return the ends of the intervals of trials at each rate."""
    if case.kind in INTERVALS:
        return INTERVALS[case.kind](banks[0], case.key, indices[0], rates)
    return series_interval(case, banks, indices, rates)


def estimate(
    case: Case, banks: Sequence[Bank], indices: Sequence[Indices | slice]
) -> Estimate:
    """Return the report's estimate of a case."""
    taken = zip(banks, indices, strict=True)
    made = [bank.estimate(case.key, some) for bank, some in taken]
    if case.kind == "slope":
        return log_log_slope([point.d_k for point in case.points], made)
    return made[0]


def compare(case: Case, banks: Sequence[Bank], indices: Sequence[Indices]) -> None:
    """Make sure that intervals of some trials are those of a report's estimates.

    Raises
    ------
    RuntimeError
        If one is another.
    """
    few = [some[:COMPARED] for some in indices]
    for rate, ends in zip(RATES, find_ends(case, banks, few, RATES), strict=True):
        for trial, found in enumerate(zip(*ends, strict=True)):
            made = estimate(case, banks, [some[trial] for some in few]).ends(rate)
            if not np.allclose(found, made, rtol=1e-9, atol=1e-12):
                raise RuntimeError(f"{case.cells} has {found}, a report has {made}")


def count(case: Case, seed: int, trials: int, bank_seed: int) -> NDArray[np.int64]:
    """Count the trials whose interval misses: shape (sides, rates)."""
    banks = [draw_bank(point, bank_seed) for point in case.points]
    truth = estimate(case, banks, [slice(None)] * len(banks)).value
    rng, looks = Generator(SFC64(seed)), case.looks
    rates = [rate / len(looks) for rate in RATES]
    counts = np.zeros((len(SIDES), len(RATES)), np.int64)
    for chunk in range(trials // CHUNK):
        shape = (CHUNK, looks[-1])
        indices = [rng.integers(len(bank.means), size=shape) for bank in banks]
        missed = np.zeros((*counts.shape, CHUNK), np.bool)
        for n in looks:
            some = [taken[:, :n] for taken in indices]
            if chunk == 0:
                compare(case, banks, some)
            for place, (low, high) in enumerate(find_ends(case, banks, some, rates)):
                missed[:, place] |= low > truth, high < truth
        counts += missed.sum(axis=-1)
    return counts


def make_lines(seed: int, *, short: bool) -> Iterator[dict[str, object]]:
    """Yield the lines of the table; the small version has other trials, and fewer."""
    for number, case in cases():
        if short and not case.is_short:
            continue
        trials = SHORT if short else case.trials
        stream = 1000 * seed + number + 500 * short
        counts = count(case, stream, trials, seed).ravel().tolist()
        cells = {**case.cells, "trials": trials}
        yield cells | dict(zip(COUNTS, counts, strict=True))


class Line(NamedTuple):
    """Misses of the intervals of one statistic.

    Attributes
    ----------
    kind : str
        Of the interval.
    statistic : str
        Quantity, summary and divisor; distribution, dependence and sizes.
    looks, trials : int
        Looks of a trial: several, the stopping rule; trials.
    misses : dict
        (side, nominal rate) to the trials that missed: above the truth, or below it.
    """

    kind: str
    statistic: str
    looks: int
    trials: int
    misses: dict[tuple[str, float], int]

    def times(self, rate: float) -> float:
        """Return how many times as often as stated it missed, on the worse side."""
        return max(self.misses[side, rate] for side in SIDES) / (self.trials * rate)

    @property
    def growth(self) -> float:
        """The largest growth that the counts allow: see `calibration.nominal_rate`.

        Of all sides and rates, with each count replaced by its upper limit of 97.5 %.
        """
        most = 0.0
        for (_, rate), misses in self.misses.items():
            actual = clopper_pearson(misses, self.trials, POINTWISE).high
            if rate < actual < 1.0:
                most = max(most, math.log(actual / rate) / math.log(actual) ** 2)
        return most


def read_lines() -> list[Line]:
    """Read the table of counts."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return [as_line(cells) for cells in csv.DictReader(lines)]


def as_line(cells: Mapping[str, object]) -> Line:
    """Return a line of the table, from its cells."""
    names = {name: str(cell) for name, cell in cells.items()}
    context = "" if names["dependence"] == "none" else f" {names['dependence']}"
    keys = f", n = {names['n_keys']}" if names["n_keys"] else ""
    keyed = [(side, rate) for side in SIDES for rate in RATES]
    return Line(
        names["kind"],
        f"{names['quantity']}, {names['summary']}, {names['divisor']}: "
        f"{names['distribution']}{context}, d_k = {names['d_k']}{keys}",
        int(names["looks"]),
        int(names["trials"]),
        {key: int(names[name]) for key, name in zip(keyed, COUNTS, strict=True)},
    )


def sum_up(lines: Sequence[Line]) -> str:
    """Return the record of the package: by kind the largest growth of its lines."""
    rate = RATES[-1]
    growth: dict[str, float] = {}
    for line in lines:
        growth[line.kind] = max(line.growth, growth.get(line.kind, 0.0))
    found = [
        "# How often intervals miss, of the counts in studies/calibration.csv: at this",
        "# one-sided rate the worst of them missed so many times as often as stated.",
        f"rate = {rate}",
        f"times = {max(line.times(rate) for line in lines):.3g}",
        "",
        "# By kind of interval: ln(actual / stated) = growth * ln(actual)^2.",
        "[growth]",
        *(f'"{kind}" = {number!r}' for kind, number in growth.items()),
    ]
    return "\n".join([*found, ""])


def main(argv: Sequence[str] | None = None) -> int:
    """Count, print, and write the table and the record."""
    options = parse("calibration", __doc__, argv, short=False, seed=1, output=TABLE)
    lines = []
    for line in make_lines(options.seed, short=options.short):
        print(*line.values(), flush=True)
        lines.append(line)
    if not options.short:
        write_table(options.output, lines)
        RECORD.write_text(sum_up([*map(as_line, lines)]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("calibration", main))
