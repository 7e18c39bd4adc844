"""The figures and pages of an observation, from what stands on disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from montecarlo.report.content.observed.record import Observed
from montecarlo.report.content.observed.views import ObservedView, view_of
from montecarlo.report.figures.observed import OBSERVED_FIGURES
from montecarlo.report.language.catalogues import (
    LANGUAGES,
    SOURCE,
    Language,
    read_language,
)
from montecarlo.report.render.embedding import Figure, draw_figures
from montecarlo.report.render.pages import render_template
from montecarlo.results.folder import write_text


@dataclass(frozen=True, slots=True)
class ObservedContents:
    """What the pages of all languages show."""

    view: ObservedView
    figures: Mapping[str, Figure]  # figure id to Figure
    languages: Sequence[str]  # codes of the pages that are written together


def make_observed_report(
    observed: Observed, languages: Sequence[str], folder: Path
) -> ObservedView:
    """Write figures and pages into a folder; returns what they show.

    Parameters
    ----------
    observed : Observed
        Read from disk; the only source of numbers and verdicts.
    languages : sequence of str
        Codes of languages.
    folder : Path
        An existing folder.
    """
    contents = gather_contents(observed, languages, folder)
    for code in languages:
        page = render_observed(contents, read_language(code))
        write_text(folder / f"{code}.html", page)
    index = render_observed(contents, read_language(SOURCE), index=True)
    write_text(folder / "index.html", index)
    return contents.view


def gather_contents(
    observed: Observed, languages: Sequence[str], folder: Path
) -> ObservedContents:
    """Draw the figures into a folder and gather what pages show."""
    tables = (observed.table, pd.DataFrame())
    figures = draw_figures(OBSERVED_FIGURES, tables, folder)
    return ObservedContents(view_of(observed), figures, languages)


def render_observed(
    contents: ObservedContents, language: Language, *, index: bool = False
) -> str:
    """Render the report in one language, or the index."""
    return render_template(
        "observed-index.html.j2" if index else "observed.html.j2",
        language,
        languages=[(code, *LANGUAGES[code]) for code in contents.languages],
        view=contents.view,
        figures=contents.figures,
    )
