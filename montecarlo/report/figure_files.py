"""Figures as files for documents, with captions in several languages beside them."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from bs4.element import Tag

from montecarlo.errors import NotReachedError
from montecarlo.report.content.findings import Findings
from montecarlo.report.language.catalogues import Language, read_language
from montecarlo.report.render.contents import Contents, gather_contents
from montecarlo.report.render.markdown import read_html, to_markdown
from montecarlo.report.render.pages import render
from montecarlo.study.folder import write_text

#: A figure and its tables to files by format.
Draw = Callable[..., dict[str, bytes]]
#: What a Markdown page can show, best first.
SHOWN = ("svg", "png", "pdf")


def write_figures(
    findings: Findings,
    languages: Sequence[str],
    folder: Path,
    _executor: Executor | None,  # this process draws
    *,
    chosen: Sequence[str],
    draw: Draw,
) -> None:
    """Write figures, and a file of captions for each language, into a folder.

    Parameters
    ----------
    findings : Findings
    languages : sequence of str
        Codes of the captions' languages.
    folder : Path
        An existing folder.
    chosen : sequence of str
        Names of figures; those without data are left out.
    draw : callable
        `draw_files`, told formats and looks.

    Raises
    ------
    NotReachedError
        If there are data for none of the figures.
    """
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
        drawn[name] = f"{name}.{next(kind for kind in SHOWN if kind in files)}"
    for code in languages:
        text = captions(contents, drawn, read_language(code))
        write_text(folder / f"captions.{code}.md", text)


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
