"""The figures of the report: tables of results in, pictures with words out.

A figure is drawn once; the words of a language are put in when a page is made.
A new figure is its `FigureSpec` in a module, and one entry in `FIGURES`: captions,
numbers and places on pages are made from these.
"""

from montecarlo.report.figures import (
    attention,
    by_dimension,
    formats,
    training,
    verdicts,
)
from montecarlo.report.figures.specs import FigureSpec

__all__ = ["EVERY_FIGURE", "FIGURES", "FigureSpec"]

_SPECS = (
    verdicts.TEXTS,
    attention.ATTENTION,
    by_dimension.VARIANCE,
    by_dimension.WEIGHTS,
    by_dimension.PASSED_ON,
    by_dimension.JACOBIANS,
    formats.FORMATS_FIGURE,
    training.TRAINING,
)
#: In the order in which those of a section stand on pages.
FIGURES = {spec.id: spec for spec in _SPECS}
#: With that of a few claims, which is drawn from other tables.
EVERY_FIGURE = {verdicts.CASES.id: verdicts.CASES, **FIGURES}
