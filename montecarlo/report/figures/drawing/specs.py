"""What a figure of the report is, and how it becomes SVG.

Tables of results come in; a styled `Figure` without words goes out, and SVG text.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.claims.schema import Topic
from montecarlo.report.figures.drawing.panels import house_style
from montecarlo.report.figures.drawing.svg import compact

#: These take measurements and curves.
Builder = Callable[[DataFrame, DataFrame], Figure | None]
Fact = Mapping[str, float]
FactPicker = Callable[[DataFrame, DataFrame], Fact | None]
RowPicker = Callable[[DataFrame, DataFrame], DataFrame]
#: Where figures stand, from the top of a page: before all topics, with one, after them.
Section = Literal["answer", Topic, "method"]
SECTIONS: tuple[Section, ...] = get_args(Section)


def message(text: str) -> str:
    """Return words as they are: by this name the catalogues of languages find them."""
    return text


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
    section : str, optional
        Where it stands, after those before it in the table of figures; None: nowhere.
    on_report : bool
        Whether it stands on the report itself; otherwise on its evidence.
    own_section : str, optional
        Where it stands on the one page of a user's own claims, if elsewhere.
    caption, alternative : str
        What pages say below it and in its place, each a `message`.
    fact : callable
        Returns the numbers that these name, or None without them; ``NAME_error`` says
        which digits of ``NAME`` are shown.
    named : (str, str)
        What ``first`` and ``second`` of its fact are, for data.
    constants : mapping
        What else they name: the same for all results.
    series : mapping
        Kind of the named series of its legend, to what returns their rows.
    """

    id: str
    build: Builder
    shows: str = ""
    section: Section | None = None
    on_report: bool = False
    own_section: Section | None = None
    caption: str = ""
    alternative: str = ""
    fact: FactPicker = pick_nothing
    named: tuple[str, str] = ("first", "second")
    constants: Mapping[str, float | str] = field(default_factory=dict)
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
