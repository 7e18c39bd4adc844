"""``python -m montecarlo figures``: figures for documents, with captions beside them.

Exit status: 0 drawn; 2 usage or input, found before sampling; 3 the run could not
finish; 4 there are no data for a figure of ``--only``, and the others are drawn; 70 a
bug; 130 interrupted.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial

from montecarlo.cli.command_line import DPI, FiguresOptions
from montecarlo.cli.exits import DONE, NOT_REACHED, complain, importing, run
from montecarlo.cli.options import Parser, require_defaults
from montecarlo.errors import InputError
from montecarlo.names import look_up
from montecarlo.printing import print_lines

LEAST_DPI, MOST_DPI = 50, 1200


def build_parser() -> Parser:
    """Build the parser."""
    return Parser(
        "figures",
        "Draw the report's figures for documents in a language (default: en), with "
        "captions and alternative texts in captions.<lang>.md.",
        options=FiguresOptions,
    )


def work(options: FiguresOptions, typed: Sequence[str]) -> int:
    """Draw the figures, or print which there are."""
    with importing("figures"):
        from montecarlo.cli.listing import print_list
        from montecarlo.cli.studies import write_or_render
        from montecarlo.report.figures import EVERY_FIGURE, FIGURES
        from montecarlo.report.figures.files import FORMATS, draw_files
        from montecarlo.report.figures.palette import THEMES
        from montecarlo.report.language.catalogues import SOURCE
        from montecarlo.report.making import write_figures

    if options.list:
        others = {one.name for one in fields(options)} - {"list"}
        require_defaults(options, build_parser(), others, "--list")
        print_list("figures")
        return DONE
    formats = options.format or ("svg",)
    for kind, names, known in (
        ("format", formats, FORMATS),
        ("figure", options.only or (), EVERY_FIGURE),
        ("theme", (options.theme,) if options.theme else (), THEMES),
    ):
        for name in names:
            look_up(kind, name, dict.fromkeys(known))
    if options.dpi != DPI:
        _require_dpi(options.dpi, formats)
    draw = partial(
        draw_files,
        formats=[kind for kind in FORMATS if kind in formats],
        theme=options.theme,
        dpi=options.dpi,
    )
    chosen = [name for name in EVERY_FIGURE if name in (options.only or EVERY_FIGURE)]
    make = partial(
        write_figures,
        chosen=chosen,
        draw=draw,
        typed=_typed_looks(options),
        sampled=options.source is None,
    )
    if options.lang is None and options.config is None:
        options = replace(options, lang=(SOURCE,))
    _, written = write_or_render(
        options,
        build_parser(),
        typed,
        make,
        whole=False,
        with_data=options.source is None and not options.only,
    )
    if not options.quiet:
        print_lines("\n".join(map(str, written)))
    drawn = {path.name.split(".")[0] for path in written}
    lacking = [name for name in options.only or FIGURES if name not in drawn]
    if not lacking or (options.quiet and not options.only):
        return DONE
    told = f"results must have data for all figures, got none for {', '.join(lacking)}"
    return complain("figures", told, NOT_REACHED if options.only else DONE)


def _typed_looks(options: FiguresOptions) -> list[str]:
    """Return the options that say which figures, and how they look."""
    lists = (("only", options.only), ("format", options.format))
    words = [f"--{name} {','.join(chosen)}" for name, chosen in lists if chosen]
    words += [f"--theme {options.theme}"] * (options.theme is not None)
    return words + [f"--dpi {options.dpi}"] * (options.dpi != DPI)


def _require_dpi(dpi: int, formats: Sequence[str]) -> None:
    """Refuse pixels that no file would have."""
    if not LEAST_DPI <= dpi <= MOST_DPI:
        raise InputError(f"dpi must lie from {LEAST_DPI} to {MOST_DPI}, got {dpi}")
    if "png" not in formats:
        raise InputError(f"--dpi must stand with --format png, got {dpi}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return run(build_parser(), work, argv)
