"""A report, or figures, from findings to the files that are asked for."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from bs4.element import Tag

from montecarlo.errors import NotReachedError
from montecarlo.report.content.findings import Findings
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.attention import ATTENTION
from montecarlo.report.figures.verdicts import CASES, TEXTS
from montecarlo.report.formats import DEFAULT, MARKDOWN
from montecarlo.report.language.catalogues import SOURCE, Language, read_language
from montecarlo.report.render import pages
from montecarlo.report.render.contents import (
    Contents,
    canonical_command,
    gather_contents,
)
from montecarlo.report.render.markdown import (
    link_beside,
    read_html,
    render_markdown_erratum,
    render_markdown_post,
    to_markdown,
)
from montecarlo.study.executors import Workers
from montecarlo.study.folder import write_text

#: Renders a file of contents in a language.
Render = Callable[[Contents, Language], str]
#: Name of a file, what renders it, and the code of its language.
File = tuple[str, Render, str]


def make_report(
    findings: Findings,
    languages: Sequence[str],
    folder: Path,
    workers: Workers | None = None,
    formats: Sequence[str] = (DEFAULT,),
) -> None:
    """Write the figures and the report in some languages into an existing folder.

    Findings were read from disk: the only source of numbers and verdicts.  Processes
    may draw figures and pages beside each other; without an executor this one does.
    """
    spread = partial(_map_calls, workers)
    contents = gather_contents(
        findings,
        languages,
        select_figures(findings),
        folder,
        spread=spread,
        adaptive=MARKDOWN not in formats,
    )
    for name in formats:
        files, renders, codes = zip(*FILES[name](contents), strict=True)
        texts = spread(_render, repeat(contents), renders, codes)
        for file, text in zip(files, texts, strict=True):
            write_text(folder / file, text)


def html_files(contents: Contents) -> Iterator[File]:
    """Yield report and evidence in each language, the errata, and the index."""
    for code in contents.languages:
        yield f"{code}.html", partial(pages.render, "report"), code
        if not contents.findings.own:  # one page holds all of a user's claims
            yield f"evidence-{code}.html", partial(pages.render, "evidence"), code
    for erratum in contents.errata:
        render = partial(pages.render, "erratum", erratum=erratum)
        yield f"erratum-{erratum.text.key}.html", render, erratum.text.language
    yield from _errata(contents, str)
    yield "index.html", partial(pages.render, "index"), SOURCE


def markdown_files(contents: Contents) -> Iterator[File]:
    """Yield a post in each language, and the errata."""
    for code in contents.languages:
        yield f"report-{code}.md", render_markdown_post, code
    yield from _errata(contents, link_beside)


#: What yields the files of each format.
FILES: dict[str, Callable[[Contents], Iterator[File]]] = {
    "html": html_files,
    "markdown": markdown_files,
}


def _errata(contents: Contents, link: Callable[[str], str]) -> Iterator[File]:
    """Yield the errata as Markdown."""
    for erratum in contents.errata:
        render = partial(render_markdown_erratum, erratum=erratum, link=link)
        yield f"erratum-{erratum.text.key}.md", render, erratum.text.language


def select_figures(findings: Findings) -> list[str]:
    """Return the figures that stand with results; of some claims those of their topics.

    What all texts say, together, is no matter of some claims.
    """
    if findings.own:
        return [CASES.id, *(name for name in FIGURES if name != ATTENTION.id)]
    if not findings.of_some:
        return [CASES.id, *FIGURES]
    shown = {None, *(claim.topic for claim in findings.claims)}
    names = (n for n, spec in FIGURES.items() if spec.section in shown)
    return [CASES.id, *(name for name in names if name != TEXTS.id)]


#: A figure, its tables and languages to files by format and code of the language.
Draw = Callable[..., dict[tuple[str, str], bytes]]
#: What a Markdown page can show, best first.
SHOWN = ("svg", "png", "pdf")


def write_figures(  # noqa: PLR0913 - what, in which words, and how
    findings: Findings,
    languages: Sequence[str],
    folder: Path,
    _workers: Workers | None,  # this process draws
    *,
    chosen: Sequence[str],
    draw: Draw,
    typed: Sequence[str] = (),
    sampled: bool = True,
) -> None:
    """Write figures, and a file of captions, for each language into an existing folder.

    Of those that are chosen, ones without data are left out; ``draw`` is `draw_files`,
    told formats and looks.  Captions end with the command: with the options ``typed``
    for looks, and where a report was not ``sampled`` for this, after the command of
    that report.

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
        files = draw(*contents.drawings[name], languages=spoken)
        for (kind, code), content in files.items():
            (folder / f"{name}.{code}.{kind}").write_bytes(content)
        kinds = {kind for kind, _ in files}
        kind = next(kind for kind in SHOWN if kind in kinds)
        for code in languages:
            shown[code][name] = f"{name}.{code}.{kind}"
    command = _figures_command(findings.run, languages, typed, sampled=sampled)
    for language in spoken:
        text = captions(contents, shown[language.code], language, command)
        write_text(folder / f"captions.{language.code}.md", text)


def _figures_command(
    run: Mapping[str, Any],
    languages: Sequence[str],
    typed: Sequence[str],
    *,
    sampled: bool,
) -> str:
    """Return what to type to draw figures again, first to sample what they are of."""
    if sampled:
        return " ".join([canonical_command(run, "figures"), *typed])
    words = ["python -m montecarlo figures --from output"]
    words += [f"--lang {','.join(languages)}"] * (list(languages) != [SOURCE])
    return f"{canonical_command(run)}\n{' '.join([*words, *typed])}"


def captions(
    contents: Contents, drawn: dict[str, str], language: Language, command: str
) -> str:
    """Return captions, alternative texts and what to cite."""
    tree = read_html(pages.render("captions", contents, language, quotable=True))
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
        blocks.append(f"{to_markdown(cite)}\n~~~\n{command}\n~~~\n")
    return "\n".join(blocks)


def _render(contents: Contents, render: Render, code: str) -> str:
    """Render a file in a language; workers read that themselves."""
    return render(contents, read_language(code))


def import_modules() -> None:
    """Import what figures and pages need: a worker that is sent this has done so."""


def _map_calls(
    workers: Workers | None, function: Callable[..., Any], *arguments: Iterable[object]
) -> list[Any]:
    """Call a function for each of some arguments, on workers if there are any.

    Each worker is sent its part at once: most arguments are the same tables, and are
    sent once with it.  It is done here if the workers are not there or die of it.
    """
    calls = list(zip(*arguments, strict=False))  # some arguments repeat without end
    if workers is not None:
        size = -(-len(calls) // workers.jobs) or 1
        parts = [calls[n : n + size] for n in range(0, len(calls), size)]
        with suppress(BrokenExecutor):
            return [*chain.from_iterable(workers.map(partial(_call, function), parts))]
    return _call(function, calls)


def _call(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Make some calls."""
    return [function(*call) for call in calls]
