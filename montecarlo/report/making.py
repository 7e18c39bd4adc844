"""A report, from results to the files of the formats that are asked for."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import suppress
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from montecarlo.claims.schema import Catalogue
from montecarlo.report.content.findings import Results
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.verdicts import CASES, TEXTS
from montecarlo.report.formats import DEFAULT, FORMATS, MARKDOWN, read_format
from montecarlo.report.language.catalogues import read_language
from montecarlo.report.render.contents import (
    KRAMDOWN,
    Contents,
    Post,
    Render,
    gather_contents,
)
from montecarlo.study.folder import write_text


def make_report(  # noqa: PLR0913, PLR0917 - what, in which words, where and as what
    results: Results,
    catalogue: Catalogue,
    languages: Sequence[str],
    folder: Path,
    formats: Sequence[str] = (DEFAULT,),
    executor: Executor | None = None,
    post: Post = KRAMDOWN,
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
        Of `FORMATS`.
    executor : concurrent.futures.Executor, optional
        Processes that draw figures and pages beside each other; by default this one
        does.
    post : Post
        How Markdown is written.
    """
    spread = partial(_each, executor)
    contents = gather_contents(
        results,
        catalogue,
        languages,
        _figures_beside(results, formats),
        folder,
        spread=spread,
        post=post,
        adaptive=MARKDOWN not in formats,
    )
    for name in formats:
        files, renders, codes = zip(*read_format(name)(contents), strict=True)
        texts = spread(_render, repeat(contents), renders, codes)
        for file, text in zip(files, texts, strict=True):
            write_text(folder / file, text)


def _figures_beside(results: Results, formats: Sequence[str]) -> list[str]:
    """Return the figures that stand with results; of some claims those of their topics.

    How it was made, and what papers say, stands on pages alone.
    """
    if not results.of_some:
        return [CASES.id, *FIGURES]
    sections: set[str | None] = {"answer"}
    sections |= {claim.topic for claim in results.claims.claims}
    if DEFAULT in formats:
        sections |= {"method", None}
    return [CASES.id] + [
        name
        for name, spec in FIGURES.items()
        if spec.section in sections and spec is not TEXTS
    ]


def _render(contents: Contents, render: Render, code: str) -> str:
    """Render a file in a language; workers read that themselves."""
    return render(contents, read_language(code))


def import_all() -> None:
    """Import what figures and pages need, on a worker that is sent this."""
    for name in FORMATS:
        read_format(name)


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
