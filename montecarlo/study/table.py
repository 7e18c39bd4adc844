"""measurements.csv: a row for each point, divisor, quantity and summary.

Workers compute the rows of a point from its batches as soon as it is sampled: the
samples of all points would not fit into memory.  Overflow probabilities are too small
for that; `tail_rows` estimates them by importance sampling.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
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

#: Largest error of a reference over the standard error at which the table has it.
FAR_BELOW = 0.1


class PointTable(NamedTuple):
    """The results of a design point: its estimates, without the samples.

    Attributes
    ----------
    n_replicates : int
    rows : tuple of tuple
        Rows of measurements.csv, with the columns `COLUMNS`.
    distributions : dict
        Key with the summary `DISTRIBUTION` -> distribution over attention rows.
    estimates : dict
        Key that checks read -> estimate.
    """

    n_replicates: int
    rows: tuple[tuple[object, ...], ...]
    distributions: dict[RowKey, RowDistribution]
    estimates: dict[RowKey, Estimate]

    def estimate(self, key: RowKey) -> Estimate:
        """Return the estimate of a key that checks read; KeyError for other keys."""
        return self.estimates[key]


def table_of(  # noqa: PLR0913, PLR0917 - a task: what a worker is sent
    point: DesignPoint,
    keys: tuple[RowKey, ...],
    packed: Iterable[bytes],
    references: Mapping[RowKey, Reference | None],
    checked: Collection[RowKey],
    error_rates: tuple[float, ...],
) -> PointTable:
    """Return the results of a point, from its batches of replicates.

    Workers are sent this call.

    Parameters
    ----------
    point : DesignPoint
    keys : tuple of RowKey
        The requested rows, in the order of the table.
    packed : iterable of bytes
        The packed batches of the point, in order, with the columns of these rows.
    references : mapping
        Exact values from `references_of`.
    checked : collection of RowKey
        Keys that checks read, at any point.
    error_rates : tuple of float
        One-sided error rates of the intervals that checks need.
    """
    summaries = Summaries(point, join(packed), columns_of(point, keys))
    estimates = {
        key: summaries.estimate(key) for key in keys if key.summary != DISTRIBUTION
    }
    return PointTable(
        summaries.samples.n_replicates,
        tuple(
            row_of_estimate(point, key, estimate, references.get(key))
            for key, estimate in estimates.items()
        ),
        {
            key: summaries.distribution(key.divisor, key.quantity)
            for key in keys
            if key.summary == DISTRIBUTION
        },
        {
            key: estimate.at_rates(error_rates)
            for key, estimate in estimates.items()
            if key in checked
        },
    )


def references_of(
    point: DesignPoint, keys: tuple[RowKey, ...]
) -> dict[RowKey, Reference | None]:
    """Return the exact values of the rows of a point: key -> value, or None.

    Workers are sent this call.  None means that theory has no exact value.
    """
    return {key: find_reference(point, key) for key in keys}


def find_reference(point: DesignPoint, key: RowKey) -> Reference | None:
    """Return the exact value of an estimate of a point, with its numerical error.

    None if theory has none.  Always None for a ratio of two divisors, and for the
    summary `DISTRIBUTION`.
    """
    if "/" in key.divisor or key.summary == DISTRIBUTION:
        return None
    return reference(key.quantity, point, key.divisor, key.summary)


def tabulate(rows: Iterable[tuple[object, ...]]) -> pd.DataFrame:
    """Return rows of measurements.csv as a DataFrame with the columns `COLUMNS`."""
    table = pd.DataFrame.from_records(list(rows), columns=list(COLUMNS))
    return table.astype({"n_keys": "Int64"})


def row_of_estimate(
    point: DesignPoint, key: RowKey, estimate: Estimate, exact: Reference | None
) -> tuple[object, ...]:
    """Return a row of measurements.csv as a tuple of the values of `COLUMNS`.

    The exact value and its error are NaN if that error is more than `FAR_BELOW` times
    the standard error, if there is no standard error, or if ``exact`` is None.
    """
    # not `reported_error`: that of a bin is NaN
    if exact is not None and not exact.error <= FAR_BELOW * estimate.std_error:
        exact = None
    known = (math.nan, math.nan) if exact is None else (exact.value, exact.error)
    return table_row(point, key, *estimate.numbers, *known)


def find_rows(table: pd.DataFrame, rows: Iterable[Row]) -> pd.DataFrame:
    """Return the lines of a table of measurements that hold the given rows.

    The lines are in the order of the table.  Rows with the summary `DISTRIBUTION`,
    which are in no table, are ignored.

    Raises
    ------
    InputError
        If the table lacks one of the rows.
    """
    ids = {row_id(*row): row for row in rows if row[1].summary != DISTRIBUTION}
    part = table[table["row_id"].isin(ids)]
    present = set(part["row_id"])
    for name, (point, key) in ids.items():
        if name not in present:
            raise InputError(
                f"measurements must have the row {' '.join(key)} of {point.name} "
                f"({name}), which a page reads"
            )
    return part


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as a CSV file, without the column ``mask`` if no row has a mask.

    An empty ``initialisation`` is written as ``none``: readers that guess the type of a
    column from its first rows would not expect text in an empty one.
    """
    if "mask" in table and table["mask"].eq(NONE).all():
        table = table.drop(columns="mask")
    if "initialisation" in table:
        table = table.replace({"initialisation": {"": NONE}})
    table.to_csv(path, index=False, lineterminator="\n")


def read_table(path: Path) -> pd.DataFrame:
    """Return a table that `write_table` wrote, as a DataFrame.

    Empty fields become NaN, and so does ``none`` as an ``initialisation``.  If
    measurements have no column ``mask``, it is added, with ``none`` in each line.
    """
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    if "initialisation" in table:
        table["initialisation"] = table["initialisation"].where(lambda c: c.ne(NONE))
    if "row_id" in table and "mask" not in table:
        table.insert(COLUMNS.index("mask"), "mask", NONE)
    return table


#: Number formats in which exp of a score may overflow with a noticeable probability; in
#: float64 it is below 1e-190 for every relevant d_k.
FORMATS = tuple(name for name in NUMBER_FORMATS if name != "float64")


def tail_rows(
    tails: tuple[tuple[int, int], ...], seed: int, executor: Executor
) -> Iterator[tuple[object, ...]]:
    """Yield rows of measurements.csv: probabilities that exp of a score overflows.

    There is one for each d_k and number format, for undivided scores.  Exceptions of
    workers are raised.

    Parameters
    ----------
    tails : tuple of (int, int)
        For each d_k: (d_k, number of blocks of draws).
    seed : int
    executor : concurrent.futures.Executor

    Yields
    ------
    tuple
        A row of measurements.csv, with an empirical Bernstein interval.
    """
    tasks = {
        (NUMBER_FORMATS[name].log_largest, d_k, seed, blocks): name
        for d_k, blocks in tails
        for name in FORMATS
    }
    done = finish(executor, estimate_tail, tasks)
    estimates = {task: future.result() for task, future in done}
    for task, name in tasks.items():
        log_largest, d_k, _, blocks = task
        log_value, relative_error, relative_half_width = estimates[task]
        value, exact = math.exp(log_value), math.exp(log_score_tail(log_largest, d_k))
        half = relative_half_width * value
        ends = max(0.0, value - half), min(1.0, value + half)
        numbers = value, relative_error * value, *ends, blocks, exact, 1e-9 * exact
        point = parse_point("gaussian", "gaussian", d_k)
        key = RowKey("none", OVERFLOW, "value", name, "naive")
        yield table_row(point, key, *numbers)
