"""Making a report: from a folder of results to its figures and pages."""

from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor
from itertools import repeat
from pathlib import Path
from typing import Any

from montecarlo.claims.schema import Catalogue
from montecarlo.report.errata import erratum_markdown, make_errata
from montecarlo.report.facts import figure_facts, laws_with_variance, threshold_panels
from montecarlo.report.figures import FIGURES, render_svg
from montecarlo.report.findings import Results, gather
from montecarlo.report.language import SOURCE, read_language
from montecarlo.report.pages import (
    Contents,
    Figure,
    make_figure,
    render_erratum,
    render_index,
    render_page,
)
from montecarlo.report.report_card import read_view
from montecarlo.report.tables import audit_rows, tail_table, topic_tables


def make_report(
    results: Results,
    catalogue: Catalogue,
    languages: Sequence[str],
    folder: Path,
    executor: Executor | None = None,
) -> None:
    """Write the figures and the pages of some languages into a folder.

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
    executor : concurrent.futures.Executor, optional
        Processes that draw the figures, beside each other; by default this one does.
    """
    facts = figure_facts(results.measurements, results.curves)
    figures = _write_figures(results, facts, folder, executor)
    findings = gather(results, catalogue)
    contents = Contents(
        findings,
        make_errata(findings, catalogue, languages),
        figures,
        topic_tables(results.measurements),
        facts,
        audit_rows(results.measurements),
        tail_table(results.measurements),
        laws_with_variance(results.measurements),
        threshold_panels(results.curves, findings),
        read_view(results.claims),
        languages,
    )
    for code in languages:
        page = render_page(contents, read_language(code))
        (folder / f"{code}.html").write_text(page, encoding="utf-8", newline="\n")
    for erratum in contents.errata:
        language = read_language(erratum.language)
        name = f"erratum-{erratum.key}"
        page = render_erratum(contents, erratum, language)
        (folder / f"{name}.html").write_text(page, encoding="utf-8", newline="\n")
        text = erratum_markdown(erratum, language)
        (folder / f"{name}.md").write_text(text, encoding="utf-8", newline="\n")
    index = render_index(contents, read_language(SOURCE))
    (folder / "index.html").write_text(index, encoding="utf-8", newline="\n")


def _write_figures(
    results: Results, facts: dict[str, Any], folder: Path, executor: Executor | None
) -> dict[str, Figure]:
    """Draw every figure that the results have data for."""
    (folder / "figures").mkdir(exist_ok=True)
    figures = {}
    for name, svg in zip(FIGURES, _draw(results, executor), strict=True):
        if svg is None or name not in facts:
            continue
        (folder / "figures" / f"{name}.svg").write_text(
            svg, encoding="utf-8", newline="\n"
        )
        figures[name] = make_figure(name, svg)
    return figures


def _draw(results: Results, executor: Executor | None) -> list[str | None]:
    """Draw all figures; here, if the workers are not there or die of it."""
    tables = repeat(results.measurements), repeat(results.curves)
    if executor is not None:
        try:
            return list(executor.map(render_svg, FIGURES.values(), *tables))
        except BrokenExecutor:
            pass
    return list(map(render_svg, FIGURES.values(), *tables))
