"""Figures for documents of one's own, with captions in several languages beside them.

From a report's contents to files; options of ``python -m montecarlo figures``.
"""

import argparse
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from montecarlo.claims.schema import Catalogue
from montecarlo.errors import InputError, UnfinishedError
from montecarlo.names import look_up, whole_number
from montecarlo.printing import print_lines
from montecarlo.report.command import Make
from montecarlo.report.content.findings import Results
from montecarlo.report.content.views import Findings
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.drawing.files import FORMATS, THEMES, draw_files
from montecarlo.report.figures.judging.texts import with_verdicts
from montecarlo.report.language.catalogues import Language, read_language
from montecarlo.report.render.making import gather_contents
from montecarlo.report.render.markdown import Node, read_html, to_markdown
from montecarlo.report.render.pages import Contents, render_captions
from montecarlo.report.terminal import print_list
from montecarlo.results.folder import write_text

LEAST_DPI, MOST_DPI = 50, 1200
DECIMALS = ("point", "comma")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which figures are drawn, and how.

    Attributes
    ----------
    figures : tuple of str
        Keys of `FIGURES`.
    formats : tuple of str
    dpi : int
    theme : str or None
    comma : bool
        Whether numbers have commas for decimal points.
    """

    figures: tuple[str, ...]
    formats: tuple[str, ...]
    dpi: int
    theme: str | None
    comma: bool


def read_wanted(arguments: argparse.Namespace) -> Wanted:
    """Validate which figures are asked for, and how.

    Parameters
    ----------
    arguments : argparse.Namespace
        With ``figures``, ``format``, ``dpi``, ``theme`` and ``decimal`` as typed, None
        where not.

    Raises
    ------
    ValueError
        One line: name, requirement, what came.
    """
    formats = arguments.format or ["svg"]
    for name in formats:
        look_up("format", name, dict.fromkeys(FORMATS))
    for name in arguments.figures or ():
        look_up("figure", name, FIGURES)
    if arguments.theme is not None:
        look_up("theme", arguments.theme, THEMES)
    mark = arguments.decimal or "point"
    look_up("decimal", mark, dict.fromkeys(DECIMALS))
    dpi = 200
    if arguments.dpi is not None:
        dpi = whole_number("dpi", arguments.dpi)
        if not LEAST_DPI <= dpi <= MOST_DPI:
            raise InputError(f"dpi must lie from {LEAST_DPI} to {MOST_DPI}, got {dpi}")
        if "png" not in formats:
            raise InputError(f"--dpi must stand with --format png, got {dpi}")
    chosen = tuple(name for name in FIGURES if name in (arguments.figures or FIGURES))
    return Wanted(
        chosen,
        tuple(f for f in FORMATS if f in formats),
        dpi,
        arguments.theme,
        mark == "comma",
    )


def figure_maker(wanted: Wanted) -> Make:
    """Return what writes figures and captions into a folder."""

    def make(
        results: Results,
        catalogue: Catalogue,
        languages: Sequence[str],
        folder: Path,
        _executor: Executor | None,
    ) -> None:
        contents = gather_contents(results, catalogue, languages, wanted.figures)
        drawn = _write_figures(with_verdicts(results), wanted, contents, folder)
        for code in languages:
            text = captions(contents, drawn, read_language(code))
            write_text(folder / f"captions.{code}.md", text)

    return make


def _write_figures(
    results: Results, wanted: Wanted, contents: Contents, folder: Path
) -> dict[str, str]:
    """Write the figures; returns id to the file that a caption shows."""
    drawn = {}
    for name in wanted.figures:
        if name not in contents.figures:
            continue
        files = draw_files(
            FIGURES[name],
            (results.measurements, results.curves),
            wanted.formats,
            wanted.theme,
            dpi=wanted.dpi,
            comma=wanted.comma,
        )
        for kind, content in files.items():
            (folder / f"{name}.{kind}").write_bytes(content)
        # of those that were asked for, what a Markdown page can show best
        shown = next(kind for kind in ("svg", "png", "pdf") if kind in files)
        drawn[name] = f"{name}.{shown}"
    if not drawn:
        names = ", ".join(wanted.figures)
        raise UnfinishedError(
            f"results must have data for one of these figures: {names}"
        )
    return drawn


def captions(contents: Contents, drawn: dict[str, str], language: Language) -> str:
    """Return captions, legends in words and alternative texts as Markdown.

    Parameters
    ----------
    contents : Contents
    drawn : dict
        Id of a figure to its file.
    language : Language
    """
    tree = read_html(render_captions(contents, language))
    figures = {n.attributes["id"]: n for n in tree.walk() if n.tag == "figure"}
    heading = tree.find("h1")
    blocks = [f"# {heading.text().strip()}\n"] if heading else []
    for name, file in drawn.items():
        figure = figures[f"figure-{name}"]
        del figure.attributes["id"]
        blocks.append(f"## {name}\n")
        blocks.append(to_markdown(Node("div", {}, [figure]), {"#": file}.__getitem__))
    return "\n".join(blocks)


def print_figures() -> None:
    """Print what figures there are."""
    print_list("figures")


def print_paths(_: Findings, written: Sequence[Path]) -> None:
    """Print which files were written."""
    for path in written:
        print_lines(path)
