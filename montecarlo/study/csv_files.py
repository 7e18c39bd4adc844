"""Tables as CSV files: written by one function, read by one."""

from pathlib import Path

import pandas as pd

from montecarlo.names import NONE


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
