"""What a figure of the report is, and how it becomes SVG.

Tables of results come in; a styled `Figure` without words goes out, and SVG text.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.report.figures.drawing.panels import house_style
from montecarlo.report.figures.drawing.svg import compact

#: These take measurements and curves.
Builder = Callable[[DataFrame, DataFrame], Figure | None]
Fact = Mapping[str, float]
FactPicker = Callable[[DataFrame, DataFrame], Fact | None]
RowPicker = Callable[[DataFrame, DataFrame], DataFrame]


def pick_nothing(_measurements: DataFrame, _curves: DataFrame) -> Fact:
    """Return the fact of a figure whose alternative text names no number."""
    return {}


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure of the report; its functions are sent to workers by their names.

    Attributes
    ----------
    id : str
        Its name in pages and file names.
    build : callable
        Returns a Figure, or None where the results lack what it shows.
    shows : str
        What it shows, for a list on a terminal.
    fact : callable
        Returns the numbers that its alternative text names, or None without them.
    series : mapping
        Kind of the named series of its legend, to what returns their rows.
    """

    id: str
    build: Builder
    shows: str = ""
    fact: FactPicker = pick_nothing
    series: Mapping[str, RowPicker] = field(default_factory=dict)


def render_svg(
    spec: FigureSpec, measurements: DataFrame, curves: DataFrame
) -> str | None:
    """Return a figure as SVG for light and dark pages, or None without its data.

    Its text is paths, its ground transparent; equal tables give equal bytes.
    """
    with house_style(spec.id):
        figure = spec.build(measurements, curves)
        if figure is None:
            return None
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return compact(text.getvalue())
