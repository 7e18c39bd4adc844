"""The table of measurements: a row per point, divisor, quantity and summary.

Rare events, overflow probabilities, are estimated under tilting.

The rows of a point are made by workers, which are sent its batches, as soon as it is
sampled: together the samples of a study would not fit into memory.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.errors import InputError
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.row_distribution import RowDistribution
from montecarlo.estimation.summaries import (
    DISTRIBUTION,
    RowKey,
    Summaries,
    columns_of,
)
from montecarlo.names import NONE
from montecarlo.sampling.batches import join
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.rare_events import OVERFLOW, estimate_tail
from montecarlo.study.executors import finish
from montecarlo.study.measured import COLUMNS, row_id, table_row
from montecarlo.study.rows import Row
from montecarlo.theory.references import reference
from montecarlo.theory.row_integrals import Reference
from montecarlo.theory.score_distribution import log_score_tail

#: A reference counts where its own error is at most this part of the standard error.
FAR_BELOW = 0.1

#: What theory says of the rows of a point.
References = Mapping[RowKey, Reference | None]


class PointTable(NamedTuple):
    """What the replicates of a point came to, without these.

    Attributes
    ----------
    n_replicates : int
    rows : tuple of tuple
        Its rows of the table, as `COLUMNS`.
    distributions : dict
        How rows are distributed, where that was asked for.
    estimates : dict
        Those of the rows that checks look at.
    """

    n_replicates: int
    rows: tuple[tuple[object, ...], ...]
    distributions: dict[RowKey, RowDistribution]
    estimates: dict[RowKey, Estimate]

    def estimate(self, key: RowKey) -> Estimate:
        """Return the estimate of a row that checks look at."""
        return self.estimates[key]


def table_of(  # noqa: PLR0913, PLR0917 - a task: what a worker is sent
    point: DesignPoint,
    keys: tuple[RowKey, ...],
    packed: Iterable[bytes],
    references: References,
    checked: Collection[RowKey],
    error_rates: tuple[float, ...],
) -> PointTable:
    """Estimate the rows of a point that are asked for.

    Parameters
    ----------
    point : DesignPoint
    keys : tuple of RowKey
        In the order of the table.
    packed : iterable of bytes
        Its batches, in order, of the columns of these rows.
    references : mapping
        From `references_of`.
    checked : collection of RowKey
        The rows that checks look at, here or elsewhere.
    error_rates : tuple of float
        Those of the intervals that the estimates of these rows are asked for.
    """
    one = Summaries(point, join(packed), columns_of(point, keys))
    numbers = [key for key in keys if key.summary != DISTRIBUTION]
    return PointTable(
        one.samples.n_replicates,
        tuple(rows_of(one, numbers, references.get)),
        {
            key: one.distribution(key.divisor, key.quantity)
            for key in keys
            if key.summary == DISTRIBUTION
        },
        {
            key: one.estimate(key).at_rates(error_rates)
            for key in numbers
            if key in checked
        },
    )


def references_of(
    point: DesignPoint, keys: tuple[RowKey, ...]
) -> dict[RowKey, Reference | None]:
    """Return what theory says of some rows of a point."""
    return {key: find_reference(point, key) for key in keys}


def find_reference(point: DesignPoint, key: RowKey) -> Reference | None:
    """Return the exact value of a row where theory gives one."""
    if "/" in key.divisor or key.summary == DISTRIBUTION:
        return None
    return reference(key.quantity, point, key.divisor, key.summary)


def tabulate(rows: Iterable[tuple[object, ...]]) -> pd.DataFrame:
    """Build the table of measurements, with the columns `COLUMNS`."""
    table = pd.DataFrame.from_records(list(rows), columns=list(COLUMNS))
    return table.astype({"n_keys": "Int64"})


def rows_of(
    summaries: Summaries,
    keys: Iterable[RowKey],
    lookup: Callable[[RowKey], Reference | None],
) -> Iterator[tuple[object, ...]]:
    """Yield some rows of a point; ``lookup`` returns the reference of each, or None."""
    for key in keys:
        estimate, exact = summaries.estimate(key), lookup(key)
        # of a bin its width says how well a value is known
        if exact is not None and not exact.error <= FAR_BELOW * estimate.std_error:
            exact = None
        known = (math.nan, math.nan) if exact is None else (exact.value, exact.error)
        yield table_row(summaries.point, key, *estimate.numbers, *known)


def find_rows(table: pd.DataFrame, rows: Iterable[Row]) -> pd.DataFrame:
    """Return the lines of some rows, in the order of the table.

    Raises
    ------
    InputError
        If one of them is not there; names it.
    """
    names = {row_id(*row): row for row in rows if row[1].summary != DISTRIBUTION}
    found = table[table["row_id"].isin(names)]
    there = set(found["row_id"])
    for name in (one for one in names if one not in there):
        point, key = names[name]
        raise InputError(
            f"measurements must have the row {' '.join(key)} of {point.name} ({name}), "
            "which a page reads"
        )
    return found


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table; where nothing stands before q and k it says ``none``.

    A column that is empty at first would have its type guessed twice by who reads it.
    The column ``mask`` is written where some row has one.
    """
    if "mask" in table and table["mask"].eq(NONE).all():
        table = table.drop(columns="mask")
    if "initialisation" in table:
        table = table.replace({"initialisation": {"": NONE}})
    table.to_csv(path, index=False, lineterminator="\n")


def read_table(path: Path) -> pd.DataFrame:
    """Read a table that `write_table` wrote; what is empty, or nothing, is missing."""
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    if "initialisation" in table:
        there = table["initialisation"].ne(NONE)
        table["initialisation"] = table["initialisation"].where(there)
    if "row_id" in table and "mask" not in table:
        table.insert(COLUMNS.index("mask"), "mask", NONE)
    return table


#: Formats whose exponential a single score may overflow with a probability that a
#: table can show; in float64 it is below 1e-190 for every d_k of interest.
FORMATS = tuple(name for name in NUMBER_FORMATS if name != "float64")


def tail_rows(
    tails: tuple[tuple[int, int], ...], seed: int, executor: Executor
) -> Iterator[tuple[object, ...]]:
    """Estimate the overflow probabilities of single unscaled scores.

    What one of them raises ends all.

    Parameters
    ----------
    tails : tuple of (d_k, blocks)
    seed : int
    executor : concurrent.futures.Executor

    Yields
    ------
    tuple
        Rows of measurements.csv; the interval is the empirical Bernstein one.
    """
    asked = {
        (NUMBER_FORMATS[name].log_largest, d_k, seed, blocks): (d_k, blocks, name)
        for d_k, blocks in tails
        for name in FORMATS
    }
    done = finish(executor, estimate_tail, asked)
    tails_of = {task: future.result() for task, future in done}
    for task, (d_k, blocks, name) in asked.items():
        yield _tail_row(d_k, blocks, name, tails_of[task])


def _tail_row(
    d_k: int, blocks: int, name: str, tail: tuple[float, float, float]
) -> tuple[object, ...]:
    point = parse_point("gaussian", "gaussian", d_k)
    key = RowKey("none", OVERFLOW, "value", name, "naive")
    log_value, relative_error, relative_half_width = tail
    value = math.exp(log_value)
    exact = math.exp(log_score_tail(NUMBER_FORMATS[name].log_largest, d_k))
    half = relative_half_width * value
    ends = max(0.0, value - half), min(1.0, value + half)
    numbers = value, relative_error * value, *ends, blocks, exact, 1e-9 * exact
    return table_row(point, key, *numbers)
