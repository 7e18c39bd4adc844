"""From the arguments of ``python -m montecarlo measure`` to a point and its lines."""

import argparse
import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from montecarlo.errors import InputError
from montecarlo.estimation.engine import LEAST
from montecarlo.estimation.failures import OVERFLOW
from montecarlo.estimation.intervals import FEWEST_BEHIND_A_MEAN
from montecarlo.names import parse_decimal, parse_seed, parse_whole, parse_within
from montecarlo.results.columns import MEASUREMENTS, validate_table
from montecarlo.sampling.affordable import require_affordable, require_soon
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.sampling.design_points import parse_point
from montecarlo.study.grid import MOST_REPLICATES
from montecarlo.study.measurement import FIRST, MOST, Measurement, measure
from montecarlo.study.run_record import read_report_run

#: Columns of a row that hold names, which `measure` calls as the table does.
NAMES = (
    *("distribution_q", "distribution_k", "dependence", "initialisation"),
    *("divisor", "number_format", "softmax", "quantity", "summary"),
)


def answer(arguments: argparse.Namespace) -> tuple[Measurement, float]:
    """Measure what the options ask for; returns the point and the seconds it took."""
    if arguments.quantity is None:
        raise InputError("--quantity must be given, or --row")
    started = time.perf_counter()
    distributions = (
        arguments.distribution_q or arguments.distribution,
        arguments.distribution_k or arguments.distribution,
    )
    d_k = parse_whole("d-k", arguments.d_k)
    keys = None if arguments.keys is None else parse_whole("keys", arguments.keys)
    most = MOST
    if arguments.most is not None:
        most = parse_within("most", arguments.most, LEAST, MOST_REPLICATES)
    point = parse_point(
        *distributions, d_k, keys, arguments.dependence, arguments.initialisation
    )
    n_divisors = len(set(arguments.divisor.split("/")))
    require_affordable(point, n_divisors)
    first = min(FIRST, most)
    require_soon("--most", first, replicate_seconds(point, n_divisors))
    measured = measure(
        *distributions,
        d_k,
        keys,
        quantity=arguments.quantity,
        divisor=arguments.divisor,
        summary=arguments.summary,
        number_format=arguments.number_format,
        softmax=arguments.softmax,
        dependence=arguments.dependence,
        initialisation=arguments.initialisation,
        seed=parse_seed(arguments.seed),
        relative_error=parse_decimal("relative-error", arguments.relative_error),
        most=most,
    )
    return measured, time.perf_counter() - started


def answer_row(arguments: argparse.Namespace) -> tuple[Measurement, float]:
    """Measure a row of a report again, with its seed and replicates, and time it."""
    started = time.perf_counter()
    folder = Path(arguments.source)
    run = read_report_run(folder)
    validate_table(folder / MEASUREMENTS)
    table = pd.read_csv(folder / MEASUREMENTS, keep_default_na=False, low_memory=False)
    rows = table[table["row_id"] == arguments.row]
    if rows.empty:
        raise InputError(f"row must be in {str(folder)!r}, got {arguments.row!r}")
    row = rows.iloc[0]
    if row["quantity"] == OVERFLOW:
        raise InputError(
            f"row must be an estimate from replicates, got {arguments.row!r}, whose "
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
    return measured, time.perf_counter() - started


def format_point(measured: Measurement, seconds: float, *, as_json: bool) -> str:
    """Return what was measured as text: one JSON object, or a few lines."""
    if as_json:
        record = {
            name: None
            if isinstance(value, float) and not math.isfinite(value)
            else value
            for name, value in asdict(measured).items()
        }
        return json.dumps({**record, "seconds": round(seconds, 3)})
    lines = [
        f"{measured.quantity} ({measured.summary}), divisor {measured.divisor}",
        f"estimate   {measured.estimate:.8g}{_error(measured)}",
        f"95 %       {_interval(measured)}",
    ]
    if measured.reference is not None:
        z = math.nan
        if measured.std_error > 0.0:
            z = (measured.estimate - measured.reference) / measured.std_error
        distance = "" if math.isnan(z) else f" (z = {z:+.2f})"
        lines.append(f"exact      {measured.reference:.8g}{distance}")
    lines.append(
        f"replicates {measured.n_replicates}, {seconds:.1f} s, {measured.row_id}"
    )
    return "\n".join(lines)


def _interval(measured: Measurement) -> str:
    """Return the interval, or why there is none."""
    if math.isnan(measured.ci_low):
        return "none: the distribution lacks the moments that it needs"
    if math.isinf(measured.ci_low) and math.isinf(measured.ci_high):
        return (
            "none: nearly all of the variance comes from fewer than "
            f"{FEWEST_BEHIND_A_MEAN} replicates"
        )
    return f"[{measured.ci_low:.8g}, {measured.ci_high:.8g}]"


def _error(measured: Measurement) -> str:
    """Return the standard error, nothing where there is none."""
    return "" if math.isnan(measured.std_error) else f" ± {measured.std_error:.2g}"
