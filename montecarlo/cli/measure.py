"""``python -m montecarlo measure``: one number, with its interval and exact value.

Exit status: 0 measured; 2 usage or input; 3 the run could not finish; 4 measured, but
not to the wanted error, or theory has no exact value; 70 a bug; 130 interrupted, with
the estimate so far.
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
from montecarlo.cli.exits import DONE, INTERRUPTED, NOT_REACHED, complain
from montecarlo.cli.options import require_defaults
from montecarlo.errors import InputError, NotReachedError
from montecarlo.estimation.summaries import RowKey
from montecarlo.names import MOST_REPLICATES, PROJECT, look_up_all, parse_folder
from montecarlo.printing import print_lines
from montecarlo.sampling.cost import replicate_seconds, require_soon, say_time
from montecarlo.sampling.rare_events import OVERFLOW
from montecarlo.study.executors import make_executor
from montecarlo.study.failures import replay
from montecarlo.study.measured import IDENTITY, MEASUREMENTS, Measurement
from montecarlo.study.measurement import (
    FIRST,
    RELATIVE_ERROR,
    PreciseRows,
    exact_row,
    request_row,
)
from montecarlo.study.progress import progress_bar

#: Options that act beside ``--row``: all else is said by the report.
BESIDE_ROW = {"row", "source", "json", "markdown", "lang"}
#: Options that act beside ``--replicates``: which point, and its draws.
OF_POINT = {
    *("replicates", "number_format", "d_k", "seed", "distribution", "keys"),
    *("dependence", "initialisation", "normalisation", "mask"),
}
#: Options that do not act where nothing is sampled.
OF_SAMPLING = ("relative_error", "absolute_error", "most", "seed", "jobs", "first")
#: Columns of a row that options have the names of.
NAMES = tuple(one.name for one in fields(MeasureOptions) if one.name in IDENTITY)


class Answer(NamedTuple):
    """What was measured, how long it took, and how it ended."""

    measured: Measurement
    seconds: float
    again: str  # the command that gives the same digits
    status: int = DONE
    told: str = ""  # what is not as it was asked for


def work(options: MeasureOptions, typed: Sequence[str]) -> int:
    """Measure what was asked for, and print it."""
    _require_acting(options)
    if options.replicates is not None:
        told = replay(
            options.names,
            options.d_k,
            options.keys,
            number_format=options.number_format,
            seed=options.seed,
            indices=options.replicates,
        )
        print_lines(told)
        return DONE
    languages = []
    if options.markdown:
        # Babel, for paragraphs alone
        from montecarlo.report.language.catalogues import (
            LANGUAGES,
            SOURCE,
            read_language,
        )
        from montecarlo.report.language.quoting import quote

        known = {code: code for code in LANGUAGES}
        codes = look_up_all("lang", options.lang or [SOURCE], known)
        languages = [read_language(code) for code in codes]
    by_row = options.row is not None
    found = _answer_row(options) if by_row else _answer(options, typed)
    if languages:
        quoted = (quote(found.measured, one, found.again) for one in languages)
        print_lines("\n\n".join(quoted))
    else:
        print_lines(_format_answer(found, as_json=options.json))
    if found.told:
        complain("measure", found.told, found.status)
    return found.status


def _require_acting(options: MeasureOptions) -> None:
    """Refuse options that something else would silently take the place of."""
    every = {one.name for one in fields(options)}
    if options.replicates is not None:
        require_defaults(options, every - OF_POINT, "--replicates")
    elif options.row is not None:
        require_defaults(options, every - BESIDE_ROW, "--row")
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


def _command_with_seed(typed: Sequence[str]) -> str:
    """Return the command that was typed, with the seed that it has by default."""
    seeded = any(word.partition("=")[0] in {"--seed", "--exact"} for word in typed)
    words = [*typed, *([] if seeded else ["--seed", "1"])]
    return f"python -m montecarlo measure {shlex.join(words)}"


def _answer(options: MeasureOptions, typed: Sequence[str]) -> Answer:
    """Measure what the options ask for, as far as it can be had."""
    started, again = time.perf_counter(), _command_with_seed(typed)
    parts = {name: getattr(options, name) for name in RowKey._fields}
    asked = request_row(options.d_k, options.keys, {**options.names, **parts})
    if options.exact:
        exact = exact_row(asked)
        if exact is None:
            raise NotReachedError(
                f"{options.quantity} must have an exact value here, got none: "
                "without --exact it is sampled"
            )
        return Answer(exact, time.perf_counter() - started, again)
    relative = options.relative_error
    rows = PreciseRows(
        asked,
        options.seed,
        RELATIVE_ERROR if relative is None else relative,
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
    took = time.perf_counter() - started
    if interrupted:
        told = f"interrupted: the estimate of {measured.n_replicates} replicates"
        # whose replicates nobody has again
        return Answer(measured, took, "", INTERRUPTED, told)
    needed, is_fixed = rows.replicates_needed(estimate), options.first == options.most
    if needed <= estimate.n_replicates or (options.most and is_fixed):
        return Answer(measured, took, again)
    why = _tell_shortfall(measured, rows.target_error(estimate), needed, seconds)
    told = f"the wanted error was not reached: {why}"
    return Answer(measured, took, again, NOT_REACHED, told)


def _answer_row(options: MeasureOptions) -> Answer:
    """Measure a row of a report again: the same draws, alone."""
    from montecarlo.claims.outcomes import read_report_run  # of claims, for this alone

    folder = options.source or parse_folder("from", "output")
    run = read_report_run(folder)
    with (folder / MEASUREMENTS).open(encoding="utf-8", newline="") as file:
        row = next(
            (r for r in csv.DictReader(file) if r["row_id"] == options.row), None
        )
    if row is None:
        raise InputError(f"row must be in {str(folder)!r}, got {options.row!r}")
    if row["quantity"] == OVERFLOW:
        raise InputError(
            f"row must be an estimate from replicates, got {options.row!r}, whose "
            f"{OVERFLOW} is found by tilting"
        )
    replicates = int(row["n_replicates"])
    said: dict[str, Any] = {
        **{name: row.get(name, "none") for name in NAMES},  # masks may be none
        "d_k": int(row["d_k"]),
        "keys": int(row["n_keys"]) if row["n_keys"] else None,
        "distribution": f"{row['distribution_q']} * {row['distribution_k']}",
        "seed": int(run["seed"]),
        "first": replicates,
        "most": replicates,
    }
    words = [
        word
        for name, value in said.items()
        if value not in (None, "", "none") or name == "divisor"
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    return _answer(replace(options, **said), words)


def _tell_shortfall(
    measured: Measurement, wanted: float, needed: float, seconds: float
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


def _format_answer(found: Answer, *, as_json: bool) -> str:
    """Return what was measured as text: one JSON object, or a few lines.

    The last line is what to type to get the same digits again, if there are such.
    """
    if not as_json:
        made = f"{found.seconds:.1f} s, montecarlo {version(PROJECT)}"
        again = f"\n{'again':<12}{found.again}" if found.again else ""
        return f"{found.measured}, {made}{again}"
    record = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(found.measured).items()
    }
    reached = found.status == DONE
    return json.dumps(
        {**record, "seconds": round(found.seconds, 3), "reached": reached}
    )
