"""What a report is written as: pages, Markdown, fragments, or findings as JSON.

A format is the files that it has: the name of each, what renders it, in which language.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import suppress
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from montecarlo.claims.schema import Catalogue
from montecarlo.report.content.findings import Results
from montecarlo.report.content.texts.author_texts import AuthorText
from montecarlo.report.content.texts.errata import Erratum
from montecarlo.report.figures import FIGURES
from montecarlo.report.language.catalogues import SOURCE, Language, read_language
from montecarlo.report.render.contents import Contents, gather_contents
from montecarlo.report.render.errata_markdown import erratum_markdown
from montecarlo.report.render.findings_json import render_findings
from montecarlo.report.render.markdown import read_html, to_markdown
from montecarlo.report.render.pages import (
    evidence_name,
    render_captions,
    render_erratum,
    render_evidence,
    render_fragment,
    render_index,
    render_page,
)
from montecarlo.results.folder import write_text

#: Renders a file of contents in a language.
Render = Callable[[Contents, Language], str]
#: Name of a file, what renders it, and the code of its language.
File = tuple[str, Render, str]
_STYLES = re.compile(r"(<style\b.*?</style>)", re.DOTALL)
_BRACES = {ord(brace): f"&#{ord(brace)};" for brace in "{}"}


def make_report(  # noqa: PLR0913, PLR0917 - what, in which words, where and as what
    results: Results,
    catalogue: Catalogue,
    languages: Sequence[str],
    folder: Path,
    formats: Sequence[str] = ("html",),
    executor: Executor | None = None,
    authors: Mapping[str, AuthorText] | None = None,
) -> None:
    """Write the figures and the report in some languages into a folder.

    Parameters
    ----------
    results : Results
        Read from disk; the only source of numbers and verdicts.
    catalogue : Catalogue
        The one that they were judged by; the source of claims' sentences.
    languages : sequence of str
        Codes of languages.
    folder : Path
        An existing folder.
    formats : sequence of str
        Keys of `FORMATS`.
    executor : concurrent.futures.Executor, optional
        Processes that draw figures and pages beside each other; by default this one
        does.
    authors : mapping, optional
        Key of a text to its author's file, which its erratum quotes.
    """
    spread = partial(_each, executor)
    contents = gather_contents(
        results, catalogue, languages, FIGURES, folder, spread=spread, authors=authors
    )
    for name in formats:
        files, renders, codes = zip(*FORMATS[name](contents), strict=True)
        texts = spread(_render, repeat(contents), renders, codes)
        for file, text in zip(files, texts, strict=True):
            write_text(folder / file, text)


def _render(contents: Contents, render: Render, code: str) -> str:
    """Render a file in a language; workers read that themselves."""
    return render(contents, read_language(code))


def import_all() -> None:
    """Do nothing: a worker that is sent this imports what figures and pages need."""


def _each(
    executor: Executor | None,
    function: Callable[..., Any],
    *arguments: Iterable[object],
) -> list[Any]:
    """Call a function for each of some arguments, on workers if there are any.

    It is done here if the workers are not there or die of it.
    """
    if executor is not None:
        with suppress(BrokenExecutor):
            return list(executor.map(function, *arguments))
    return list(map(function, *arguments))


def _pages(contents: Contents) -> Iterator[File]:
    """Yield report and evidence in each language, the errata, and the index."""
    for code in contents.languages:
        yield f"{code}.html", render_page, code
        if not contents.findings.own:  # one page holds all of a user's claims
            yield evidence_name(code), render_evidence, code
    for erratum in contents.errata:
        render = partial(render_erratum, erratum=erratum)
        yield f"erratum-{erratum.key}.html", render, erratum.language
    yield from _errata(contents)
    yield "index.html", render_index, SOURCE


def _posts(contents: Contents) -> Iterator[File]:
    """Yield a post in each language, and the errata, as Markdown for kramdown."""
    for code in contents.languages:
        yield f"report-{code}.md", _render_post, code
    yield from _errata(contents, _beside)


def _errata(contents: Contents, link: Callable[[str], str] = str) -> Iterator[File]:
    """Yield the erratum of each text as Markdown; ``link`` says what it points to."""
    for erratum in contents.errata:
        render = partial(_render_erratum, erratum=erratum, link=link)
        yield f"erratum-{erratum.key}.md", render, erratum.language


def _fragments(contents: Contents) -> Iterator[File]:
    """Yield an element in each language, to be put into a page of someone else's."""
    for code in contents.languages:
        yield f"fragment-{code}.html", _render_fragment, code


def _findings(_: Contents) -> Iterator[File]:
    """Yield findings.json: every verdict with its words, numbers and rows."""
    yield "findings.json", render_findings, SOURCE


#: What a report can be written as.
FORMATS: dict[str, Callable[[Contents], Iterator[File]]] = {
    "html": _pages,
    "markdown": _posts,
    "fragment": _fragments,
    "json": _findings,
}


def _render_post(contents: Contents, language: Language) -> str:
    """Return the post of a language."""
    tree = read_html(render_fragment(contents, language, quotable=True))
    title = ""
    if (heading := tree.find("h1")) is not None:
        # that of the captions has no formula
        plain = read_html(render_captions(contents, language)).find("h1")
        title = "" if plain is None else plain.text().strip()
        heading.tag, heading.children = "p", []
    return front_matter(language.code, title) + to_markdown(tree, _beside)


def _render_erratum(
    contents: Contents,
    language: Language,
    erratum: Erratum,
    link: Callable[[str], str],
) -> str:
    """Return the erratum of a text as Markdown."""
    page = render_erratum(contents, language, erratum, quotable=True)
    return erratum_markdown(erratum.key, page, link)


def _render_fragment(contents: Contents, language: Language) -> str:
    """Return the element of a language."""
    return without_tags(render_fragment(contents, language))


def front_matter(code: str, title: str) -> str:
    """Return what a static site wants to know of a post; keys in their order."""
    values = {
        "audio": "false",
        "generated": "true",
        "lang": code,
        "layout": "post",
        "title": json.dumps(title.replace('"', "'"), ensure_ascii=False),
        "translated": "false" if code == SOURCE else "true",
        "type": "note",
    }
    lines = [f"{key}: {value}" for key, value in values.items()]
    return "\n".join(["---", *lines, "---", "", ""])


def _beside(address: str) -> str:
    """Return an address as it is beside a post: figures are files, errata Markdown."""
    if address.startswith("#figure-"):
        return f"figures/{address.removeprefix('#figure-')}.svg"
    address = re.sub(r"^(erratum-[\w-]+)\.html", r"\1.md", address)
    return re.sub(r"^(\w{2})\.html#", r"report-\1.md#", address)


def without_tags(html: str) -> str:
    """Write braces so that no template engine takes them for a tag of its own.

    Jinja, Liquid, Hugo and their like run over files before a browser reads them.  In
    texts and attributes a brace is written by its number, and read as the same; in
    styles, where numbers mean nothing, a space is as good.
    """
    parts = _STYLES.split(html)
    parts[::2] = (text.translate(_BRACES) for text in parts[::2])
    parts[1::2] = (re.sub(r"\{(?=[{%#])", "{ ", style) for style in parts[1::2])
    return "".join(parts)
