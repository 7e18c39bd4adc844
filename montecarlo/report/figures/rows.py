"""Choosing rows of the tables: the plain Gaussian ones, by quantity, divisor and size.

Tables in, tables out; nothing is estimated here.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

#: A panel over d_k needs at least so many of them.
FEWEST_POINTS = 2


def plain_rows(table: pd.DataFrame, **values: str | int) -> pd.DataFrame:
    """Return the rows without dependence, setup or reduced number format.

    Parameters
    ----------
    table : DataFrame
        measurements.csv or curves.csv.
    **values : str or int
        What columns must hold.

    Returns
    -------
    DataFrame
    """
    wanted = {"dependence": "none", "number_format": "float64", "softmax": "shifted"}
    keep = table["setup"].isna() | table["setup"].eq("")
    for column, value in (wanted | values).items():
        if column in table.columns:
            keep &= table[column].eq(value)
    return table[keep]


def gaussian_rows(table: pd.DataFrame, **values: str | int) -> pd.DataFrame:
    """Return the plain rows of standard Gaussian queries and keys."""
    return plain_rows(table, law_q="gaussian", law_k="gaussian", **values)


def with_interval(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose interval is valid: no point without its error bar."""
    return table[table["ci_low"].notna() & table["ci_high"].notna()]


def key_counts(table: pd.DataFrame, wanted: Iterable[int], most: int) -> list[int]:
    """Return the numbers of keys that panels over d_k are drawn for.

    Parameters
    ----------
    table : DataFrame
        Rows of one quantity.
    wanted : iterable of int
        Taken first, where the table has them.
    most : int
        Panels at most.
    """
    points = table.groupby("n_keys")["d_k"].nunique()
    there = [int(n) for n in points.index[points >= FEWEST_POINTS]]
    first = [n for n in wanted if n in there]
    others = [n for n in there if n not in first]
    return sorted((first + others)[:most])


def nearest(values: Iterable[float], wanted: float) -> int | None:
    """Return the value nearest to the wanted one on a logarithmic scale."""
    found = sorted({int(value) for value in values})
    return min(found, key=lambda v: abs(np.log(v / wanted)), default=None)
