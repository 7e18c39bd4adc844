"""The bank: many real replicates of some points, to draw judged samples from.

A bank holds what estimates are made of, replicate by replicate, in one file for each
point.  In: a point and a seed.  Out: arrays with replicates along axis 0.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from montecarlo.attention.grids import Grid
from montecarlo.attention.quantities import QUANTILES, QUANTITIES, ROW_QUANTITIES
from montecarlo.attention.softmax import Array
from montecarlo.estimation.summaries import QUANTILE_RATIO, RowKey
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.replicates import (
    count_columns,
    mean_columns,
    row_quantities,
    row_values,
    sample,
)
from montecarlo.study.presets import PRESETS
from montecarlo.study.work_folders import read_whole, save_whole

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

Bins = np.ndarray[tuple[int, ...], np.dtype[np.int16]]


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
    for name, divisor, summary in product(COUNTED, ("none", "sqrt"), QUANTILES):
        yield RowKey(divisor, name, summary)
    for name in COMPARED:
        yield RowKey("none/sqrt", name, "mean")
    for name, divisor in product(QUANTILE_RATIOS, ("sqrt", "none/sqrt")):
        yield RowKey(divisor, name, QUANTILE_RATIO)


def read_or_draw(point: DesignPoint, seed: int, size: int, folder: Path | None) -> Bank:
    """Return the bank of a point, drawn where the folder does not have it.

    A quarter of the size where replicates are expensive; no folder keeps nothing.
    """
    if point.is_large:
        size //= LARGE_PART
    name = hashlib.sha256(f"{point.name};{seed};{size}".encode()).hexdigest()[:16]
    path = None if folder is None else folder / f"{name}.npz"
    counted = _list_counted(point)
    if path is not None and path.exists():
        means, *bins = read_whole(path, ["means", *map("/".join, counted)])
        return Bank(point, means, dict(zip(counted, bins, strict=True)))
    bank = _draw(point, seed, size, counted)
    if path is not None:
        arrays = {"/".join(column): bins for column, bins in bank.bins.items()}
        save_whole(path, {"means": bank.means, **arrays})
    return bank


def grid_of(quantity: str) -> Grid:
    """Return the grid that the rows of a quantity are counted on."""
    grid = ROW_QUANTITIES[quantity].grid
    if grid is None:
        raise ValueError(f"quantity must be counted, got {quantity!r}")
    return grid


def _list_counted(point: DesignPoint) -> list[tuple[str, str]]:
    if not point.has_rows:
        return []
    return [(divisor, name) for divisor in ("none", "sqrt") for name in COUNTED]


def _draw(
    point: DesignPoint, seed: int, size: int, counted: list[tuple[str, str]]
) -> Bank:
    if not point.has_rows:
        return Bank(point, sample(point, seed, 0, size, DIVISORS).means, {})
    names = [(divisor, name) for divisor, name, _ in count_columns(point, DIVISORS)]
    at_once = max(1, math.ceil(KEYS_AT_ONCE / point.shape[1]))
    means = []
    bins: dict[tuple[str, str], list[Bins]] = {column: [] for column in counted}
    for first in range(0, size, at_once):
        some = range(first, min(first + at_once, size))
        found, values = row_values(point, seed, some, DIVISORS)
        means.append(found)
        for column in counted:
            found_bins = grid_of(column[1]).bins(values[names.index(column)])
            bins[column].append(found_bins.astype(np.int16))
    joined = {column: np.concatenate(parts) for column, parts in bins.items()}
    return Bank(point, np.concatenate(means), joined)
