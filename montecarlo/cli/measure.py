"""``python -m montecarlo measure``: one number, with its interval and exact value.

Exit status: 0 measured; 2 usage or input; 3 the run could not finish; 4 measured, but
not to the wanted error; 70 a bug; 130 interrupted, with the estimate so far.
"""

import shlex
from collections.abc import Sequence
from dataclasses import fields

from montecarlo.cli.command_line import MeasureOptions
from montecarlo.cli.exits import DONE, INTERRUPTED, complain, importing, run
from montecarlo.cli.options import Parser, require_defaults
from montecarlo.errors import InputError
from montecarlo.names import look_up, look_up_all
from montecarlo.printing import print_lines


def build_parser() -> Parser:
    """Build the parser."""
    purpose = "Estimate one quantity at one design point, to a wanted precision."
    return Parser("measure", purpose, options=MeasureOptions)


#: Options that act beside ``--row``: all else is said by the report.
BESIDE_ROW = {"row", "source", "json", "format", "lang"}
#: How an answer may be printed.
TEXT, JSON, MARKDOWN = "text", "json", "markdown"
#: Options that act beside ``--replicates``: which point, and its draws.
OF_POINT = {"replicates", "number_format", "d_k", "seed", "distribution", "keys"} | {
    *("distribution_q", "distribution_k"),
    *("dependence", "initialisation", "normalisation"),
}


def _require_acting(options: MeasureOptions) -> None:
    """Refuse options that something else would silently take the place of."""
    parser, every = build_parser(), {one.name for one in fields(options)}
    if options.replicates is not None:
        require_defaults(options, parser, every - OF_POINT, "--replicates")
    elif options.row is not None:
        require_defaults(options, parser, every - BESIDE_ROW, "--row")
    elif options.source is not None:
        raise InputError(f"--from must stand with --row, got {str(options.source)!r}")
    elif options.quantity is None:
        raise InputError("--quantity must be given, or --row")
    if options.distribution_q is not None and options.distribution_k is not None:
        why = "--distribution-q and --distribution-k"
        require_defaults(options, parser, ["distribution"], why)
    if options.relative_error is not None:
        require_defaults(options, parser, ["absolute_error"], "--relative-error")


def _require_format(options: MeasureOptions) -> None:
    """Refuse a format that is none, and languages of what has none."""
    if options.format is not None:
        look_up("format", options.format, dict.fromkeys((TEXT, JSON, MARKDOWN)))
    if options.json and options.format not in (None, JSON):
        raise InputError(f"--json must stand without --format {options.format}")
    if options.lang is not None and options.format != MARKDOWN:
        raise InputError(f"--lang must stand with --format {MARKDOWN}, got none")


def _command_with_seed(typed: Sequence[str]) -> str:
    """Return the command that was typed, with the seed that it has by default."""
    seeded = any(word.partition("=")[0] in {"--seed", "--row"} for word in typed)
    words = [*typed, *([] if seeded else ["--seed", "1"])]
    return f"python -m montecarlo measure {shlex.join(words)}"


def work(options: MeasureOptions, typed: Sequence[str]) -> int:
    """Measure what was asked for, and print it."""
    with importing("measure"):
        from montecarlo.cli.points import answer, format_answer

        if options.row is not None:
            from montecarlo.cli.replay import answer_row

        if options.replicates is not None:
            from montecarlo.study.failures import replay

        if options.format == MARKDOWN:
            from montecarlo.report.language.catalogues import (
                LANGUAGES,
                SOURCE,
                read_language,
            )
            from montecarlo.report.language.quoting import quote

    _require_acting(options)
    _require_format(options)
    languages = []
    if options.format == MARKDOWN:
        known = {code: code for code in LANGUAGES}
        codes = look_up_all("lang", options.lang or [SOURCE], known)
        languages = [read_language(code) for code in codes]
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
    found = (answer if options.row is None else answer_row)(options)
    if languages:
        command = _command_with_seed(typed)
        if found.status == INTERRUPTED:  # whose replicates nobody has again
            command = ""
        quoted = (quote(found.measured, one, command) for one in languages)
        print_lines("\n\n".join(quoted))
    else:
        as_json = options.json or options.format == JSON
        print_lines(format_answer(found, typed, as_json=as_json))
    if found.told:
        complain("measure", found.told, found.status)
    return found.status


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv, "interrupted")
