"""Figures for documents of one's own, with captions in several languages beside them.

From a report's contents to files; options of ``python -m montecarlo figures``.
"""

import argparse
from collections.abc import Collection, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

from bs4.element import Tag

from montecarlo.errors import InputError, NotReachedError
from montecarlo.names import look_up, parse_whole
from montecarlo.printing import print_lines
from montecarlo.report.command import Make
from montecarlo.report.content.findings import Findings
from montecarlo.report.figures import EVERY_FIGURE
from montecarlo.report.figures.drawing.files import FORMATS, THEMES, draw_files
from montecarlo.report.language.catalogues import Language, read_language
from montecarlo.report.render.contents import Contents, gather_contents
from montecarlo.report.render.markdown import read_html, to_markdown
from montecarlo.report.render.pages import render
from montecarlo.study.folder import write_text

LEAST_DPI, MOST_DPI = 50, 1200
DECIMALS = ("point", "comma")


def figure_maker(arguments: argparse.Namespace) -> Make:
    """Return what writes the figures that are asked for, and captions, into a folder.

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
        look_up("figure", name, EVERY_FIGURE)
    if arguments.theme is not None:
        look_up("theme", arguments.theme, THEMES)
    mark = arguments.decimal or "point"
    look_up("decimal", mark, dict.fromkeys(DECIMALS))
    asked = arguments.figures or EVERY_FIGURE
    chosen = [name for name in EVERY_FIGURE if name in asked]
    draw = partial(
        draw_files,
        formats=[kind for kind in FORMATS if kind in formats],
        theme=arguments.theme,
        dpi=_read_dpi(arguments.dpi, formats),
        comma=mark == "comma",
    )

    def make(
        findings: Findings,
        languages: Sequence[str],
        folder: Path,
        _executor: Executor | None,
    ) -> None:
        contents = gather_contents(findings, languages, chosen)
        if not contents.figures:
            raise NotReachedError(
                f"results must have data for one of these figures: {', '.join(chosen)}"
            )
        drawn = {}
        for name in contents.figures:
            files = draw(*contents.drawings[name])
            for kind, content in files.items():
                (folder / f"{name}.{kind}").write_bytes(content)
            # of those that were asked for, what a Markdown page can show best
            best = next(kind for kind in ("svg", "png", "pdf") if kind in files)
            drawn[name] = f"{name}.{best}"
        for code in languages:
            text = captions(contents, drawn, read_language(code))
            write_text(folder / f"captions.{code}.md", text)

    return make


def undrawn(folder: Path, names: Collection[str]) -> list[str]:
    """Return the figures that are not in the folder that was written for them."""
    return [name for name in names if not any(folder.glob(f"{name}.*"))]


def _read_dpi(typed: str | None, formats: Sequence[str]) -> int:
    """Return how many pixels an inch has."""
    if typed is None:
        return 200
    dpi = parse_whole("dpi", typed)
    if not LEAST_DPI <= dpi <= MOST_DPI:
        raise InputError(f"dpi must lie from {LEAST_DPI} to {MOST_DPI}, got {dpi}")
    if "png" not in formats:
        raise InputError(f"--dpi must stand with --format png, got {dpi}")
    return dpi


def captions(contents: Contents, drawn: dict[str, str], language: Language) -> str:
    """Return captions, legends in words, alternative texts and what to cite."""
    tree = read_html(render("captions", contents, language, quotable=True))
    figures = {figure["id"]: figure for figure in tree.find_all("figure")}
    heading = tree.find("h1")
    blocks = [f"# {heading.get_text().strip()}\n"] if heading else []
    for name, file in drawn.items():
        figure = figures[f"figure-{name}"]
        del figure["id"]
        blocks.append(f"## {name}\n")
        blocks.append(to_markdown(figure, {"#": file}.__getitem__))
    cite = tree.find(id="cite")
    if isinstance(cite, Tag):
        blocks.append(f"{to_markdown(cite)}\n~~~\n{contents.command}\n~~~\n")
    return "\n".join(blocks)


def print_paths(_: Findings, written: Sequence[Path]) -> None:
    """Print which files were written."""
    for path in written:
        print_lines(path)
