"""The rows of measurements.csv that the tables and figures of pages read.

Each table and figure has a `Reader`: a function that names the rows it needs at given
design points.  A study samples the rows that are named (see `montecarlo.study.rows`),
and `read_rows` returns only these.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product

import pandas as pd

from montecarlo.estimation.summaries import RowKey, has_interval
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.rows import Row
from montecarlo.study.table import find_rows

#: Function: design points of a study -> the rows of measurements.csv that are read at
#: them, each as (point, row key).
Reader = Callable[[Sequence[DesignPoint]], Iterable[Row]]


def no_rows(_: Sequence[DesignPoint]) -> Iterable[Row]:
    """Return no rows: the `Reader` of figures that do not read measurements.csv."""
    return ()


def gaussian_points(
    points: Iterable[DesignPoint], *, with_rows: bool
) -> list[DesignPoint]:
    """Return the design points with independent standard Gaussian entries.

    ``with_rows`` selects points that sample attention rows, also under a mask;
    otherwise those that sample pairs of a query and a key.
    """
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
    """Yield (point, row key) for all combinations of the arguments.

    They are ordered by point, then quantity, summary and divisor.  A row is left out if
    the distribution of its point lacks the moments that the interval of its quantity
    needs.
    """
    keys = [RowKey(c, q, s) for q, s, c in product(quantities, summaries, divisors)]
    for point in points:
        for key in keys:
            if has_interval(point, key.quantity):
                yield point, key


def with_divisors(rows: Iterable[Row], divisors: Collection[str]) -> Iterator[Row]:
    """Yield the rows whose divisor is in ``divisors``; for a ratio, both must be."""
    for point, key in rows:
        if set(key.divisor.split("/")) <= set(divisors):
            yield point, key


def read_rows(
    table: pd.DataFrame,
    reader: Reader,
    points: Sequence[DesignPoint],
    divisors: Collection[str],
) -> pd.DataFrame:
    """Return the lines of measurements.csv that a figure or table reads.

    Parameters
    ----------
    table : DataFrame
        All of measurements.csv.
    reader : Reader
        Names the rows, from points.
    points : sequence of DesignPoint
        The points of the study.
    divisors : collection of str
        The divisors that were sampled; rows with others are left out.

    Raises
    ------
    InputError
        If measurements.csv lacks one of these rows.  Rows with the summary
        ``distribution`` are never in it and are ignored.
    """
    return find_rows(table, with_divisors(reader(points), divisors))
