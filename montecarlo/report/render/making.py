"""Making a report: from a folder of results to its figures and pages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from montecarlo.claims.schema import Catalogue
from montecarlo.report.content.findings import Results, gather
from montecarlo.report.content.tables.explorer import read_explorer
from montecarlo.report.content.tables.saturated_rows import saturated_rows
from montecarlo.report.content.tables.topics import audit_rows, tail_table, topic_tables
from montecarlo.report.content.texts.author_texts import AuthorText
from montecarlo.report.content.texts.errata import make_errata
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.captions.facts import figure_facts, threshold_panels
from montecarlo.report.figures.captions.legends import read_legends
from montecarlo.report.figures.judging.texts import with_verdicts
from montecarlo.report.language.catalogues import SOURCE, Language, read_language
from montecarlo.report.render.embedding import draw_figures
from montecarlo.report.render.outputs import (
    Spread,
    write_errata,
    write_findings,
    write_fragments,
    write_markdown,
)
from montecarlo.report.render.pages import (
    Contents,
    evidence_name,
    render_erratum,
    render_evidence,
    render_index,
    render_page,
)
from montecarlo.results.folder import write_text


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
    contents = gather_contents(results, catalogue, languages, FIGURES, folder, spread)
    if authors:
        errata = make_errata(contents.findings, catalogue, languages, authors)
        contents = replace(contents, errata=errata)
    for name in formats:
        FORMATS[name](contents, folder, spread)


def gather_contents(  # noqa: PLR0913, PLR0917 - as above
    results: Results,
    catalogue: Catalogue,
    languages: Sequence[str],
    names: Iterable[str],
    folder: Path | None = None,
    spread: Spread = map,
) -> Contents:
    """Gather what a report shows, and write its figures into a folder, if there is one.

    Parameters
    ----------
    results, catalogue, languages
        As for `make_report`.
    names : iterable of str
        Keys of `FIGURES`: those to draw.
    folder : Path, optional
    spread : callable
        Draws figures, as ``map`` would.
    """
    results = with_verdicts(results)
    facts = figure_facts(results.measurements, results.curves)
    specs = {name: FIGURES[name] for name in names if name in facts}
    tables = (results.measurements, results.curves)
    figures = draw_figures(specs, tables, folder, spread)
    findings = gather(results, catalogue)
    return Contents(
        findings,
        make_errata(findings, catalogue, languages),
        figures,
        topic_tables(results.measurements),
        facts,
        audit_rows(results.measurements),
        saturated_rows(results.measurements),
        tail_table(results.measurements),
        read_legends(results.measurements, results.curves),
        threshold_panels(results.curves, findings),
        results.claims.report_card,
        results.claims.trained_model,
        results.claims.sensitivity,
        read_explorer(results.measurements, results.curves),
        languages,
    )


def _write_pages(contents: Contents, folder: Path, spread: Spread) -> None:
    """Write report and evidence in each language, the errata, and the index."""
    codes = contents.languages
    wanted = [(render_page, code, f"{code}.html") for code in codes]
    if not contents.findings.own:  # one page holds all of a user's claims
        wanted += [(render_evidence, code, evidence_name(code)) for code in codes]
    renders, in_codes, names = zip(*wanted, strict=True)
    pages = spread(_page_in, repeat(contents), renders, in_codes)
    for name, page in zip(names, pages, strict=True):
        write_text(folder / name, page)
    for erratum in contents.errata:
        page = render_erratum(contents, erratum, read_language(erratum.language))
        write_text(folder / f"erratum-{erratum.key}.html", page)
    write_errata(contents, folder)
    index = render_index(contents, read_language(SOURCE))
    write_text(folder / "index.html", index)


def import_all() -> None:
    """Do nothing: a worker that is sent this imports what figures and pages need."""


#: Renders a page of contents in a language.
Render = Callable[[Contents, Language], str]


def _page_in(contents: Contents, render: Render, code: str) -> str:
    """Render a page in a language; workers read that themselves."""
    return render(contents, read_language(code))


Writer = Callable[[Contents, Path, Spread], None]
#: What a report can be written as.
FORMATS: dict[str, Writer] = {
    "html": _write_pages,
    "markdown": write_markdown,
    "fragment": write_fragments,
    "json": write_findings,
}


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
