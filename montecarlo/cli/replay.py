"""Sampling again a row of a report, or what failed in it: the same draws, alone."""

import time
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.claims.outcomes import read_report_run
from montecarlo.cli.command_line import MeasureOptions
from montecarlo.cli.points import Answer
from montecarlo.errors import InputError
from montecarlo.estimation.summaries import columns_of, every_key
from montecarlo.names import MOST_REPLICATES, look_up, parse_folder
from montecarlo.sampling.cost import (
    replicate_seconds,
    require_affordable,
    require_soon,
)
from montecarlo.sampling.design_points import DesignPoint, parse_point
from montecarlo.sampling.rare_events import OVERFLOW
from montecarlo.sampling.replicates import sample
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


def replay(options: MeasureOptions, indices: range) -> str:
    """Sample the replicates of some indices; returns a line that says so.

    They are sampled with all divisors, and a number format other than float64 stands
    for all of them.  What sampling raises comes out as it is: its traceback is what a
    replay is for.
    """
    if indices.stop > MOST_REPLICATES:
        raise InputError(
            f"replicates must end at {MOST_REPLICATES} at most, got {indices.stop}: no "
            "report samples more"
        )
    look_up("number-format", options.number_format, NUMBER_FORMATS)
    point = _point(options)
    require_affordable(point, len(DIVISORS))
    seconds = replicate_seconds(point, len(DIVISORS))
    require_soon("replicates", len(indices), seconds)
    columns = columns_of(point, every_key(point, tuple(DIVISORS)))
    started = time.perf_counter()
    with threadpool_limits(limits=1, user_api="blas"):
        sample(point, options.seed, indices.start, indices.stop, columns)
    seconds = time.perf_counter() - started
    return f"sampled without failure in {seconds:.1f} s: {point.name}"


def _point(options: MeasureOptions) -> DesignPoint:
    formats = options.number_format != "float64"
    if options.keys is None and formats:
        raise InputError(
            "number-format must be left out without keys: pairs have no rows, got "
            f"{options.number_format!r}"
        )
    d_k, n_keys = options.d_k, options.keys
    names = options.names
    return parse_point(**names, d_k=d_k, n_keys=n_keys, formats=formats)
