"""What `measure` does: from its options to an answer and its lines."""

import json
import math
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any, NamedTuple

import pandas as pd

from montecarlo.attention.divisors import name_divisor
from montecarlo.claims.record import read_report_run
from montecarlo.cli.command_line import MeasureOptions
from montecarlo.cli.exits import DONE, INTERRUPTED, NOT_REACHED
from montecarlo.errors import InputError
from montecarlo.estimation.engine import OVERFLOW
from montecarlo.estimation.summaries import RowKey
from montecarlo.names import PROJECT, parse_folder
from montecarlo.records.calibration import read_card
from montecarlo.sampling.cost import replicate_seconds, require_soon, say_time
from montecarlo.study.columns import MEASUREMENTS, MeasurementLine, validate_table
from montecarlo.study.executors import make_executor
from montecarlo.study.measured import Measurement
from montecarlo.study.measurement import (
    RELATIVE_ERROR,
    Effort,
    PreciseRows,
    ask,
    measure,
)
from montecarlo.study.presets import MOST_REPLICATES
from montecarlo.study.progress import progress_bar

#: Columns of a row that hold names, which `measure` calls as the table does.
NAMES = (
    *("distribution_q", "distribution_k", "dependence", "initialisation"),
    *("divisor", "number_format", "softmax", "quantity", "summary"),
)


class Answer(NamedTuple):
    """What was measured, how long it took, and how it ended."""

    measured: Measurement
    seconds: float
    status: int = DONE
    told: str = ""  # what is not as it was asked for


def answer(options: MeasureOptions) -> Answer:
    """Measure what the options ask for, as far as it can be had."""
    started = time.perf_counter()
    rows = _rows(options)
    (point,) = rows.asked
    seconds = replicate_seconds(point, len(rows.divisors))
    require_soon("--most", rows.budgets[point].first, seconds)
    interrupted = False
    try:
        with (
            make_executor(options.jobs) as workers,
            progress_bar(len(rows.divisors), quiet=False) as advance,
        ):
            rows.sample(workers, advance)
    except KeyboardInterrupt:
        if not rows.rows():
            raise
        interrupted = True
    (measured,) = rows.rows()
    took = time.perf_counter() - started
    if interrupted:
        told = f"interrupted: the estimate of {measured.n_replicates} replicates"
        return Answer(measured, took, INTERRUPTED, told)
    (needed,) = rows.shortfalls()
    if needed == 0.0:
        return Answer(measured, took)
    if rows.is_stuck(point, *rows.asked[point]):
        why = (
            f"four times the replicates left {measured.std_error:.2g} nearly as it "
            "was, for a quantile is read from bins"
        )
    else:
        why = _tell_shortfall(measured, rows.effort, needed, seconds)
    told = f"the wanted error was not reached: {why}"
    return Answer(measured, took, NOT_REACHED, told)


def _rows(options: MeasureOptions) -> PreciseRows:
    """Return the row that is asked for, to be sampled."""
    key = RowKey(
        name_divisor(options.divisor),
        options.quantity or "",
        options.summary or "",
        options.number_format,
        options.softmax,
    )
    asked = ask(
        *options.both,
        options.d_k,
        options.keys,
        options.dependence,
        options.initialisation,
        key,
    )
    relative = options.relative_error
    effort = Effort(
        options.seed,
        RELATIVE_ERROR if relative is None else relative,
        options.absolute_error,
        most=options.most,
    )
    return PreciseRows(asked, effort)


def _tell_shortfall(
    measured: Measurement, effort: Effort, needed: float, seconds: float
) -> str:
    """Say why the wanted error was not reached, and what would do."""
    if math.isnan(needed):
        return f"no interval {_why(measured)}"
    if math.isinf(needed) and measured.estimate == 0.0:
        return (
            "no error is a part of an estimate of 0; its interval is known, and "
            "--absolute-error says how small it is to be"
        )
    wanted = effort.absolute_error or effort.relative_error * abs(measured.estimate)
    limit = "--most sets the limit"
    if needed > MOST_REPLICATES:
        limit = f"no more than {MOST_REPLICATES} can be had"
    return (
        f"{measured.std_error:.2g} where {wanted:.2g} was wanted, which takes about "
        f"{needed:.2g} replicates, {say_time(needed * seconds)} on one core; {limit}"
    )


def _why(measured: Measurement) -> str:
    if math.isnan(measured.ci_low):
        return "without the moments that it needs"
    if math.isnan(measured.estimate):
        return "but a bound: the quantile lies beyond what is counted"
    return f"after {measured.n_replicates} replicates, of which few make the variance"


def answer_row(options: MeasureOptions) -> Answer:
    """Measure a row of a report again, with its seed and replicates, and time it."""
    started = time.perf_counter()
    folder = options.source or parse_folder("from", "output")
    run = read_report_run(folder)
    validate_table(folder, MEASUREMENTS, MeasurementLine)
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


def format_answer(found: Answer, typed: Sequence[str], *, as_json: bool) -> str:
    """Return what was measured as text: one JSON object, or a few lines.

    The last line is what to type to get the same digits again, if there are such.
    """
    if not as_json:
        again = f"montecarlo {version(PROJECT)}: measure {shlex.join(typed)}"
        lines = [f"{found.measured}, {found.seconds:.1f} s"]
        lines += [f"{'counted':<12}{line}" for line in _counted(found.measured)]
        if found.status != INTERRUPTED:  # whose replicates nobody has again
            lines.append(f"{'again':<12}{again}")
        return "\n".join(lines)
    record = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(found.measured).items()
    }
    reached = found.status == DONE
    return json.dumps(
        {**record, "seconds": round(found.seconds, 3), "reached": reached}
    )


def _counted(measured: Measurement) -> Iterator[str]:
    """Tell how often 95 % intervals of such rows held the truth, where it was counted.

    Of other divisors, sizes and distributions, those of the report card.
    """
    card = read_card()
    if card is None or math.isnan(measured.ci_low):
        return
    rates = card.rates
    rows = rates[
        rates["judged"]
        & rates["quantity"].eq(measured.quantity)
        & rates["summary"].eq(measured.summary)
    ]
    if rows.empty:
        return
    held = 100.0 * rows["covered"] / rows["draws"]
    yield (
        f"such intervals held the truth in {held.min():.1f} to {held.max():.1f} % of "
        f"draws, in {len(rows)} combinations of the calibration"
    )
