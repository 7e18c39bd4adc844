"""``python -m montecarlo report``: sample Q and K, judge the texts, write the report.

Exit status: 0 the report was written, whatever the verdicts; 1 it was, and something
that ``--fail-on`` names came out; 2 usage or input, found before sampling; 3 the run
could not finish; 70 a bug; 130 interrupted.
"""

import argparse
from collections.abc import Sequence

from montecarlo.cli.exits import DONE, FAILING, importing, run
from montecarlo.cli.options import (
    FIRST,
    NAMES,
    OTHER,
    SAMPLING,
    Parser,
    option,
    require_defaults,
)
from montecarlo.names import PROJECT
from montecarlo.printing import print_lines
from montecarlo.report.formats import DEFAULT, FORMATS


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; values stay as typed, `read_options` validates them."""
    parser = Parser(
        "report",
        "Sample Q and K, judge what five texts claim about dividing attention scores "
        "by sqrt(d_k), and write the report in several languages.",
    )
    parser.add(
        FIRST,
        {
            "--preset": {},
            "--lang": {},
            "--only": option("claims, and what they need", **NAMES),
            "--output": {},
            "--from": option(
                "render these results again, all or those of --only, and sample nothing"
            ),
            "--format": option(
                f"{DEFAULT} (default), {', '.join(FORMATS[1:])}", **NAMES
            ),
            "--list": option(
                "print what can be asked for, as quantities; alone, what can be listed",
                "KIND",
                nargs="?",
                const="kinds",
            ),
        },
    )
    parser.add(
        SAMPLING,
        {
            "--seed": {},
            "--jobs": {},
            "--executor": {},
            "--max-seconds": option(
                "end sampling after so long; what is undecided then is undecided",
                "N",
            ),
            "--replicates-from": option(
                "a run.json: sample as many replicates as that run did, for equal"
                " bytes",
                "FILE",
            ),
            "--fresh": {},
            "--config": option(
                "a TOML file with seed, preset, lang, only, output, jobs, "
                "executor, error_rate, grid; flags override it"
            ),
        },
    )
    parser.add(
        "texts and checks",
        {
            "--flavour": option(
                "of Markdown: kramdown (default), or commonmark (MkDocs, GitHub)",
                "NAME",
            ),
            "--front-matter": option(
                "of Markdown: title, lang, generated, translated, KEY=VALUE; or none",
                **NAMES,
            ),
            "--fail-on": option(
                "end with status 1 if one of these comes out: a verdict such as "
                "refuted, or self-check, a check of the simulator itself is refuted; "
                "none (default)"
            ),
        },
    )
    version_only = option("print the version, and stop", action="store_true")
    parser.add(OTHER, {"--quiet": {}, "--version": version_only, "--help": {}})
    return parser


def work(arguments: argparse.Namespace, typed: Sequence[str]) -> int:
    """Write the report, or print what there is."""
    for name, beside in (("version", set()), ("list", {"lang"})):
        if getattr(arguments, name):
            every = set(vars(arguments)) - {name} - beside
            require_defaults(arguments, build_parser(), every, f"--{name}")
    if arguments.version:
        from importlib.metadata import version

        print_lines(f"montecarlo {version(PROJECT)}")
        return DONE
    with importing("report"):
        from montecarlo.report.command import report_maker, run_report
        from montecarlo.report.failing import failing_outcome
        from montecarlo.report.language.catalogues import SOURCE, read_language
        from montecarlo.report.listing import print_list
        from montecarlo.report.options import choose_languages
        from montecarlo.report.rerendering import render_again

    if arguments.list is not None:
        (code, *_) = choose_languages(arguments.lang or (SOURCE,))
        print_list(arguments.list, read_language(code))
        return DONE
    is_failing = failing_outcome(arguments.fail_on or ())
    make = report_maker(arguments.format, arguments.flavour, arguments.front_matter)
    write = run_report if arguments.source is None else render_again
    findings = write(arguments, typed, make)
    return FAILING if is_failing(findings) else DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv)
