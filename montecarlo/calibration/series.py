"""How often intervals of slopes and ratios of ends miss: over banks of rising d_k.

In: the banks of a series.  Out: one record per row and relation, as for a row of one
bank; its summary is the relation, its d_k the largest.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from montecarlo.attention.softmax import Array
from montecarlo.calibration.bank import PAIRS, ROWS, Bank, first_analysis
from montecarlo.calibration.bank_rows import estimate, moments_of, pooled_value
from montecarlo.calibration.rates import RATES, Counts, Rates, RowName
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.estimation.estimates import (
    POINTWISE,
    Estimate,
    log_log_slope,
    ratio_of_ends,
)
from montecarlo.estimation.intervals import mean_ends
from montecarlo.estimation.summaries import RowKey, has_interval
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.streams import Indices, index_chunks

#: Streams of judged samples, apart from those of single banks.
SEED_MISSES, SEED_COVERAGE = 111, 112
#: From this d_k on: there the slopes of the catalogue begin.
FIRST_D_K = 16

#: Value and both ends of the interval of each sample, of one bank.
Part = tuple[Array, Array, Array]


@dataclass(frozen=True, slots=True)
class Relation:
    """A statistic along d_k, for one sample and for many.

    Attributes
    ----------
    name : str
    estimate : callable
        (sizes, estimates) -> Estimate, as the report makes it.
    weights : callable
        sizes -> weights of the logarithms.
    back : callable
        From the logarithm to the statistic.
    """

    name: str
    estimate: Callable[[Sequence[float], Sequence[Estimate]], Estimate]
    weights: Callable[[Sequence[float]], Array]
    back: Callable[[Array], Array]


def slope_weights(sizes: Sequence[float]) -> Array:
    """Return what least squares of ln value on ln size weighs each logarithm with."""
    x = np.log(np.asarray(sizes, dtype=np.float64))
    centred = x - x.mean()
    return np.asarray(centred / (centred**2).sum())


def _end_weights(sizes: Sequence[float]) -> Array:
    return np.array([-1.0, *[0.0] * (len(sizes) - 2), 1.0])


RELATIONS = (
    Relation("slope", log_log_slope, slope_weights, np.asarray),
    Relation("ratio_of_ends", lambda _, e: ratio_of_ends(e), _end_weights, np.exp),
)


def all_series() -> list[tuple[DesignPoint, ...]]:
    """Return the series of points that have banks, by rising d_k: pairs first."""
    found: dict[tuple[str, int | None], list[DesignPoint]] = {}
    for distribution, d_k, n_keys in (
        *((distribution, d, None) for distribution, d in PAIRS),
        *ROWS,
    ):
        if d_k >= FIRST_D_K:
            point = parse_point(distribution, distribution, d_k, n_keys)
            found.setdefault((distribution, n_keys), []).append(point)
    rising = (sorted(some, key=lambda c: c.d_k) for some in found.values() if some[1:])
    return [tuple(some) for some in rising]


def series_keys(point: DesignPoint) -> list[RowKey]:
    """Name the rows whose slope or ratio of ends some claim is judged by."""
    along = ("slope_between", "ratio_of_ends_between")
    keys = {
        RowKey(check.divisor, check.quantity, check.summary)
        for check in read_catalogue().checks()
        if check.relation in along
    }
    pairs = not point.has_rows
    return sorted(key for key in keys if (key.summary == "value") == pairs)


def contrast_ends(weights: Array, parts: Sequence[Part]) -> tuple[Array, Array]:
    """Return both ends of weighted sums of logarithms, one for each sample.

    Notes
    -----
    As `montecarlo.estimation.estimates` does it for one: half-widths add in squares, on
    each side by itself.
    """
    value = down = up = np.zeros_like(parts[0][0])
    for weight, part in zip(weights.tolist(), parts, strict=True):
        if weight == 0.0:
            continue
        with np.errstate(divide="ignore"):
            centre, low, high = (np.log(np.maximum(end, 0.0)) for end in part)
        below, above = centre - low, high - centre
        if weight < 0.0:
            below, above = above, below
        value = value + weight * centre
        down = down + (weight * below) ** 2
        up = up + (weight * above) ** 2
    return value - np.sqrt(down), value + np.sqrt(up)


def measure_series(banks: Sequence[Bank], samples: int, draws: int) -> list[Rates]:
    """Judge samples of the slopes and ratios of ends of a series.

    Parameters
    ----------
    banks : sequence of Bank
        Of equal sizes, by rising d_k.
    samples : int
        Judged samples of each row.
    draws : int
        Samples that are estimated as the report does it, for the coverage.
    """
    last = banks[-1].point
    n = first_analysis(last)
    records = []
    for key in series_keys(last):
        judged = all(has_interval(bank.point, key.quantity) for bank in banks)
        pooled = [pooled_value(bank, key)[0] for bank in banks]
        missed = _count_misses(banks, key, n, samples, pooled)
        covered = _count_covered(banks, key, n, draws, pooled)
        for relation in RELATIONS:
            low, high = (tuple(side.tolist()) for side in missed[relation.name])
            place = (last.distribution_k.name, "", last.d_k, last.n_keys)
            row = RowName(*place, key.divisor, key.quantity, relation.name)
            hits = covered[relation.name]
            records.append(Rates(row, judged, n, samples, low, high, draws, hits, None))
    return records


def _split(
    banks: Sequence[Bank], n: int, samples: int, seed: int
) -> Iterator[list[Indices]]:
    """Yield chunks of samples: the replicates of each bank, drawn independently."""
    (size,) = {len(bank.means) for bank in banks}
    for chunk in index_chunks(size, n * len(banks), samples, seed):
        yield np.split(chunk, len(banks), axis=1)


def _truth(relation: Relation, banks: Sequence[Bank], pooled: Sequence[float]) -> float:
    weights = relation.weights([bank.point.d_k for bank in banks])
    return float(weights @ np.log(pooled))


def _count_misses(
    banks: Sequence[Bank], key: RowKey, n: int, samples: int, pooled: Sequence[float]
) -> dict[str, Counts]:
    sizes = [bank.point.d_k for bank in banks]
    missed: dict[str, Counts] = {
        relation.name: np.zeros((2, len(RATES)), dtype=np.int64)
        for relation in RELATIONS
    }
    for chunk in _split(banks, n, samples, SEED_MISSES):
        moments = [
            moments_of(bank, key, indices)
            for bank, indices in zip(banks, chunk, strict=True)
        ]
        for number, rate in enumerate(RATES):
            parts = [(one.value, *mean_ends(one, n, rate)) for one in moments]
            for relation in RELATIONS:
                truth = _truth(relation, banks, pooled)
                low, high = contrast_ends(relation.weights(sizes), parts)
                missed[relation.name][0, number] += (low > truth).sum()
                missed[relation.name][1, number] += (high < truth).sum()
    return missed


def _count_covered(
    banks: Sequence[Bank], key: RowKey, n: int, draws: int, pooled: Sequence[float]
) -> dict[str, int]:
    sizes = [bank.point.d_k for bank in banks]
    covered = {relation.name: 0 for relation in RELATIONS}
    for chunk in _split(banks, n, draws, SEED_COVERAGE):
        for some in zip(*chunk, strict=True):
            made = [
                estimate(bank, key, indices)
                for bank, indices in zip(banks, some, strict=True)
            ]
            for relation in RELATIONS:
                truth = relation.back(np.asarray(_truth(relation, banks, pooled)))
                low, high = relation.estimate(sizes, made).interval(POINTWISE)
                covered[relation.name] += bool(low <= truth <= high)
    return covered
