"""The figures of the report: tables of results in, SVG without words out.

Axes and legends carry symbols and numbers only, so that one set serves all languages.
A new figure is one module with its `FigureSpec`, and one entry in `FIGURES`: captions,
numbers and places on pages are made from these.
"""

from montecarlo.report.figures.attention import ATTENTION
from montecarlo.report.figures.files import render_svg
from montecarlo.report.figures.formats import FORMATS
from montecarlo.report.figures.gradients import GRADIENT_RATIO, GRADIENTS
from montecarlo.report.figures.judging.papers import CONCENTRATION, SCALE_GROWTH
from montecarlo.report.figures.maps import ENTROPY, SATURATION
from montecarlo.report.figures.scores import (
    AUDIT,
    LARGEST_SCORE,
    SCORE_DISTRIBUTION_FIGURE,
    VARIANCE,
)
from montecarlo.report.figures.specs import FigureSpec
from montecarlo.report.figures.training import (
    TRAINING_LOSS,
    TRAINING_RATES,
    TRAINING_STARTS,
)
from montecarlo.report.figures.verdicts import (
    CASES,
    REPORT_CARD,
    TEXTS,
    THRESHOLDS,
    Z_SCORES,
)
from montecarlo.report.figures.weights import (
    EFFECTIVE_KEYS,
    PLANTED,
    WEIGHT_MAX,
    WEIGHTS_BY_RANK,
)

__all__ = ["EVERY_FIGURE", "FIGURES", "FigureSpec", "render_svg"]

#: In the order in which those of a section stand on pages.
FIGURES = {
    spec.id: spec
    for spec in (
        *(TEXTS, ATTENTION),
        *(AUDIT, VARIANCE, SCORE_DISTRIBUTION_FIGURE),
        *(EFFECTIVE_KEYS, WEIGHTS_BY_RANK, WEIGHT_MAX, SATURATION, ENTROPY),
        *(PLANTED, LARGEST_SCORE, THRESHOLDS),
        *(GRADIENTS, GRADIENT_RATIO),
        *(FORMATS, TRAINING_LOSS, TRAINING_RATES, TRAINING_STARTS),
        *(Z_SCORES, REPORT_CARD),
        *(SCALE_GROWTH, CONCENTRATION),
    )
}
#: With that of a few claims, which is drawn from other tables.
EVERY_FIGURE = {CASES.id: CASES, **FIGURES}
