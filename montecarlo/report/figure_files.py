"""Figures as files for documents in some languages, with captions beside them."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from montecarlo.errors import NotReachedError
from montecarlo.report.content.findings import Findings
from montecarlo.report.language.catalogues import Language, read_language
from montecarlo.report.render.contents import Contents, gather_contents
from montecarlo.report.render.markdown import Kramdown, read_html, to_markdown
from montecarlo.report.render.pages import render
from montecarlo.study.folder import write_text

#: A figure, its tables and languages to files by format and code of the language.
Draw = Callable[..., dict[tuple[str, str], bytes]]
#: What a Markdown page can show, best first.
SHOWN = ("svg", "png", "pdf")


def write_figures(  # noqa: PLR0913 - what, in which words, and how
    findings: Findings,
    languages: Sequence[str],
    folder: Path,
    _executor: Executor | None,  # this process draws
    *,
    chosen: Sequence[str],
    draw: Draw,
    wordless: bool = False,
    flavour: type[Kramdown] = Kramdown,
) -> None:
    """Write figures, and a file of captions, for each language into an existing folder.

    Of those that are chosen, ones without data are left out; ``draw`` is `draw_files`,
    told formats and looks.  ``wordless``: one set with symbols alone for all languages;
    otherwise the name of a file has its language.  ``flavour`` is that of captions.

    Raises
    ------
    NotReachedError
        If there are data for none of the figures.
    """
    spoken = [read_language(code) for code in languages]
    contents = gather_contents(findings, languages, chosen)
    if not contents.figures:
        raise NotReachedError(
            f"results must have data for one of these figures: {', '.join(chosen)}"
        )
    shown: dict[str, dict[str, str]] = {code: {} for code in languages}
    for name in contents.figures:
        files = draw(*contents.drawings[name], languages=[None] if wordless else spoken)
        for (kind, code), content in files.items():
            file = ".".join(filter(None, (name, code, kind)))
            (folder / file).write_bytes(content)
        kinds = {kind for kind, _ in files}
        kind = next(kind for kind in SHOWN if kind in kinds)
        for code in languages:
            parts = (name, kind) if wordless else (name, code, kind)
            shown[code][name] = ".".join(parts)
    for language in spoken:
        text = captions(contents, shown[language.code], language, flavour)
        write_text(folder / f"captions.{language.code}.md", text)


def captions(
    contents: Contents,
    drawn: dict[str, str],
    language: Language,
    flavour: type[Kramdown],
) -> str:
    """Return captions, alternative texts and what to cite."""
    page = list(read_html(render("captions", contents, language, quotable=True)).walk())
    named = {one.attributes["id"]: one for one in page if "id" in one.attributes}
    title = next(one for one in page if one.name == "h1")
    blocks = [f"# {title.text().strip()}\n"]
    for name, file in drawn.items():
        figure = named[f"figure-{name}"]
        del figure.attributes["id"]
        blocks.append(f"## {name}\n")
        blocks.append(to_markdown(figure, {"#": file}.__getitem__, flavour))
    if cite := named.get("cite"):
        blocks.append(
            f"{to_markdown(cite, flavour=flavour)}\n~~~\n{contents.command}\n~~~\n"
        )
    return "\n".join(blocks)
