"""Choosing rows of the tables: the plain Gaussian ones, by quantity, divisor and size.

Tables in, tables out; nothing is estimated here.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

#: A panel over d_k needs at least so many of them.
FEWEST_POINTS = 2
#: d_k of the figure over n, of those that have equally many n.
LARGEST_D_K = 64


def plain_rows(table: pd.DataFrame, **values: str | int) -> pd.DataFrame:
    """Return the rows of what is drawn independently, and multiplied as it is.

    Without dependence, initialisation, normalisation or reduced number format.
    """
    wanted = dict.fromkeys(("dependence", "normalisation"), "none")
    wanted |= {"number_format": "float64", "softmax": "shifted"}
    keep = table["initialisation"].isna() | table["initialisation"].eq("")
    for column, value in (wanted | values).items():
        if column in table.columns:
            keep &= table[column].eq(value)
    return table[keep]


def gaussian_rows(table: pd.DataFrame, **values: str | int) -> pd.DataFrame:
    """Return the plain rows of standard Gaussian queries and keys."""
    return plain_rows(
        table, distribution_q="gaussian", distribution_k="gaussian", **values
    )


def with_interval(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with an estimate and a bounded interval.

    Others are no points of a figure, and no line of one is drawn through their places.
    """
    return table[has_interval(table)]


def has_interval(table: pd.DataFrame) -> "pd.Series[bool]":
    """Tell of each row whether it has an estimate and a bounded interval."""
    numbers = table[["estimate", "ci_low", "ci_high"]]
    return (numbers.abs() < np.inf).all(axis=1)


def key_counts(table: pd.DataFrame, wanted: Iterable[int], most: int) -> list[int]:
    """Return the numbers of keys that panels over d_k are drawn for, so many at most.

    The table has rows of one quantity; what is ``wanted`` is taken first.
    """
    points = table.groupby("n_keys")["d_k"].nunique()
    there = [int(n) for n in points.index[points >= FEWEST_POINTS]]
    first = [n for n in wanted if n in there]
    others = [n for n in there if n not in first]
    return sorted((first + others)[:most])


def saturation_cells(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the mean largest weights that a table over d_k and n has cells for.

    An n, or d_k, with less than half as many cells as the fullest one stands apart and
    is left out; there are none without several of both.
    """
    rows = gaussian_rows(
        measurements, quantity="weight_max", summary="mean", divisor="none"
    )
    rows = with_interval(rows)
    for line, along in (("n_keys", "d_k"), ("d_k", "n_keys")):
        cells = rows.groupby(line)[along].transform("nunique")
        rows = rows[cells >= max(FEWEST_POINTS, 0.5 * cells.max())]
    is_map = rows[["d_k", "n_keys"]].nunique().min() >= FEWEST_POINTS
    return rows if is_map else rows.iloc[:0]


def largest_scores(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the mean largest scaled scores at the d_k that has them for most n.

    By rising ``n_keys``, each with an exact value; none where no d_k has several n.
    """
    rows = gaussian_rows(
        measurements, quantity="score_max", divisor="sqrt", summary="mean"
    )
    rows = with_interval(rows[rows["reference"].notna()])
    sizes = rows.groupby("d_k")["n_keys"].nunique()
    sizes = sizes[sizes >= FEWEST_POINTS]
    d_k = nearest(sizes.index[sizes == sizes.max()], LARGEST_D_K)
    return rows[rows["d_k"].eq(d_k or 0)].sort_values("n_keys")


def nearest(values: Iterable[float], wanted: float) -> int | None:
    """Return the value nearest to the wanted one on a logarithmic scale."""
    found = sorted({int(value) for value in values})
    return min(found, key=lambda v: abs(np.log(v / wanted)), default=None)
