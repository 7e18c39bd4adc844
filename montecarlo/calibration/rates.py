"""Miss rates, coverage and power of every row of a bank.

In: a bank.  Out: one record per row, with counts and not shares, so that whoever reads
them can put an error on them.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from montecarlo.calibration.bank import Bank, first_analysis, row_keys
from montecarlo.calibration.bank_rows import estimate, make_row, pooled_value
from montecarlo.claims.running import find_reference
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation.estimates import POINTWISE
from montecarlo.estimation.summaries import QUANTILE_RATIO, RowKey, has_interval
from montecarlo.sampling.design_points import INDEPENDENT
from montecarlo.sampling.streams import index_chunks

#: Nominal one-sided error rates at which misses are counted.
RATES = (1e-2, 1e-3, 1e-4)
#: Distances of what is claimed from the truth, in tolerances.
DISTANCES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0)
#: Judged samples of each claim whose power is measured.
POWER_SAMPLES = 2**13
#: Streams of judged samples, apart from each other and from the bank's.
SEED_MISSES, SEED_COVERAGE, SEED_POWER = 101, 102, 103

Counts = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


class RowName(NamedTuple):
    """What names a row of a card."""

    distribution: str
    context: str
    d_k: int
    n_keys: int | None
    divisor: str
    quantity: str
    summary: str  # of a series the relation: its d_k is the largest


@dataclass(frozen=True, slots=True)
class Rates:
    """How often the intervals of one row miss.

    Attributes
    ----------
    row : RowName
    judged : bool
        Whether the distribution has the moments that the row's intervals need.
    replicates, samples : int
        Of a judged sample; judged samples.
    low, high : tuple of int
        Samples whose interval lies above, and below the truth, by `RATES`.
    draws, covered : int
        Samples estimated as the report estimates, and how many of their 95 % intervals
        hold the truth: the exact one where it is known.
    bank_z : float or None
        Distance of the bank from the exact value, in its standard errors.
    """

    row: RowName
    judged: bool
    replicates: int
    samples: int
    low: tuple[int, ...]
    high: tuple[int, ...]
    draws: int
    covered: int
    bank_z: float | None


@dataclass(frozen=True, slots=True)
class Power:
    """How a claim of equality comes out at some distance from the truth.

    Attributes
    ----------
    row : RowName
    tolerance : float
        Relative, the smallest that the catalogue has for the quantity.
    replicates, samples : int
    distance : float
        In tolerances: up to 1 the claim is true.
    supported, refuted : int
        Samples; the others are undecided.
    """

    row: RowName
    tolerance: float
    replicates: int
    samples: int
    distance: float
    supported: int
    refuted: int


def measure_rates(bank: Bank, samples: int, draws: int) -> list[Rates]:
    """Judge samples of every row of a bank.

    Parameters
    ----------
    bank : Bank
    samples : int
        Judged samples of each quantity, shared by its rows.
    draws : int
        Samples that are estimated as the report does it, for the coverage.
    """
    keys = list(row_keys(bank.point))
    n = first_analysis(bank.point)
    rows = Counter(map(_pool, keys))
    shares = {key: math.ceil(samples / rows[_pool(key)]) for key in keys}
    missed = _count_misses(bank, keys, n, shares)
    pooled = {key: pooled_value(bank, key) for key in keys}
    exact = {key: find_reference(bank.point, key) for key in keys}
    truth = {key: e.value if e else pooled[key][0] for key, e in exact.items()}
    covered = _count_covered(bank, truth, n, draws)
    records = []
    for key, counts in missed.items():
        value, error = pooled[key]
        reference = exact[key]
        z = (value - reference.value) / error if reference and error > 0.0 else None
        low, high = (tuple(side.tolist()) for side in counts)
        judged = has_interval(bank.point, key.quantity)
        records.append(
            Rates(
                row_name(bank, key),
                judged,
                n,
                shares[key],
                low,
                high,
                draws,
                covered[key],
                z,
            )
        )
    return records


def _pool(key: RowKey) -> tuple[str, bool]:
    """Name the rows that share judged samples: those that are judged together."""
    return key.quantity, key.summary == QUANTILE_RATIO


def _count_misses(
    bank: Bank, keys: list[RowKey], n_replicates: int, samples: dict[RowKey, int]
) -> dict[RowKey, Counts]:
    """Count the samples whose interval lies above, and below the truth, by `RATES`."""
    statistics = {key: make_row(bank, key) for key in keys}
    missed: dict[RowKey, Counts] = {
        key: np.zeros((2, len(RATES)), dtype=np.int64) for key in keys
    }
    for key, row in statistics.items():
        wanted = samples[key]
        for indices in index_chunks(len(bank.means), n_replicates, wanted, SEED_MISSES):
            ends = row.sample(indices)
            for number, rate in enumerate(RATES):
                low, high = ends(rate)
                missed[key][0, number] += (low > row.truth).sum()
                missed[key][1, number] += (high < row.truth).sum()
    return missed


def _count_covered(
    bank: Bank, truth: dict[RowKey, float], n_replicates: int, draws: int
) -> dict[RowKey, int]:
    """Count the 95 % intervals, made as the report makes them, that hold the truth."""
    covered = dict.fromkeys(truth, 0)
    for indices in index_chunks(len(bank.means), n_replicates, draws, SEED_COVERAGE):
        for some in indices:
            for key, value in truth.items():
                low, high = estimate(bank, key, some).interval(POINTWISE)
                covered[key] += low <= value <= high
    return covered


def row_name(bank: Bank, key: RowKey) -> RowName:
    """Name a row of a bank."""
    point = bank.point
    context = "" if point.dependence == INDEPENDENT else point.dependence.name
    place = (point.distribution_k.name, context, point.d_k, point.n_keys)
    return RowName(*place, key.divisor, key.quantity, key.summary)


def tolerances(catalogue: Catalogue) -> dict[tuple[str, str], float]:
    """Return the smallest tolerance of each quantity and summary that has one."""
    found: dict[tuple[str, str], float] = {}
    for check in catalogue.checks():
        means = check.summary in ("mean", "value")
        if check.relation == "equals" and check.tolerance and means:
            name = check.quantity, check.summary
            found[name] = min(check.tolerance, found.get(name, check.tolerance))
    return found


def measure_power(
    bank: Bank, tolerance: dict[tuple[str, str], float], error_rate: float
) -> Iterator[Power]:
    """Judge claims at `DISTANCES` from the truth, true ones and false ones.

    Tolerances are those of `tolerances`, the error rate that of a simultaneous
    interval.
    """
    first = first_analysis(bank.point)
    for key in row_keys(bank.point):
        relative = tolerance.get((key.quantity, key.summary))
        if relative is None or not has_interval(bank.point, key.quantity):
            continue
        row = make_row(bank, key)
        margin = relative * (abs(row.truth) or 1.0)
        for n in (first, 4 * first):
            ends = [
                row.sample(indices)(error_rate)
                for indices in index_chunks(
                    len(bank.means), n, POWER_SAMPLES, SEED_POWER
                )
            ]
            low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
            for distance in DISTANCES:
                claimed = row.truth + distance * margin
                inside = (claimed - margin <= low) & (high <= claimed + margin)
                outside = (high < claimed - margin) | (claimed + margin < low)
                yield Power(
                    row_name(bank, key),
                    relative,
                    n,
                    POWER_SAMPLES,
                    distance,
                    int(inside.sum()),
                    int(outside.sum()),
                )
