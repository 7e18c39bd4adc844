"""What `measure` does: from its options to an answer and its lines."""

import json
import math
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import NamedTuple

from montecarlo.cli.command_line import MeasureOptions
from montecarlo.cli.exits import DONE, INTERRUPTED, NOT_REACHED
from montecarlo.names import MOST_REPLICATES, PROJECT
from montecarlo.sampling.cost import replicate_seconds, require_soon, say_time
from montecarlo.study.executors import make_executor
from montecarlo.study.measured import Measurement
from montecarlo.study.measurement import (
    RELATIVE_ERROR,
    Effort,
    PreciseRows,
    request_row,
)
from montecarlo.study.progress import progress_bar


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
    (point,) = rows.requested
    seconds = replicate_seconds(point, rows.n_divisors)
    require_soon("--most", rows.budgets[point].first, seconds)
    interrupted = False
    try:
        with (
            make_executor(options.jobs) as workers,
            progress_bar(rows.n_divisors, quiet=False) as advance,
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
    if rows.is_stuck(point, *rows.requested[point]) and not measured.is_binned:
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
    asked = request_row(
        options.names,
        options.d_k,
        options.keys,
        options.parts,
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
    if measured.is_binned:
        return "the interval is a bin of a histogram, which no replicates make smaller"
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


def format_answer(found: Answer, typed: Sequence[str], *, as_json: bool) -> str:
    """Return what was measured as text: one JSON object, or a few lines.

    The last line is what to type to get the same digits again, if there are such.
    """
    if not as_json:
        again = f"montecarlo {version(PROJECT)}: measure {shlex.join(typed)}"
        lines = [f"{found.measured}, {found.seconds:.1f} s"]
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
