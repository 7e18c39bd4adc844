"""``python -m montecarlo figures``: figures for documents, with captions.

Exit status: 0 drawn; 2 usage or input, found before sampling; 3 the run could not
finish; 4 there are no data for a figure of ``--only``, while the others are drawn; 70 a
bug; 130 interrupted.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from montecarlo.cli.command_line import FiguresOptions
from montecarlo.cli.exits import DONE, NOT_REACHED, print_message
from montecarlo.cli.studies import write_or_render
from montecarlo.names import look_up
from montecarlo.printing import print_lines
from montecarlo.report.figures import EVERY_FIGURE, FIGURES
from montecarlo.report.figures.files import FORMATS, draw_files
from montecarlo.report.figures.palette import THEMES
from montecarlo.report.language.catalogues import SOURCE
from montecarlo.report.making import write_figures


def work(options: FiguresOptions, argv: Sequence[str]) -> int:
    """Draw the figures, print the paths of their files, and return the exit status.

    ``argv`` are the arguments as typed, for timing.json.  The status is 4 if a figure
    of ``--only`` has no data, otherwise 0.
    """
    formats = options.format or ("svg",)
    for name in formats:
        look_up("format", name, dict.fromkeys(FORMATS))
    only = options.only or EVERY_FIGURE
    for name in only:
        look_up("figure", name, EVERY_FIGURE)
    if options.theme is not None:
        look_up("theme", options.theme, dict.fromkeys(THEMES))
    draw = partial(
        draw_files,
        formats=[kind for kind in FORMATS if kind in formats],
        theme=options.theme,
    )
    sampled = options.source is None
    make = partial(
        write_figures,
        chosen=[name for name in EVERY_FIGURE if name in only],
        draw=draw,
        chosen_options=_appearance_options(options),
        sampled=sampled,
    )
    if options.lang is None:
        options = replace(options, lang=(SOURCE,))
    with_data = sampled and not options.only
    _, written = write_or_render(options, argv, make, whole=False, with_data=with_data)
    if not options.quiet:
        print_lines("\n".join(map(str, written)))
    drawn = {path.name.split(".")[0] for path in written}
    missing = [name for name in options.only or FIGURES if name not in drawn]
    if not missing or (options.quiet and not options.only):
        return DONE
    named = ", ".join(f"{name} ({EVERY_FIGURE[name].shows})" for name in missing)
    message = f"results have no data for the figures {named}"
    return print_message("figures", message, NOT_REACHED if options.only else DONE)


def _appearance_options(options: FiguresOptions) -> list[str]:
    """Return the options --only, --format and --theme that were given, as texts.

    Such as ``--format svg,png``, for a command line that is shown.
    """
    lists = (("only", options.only), ("format", options.format))
    words = [f"--{name} {','.join(chosen)}" for name, chosen in lists if chosen]
    return words + [f"--theme {options.theme}"] * (options.theme is not None)
