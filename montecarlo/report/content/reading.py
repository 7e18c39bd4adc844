"""Which rows pages read: each table and each figure names its own, of some points.

What is named is sampled, and nothing else is handed to who named it: see
`montecarlo.study.rows`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product

import pandas as pd

from montecarlo.estimation.summaries import RowKey, has_interval
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.rows import Row
from montecarlo.study.table import find_rows

#: Names the rows that are read of some points.
Reader = Callable[[Sequence[DesignPoint]], Iterable[Row]]


def no_rows(points: Sequence[DesignPoint]) -> Iterable[Row]:
    """Name none."""
    del points
    return ()


def gaussian_points(
    points: Iterable[DesignPoint], *, with_rows: bool
) -> list[DesignPoint]:
    """Return the points of independent standard Gaussian entries, as they are drawn."""
    return [
        point
        for point in points
        if point.has_rows == with_rows
        and point.label == "gaussian"
        and point.is_independent
    ]


def every_row(
    points: Iterable[DesignPoint],
    quantities: Iterable[str],
    summaries: Iterable[str],
    divisors: Iterable[str],
) -> Iterator[Row]:
    """Name the rows of all combinations that have the moments for an interval."""
    keys = [RowKey(c, q, s) for q, s, c in product(quantities, summaries, divisors)]
    for point in points:
        for key in keys:
            if has_interval(point, key.quantity):
                yield point, key


def within(rows: Iterable[Row], divisors: Collection[str]) -> Iterator[Row]:
    """Yield those of some rows whose divisors are sampled."""
    for point, key in rows:
        if set(key.divisor.split("/")) <= set(divisors):
            yield point, key


def read_rows(
    table: pd.DataFrame,
    reader: Reader,
    points: Sequence[DesignPoint],
    divisors: Collection[str],
) -> pd.DataFrame:
    """Return the lines that a reader names.

    Raises
    ------
    InputError
        If one is not there.
    """
    return find_rows(table, within(reader(points), divisors))
