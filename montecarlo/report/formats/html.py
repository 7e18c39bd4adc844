"""Pages: report, evidence and papers in each language, the errata, and the index."""

from collections.abc import Iterator
from functools import partial

from montecarlo.report.language.catalogues import SOURCE
from montecarlo.report.render.contents import Contents, File
from montecarlo.report.render.errata_markdown import errata_files
from montecarlo.report.render.pages import (
    evidence_name,
    papers_name,
    render_erratum,
    render_evidence,
    render_index,
    render_page,
    render_papers,
)


def files(contents: Contents) -> Iterator[File]:
    """Yield the pages, and the errata as Markdown beside them."""
    for code in contents.languages:
        yield f"{code}.html", render_page, code
        if not contents.findings.own:  # one page holds all of a user's claims
            yield evidence_name(code), render_evidence, code
        if contents.findings.record.literature is not None:
            yield papers_name(code), render_papers, code
    for erratum in contents.errata:
        render = partial(render_erratum, erratum=erratum)
        yield f"erratum-{erratum.key}.html", render, erratum.language
    yield from errata_files(contents)
    yield "index.html", render_index, SOURCE
