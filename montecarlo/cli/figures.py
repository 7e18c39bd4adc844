"""``python -m montecarlo figures``: figures for documents, with captions beside them.

Exit status: 0 drawn; 2 usage or input, found before sampling; 3 the run could not
finish; 4 there are no data for a figure of ``--only``, and the others are drawn; 70 a
bug; 130 interrupted.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from montecarlo.cli.command_line import FiguresOptions
from montecarlo.cli.exits import DONE, NOT_REACHED, complain
from montecarlo.cli.studies import write_or_render
from montecarlo.names import look_up
from montecarlo.printing import print_lines
from montecarlo.report.figures import EVERY_FIGURE, FIGURES
from montecarlo.report.figures.files import FORMATS, draw_files
from montecarlo.report.figures.palette import THEMES
from montecarlo.report.language.catalogues import SOURCE
from montecarlo.report.making import write_figures


def work(options: FiguresOptions, typed: Sequence[str]) -> int:
    """Draw the figures."""
    formats = options.format or ("svg",)
    for kind, names, known in (
        ("format", formats, FORMATS),
        ("figure", options.only or (), EVERY_FIGURE),
        ("theme", (options.theme,) if options.theme else (), THEMES),
    ):
        for name in names:
            look_up(kind, name, dict.fromkeys(known))
    draw = partial(
        draw_files,
        formats=[kind for kind in FORMATS if kind in formats],
        theme=options.theme,
    )
    sampled = options.source is None
    make = partial(
        write_figures,
        chosen=[
            name for name in EVERY_FIGURE if name in (options.only or EVERY_FIGURE)
        ],
        draw=draw,
        typed=_typed_looks(options),
        sampled=sampled,
    )
    if options.lang is None:
        options = replace(options, lang=(SOURCE,))
    with_data = sampled and not options.only
    _, written = write_or_render(options, typed, make, whole=False, with_data=with_data)
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
    return words + [f"--theme {options.theme}"] * (options.theme is not None)
