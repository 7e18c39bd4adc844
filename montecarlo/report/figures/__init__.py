"""The figures of the report: tables of results in, pictures with words out.

A figure is drawn once; the words of a language are put in when a page is made.
A new figure is one module with its `FigureSpec`, and one entry in `FIGURES`: captions,
numbers and places on pages are made from these.
"""

from montecarlo.report.figures.attention import ATTENTION
from montecarlo.report.figures.files import render_svg
from montecarlo.report.figures.formats import FORMATS
from montecarlo.report.figures.gradients import GRADIENT_SIZES, GRADIENTS
from montecarlo.report.figures.maps import SATURATION
from montecarlo.report.figures.papers import CONCENTRATION, SCALE_GROWTH
from montecarlo.report.figures.scores import (
    AUDIT,
    SCORE_DISTRIBUTION_FIGURE,
    VARIANCE,
)
from montecarlo.report.figures.specs import FigureSpec
from montecarlo.report.figures.training import (
    TRAINING,
    TRAINING_LOSS,
    TRAINING_RATES,
)
from montecarlo.report.figures.verdicts import (
    CASES,
    REPORT_CARD,
    TEXTS,
    THRESHOLDS,
    Z_SCORES,
)
from montecarlo.report.figures.weights import (
    PLANTED,
    WEIGHTS,
)

__all__ = ["EVERY_FIGURE", "FIGURES", "FigureSpec", "render_svg"]

#: In the order in which those of a section stand on pages.
FIGURES = {
    spec.id: spec
    for spec in (
        *(TEXTS, ATTENTION),
        *(AUDIT, VARIANCE, SCORE_DISTRIBUTION_FIGURE),
        *(WEIGHTS, SATURATION),
        *(PLANTED, THRESHOLDS),
        *(GRADIENTS, GRADIENT_SIZES, FORMATS),
        *(TRAINING, TRAINING_LOSS, TRAINING_RATES),
        *(Z_SCORES, REPORT_CARD),
        *(SCALE_GROWTH, CONCENTRATION),
    )
}
#: With that of a few claims, which is drawn from other tables.
EVERY_FIGURE = {CASES.id: CASES, **FIGURES}
