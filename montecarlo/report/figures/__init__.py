"""The figures of the report.

A figure is drawn once, without words; the words of a language are added for each page.
A new figure is a `FigureSpec` in a module and an entry in `_SPECS`; caption, number and
place on the page follow from these.
"""

from montecarlo.report.figures import (
    attention,
    by_dimension,
    formats,
    training,
    verdicts,
)

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
#: By id, in the order of pages within each section.
FIGURES = {spec.id: spec for spec in _SPECS}
#: With the figure of the checks of selected claims, which has tables of its own.
EVERY_FIGURE = {verdicts.CASES.id: verdicts.CASES, **FIGURES}
