"""Measuring again a row of a report: the same draws, alone."""

import time
from typing import Any

import pandas as pd

from montecarlo.claims.outcomes import read_report_run
from montecarlo.cli.command_line import MeasureOptions
from montecarlo.cli.points import Answer
from montecarlo.errors import InputError
from montecarlo.names import parse_folder
from montecarlo.sampling.rare_events import OVERFLOW
from montecarlo.study.measured import IDENTITY, MEASUREMENTS
from montecarlo.study.measurement import measure

#: Columns of a row that hold names, which `measure` calls as the table does.
NAMES = tuple(one for one in IDENTITY if one not in ("d_k", "n_queries", "n_keys"))


def answer_row(options: MeasureOptions) -> Answer:
    """Measure a row of a report again, with its seed and replicates, and time it."""
    started = time.perf_counter()
    folder = options.source or parse_folder("from", "output")
    run = read_report_run(folder)
    table = pd.read_csv(folder / MEASUREMENTS, keep_default_na=False, low_memory=False)
    rows = table[table["row_id"] == options.row]
    if rows.empty:
        raise InputError(f"row must be in {str(folder)!r}, got {options.row!r}")
    row = rows.iloc[0]
    if row["quantity"] == OVERFLOW:
        raise InputError(
            f"row must be an estimate from replicates, got {options.row!r}, whose "
            f"{OVERFLOW} is found by tilting"
        )
    replicates = int(row["n_replicates"])
    names: dict[str, Any] = {name: str(row[name]) for name in NAMES}
    measured = measure(
        d_k=int(row["d_k"]),
        n_keys=int(row["n_keys"]) if str(row["n_keys"]) else None,
        **names,
        seed=int(run["seed"]),
        first=replicates,
        most=replicates,
    )
    return Answer(measured, time.perf_counter() - started)
