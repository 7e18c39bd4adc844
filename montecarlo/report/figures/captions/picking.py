"""Picking the two numbers of a figure that its alternative text names."""

import pandas as pd
from pandas import DataFrame

from montecarlo.report.content.tables.rows import FEWEST_POINTS, gaussian_rows, nearest
from montecarlo.report.content.tables.topics import N_KEYS
from montecarlo.report.figures.drawing.panels import rescale
from montecarlo.report.figures.drawing.specs import Fact

#: The largest d_k that a domain reaches; beyond it a grid has edges only.
MOST_D_K = 1024
#: Quantity, summary and divisor.
Key = tuple[str, str, str]


def pair(first: DataFrame, second: DataFrame, **sizes: float) -> Fact:
    """Return two tables of one row each as a fact: two numbers, their errors, sizes."""
    fact = {name: float(size) for name, size in sizes.items()}
    for name, row in (("first", first), ("second", second)):
        fact[name] = float(row["estimate"].iloc[0])
        fact[f"{name}_error"] = float(row["std_error"].iloc[0])
    return fact


def at_nearest(rows: DataFrame, column: str, wanted: float) -> DataFrame:
    """Return the rows whose d_k, or n, is the nearest to a wanted one."""
    return rows[rows[column].eq(nearest(rows[column].dropna(), wanted) or 0)]


def gaussian_pairs(measurements: DataFrame) -> DataFrame:
    """Return what was measured of single scores of Gaussian entries."""
    rows = gaussian_rows(measurements)
    return rows[rows["d_k"].le(MOST_D_K) & rows["n_keys"].isna()]


def gaussian_panel(measurements: DataFrame) -> DataFrame:
    """Return what was measured of Gaussian rows of one n that has a panel over d_k."""
    rows = gaussian_rows(measurements)
    rows = rows[rows["d_k"].le(MOST_D_K) & rows["n_keys"].notna()]
    points = rows.groupby("n_keys")["d_k"].transform("nunique")
    return at_nearest(rows[points >= FEWEST_POINTS], "n_keys", N_KEYS)


def pick_two(rows: DataFrame, first: Key, second: Key) -> Fact | None:
    """Pick two rows at the largest d_k that has both."""
    one, two = (
        rows[
            rows["quantity"].eq(quantity)
            & rows["summary"].eq(summary)
            & rows["divisor"].eq(divisor)
        ]
        for quantity, summary, divisor in (first, second)
    )
    common = set(one["d_k"]) & set(two["d_k"])
    if not common:
        return None
    d_k = max(common)
    one, two = (rows[rows["d_k"].eq(d_k)] for rows in (one, two))
    n = one["n_keys"].iloc[0]
    return pair(one, two, d_k=d_k, n=0.0 if pd.isna(n) else n)


def pick_ends(cells: DataFrame) -> Fact | None:
    """Pick the ends of an unscaled line of a map, in percent as it shows them."""
    cells = cells[cells["divisor"].eq("none") & cells["d_k"].le(MOST_D_K)]
    line = at_nearest(cells, "n_keys", N_KEYS).sort_values("d_k")
    if line.empty:
        return None
    line = rescale(line, lambda part: 100.0 * part)
    n, low, high = line["n_keys"].iloc[0], line["d_k"].min(), line["d_k"].max()
    return pair(line.iloc[:1], line.iloc[-1:], n=n, low=low, d_k=high)
