"""The figures of the report: tables of results in, SVG without words out.

Axes and legends carry symbols and numbers only, so that one set serves all languages.
A new figure is one module with its `FigureSpec`, and one entry in `FIGURES`; its
caption stands in figures.html.j2, its place in `render.numbering` and topics.html.j2.
"""

from montecarlo.report.figures.attention import ATTENTION
from montecarlo.report.figures.audit import AUDIT
from montecarlo.report.figures.distribution import SCORE_DISTRIBUTION_FIGURE
from montecarlo.report.figures.drawing.specs import FigureSpec, render_svg
from montecarlo.report.figures.formats import FORMATS
from montecarlo.report.figures.gradients import GRADIENT_RATIO, GRADIENTS
from montecarlo.report.figures.judging.card import REPORT_CARD
from montecarlo.report.figures.judging.judgement import THRESHOLDS, Z_SCORES
from montecarlo.report.figures.judging.texts import TEXTS
from montecarlo.report.figures.maps import ENTROPY, SATURATION
from montecarlo.report.figures.planted import PLANTED
from montecarlo.report.figures.scores import LARGEST_SCORE, VARIANCE
from montecarlo.report.figures.weights import (
    EFFECTIVE_KEYS,
    WEIGHT_MAX,
    WEIGHTS_BY_RANK,
)

__all__ = ["FIGURES", "FigureSpec", "render_svg"]

FIGURES = {
    spec.id: spec
    for spec in (
        *(ATTENTION, VARIANCE, WEIGHTS_BY_RANK, EFFECTIVE_KEYS, WEIGHT_MAX, SATURATION),
        *(LARGEST_SCORE, GRADIENTS, GRADIENT_RATIO, SCORE_DISTRIBUTION_FIGURE, ENTROPY),
        *(PLANTED, FORMATS, AUDIT, TEXTS, THRESHOLDS, Z_SCORES, REPORT_CARD),
    )
}
