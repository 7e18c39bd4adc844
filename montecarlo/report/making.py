"""Writes the files of a report, or of figures, from findings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from montecarlo.errors import NotReachedError
from montecarlo.report.content.findings import Findings
from montecarlo.report.content.texts import Erratum
from montecarlo.report.figures import EVERY_FIGURE, FIGURES
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
from montecarlo.study.executors import Workers
from montecarlo.study.folder import write_text

#: Returns the text of a file, from contents and a language.
Render = Callable[[Contents, Language], str]
#: Name of a file, its renderer, and the code of its language.
File = tuple[str, Render, str]


def make_report(
    findings: Findings,
    languages: Sequence[str],
    folder: Path,
    workers: Workers | None = None,
    formats: Sequence[str] = (DEFAULT,),
) -> None:
    """Write the figures and pages of a report into an existing folder.

    Parameters
    ----------
    findings : Findings
        All numbers and verdicts of the report.
    languages : sequence of str
        Codes of languages.  Files of figures have the words of the first; if there is
        a Markdown post, there is a file for each language.
    folder : Path
    workers : Workers, optional
        Processes that render in parallel; by default this process renders.
    formats : sequence of str
        Names of formats, of `FILES`.
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
    """Yield (name, renderer, language code) of each file of a report in HTML.

    They are the report and its evidence page in each language, each erratum as HTML and
    as Markdown, and the index.  For a user's claims there is no evidence page.
    """
    for code in contents.languages:
        yield f"{code}.html", partial(pages.render, "report"), code
        if not contents.findings.own:  # a user's claims have a single page
            yield f"evidence-{code}.html", partial(pages.render, "evidence"), code
    for erratum in contents.errata:
        render = partial(pages.render, "erratum", erratum=erratum)
        yield f"erratum-{erratum.text.key}.html", render, erratum.text.language
    yield from _errata_files(contents)
    yield "index.html", partial(pages.render, "index"), SOURCE


def markdown_files(contents: Contents) -> Iterator[File]:
    """Yield (name, renderer, language code) of each Markdown file of a report.

    They are a post in each language, and the errata.
    """
    for code in contents.languages:
        yield f"report-{code}.md", _render_post, code
    yield from _errata_files(contents)


#: Files of a report, by format.
FILES: dict[str, Callable[[Contents], Iterator[File]]] = {
    "html": html_files,
    "markdown": markdown_files,
}


def _errata_files(contents: Contents) -> Iterator[File]:
    """Yield (name, renderer, language code) of each erratum as a Markdown file."""
    for erratum in contents.errata:
        render = partial(_render_erratum, erratum=erratum)
        yield f"erratum-{erratum.text.key}.md", render, erratum.text.language


def _render_post(contents: Contents, language: Language) -> str:
    """Return the report as a Markdown post in a language."""
    from montecarlo.report.render.markdown import render_markdown_post

    return render_markdown_post(contents, language)


def _render_erratum(contents: Contents, language: Language, erratum: Erratum) -> str:
    """Return an erratum as Markdown in a language."""
    from montecarlo.report.render.markdown import render_markdown_erratum

    return render_markdown_erratum(contents, language, erratum)


def select_figures(findings: Findings) -> list[str]:
    """Return the ids of the figures to draw for a report: ``["cases", "texts", ...]``.

    By default they are all of `EVERY_FIGURE`.  For selected claims they are ``cases``,
    ``attention`` and the figures of the claims' topics, without ``texts``.  For a
    user's claims they are ``cases`` and the figures of the claims' topics.  Figures
    that lack data are left out later, by `gather_contents`.
    """
    if not (findings.own or findings.is_selection):
        return [CASES.id, *FIGURES]
    shown = {None, *(claim.topic for claim in findings.claims)}
    unshown = ATTENTION.id if findings.own else TEXTS.id
    names = (n for n, spec in FIGURES.items() if spec.section in shown)
    return [CASES.id, *(name for name in names if name != unshown)]


#: Function that draws a figure: (format, code of the language) -> content of the file.
Draw = Callable[..., dict[tuple[str, str], bytes]]
#: Formats of pictures that captions link to, in order of preference.
SHOWN = ("svg", "png", "pdf")


def write_figures(  # noqa: PLR0913 - content, languages, looks and command
    findings: Findings,
    languages: Sequence[str],
    folder: Path,
    _workers: Workers | None,  # unused: this process draws
    *,
    chosen: Sequence[str],
    draw: Draw,
    chosen_options: Sequence[str] = (),
    sampled: bool = True,
) -> None:
    """Write figures, and their captions in each language, into an existing folder.

    Parameters
    ----------
    findings : Findings
    languages : sequence of str
        Codes of languages.
    folder : Path
    chosen : sequence of str
        Ids of figures; those without data are left out.
    draw : callable
        `draw_files` with its formats and theme filled in.
    chosen_options : sequence of str
        Options of the command line that choose figures, formats and theme.
    sampled : bool
        Whether the results were sampled for this command.  If not, the captions also
        give the command of the report.

    Raises
    ------
    NotReachedError
        If the results have data for none of the figures.
    InputError
        If a PDF or PNG needs a font that the machine lacks.
    """
    spoken = [read_language(code) for code in languages]
    contents = gather_contents(findings, languages, chosen)
    if not contents.figures:
        named = ", ".join(f"{name} ({EVERY_FIGURE[name].shows})" for name in chosen)
        raise NotReachedError(f"results must have data for a figure: {named}")
    shown: dict[str, dict[str, str]] = {code: {} for code in languages}
    for name in contents.figures:
        files = draw(*contents.drawings[name], languages=spoken)
        for (kind, code), content in files.items():
            (folder / f"{name}.{code}.{kind}").write_bytes(content)
        kind = next(kind for kind in SHOWN if kind in {kind for kind, _ in files})
        for code in languages:
            shown[code][name] = f"{name}.{code}.{kind}"
    command = _figures_command(findings.run, languages, chosen_options, sampled=sampled)
    for language in spoken:
        text = captions(contents, shown[language.code], language, command)
        write_text(folder / f"captions.{language.code}.md", text)


def _figures_command(
    run: Mapping[str, Any],
    languages: Sequence[str],
    chosen_options: Sequence[str],
    *,
    sampled: bool,
) -> str:
    """Return the command line that draws the same figures again.

    ``run`` is the content of run.json.  If the results were not ``sampled`` for these
    figures but read from a report, the command of the report is in a first line.
    """
    if sampled:
        return " ".join([canonical_command(run, "figures"), *chosen_options])
    words = ["python -m montecarlo figures --from output"]
    words += [f"--lang {','.join(languages)}"] * (list(languages) != [SOURCE])
    return f"{canonical_command(run)}\n{' '.join([*words, *chosen_options])}"


def captions(
    contents: Contents, files: dict[str, str], language: Language, command: str
) -> str:
    """Return captions and alternative texts of figures, and a citation, as Markdown.

    ``files`` maps ids of figures to names of their files.  ``command`` is the one that
    draws them again.
    """
    from montecarlo.report.render.markdown import read_html, to_markdown

    tree = read_html(pages.render("captions", contents, language, quotable=True))
    figures = {figure["id"]: figure for figure in tree.find_all("figure")}
    heading = tree.find("h1")
    blocks = [f"# {heading.get_text().strip()}\n"] if heading else []
    for name, file in files.items():
        figure = figures[f"figure-{name}"]
        del figure["id"]
        blocks.append(f"## {name}\n")
        blocks.append(to_markdown(figure, {"#": file}.__getitem__))
    cite = tree.find(id="cite")
    if cite:
        blocks.append(f"{to_markdown(cite)}\n~~~\n{command}\n~~~\n")
    return "\n".join(blocks)


def _render(contents: Contents, render: Render, code: str) -> str:
    """Return the text of a file in a language, as its renderer makes it.

    ``code`` is that of the language, which each worker reads itself.
    """
    return render(contents, read_language(code))


def import_modules() -> None:
    """Import ahead of time, in a worker, the modules for figures and pages."""
    import matplotlib.backends.backend_svg  # noqa: F401

    import montecarlo.report.render.markdown  # noqa: F401


def _map_calls(
    workers: Workers | None, function: Callable[..., Any], *arguments: Iterable[object]
) -> list[Any]:
    """Return the list of what ``map`` yields for a function and iterables of arguments.

    There is an iterable for each parameter; calls end with the shortest one.  Each
    worker gets its share of the calls at once: most arguments are the same tables, and
    are then pickled once.  Without workers, or if they die, this process does the work.
    """
    calls = list(zip(*arguments, strict=False))  # some iterables are infinite
    if workers is not None:
        size = -(-len(calls) // workers.jobs) or 1
        parts = [calls[n : n + size] for n in range(0, len(calls), size)]
        with suppress(BrokenExecutor):
            return [*chain.from_iterable(workers.map(partial(_call, function), parts))]
    return _call(function, calls)


def _call(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the results of a function for each tuple of arguments in ``calls``."""
    return [function(*call) for call in calls]
