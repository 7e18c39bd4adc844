"""The figures and pages of an observation, from what stands on disk."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from montecarlo.report.content.observed.record import Observed
from montecarlo.report.content.observed.views import ObservedView, view_observation
from montecarlo.report.figures import FigureSpec
from montecarlo.report.figures.observed.applied import (
    APPLIED_FIGURES,
    STEP_FIGURES,
    tables_of,
)
from montecarlo.report.figures.observed.heads import OBSERVED_FIGURES
from montecarlo.report.language.catalogues import SOURCE, Language, read_language
from montecarlo.report.render.embedding import Figure, draw_figures
from montecarlo.report.render.pages import render_template
from montecarlo.results.folder import write_text


def make_observed_report(
    observed: Observed, languages: Sequence[str], folder: Path
) -> ObservedView:
    """Write figures and pages into a folder; returns what they show."""
    view, figures = view_observation(observed), draw_observed(observed, folder)
    for name in (*languages, "index"):
        language = read_language(SOURCE if name == "index" else name)
        page = render_observed(
            view, figures, languages, language, index=name == "index"
        )
        write_text(folder / f"{name}.html", page)
    return view


def draw_observed(observed: Observed, folder: Path) -> dict[str, Figure]:
    """Draw the figures of an observation into a folder."""
    figures = _draw(OBSERVED_FIGURES, (observed.table, pd.DataFrame()), folder)
    if not observed.scales.empty:
        figures |= _draw(APPLIED_FIGURES, tables_of(observed), folder)
    if not observed.steps.empty:
        tables = observed.steps, pd.DataFrame()
        figures |= _draw(STEP_FIGURES, tables, folder)
    return figures


def render_observed(
    view: ObservedView,
    figures: Mapping[str, Figure],
    languages: Sequence[str],
    language: Language,
    *,
    index: bool = False,
) -> str:
    """Render the report in one language, or the index."""
    template = "observed-index.html.j2" if index else "observed.html.j2"
    return render_template(
        template, language, languages=languages, view=view, figures=figures
    )


def _draw(
    specs: Mapping[str, FigureSpec],
    tables: tuple[pd.DataFrame, pd.DataFrame],
    folder: Path,
) -> dict[str, Figure]:
    return draw_figures({name: (one, tables) for name, one in specs.items()}, folder)
