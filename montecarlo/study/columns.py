"""The columns of measurements.csv, and the names of its rows."""

import hashlib
from dataclasses import fields

from montecarlo.estimation.summaries import RowKey
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.measured import Measurement

MEASUREMENTS = "measurements.csv"
#: The columns of measurements.csv, in order; docs/results-folder.md says what they are.
COLUMNS = tuple(one.name for one in fields(Measurement))
#: What identifies a row.
IDENTITY = COLUMNS[: COLUMNS.index("estimate")]


def identity(point: DesignPoint, key: RowKey) -> tuple[str | int | None, ...]:
    """Return the values of the columns that identify a row, in order."""
    return (
        *point.names,
        point.d_k,
        point.shape[0],
        point.n_keys,
        key.divisor,
        key.number_format,
        key.softmax,
        key.quantity,
        key.summary,
    )


def table_row(
    point: DesignPoint, key: RowKey, *numbers: float | None
) -> tuple[object, ...]:
    """Return a row: what identifies it, numbers as `COLUMNS` has them, and its name."""
    return (*identity(point, key), *numbers, row_id(point, key))


def row_id(point: DesignPoint, key: RowKey) -> str:
    """Return the name of a row: a hash of what identifies it.

    Without a normalisation it is what it was before there were any.
    """
    named = dict(zip(IDENTITY, identity(point, key), strict=True))
    if not point.is_normalised:
        del named["normalisation"]
    text = ";".join(map(str, named.values()))
    return "r" + hashlib.sha256(text.encode()).hexdigest()[:11]
