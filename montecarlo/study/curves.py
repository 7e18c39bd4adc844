"""The files of curves: one for each kind, in `FOLDER`, with columns of its own.

In memory the points of all curves are lines of one type, `CurveLine`, so that a figure
chooses its curves by name; a file calls the numbers by what they are.

Tables are CSV files: written by one function, read by one.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from msgspec import Struct
from msgspec.structs import astuple

from montecarlo.names import NONE

FOLDER = "curves"


class CurveLine(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A point of any curve, in memory: ``curve`` says which, and so what x and y are.

    Attributes
    ----------
    distribution_q, distribution_k, dependence, initialisation, d_k, n_keys, divisor
        As in measurements.csv, where it is of a design point.
    optimiser, arm
        Of training.
    summary : str
        Of training: the median, or an end of its interval.
    n_replicates : int
        Replicates, or of training seeds, behind it.
    x, estimate, std_error : float
        Where it lies, how high, and how well that is known.
    """

    distribution_q: str | None = None
    distribution_k: str | None = None
    dependence: str | None = None
    initialisation: str | None = None
    d_k: int | None = None
    n_keys: int | None = None
    divisor: str | None = None
    optimiser: str | None = None
    arm: str | None = None
    curve: str
    summary: str | None = None
    n_replicates: int | None = None
    x: float
    estimate: float | None = None
    std_error: float | None = None


class CurveFile(NamedTuple):
    """The columns of a file, and which fields of `CurveLine` it calls how."""

    columns: tuple[str, ...]
    called: dict[str, str]


def _file(columns: str, x: str, estimate: str, **called: str) -> CurveFile:
    return CurveFile(tuple(columns.split()), {"x": x, "estimate": estimate, **called})


_POINT = "distribution_q distribution_k dependence initialisation d_k n_keys divisor"
#: By the name of the curve, which is that of its file; docs/results-folder.md says what
#: the columns are.
CURVES = {
    "weight_by_rank": _file(
        f"{_POINT} rank mean_weight std_error", "rank", "mean_weight"
    ),
    "rows_jacobian_frobenius": _file(
        f"{_POINT} jacobian_frobenius share_of_rows std_error",
        "jacobian_frobenius",
        "share_of_rows",
    ),
    "rows_gradient_query_undivided": _file(
        f"{_POINT} gradient_query_undivided share_of_rows std_error",
        "gradient_query_undivided",
        "share_of_rows",
    ),
    "score_distribution": _file(
        "distribution_q distribution_k d_k divisor score distribution_gap",
        "score",
        "distribution_gap",
    ),
    "example_weight": _file(
        f"{_POINT} weight_number weight", "weight_number", "weight"
    ),
    "training_start": _file(
        "d_k optimiser arm summary n_seeds first_gradient steps",
        "first_gradient",
        "steps",
        n_replicates="n_seeds",
    ),
}
#: The files, by their names in a folder of results.
CURVE_FILES = tuple(f"{FOLDER}/{name}.csv" for name in CURVES)
CURVE_COLUMNS = CurveLine.__struct_fields__
#: Numbers that are whole in a file, though any curve's may be a fraction.
_WHOLE = {"rank", "weight_number", "n_keys"}


def tabulate_curves(lines: Iterable[CurveLine]) -> pd.DataFrame:
    """Build the table of all curves, with the columns `CURVE_COLUMNS`."""
    table = pd.DataFrame.from_records(
        [astuple(line) for line in lines], columns=list(CURVE_COLUMNS)
    )
    numbers = dict.fromkeys(("x", "estimate", "std_error"), "float64")
    whole = dict.fromkeys(("d_k", "n_keys", "n_replicates"), "Int64")
    names = [c for c in CURVE_COLUMNS if c not in {**numbers, **whole}]
    return table.astype({**numbers, **whole}).fillna(dict.fromkeys(names, ""))


def write_curves(table: pd.DataFrame, folder: Path) -> None:
    """Write the file of each kind of curve; one without points has a header alone.

    Parameters
    ----------
    table : DataFrame
        From `tabulate_curves`.
    folder : Path
        An existing folder, in which `FOLDER` is made.
    """
    (folder / FOLDER).mkdir(exist_ok=True)
    for name, (columns, called) in CURVES.items():
        mine = table[table["curve"].eq(name)]
        if called["x"] in mine:  # of a curve over n
            mine = mine.drop(columns=called["x"])
        mine = mine.rename(columns=called)[list(columns)]
        whole = dict.fromkeys(_WHOLE & set(mine), "Int64")
        write_table(mine.astype(whole), folder / FOLDER / f"{name}.csv")


def read_curves(folder: Path) -> pd.DataFrame:
    """Read the files that `write_curves` writes as one table.

    Returns
    -------
    DataFrame
        With the columns `CURVE_COLUMNS`; what is empty is missing.
    """
    parts = []
    for name, (_, called) in CURVES.items():
        part = read_table(folder / FOLDER / f"{name}.csv")
        part = part.rename(columns={new: old for old, new in called.items()})
        parts.append(part.assign(curve=name))
    there = [part for part in parts if len(part)]
    table = pd.concat(there or parts, ignore_index=True)
    return table.reindex(columns=list(CURVE_COLUMNS))


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table; where nothing stands before q and k it says ``none``.

    A column that is empty at first would have its type guessed twice by who reads it.
    """
    if "initialisation" in table:
        table = table.replace({"initialisation": {"": NONE}})
    table.to_csv(path, index=False, lineterminator="\n")


def read_table(path: Path) -> pd.DataFrame:
    """Read a table that `write_table` wrote; what is empty, or nothing, is missing."""
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    if "initialisation" in table:
        there = table["initialisation"].ne(NONE)
        table["initialisation"] = table["initialisation"].where(there)
    return table
