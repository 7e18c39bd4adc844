"""``python -m montecarlo measure``: one number, with its interval and exact value.

Exit status: 0 measured; 2 usage or input; 3 the run could not finish; 4 the target
error was not reached, or theory has no exact value; 70 a bug; 130 interrupted, with the
current estimate.
"""

import csv
import json
import math
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from importlib.metadata import version
from typing import Any, NamedTuple

from montecarlo.cli.command_line import MeasureOptions
from montecarlo.cli.exits import DONE, INTERRUPTED, NOT_REACHED, print_message
from montecarlo.cli.options import require_defaults
from montecarlo.errors import InputError, NotReachedError
from montecarlo.names import MOST_REPLICATES, PROJECT, parse_folder, require_names
from montecarlo.printing import print_lines
from montecarlo.sampling.cost import replicate_seconds, require_soon, say_time
from montecarlo.sampling.rare_events import OVERFLOW
from montecarlo.study.executors import make_executor
from montecarlo.study.failures import replay
from montecarlo.study.measured import IDENTITY, MEASUREMENTS, Measurement
from montecarlo.study.measurement import (
    FIRST,
    KEY_FIELDS,
    RELATIVE_ERROR,
    PreciseRows,
    exact_row,
    request_row,
)
from montecarlo.study.progress import progress_bar

#: Options that have an effect with ``--row``; the report determines the others.
BESIDE_ROW = {"row", "source", "json", "markdown", "lang"}
#: Options that have an effect with ``--replicates``: the point and its draws.
OF_POINT = {"replicates", "number_format", "d_k", "seed", "distribution", "keys"}
OF_POINT |= {"dependence", "initialisation", "normalisation", "mask"}
#: Options that have no effect without sampling.
OF_SAMPLING = ("relative_error", "absolute_error", "most", "seed", "jobs", "first")
#: Options that are named as columns of measurements.csv.
NAMES = tuple(one.name for one in fields(MeasureOptions) if one.name in IDENTITY)


class Result(NamedTuple):
    """A measurement with its duration, command and exit status.

    Attributes
    ----------
    measured : Measurement
    seconds : float
    command : str
        The command that gives the same digits; empty if there is none.
    status : int
        Exit status.
    message : str
        How the result differs from what was requested; empty if it does not.
    """

    measured: Measurement
    seconds: float
    command: str
    status: int = DONE
    message: str = ""


def work(options: MeasureOptions, argv: Sequence[str]) -> int:
    """Measure the requested quantity, print the result, and return the exit status.

    ``argv`` are the arguments as typed, for the command that gives the same digits.
    The status is that of `Result`; with ``--replicates`` it is 0.
    """
    _require_effective(options)
    if options.replicates is not None:
        outcome = replay(
            options.names,
            options.d_k,
            options.keys,
            number_format=options.number_format,
            seed=options.seed,
            indices=options.replicates,
        )
        print_lines(outcome)
        return DONE
    languages = []
    if options.markdown:
        # imports Babel, for paragraphs alone
        from montecarlo.report.language.catalogues import LANGUAGES, read_language
        from montecarlo.report.language.quoting import quote

        codes = require_names("lang", options.lang or ["en"], LANGUAGES)
        languages = [read_language(code) for code in codes]
    if options.row and any(word.partition("=")[0] == "--seed" for word in argv):
        raise InputError("--row must stand without --seed: its line 'again' takes one")
    result = _measure_row(options) if options.row else _measure_options(options, argv)
    if languages:
        quoted = (quote(result.measured, one, result.command) for one in languages)
        print_lines("\n\n".join(quoted))
    else:
        print_lines(_format_result(result, as_json=options.json))
    if result.message:
        print_message("measure", result.message, result.status)
    return result.status


def _require_effective(options: MeasureOptions) -> None:
    """Raise `InputError` for options that have no effect with the other options.

    Also if ``--quantity`` is missing without ``--row`` and ``--replicates``.
    """
    names = {one.name for one in fields(options)}
    if options.replicates is not None:
        require_defaults(options, names - OF_POINT, "--replicates")
    elif options.row is not None:
        require_defaults(options, names - BESIDE_ROW, "--row")
    elif options.source is not None:
        raise InputError(f"--from must stand with --row, got {str(options.source)!r}")
    elif options.quantity is None:
        raise InputError("--quantity must be given, or --row")
    if options.relative_error is not None:
        require_defaults(options, ["absolute_error"], "--relative-error")
    if options.exact:
        require_defaults(options, [*OF_SAMPLING, "markdown"], "--exact")
    if options.json:
        require_defaults(options, ["markdown"], "--json")
    if options.lang is not None and not options.markdown:
        raise InputError(f"--lang must stand with --markdown, got {options.lang[0]!r}")


def _command_with_seed(argv: Sequence[str]) -> str:
    """Return the command with the given arguments, and with the seed if they lack it.

    Such as ``python -m montecarlo measure --quantity score_mean --seed 1``.  With
    ``--exact`` no seed is added.
    """
    seeded = any(word.partition("=")[0] in {"--seed", "--exact"} for word in argv)
    words = [*argv, *([] if seeded else ["--seed", "1"])]
    return f"python -m montecarlo measure {shlex.join(words)}"


def _measure_options(options: MeasureOptions, argv: Sequence[str]) -> Result:
    """Measure the quantity that the options request, to their target error.

    ``argv`` are the arguments as typed, for the command in the result.  On Ctrl-C the
    result is from the replicates that have finished.

    Raises
    ------
    InputError
        If the options are invalid, or the row does not exist.
    KeyboardInterrupt
        On Ctrl-C before there is an estimate.
    NotReachedError
        If the exact value is requested and unknown.
    """
    started, command = time.perf_counter(), _command_with_seed(argv)
    parts = {name: getattr(options, name) for name in KEY_FIELDS}
    try:
        requested = request_row(options.d_k, options.keys, {**options.names, **parts})
    except InputError as error:  # names the option; what was typed stays
        told, got, typed = str(error).partition("got ")
        raise InputError(told.replace("n_keys", "keys") + got + typed) from None
    if options.exact:
        exact = exact_row(requested)
        if exact is None:
            raise NotReachedError(
                f"--exact must be left out: theory has no value of {options.quantity}"
            )
        return Result(exact, time.perf_counter() - started, command)
    rows = PreciseRows(
        requested,
        options.seed,
        RELATIVE_ERROR if options.relative_error is None else options.relative_error,
        options.absolute_error,
        options.first or FIRST,
        options.most,
    )
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
        if not rows.estimates():
            raise
        interrupted = True
    ((measured, estimate),) = rows.estimates()
    duration = time.perf_counter() - started
    if interrupted:
        # no command, as the number of replicates was accidental
        message = f"interrupted: the estimate of {measured.n_replicates} replicates"
        return Result(measured, duration, "", INTERRUPTED, message)
    needed = rows.replicates_needed(estimate)
    target = options.relative_error or options.absolute_error
    is_fixed = options.first == options.most is not None and not target
    if needed <= estimate.n_replicates or is_fixed:
        return Result(measured, duration, command)
    why = _shortfall(measured, rows.target_error(estimate), needed, seconds)
    message = f"the target error was not reached: {why}"
    return Result(measured, duration, command, NOT_REACHED, message)


def _measure_row(options: MeasureOptions) -> Result:
    """Measure a row of a report again, from the same random draws.

    Raises
    ------
    InputError
        If the report lacks the row, or the row cannot be measured alone.
    """
    from montecarlo.claims.outcomes import read_report_run  # slow to import

    folder = options.source or parse_folder("from", "output")
    run = read_report_run(folder)
    with (folder / MEASUREMENTS).open(encoding="utf-8", newline="") as file:
        rows = {row["row_id"]: row for row in csv.DictReader(file)}
    if (row := rows.get(str(options.row))) is None:
        place = str(folder / MEASUREMENTS)
        raise InputError(f"row must be a row_id of {place!r}, got {options.row!r}")
    if row["quantity"] == OVERFLOW:
        raise InputError(
            f"row must be an estimate from replicates, got {options.row!r}, whose "
            f"{OVERFLOW} is estimated by exponential tilting"
        )
    replicates = int(row["n_replicates"])
    values: dict[str, Any] = {
        **{name: row.get(name, "none") for name in NAMES},  # mask may be missing
        "d_k": int(row["d_k"]),
        "keys": int(row["n_keys"]) if row["n_keys"] else None,
        "distribution": f"{row['distribution_q']} * {row['distribution_k']}",
        "seed": int(run["seed"]),
        "first": replicates,
        "most": replicates,
    }
    words = [
        word
        for name, value in values.items()
        if value not in (None, "", "none") or name == "divisor"
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    return _measure_options(replace(options, **values), words)


def _shortfall(
    measured: Measurement, target: float, needed: float, seconds: float
) -> str:
    """Return why the target error was not reached, and what would reach it, if known.

    The words follow "the target error was not reached:".  ``target`` is the target
    error, and ``seconds`` the CPU time of one replicate.  ``needed`` is the number of
    replicates for the target: inf if none suffices, NaN without an interval.
    """
    if math.isnan(needed):
        return f"no interval {_reason_without_interval(measured)}"
    if math.isinf(needed) and measured.estimate == 0.0:
        return (
            "the relative error of an estimate of 0 is undefined; "
            "--absolute-error sets an absolute one"
        )
    if measured.is_binned:
        return "the interval is a bin of a histogram, which no replicates make smaller"
    limit = "--most sets the limit"
    if needed > MOST_REPLICATES:
        limit = f"the largest number is {MOST_REPLICATES}"
    return (
        f"{measured.std_error:.2g} instead of {target:.2g}, which takes about "
        f"{needed:.2g} replicates, {say_time(needed * seconds)} on one core; {limit}"
    )


def _reason_without_interval(measured: Measurement) -> str:
    """Return why a measurement has no bounded interval.

    The words follow "no interval", such as ``without the moments that it needs``.
    """
    if math.isnan(measured.ci_low):
        return "without the moments that it needs"
    if math.isnan(measured.estimate):
        return "but a bound: the quantile lies outside the range of the histogram"
    return f"after {measured.n_replicates} replicates, few of which make the variance"


def _format_result(result: Result, *, as_json: bool) -> str:
    """Return a result as text: with ``as_json`` one JSON object, else a few lines.

    The last line is the command that gives the same digits, if there is one.
    """
    if not as_json:
        origin = f"{result.seconds:.1f} s, montecarlo {version(PROJECT)}"
        again = f"\n{'again':<12}{result.command}" if result.command else ""
        return f"{result.measured}, {origin}{again}"
    record = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(result.measured).items()
    }
    record |= {"seconds": round(result.seconds, 3), "reached": result.status == DONE}
    return json.dumps(record)
